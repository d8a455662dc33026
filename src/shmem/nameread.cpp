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
copy_entry(NameEntry *entry, KnownName *known)
{
	known->key = Key{entry->key.key};
	known->ns = is_label(entry) ? nullptr : to_cstring(namespace_of(entry));
	known->name = to_cstring(name_of(entry));
	known->counts = name_counts(entry);
	known->is_used = false;
	memcpy(known->roles, entry->roles, sizeof(known->roles));
}

static const char *
make_text_fit(const char *text)
{
	return text == nullptr || pg_is_ascii(text) ? text : from_utf8(text);
}

/* Convert the encoding, after the lock was released. */
static void
make_fit(KnownName *known)
{
	known->ns = make_text_fit(known->ns);
	known->name = make_text_fit(known->name);
}

/*
 * Copy the entry of the key for which rank(number) is highest; null if there is none above 0.  If used refers to the key's
 * name, that is the highest, and the hash table need not be searched.
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
	if (refers_to(used, used.number) && !is_label(name_entry(used.number)))
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
		copy_entry(name_entry(best), known);
		known->is_used = refers_to(used, best);
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
		bool		is_own = refers_to(used.name, number) || has_given(entry, prepared_owner);

		if (!is_label(entry))
			return is_own ? 4 : 3;
		return is_own ? 2 : name_counts(entry) ? 1 : 0;
	});
}

const KnownName *
name_find_other(const GivenName &name)
{
	return find_best(MyDatabaseId, name.key, NameReference{}, [&](int number) {
		NameEntry  *entry = name_entry(number);

		if (is_same_name(entry, name))
			return 0;
		return !is_label(entry) ? 3 : name_counts(entry) ? 2 : 1;
	});
}

/* Copy an entry with its statistics.  The table's lock must be held. */
static void
copy_with_stats(int number, NameWithStats *copy)
{
	stats_copy(&name_entry(number)->stats, &copy->stats);
	copy_entry(name_entry(number), &copy->name);
	copy->reference = name_reference(number);
}

NameWithStats *
name_read_all(int *count)
{
	auto	   *names = static_cast<NameWithStats *>(palloc(sizeof(NameWithStats)));
	int			read = 0;

	*count = 0;
	if (!has_name_table())
		return names;

	/* New names can come in between. */
	for (int first = 0; first < name_table->entry_count; first += NAME_CHUNK_ENTRIES)
	{
		CHECK_FOR_INTERRUPTS();
		names = static_cast<NameWithStats *>(repalloc(names, sizeof(NameWithStats) * (read + NAME_CHUNK_ENTRIES)));
		LWLockAcquire(&name_table->lock, LW_SHARED);
		for (int number = first; number < first + NAME_CHUNK_ENTRIES; number++)
		{
			if (name_entry(number)->is_live && name_entry(number)->key.database == MyDatabaseId)
				copy_with_stats(number, &names[read++]);
		}
		LWLockRelease(&name_table->lock);
	}

	/* A name that was evicted meanwhile is in the sums now. */
	LWLockAcquire(&name_table->lock, LW_SHARED);
	names = static_cast<NameWithStats *>(repalloc(names, sizeof(NameWithStats) * (read + name_table->sums_count + 1)));
	for (int i = 0; i < read; i++)
	{
		if (refers_to(names[i].reference, names[i].reference.number))
			names[(*count)++] = names[i];
	}
	for (int number = name_table->first_sums; number != NO_ENTRY; number = name_entry(number)->next_free)
	{
		if (name_entry(number)->key.database == MyDatabaseId)
			copy_with_stats(number, &names[(*count)++]);
	}
	LWLockRelease(&name_table->lock);
	for (int i = 0; i < *count; i++)
		make_fit(&names[i].name);
	return names;
}

bool
may_see_name(const KnownName &known, const UsedName &used)
{
	if (may_see_all() || (known.is_used && may_see_role(used.role)))
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
	for (int number = 0; number < name_table->entry_count; number++)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&name_table->lock, LW_SHARED);
		if (name_entry(number)->is_live && name_entry(number)->key.database == MyDatabaseId)
			stats_clear(&name_entry(number)->stats);
		LWLockRelease(&name_table->lock);
	}
	LWLockAcquire(&name_table->lock, LW_SHARED);
	for (int number = name_table->first_sums; number != NO_ENTRY; number = name_entry(number)->next_free)
	{
		if (name_entry(number)->key.database == MyDatabaseId)
			stats_clear(&name_entry(number)->stats);
	}
	LWLockRelease(&name_table->lock);
}

NameTableState
name_table_state()
{
	NameTableState state = {};

	if (!has_name_table())
		return state;
	state.available = true;
	LWLockAcquire(&name_table->lock, LW_SHARED);
	state.names = name_table->live_count;
	LWLockRelease(&name_table->lock);
	state.evicted = static_cast<int64>(pg_atomic_read_u64(&name_table->evicted));
	state.not_stored = static_cast<int64>(pg_atomic_read_u64(&name_table->not_stored));
	state.collisions = static_cast<int64>(pg_atomic_read_u64(&name_table->collisions));
	return state;
}

}								/* namespace advisory */
