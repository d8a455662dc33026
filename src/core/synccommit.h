/*
 * core/synccommit.h
 *		Transactions whose commit a failover must not lose.
 *
 * A commit that no synchronous standby has confirmed is lost if that standby is promoted; with synchronous_commit = off
 * also if the server crashes.  A lease, or a window, could then have two owners.
 */
#pragma once

namespace advisory
{

/* From now on until it ends, this transaction has synchronous_commit at "on" at least, unless lease_sync is off.  May ereport. */
void		commit_synchronously();

/* Called at the ends of transactions, before and after the commit. */
void		synccommit_at_xact_end(XactEvent event) noexcept;

}								/* namespace advisory */
