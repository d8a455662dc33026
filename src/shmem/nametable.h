/*
 * shmem/nametable.h
 *		The name table: the names of locks, shared by all sessions.
 *
 * It maps a database and a key to a namespace and a name, and to the labels of the key, with the
 * statistics of each.  A session registers a name before it asks for the lock, so that other
 * sessions see the name while it waits.  A name is proved by its key.  A label is not, so it counts
 * only while a session that gave it holds the lock or waits for it.  These sessions publish which
 * label they gave (sessiontable.h).
 *
 * A session pins the names of the locks that it holds or waits for.  advisory_ext.max_names limits
 * the table.  A new name that finds no room evicts one that is not pinned and was not used lately.
 * The sessions of one login role may not pin more than their share of the table, so that the names
 * of others find room.
 */
#pragma once

#include "base/lockname.h"
#include "shmem/stats.h"

namespace advisory
{

/* A name as it is registered: UTF-8, as it is shown (shown_part()).  ns is empty for a label. */
struct GivenName
{
	Key			key;
	std::string_view ns;
	std::string_view name;
};

/* The result of registering a name. */
struct Registration
{
	NameReference reference;	/* its entry, pinned; or to none, if the name is not stored */
	bool		is_outranked;	/* a label of a key that has a name: the reference is to the name */
	bool		has_other;		/* see name_find_other() */
};

/*
 * Make sure that the table has a name or label for the key in this database, and that the role is
 * among those that gave it.  It is not stored if there is no room or memory, or if the share of the
 * login role is used up.  It has another one if that is a name, or a label that counts; a new name
 * also if that is any label.  May ereport.
 */
Registration name_register(const GivenName &name, Oid role);

/* Count for advisory.directory that two names had the same key. */
void		name_count_collision() noexcept;

/*
 * Pin an entry to which name_register() has referred in this session, so that it is not evicted.
 * False if its generation has changed, or the share of this role is used up.  Takes no lock.
 */
bool		name_pin(const NameReference &reference) noexcept;

/* Undo one name_pin() or name_register().  Takes no lock. */
void		name_unpin(const NameReference &reference) noexcept;

/* The statistics of a pinned entry. */
NameStats  *name_stats(const NameReference &reference) noexcept;

/* A name or label in the table: zero-terminated, in this database's encoding. */
struct KnownName
{
	Key			key;
	const char *ns;				/* null for a label */
	const char *name;
	bool		counts;			/* false for a label that no holder or waiter gave */
	NameReference reference;	/* its entry */
	Oid			roles[NAME_ROLES];	/* the first roles that gave it; the rest is InvalidOid */
	NameStats	stats;			/* only from name_read_all() */
};

/* A lock whose name is looked for, and who holds or awaits it. */
struct NameQuery
{
	Oid			database;		/* InvalidOid: none is looked for */
	Key			key;
	UsedName	used;			/* what the session itself uses */
	Oid			prepared_owner; /* of a prepared transaction; else InvalidOid */
};

/*
 * How a lock is called, palloc'd; null if that is not known.  The name of the key comes first.
 * Next comes the label that the session itself uses, or that the owner of a prepared transaction
 * gave, and then another label that counts.  Characters that the database's encoding cannot express
 * are escaped.  May ereport.
 */
const KnownName *name_find(const NameQuery &query);

/*
 * The same for several locks, and found[i] is how queries[i] is called.  The table is locked once,
 * and what it has of them is fetched from memory at the same time: for sixteen or so.
 */
void		name_find_all(const NameQuery *queries, int count, const KnownName **found);

/*
 * Another name of the key in this database, palloc'd; null if there is none.  A name comes before a
 * label, and a label that counts before one that does not.  May ereport.
 */
const KnownName *name_find_other(const GivenName &name);

/*
 * Read the names and labels of this database with their statistics (KnownName), and the sums of
 * those that were evicted: these have an empty name.  Each request is counted in one of them, so
 * that no sum is less than in an earlier reading.  May ereport.
 */
List	   *name_read_all();

/*
 * May the current user see this name?  A member of pg_read_all_stats may.  Others must be a member
 * of a role that gave it, or used it for the lock in question.  Whoever shows the lock of a session
 * must check separately whether the user may see the session.  May ereport.
 */
bool		may_see_name(const KnownName &known, const UsedName &used);

/* Set the statistics of this database's names to zero.  May ereport. */
void		name_reset_stats();

/* The figures of advisory.directory. */
struct NameTableState
{
	bool		available;
	int64		names;
	int64		evicted;
	int64		not_stored;		/* how often a name found no room */
	int64		collisions;		/* how often two names had the same key */
};

NameTableState name_table_state();

}								/* namespace advisory */
