/*
 * shmem/nameread.cpp
 *		Reading the name table.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/lockname.h"
#include "server/backends.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* Copy an entry; palloc'd.  make_fit() must follow.  The table's lock must be held. */
static void
copy_entry(int number, KnownName *known)
{
	NameEntry  *entry = name_entry(number);

	known->key = entry->key.key;
	known->ns = entry->is_label() ? nullptr : to_cstring(entry->ns());
	known->name = to_cstring(entry->name());
	known->counts = entry->counts();
	known->reference = name_reference(number);
	memcpy(known->roles, entry->roles, sizeof(known->roles));
}

/* Convert the encoding, after the lock was released. */
static void
make_fit(KnownName *known)
{
	for (const char **text : {&known->ns, &known->name})
	{
		if (*text != nullptr && !pg_is_ascii(*text))
			*text = from_utf8(*text);
	}
}

/*
 * Copy the entry of the key for which rank(number) is highest; null if there is none above 0.  If
 * used refers to the key's name, that is the highest, and the hash table need not be searched.
 */
template <typename Rank>
static KnownName *
find_best(Oid database, Key key, const NameReference &used, Rank rank)
{
	KnownName  *known = nullptr;
	int			best = NO_ENTRY;
	int			best_rank = 0;

	if (!has_name_table())
		return nullptr;

	LWLockAcquire(&name_table->lock, LW_SHARED);
	if (used.generation != 0 && used == name_reference(used.number) && !name_entry(used.number)->is_label())
		best = used.number;
	for (int number = best == NO_ENTRY ? name_look_up(database, key) : NO_ENTRY; number != NO_ENTRY;
		 number = name_entry(number)->next_of_key)
	{
		int			found = rank(number);

		if (found > best_rank)
		{
			best = number;
			best_rank = found;
		}
	}
	if (best != NO_ENTRY)
	{
		known = static_cast<KnownName *>(palloc(sizeof(KnownName)));
		copy_entry(best, known);
	}
	LWLockRelease(&name_table->lock);
	if (known != nullptr)
		make_fit(known);
	return known;
}

const KnownName *
name_find(Oid database, Key key, const UsedName &used, Oid prepared_owner)
{
	return find_best(database, key, used.name, [&](int number) {
		NameEntry  *entry = name_entry(number);
		bool		is_own = used.name == name_reference(number) || entry->has_given(prepared_owner);

		if (!entry->is_label())
			return is_own ? 4 : 3;
		return is_own ? 2 : entry->counts() ? 1 : 0;
	});
}

const KnownName *
name_find_other(const GivenName &name)
{
	return find_best(MyDatabaseId, name.key, NameReference{}, [&](int number) {
		NameEntry  *entry = name_entry(number);

		if (entry->ns() == name.ns && entry->name() == name.name)
			return 0;
		return !entry->is_label() ? 3 : entry->counts() ? 2 : 1;
	});
}

/*
 * Call visit(number) for each entry that belongs to this database, or did so until it became free,
 * with the table's lock held.
 */
template <typename Visit>
static void
visit_entries(Visit visit)
{
	/* New entries can come in between. */
	for (int first = 0; first < name_table->entry_count; first += NAME_CHUNK_ENTRIES)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&name_table->lock, LW_SHARED);
		for (int number = first; number < first + NAME_CHUNK_ENTRIES; number++)
		{
			if (name_entry(number)->key.database == MyDatabaseId)
				visit(number);
		}
		LWLockRelease(&name_table->lock);
	}
}

/*
 * Copy an entry with its statistics; palloc'd.  make_fit() must follow.  The table's lock must be
 * held.
 */
static NameWithStats *
copy_with_stats(int number)
{
	auto	   *copy = static_cast<NameWithStats *>(palloc(sizeof(NameWithStats)));

	stats_copy(&name_entry(number)->stats, &copy->stats);
	copy_entry(number, &copy->name);
	return copy;
}

List *
name_read_all()
{
	List	   *read = NIL;
	List	   *names = NIL;
	ListCell   *cell;

	if (!has_name_table())
		return NIL;
	visit_entries([&](int number) {
		if (name_entry(number)->is_live)
			read = lappend(read, copy_with_stats(number));
	});

	/* A name that was evicted meanwhile is in the sums now. */
	LWLockAcquire(&name_table->lock, LW_SHARED);
	foreach(cell, read)
	{
		auto	   *copy = static_cast<NameWithStats *>(lfirst(cell));

		if (copy->name.reference == name_reference(copy->name.reference.number))
			names = lappend(names, copy);
	}
	for (int number = name_table->first_sums; number != NO_ENTRY; number = name_entry(number)->next_free)
	{
		if (name_entry(number)->key.database == MyDatabaseId)
			names = lappend(names, copy_with_stats(number));
	}
	LWLockRelease(&name_table->lock);
	foreach(cell, names)
		make_fit(&static_cast<NameWithStats *>(lfirst(cell))->name);
	return names;
}

bool
may_see_name(const KnownName &known, const UsedName &used)
{
	if (may_see_all() || (used.name.generation != 0 && used.name == known.reference && may_see_role(used.role)))
		return true;
	for (int i = 0; i < NAME_ROLES && OidIsValid(known.roles[i]); i++)
	{
		if (may_see_role(known.roles[i]))
			return true;
	}
	return false;
}

void
name_reset_stats()
{
	if (!has_name_table())
		return;
	/* Those of a free entry do not matter. */
	visit_entries([](int number) { stats_clear(&name_entry(number)->stats); });
}

NameTableState
name_table_state()
{
	NameTableState state = {};

	if (!has_name_table())
		return state;
	state.available = true;
	state.names = name_table->live_count;
	state.evicted = static_cast<int64>(pg_atomic_read_u64(&name_table->evicted));
	state.not_stored = static_cast<int64>(pg_atomic_read_u64(&name_table->not_stored));
	state.collisions = static_cast<int64>(pg_atomic_read_u64(&name_table->collisions));
	return state;
}

}								/* namespace advisory */
