/*
 * server/xact.h
 *		This transaction: may it write, and for what does its commit wait?
 */
#pragma once

namespace advisory
{

/* Is the transaction READ ONLY, or on a standby? */
inline bool
is_read_only_transaction() noexcept
{
	return XactReadOnly;
}

/*
 * Run write() in a READ ONLY transaction, too: for what is not the user's data.  An abort also
 * restores what this changes.  May ereport, if write() may.
 */
template <typename Write>
void
although_read_only(Write write)
{
	bool		is_read_only = XactReadOnly;

	XactReadOnly = false;
	write();
	XactReadOnly = is_read_only;
}

/*
 * From now on until it ends, this transaction has synchronous_commit at "on" at least, unless
 * lease_sync is off.  A commit that no synchronous standby has confirmed is lost if that standby is
 * promoted; with "off" also if the server crashes.  A lease, or a window, could then have two
 * owners.  Returns the level that it has now, for wal_commit_is_confirmed().  May ereport.
 */
int			commit_synchronously();

/* Called at the ends of transactions, before and after the commit. */
void		synccommit_at_xact_end(XactEvent event) noexcept;

}								/* namespace advisory */
