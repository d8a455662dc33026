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

/* Copy an entry; palloc'd.  make_fit() must follow.  The table's lock must be held. */
static KnownName *
copy_entry(int number)
{
	NameEntry  *entry = entry_of(number);
	auto	   *copy = static_cast<KnownName *>(palloc(sizeof(KnownName)));

	copy->key = entry->key.key;
	copy->ns = entry->is_label() ? nullptr : to_cstring(entry->ns());
	copy->name = to_cstring(entry->name());
	copy->counts = entry->counts();
	copy->reference = reference_to(number);
	for (int i = 0; i < NAME_ROLES; i++)
		copy->roles[i] = pg_atomic_read_u32(&entry->roles[i]);
	return copy;
}

/* The same with the statistics. */
static KnownName *
copy_with_stats(int number)
{
	KnownName  *copy = copy_entry(number);

	stats_copy(&entry_of(number)->stats, &copy->stats);
	return copy;
}

/* Convert the encoding, after the lock was released. */
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

/*
 * Copy the entry of the key for which rank(number, entry) is highest; null if none is above 0.  Not
 * searched for if the one that is referred to is a name of the key: that is the highest then.
 */
template <typename Rank>
static KnownName *
find_best(Oid database, Key key, const NameReference &used, Rank rank)
{
	SharedKey	shared_key = {key, database};
	int			best = NO_ENTRY;
	int			best_rank = 0;

	if (!has_name_table())
		return nullptr;
	lock_names(LW_SHARED);
	if (used.generation != 0 && used == reference_to(used.number) &&
		entry_of(used.number)->is_of(database, key) && !entry_of(used.number)->is_label())
		best = used.number;
	else
		visit_key(shared_key, hash_of(shared_key), [&](int number, NameEntry *entry) {
			int			its_rank = rank(number, entry);

			if (its_rank > best_rank)
			{
				best = number;
				best_rank = its_rank;
			}
		});

	KnownName  *copy = best != NO_ENTRY ? copy_entry(best) : nullptr;

	unlock_names();
	return copy != nullptr ? make_fit(copy) : nullptr;
}

/* Has this role given it, as far as that is remembered? */
static bool
has_given(NameEntry *entry, Oid role) noexcept
{
	for (pg_atomic_uint32 &known : entry->roles)
	{
		if (pg_atomic_read_u32(&known) == role && OidIsValid(role))
			return true;
	}
	return false;
}

const KnownName *
name_find(Oid database, Key key, const UsedName &used, Oid prepared_owner)
{
	return find_best(database, key, used.name, [&](int number, NameEntry *entry) {
		bool		is_own = used.name == reference_to(number) || has_given(entry, prepared_owner);

		if (!entry->is_label())
			return is_own ? 4 : 3;
		return is_own ? 2 : entry->counts() ? 1 : 0;
	});
}

void
name_prefetch(const NameReference &reference) noexcept
{
	if (reference.generation == 0 || name_chunks[reference.number / NAME_CHUNK_ENTRIES] == nullptr)
		return;
	for (size_t at = 0; at < sizeof(NameEntry); at += 64)
		__builtin_prefetch(reinterpret_cast<char *>(entry_of(reference.number)) + at);
}

const KnownName *
name_find_other(const GivenName &name)
{
	return find_best(MyDatabaseId, name.key, NameReference{}, [&](int, NameEntry *entry) {
		if (entry->ns() == name.ns && entry->name() == name.name)
			return 0;
		return !entry->is_label() ? 3 : entry->counts() ? 2 : 1;
	});
}

/*
 * Call visit(number, entry) for each entry that belongs to this database, or did so until it became
 * free, with the table's lock held.
 */
template <typename Visit>
static void
visit_entries(Visit visit)
{
	/* New entries can come in between. */
	for (int first = 0; first < name_table->entry_count; first += NAME_CHUNK_ENTRIES)
	{
		CHECK_FOR_INTERRUPTS();
		lock_names(LW_SHARED);
		for (int i = first; i < first + NAME_CHUNK_ENTRIES; i++)
		{
			if (entry_of(i)->key.database == MyDatabaseId)
				visit(i, entry_of(i));
		}
		unlock_names();
	}
}

List *
name_read_all()
{
	List	   *read = NIL;
	List	   *names = NIL;
	ListCell   *cell;

	if (!has_name_table())
		return NIL;
	visit_entries([&](int number, NameEntry *entry) {
		if (entry->is_live)
			read = lappend(read, copy_with_stats(number));
	});

	/* A name that was evicted meanwhile is in the sums now. */
	lock_names(LW_SHARED);
	foreach(cell, read)
	{
		auto	   *copy = static_cast<KnownName *>(lfirst(cell));

		if (copy->reference == reference_to(copy->reference.number))
			names = lappend(names, copy);
	}
	for (int i = name_table->sums; i != NO_ENTRY; i = entry_of(i)->next)
	{
		if (entry_of(i)->key.database == MyDatabaseId)
			names = lappend(names, copy_with_stats(i));
	}
	unlock_names();
	foreach(cell, names)
		make_fit(static_cast<KnownName *>(lfirst(cell)));
	return names;
}

bool
may_see_name(const KnownName &known, const UsedName &used)
{
	if (may_see_all() ||
		(used.name.generation != 0 && used.name == known.reference && may_see_role(used.role)))
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
	/* Those of a free entry do not matter. */
	if (has_name_table())
		visit_entries([](int, NameEntry *entry) { stats_clear(&entry->stats); });
}

NameTableState
name_table_state()
{
	if (!has_name_table())
		return NameTableState{};
	return NameTableState{true, name_table->live_count, value_of(&name_table->evicted),
		value_of(&name_table->not_stored), value_of(&name_table->collisions)};
}

}								/* namespace advisory */
