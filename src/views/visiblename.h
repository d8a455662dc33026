/*
 * views/visiblename.h
 *		The names of locks, as far as the current user may see them.
 *
 * Members of pg_read_all_stats see every name.  Others see a name where they may see the
 * session that holds or awaits the lock, and also the role that named it: in that session, or
 * somewhere else.  What they called a lock in this session themselves they see in any case.
 */
#pragma once

#include "base/srf.h"
#include "server/locktable.h"
#include "shmem/heldread.h"
#include "shmem/nametable.h"
#include "views/knownkeys.h"

namespace advisory
{

/* Stands for what the current user may not see. */
constexpr char HIDDEN[] = "<insufficient privilege>";

/*
 * A name as the current user may see it: zero-terminated, in the database's encoding.  Null
 * if it was never seen; HIDDEN if the user may not see it.  A lock by key has no namespace,
 * and its label for a name.
 */
struct VisibleName
{
	const char *ns;
	const char *name;
	bool		is_hidden;
};

constexpr VisibleName HIDDEN_NAME = {HIDDEN, HIDDEN, true};

/* Looks up locks.  In the current memory context, which must outlive it.  All functions may ereport. */
class VisibleNames
{
public:
	VisibleNames();

	/* The name of the lock that an entry holds or waits for; palloc'd. */
	VisibleName of(const LockEntry &entry);

	/*
	 * The lock of an entry in one text, palloc'd: billing/invoice:42; a label, or what its key is
	 * known for, in double quotes, so that it cannot pass for a name; else its key or keys.  What
	 * a small number is known for stands behind it, because anybody may use such a key.
	 */
	char	   *text_of(const LockEntry &entry);

	/* What the holder says of an entry that is granted; null if nothing.  Good until the next call. */
	const KnownHold *hold_of(const LockEntry &entry);

private:
	const KnownName *known_name(Oid database, Key key);
	bool		may_see(const LockEntry &entry, const KnownName &known);
	bool		known_use(const LockEntry &entry, KnownUse *use);

	MemoryContext context;
	bool		sees_all;
	int			lookups = 0;
	struct known_hash *all_names = nullptr; /* made when many names are looked up */
	KnownKeys  *known_keys = nullptr;	/* made when a lock without a name is asked for */
	HoldReader	holds;
	KnownHold	last_hold = {};
};

/*
 * Add the columns namespace, name, slot, key, key1 and key2, which say which lock a
 * row is about.  May ereport (out of memory).
 */
void		add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name);

}								/* namespace advisory */
