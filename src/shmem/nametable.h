/*
 * shmem/nametable.h
 *		The names of locks, shared by all sessions: (database, key) to namespace
 *		and name, with the statistics of each.
 *
 * A new name of a transaction-level lock goes with the hold first (published.h), and
 * comes here when that ends: taking a lock should not cost what others may never ask
 * for.
 *
 * Bounded by advisory_ext.max_names.  When it is full the names that were not used
 * for the longest time make room, but never that of a lock that somebody holds or
 * waits for; and a role that is no superuser fills no more than a quarter.
 *
 * An entry's address stays good for ever, its content does not: a reference
 * remembers which life of the entry it means, and whoever uses one asks first
 * whether that life goes on (directory_is_current).
 */
#ifndef ADVISORY_EXT_SHMEM_NAMETABLE_H
#define ADVISORY_EXT_SHMEM_NAMETABLE_H

#include <string_view>

#include "base/locktag.h"
#include "shmem/stats.h"

namespace advisory
{

/* How many bytes of a namespace, and of a name, are kept. */
constexpr int STORED_NAME_BYTES = 256;

struct DirectoryEntry;

/* A certain life of an entry; entry is null for none. */
struct DirectoryReference
{
	DirectoryEntry *entry;
	uint64		life;
	uint32		epoch;			/* of the directory, when the life was last found to go on */
};

/* A name as it is registered: UTF-8.  ns.data() is null for the label of a key. */
struct RegisteredName
{
	Key			key;
	std::string_view ns;
	std::string_view name;
};

/* Who gives a name. */
struct Giver
{
	Oid			role;
	bool		is_superuser;
	bool		has_lock;		/* that the name is of, for itself alone */
	TimestampTz since;			/* when the statistics of a new name begin */
};

/* The current user, now. */
Giver		present_giver(bool has_lock);

/* What the directory has for the key of a name. */
enum class Found
{
	nothing,
	name,						/* this name, and that this role gave it */
	other						/* another name, or this one as given by others */
};

/* What came of registering a name. */
enum class Registered
{
	stored,						/* or it was there already */
	fits,						/* a label that fits the name that the key is there under */
	clash,						/* the key is there under another name, which stays */
	replaced,					/* it was there under another label, which this replaced */
	refused						/* no room, no memory, or names are not tracked */
};

/* How many of the roles that gave a name are remembered. */
constexpr int ENTRY_ROLES = 4;

/* What else a key is called: zero-terminated UTF-8, as far as it is kept. */
struct OtherName
{
	bool		by_name;		/* else a label, and ns is empty */
	char		ns[STORED_NAME_BYTES + 1];
	char		name[STORED_NAME_BYTES + 1];
	Oid			roles[ENTRY_ROLES]; /* that gave it; the rest is InvalidOid */
};

/*
 * Make sure that the directory of this database knows the name, and that the giver's
 * role is among those who gave it.  *reference is what stands there for the key,
 * also with a clash; nothing if refused.  Where the key was called something else
 * *other says what: a name stays, a label is replaced by a name, and by another
 * label if the giver has the lock for itself alone.  Looks at no catalog.  May
 * ereport only for a cancel.
 */
Registered	directory_register(const RegisteredName &name, const Giver &giver, DirectoryReference *reference,
							   OtherName *other);

/*
 * What is there for the key of a name that this role gives?  *reference is the name
 * itself, if it is.  Found::nothing also where there is no directory.  May ereport
 * only for a cancel.
 */
Found		directory_look(const RegisteredName &name, Oid role, DirectoryReference *reference);

/*
 * Does the entry still stand for what it did?  Marks it as in use.  Cheap: no
 * lock.  After a lock on the key has been granted, true means that the name stays
 * as long as the lock.
 */
bool		directory_is_current(DirectoryReference *reference) noexcept;

/*
 * This session does not hold the lock of a current entry, or no more.  Only a hint:
 * a new name's lock is taken to be held, which spares those who make room from
 * looking at it.
 */
void		directory_mark_free(const DirectoryReference &reference) noexcept;

/*
 * The same, cheaper where nothing had to make room lately: does not touch the entry
 * then, and so does not mark it.
 */
bool		directory_is_undisturbed(DirectoryReference *reference) noexcept;

/* The statistics of an entry that is current. */
NameStats  *directory_stats(const DirectoryReference &reference) noexcept;

/* What the directory knows of one key: zero-terminated, in the database's encoding. */
struct KnownName
{
	Oid			database;
	Key			key;
	char	   *ns;				/* null for a label */
	char	   *name;
	bool		ns_is_cut;		/* as the mark at its end says */
	bool		name_is_cut;
	Oid			roles[ENTRY_ROLES]; /* that gave it; the rest is InvalidOid */
	StatsCopy	stats;
};

/*
 * The name of a key; null if it is not known.  palloc'd.  Bytes that the
 * database's encoding cannot express are escaped; what was cut ends in "...".
 * May ereport.
 */
const KnownName *directory_find(Oid database, Key key);

/* All of a database's names, or those of all if it is InvalidOid; palloc'd.  May ereport. */
KnownName  *directory_read(Oid database, int *count);

/* May the current user see a name that these roles gave?  May ereport. */
bool		may_see_name(const Oid *roles);

/* Set the statistics of this database's names to zero. */
void		directory_reset_stats();

/* How the directory is doing. */
struct DirectoryState
{
	bool		available;
	int64		names;
	int64		evicted;		/* names that made room for others */
	int64		refused;		/* times that a name found no room */
	int64		clashes;		/* times that two names met in one key */
};

DirectoryState directory_state();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_NAMETABLE_H */
