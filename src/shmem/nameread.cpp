/*
 * shmem/nameread.cpp
 *		Reading the name table.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "server/backends.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* Copy an entry; palloc'd.  make_fit() must follow. */
static KnownName *
copy_entry(NameEntry *entry)
{
	auto	   *copy = static_cast<KnownName *>(palloc(sizeof(KnownName)));

	copy->key = entry->key.key;
	copy->ns = entry->is_label() ? nullptr : to_cstring(entry->ns());
	copy->name = to_cstring(entry->name());
	copy->counts = entry->counts();
	copy->id = entry->id;
	for (int i = 0; i < NAME_ROLES; i++)
		copy->roles[i] = pg_atomic_read_u32(&entry->roles[i]);
	stats_copy(&entry->stats, &copy->stats);
	return copy;
}

/* Convert the encoding, after the locks were released. */
static KnownName *
make_fit(KnownName *known)
{
	for (const char **text : {&known->ns, &known->name})
	{
		if (*text != nullptr && !pg_is_ascii(*text))
			*text = from_utf8(*text);
	}
	return known;
}

/* Copy the entry of the key for which rank(entry) is highest; null if none is above 0. */
template <typename Rank>
static KnownName *
find_best(Oid database, Key key, Rank rank)
{
	NameEntry  *best = nullptr;
	int			best_rank = 0;
	KnownName  *copy = nullptr;
	NamesOfKey *known = has_name_table() ? find_key(database, key) : nullptr;

	if (known == nullptr)
		return nullptr;
	visit_list(known->first, &NameEntry::next_of_key, [&](NameEntry *entry) {
		int			its_rank = rank(entry);

		if (its_rank > best_rank)
		{
			best = entry;
			best_rank = its_rank;
		}
	});
	if (best != nullptr)
		copy = copy_entry(best);
	dshash_release_lock(names_by_key, known);
	return copy != nullptr ? make_fit(copy) : nullptr;
}

const KnownName *
name_find(Oid database, Key key, const UsedName &used, Oid prepared_owner)
{
	return find_best(database, key, [&](NameEntry *entry) {
		bool		is_own = used.id == entry->id || entry->has_given(prepared_owner);

		if (!entry->is_label())
			return is_own ? 4 : 3;
		return is_own ? 2 : entry->counts() ? 1 : 0;
	});
}

const KnownName *
name_find_other(const GivenName &name)
{
	return find_best(MyDatabaseId, name.key, [&](NameEntry *entry) {
		if (entry->is_named(name))
			return 0;
		return !entry->is_label() ? 3 : entry->counts() ? 2 : 1;
	});
}

/* Call visit(entry) for each name and label of this database. */
template <typename Visit>
static void
visit_names(Visit visit)
{
	dshash_seq_status scan;

	dshash_seq_init(&scan, names_by_key, false);
	while (auto *known = static_cast<NamesOfKey *>(dshash_seq_next(&scan)))
	{
		if (known->key.database == MyDatabaseId)
			visit_list(known->first, &NameEntry::next_of_key, visit);
	}
	dshash_seq_term(&scan);
}

/* Call visit(entry) for the sums of this database; NameTable.lock must be held. */
template <typename Visit>
static void
visit_sums(Visit visit)
{
	visit_list(name_table->sums, &NameEntry::next, [&](NameEntry *sums) {
		if (sums->key.database == MyDatabaseId)
			visit(sums);
	});
}

/* Is this entry still in the table? */
static bool
is_stored(const KnownName *copy)
{
	bool		result = false;

	if (NamesOfKey *known = find_key(MyDatabaseId, copy->key))
	{
		visit_list(known->first, &NameEntry::next_of_key, [&](NameEntry *entry) {
			result |= entry->id == copy->id;
		});
		dshash_release_lock(names_by_key, known);
	}
	return result;
}

List *
name_read_all()
{
	List	   *read = NIL;
	List	   *result = NIL;
	ListCell   *cell;
	uint64		evicted;

	if (!has_name_table())
		return NIL;
	evicted = pg_atomic_read_u64(&name_table->evicted);
	visit_names([&](NameEntry *entry) { read = lappend(read, copy_entry(entry)); });

	/* A name that was evicted meanwhile is in the sums now. */
	LWLockAcquire(&name_table->lock, LW_SHARED);
	evicted = pg_atomic_read_u64(&name_table->evicted) - evicted;
	foreach(cell, read)
	{
		if (evicted == 0 || is_stored(static_cast<KnownName *>(lfirst(cell))))
			result = lappend(result, lfirst(cell));
	}
	visit_sums([&](NameEntry *sums) { result = lappend(result, copy_entry(sums)); });
	LWLockRelease(&name_table->lock);
	foreach(cell, result)
		make_fit(static_cast<KnownName *>(lfirst(cell)));
	return result;
}

bool
may_see_name(const KnownName &known, const UsedName &used)
{
	if (may_see_all() || (used.id == known.id && may_see_role(used.role)))
		return true;
	for (Oid role : known.roles)
	{
		if (OidIsValid(role) && may_see_role(role))
			return true;
	}
	return false;
}

void
name_reset_stats()
{
	auto		clear = [](NameEntry *entry) { stats_clear(&entry->stats); };

	if (!has_name_table())
		return;
	visit_names(clear);
	LWLockAcquire(&name_table->lock, LW_SHARED);
	visit_sums(clear);
	LWLockRelease(&name_table->lock);
}

NameTableState
name_table_state()
{
	auto		value = [](pg_atomic_uint64 *counter) {
		return static_cast<int64>(pg_atomic_read_u64(counter));
	};

	if (!has_name_table())
		return NameTableState{};
	return NameTableState{true, name_table->name_count, value(&name_table->evicted),
		value(&name_table->not_stored), value(&name_table->collisions)};
}

}								/* namespace advisory */
