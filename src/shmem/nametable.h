/*
 * shmem/nametable.h
 *		The name table: the names of locks, shared by all sessions.
 *
 * It maps a database and a key to a namespace and a name (or to the label of a key), with
 * the statistics of each.  A session registers a name before it asks for the lock, so that other
 * sessions see the name while it waits.  A name is proved by its key.  A label is not, so it
 * counts only while a session that gave it holds the lock or waits for it.
 *
 * advisory_ext.max_names limits the table, and a role that is not a superuser fills no more
 * than a quarter of it.  A new name that finds no room evicts an old one, but never a pinned
 * one.  A session pins the names of the locks that it holds or waits for.
 */
#pragma once

#include <string_view>

#include "base/lockname.h"
#include "shmem/stats.h"

namespace advisory
{

/*
 * How many bytes of a namespace, and of a name, are kept.  A change needs another
 * ADVISORY_EXT_SHARED_NAME, because a library with a smaller OtherName would copy a longer name
 * into it.
 */
constexpr int STORED_NAME_BYTES = 256;

/* How many of the roles that gave a name are remembered. */
constexpr int NAME_ROLES = 4;

/* A name as it is registered: UTF-8.  ns.data() is null for the label of a key. */
struct GivenName
{
	Key			key;
	std::string_view ns;
	std::string_view name;
};

/* The session that registers a name. */
struct NamingRole
{
	Oid			role;
	bool		is_superuser;
	bool		has_lock;		/* this session holds the lock */
	bool		is_exclusive;	/* in exclusive mode */
};

struct NameEntry;

/*
 * An entry of the table, as it was at one time.  An entry never moves, but it can be
 * given to another name, and then its generation changes.
 */
struct NameReference
{
	NameEntry  *entry;			/* null: none */
	uint64		generation;
	bool		is_own_label;	/* this session gave the label: it counts while this reference pins it */
};

/* The result of registering a name. */
enum class Registered
{
	stored,						/* or it was registered already */
	clash,						/* the key has another name or label, which stays */
	replaced,					/* the key had another label, which this one replaced */
	refused						/* no room, or no memory */
};

/* The other name of a key: zero-terminated UTF-8, as kept, with CUT_MARK if it was cut. */
struct OtherName
{
	bool		by_name;		/* false: a label, and ns is empty */
	bool		counts;			/* false for a label that no session that holds or awaits the lock gave */
	char		ns[STORED_NAME_BYTES + sizeof(CUT_MARK)];
	char		name[STORED_NAME_BYTES + sizeof(CUT_MARK)];
	Oid			roles[NAME_ROLES];	/* the roles that gave it; the rest is InvalidOid */
};

/*
 * Make sure that the table has a name for the key in this database, and that the naming
 * role is among the roles that gave it.  *reference is the key's entry, pinned; its entry is
 * null if the name was refused.  With clash and replaced, *other is the previous name of the
 * key.  A name stays.  A label is replaced by a name, and by another label if the naming role
 * has the lock in exclusive mode, or has it in any mode and the old label does not count.  The
 * entry counts to the share of the role that gave the present name.  May ereport only for a
 * cancel.
 */
Registered	name_register(const GivenName &name, const NamingRole &naming, NameReference *reference, OtherName *other);

/* Count for advisory.directory that two names had the same key. */
void		name_count_clash() noexcept;

/*
 * Pin the entry, so that it is not evicted.  False if its generation has changed, or if the
 * reference is empty.  Takes no lock.
 */
bool		name_pin(const NameReference &reference) noexcept;

/* Undo one name_pin() or name_register(). */
void		name_unpin(const NameReference &reference) noexcept;

/* Does the entry still have the generation of the reference?  Not if a label was replaced. */
bool		name_is_current(const NameReference &reference) noexcept;

/* The statistics of a pinned entry. */
NameStats  *name_stats(const NameReference &reference) noexcept;

/* The name in the table for one key: zero-terminated, in this database's encoding. */
struct KnownName
{
	char	   *ns;				/* null for a label */
	char	   *name;
	bool		counts;			/* false for a label that no session that holds or awaits the lock gave */
	bool		ns_is_cut;		/* it ends in CUT_MARK */
	bool		name_is_cut;
	Oid			roles[NAME_ROLES];	/* the roles that gave it; the rest is InvalidOid */
	StatsCopy	stats;			/* name_find() does not set it */
};

/*
 * The name of a key, palloc'd; null if it is not known.  Characters that the database's encoding
 * cannot express are escaped.  A name that was cut ends in "...".  May ereport.
 */
const KnownName *name_find(Oid database, Key key);

/*
 * The names of this database in one chunk of the table, from 0 to name_chunk_count() - 1; palloc'd.  The table's lock is
 * held for one chunk at a time, so that nobody waits long for it.  May ereport.
 */
KnownName  *name_read_chunk(int chunk, int *count);
int			name_chunk_count();

/* May the current user see a name that these roles gave?  May ereport. */
bool		may_see_name(const Oid *roles);

/* Set the statistics of this database's names to zero.  May ereport for a cancel. */
void		name_reset_stats();

/* The figures of advisory.directory. */
struct NameTableState
{
	bool		available;
	int64		names;
	int64		evicted;
	int64		refused;		/* how often a name found no room */
	int64		clashes;		/* how often two names had the same key */
};

NameTableState name_table_state();

}								/* namespace advisory */
