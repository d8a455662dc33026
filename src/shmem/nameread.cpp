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
	auto	   *copy = static_cast<KnownName *>(
		palloc(sizeof(KnownName) + entry->ns_length + entry->name_length + 2));
	auto	   *text = reinterpret_cast<char *>(copy + 1);

	join_with_zero(text, entry->ns(), entry->name());
	text[entry->ns_length + 1 + entry->name_length] = '\0';
	copy->key = entry->key.key;
	copy->ns = entry->is_label() ? nullptr : text;
	copy->name = text + entry->ns_length + 1;
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

/* Convert the encoding, after the lock was released.  Returns its argument, which may be null. */
static KnownName *
make_fit(KnownName *known)
{
	if (known == nullptr || GetDatabaseEncoding() == PG_UTF8)
		return known;
	for (const char **text : {&known->ns, &known->name})
	{
		if (*text != nullptr && !pg_is_ascii(*text))
			*text = from_utf8(*text);
	}
	return known;
}

/*
 * Copy the entry of the key for which rank(number, entry) is highest; null if none is above 0.  The
 * table's lock must be held, and make_fit() must follow.
 */
template <typename Rank>
static KnownName *
copy_best(Oid database, Key key, Rank rank)
{
	SharedKey	shared_key = {key, database};
	int			best = NO_ENTRY;
	int			best_rank = 0;

	visit_key(shared_key, hash_of(shared_key), [&](int number, NameEntry *entry) {
		int			its_rank = rank(number, entry);

		if (its_rank > best_rank)
		{
			best = number;
			best_rank = its_rank;
		}
	});
	return best != NO_ENTRY ? copy_entry(best) : nullptr;
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

/* What name_find() finds, with the table's lock held. */
static KnownName *
find_locked(const NameQuery &query)
{
	const NameReference &used = query.used.name;

	/* A name of the key is the best.  The session mostly says which one that is. */
	if (used.generation != 0 && used == reference_to(used.number) &&
		entry_of(used.number)->is_of(query.database, query.key) &&
		!entry_of(used.number)->is_label())
		return copy_entry(used.number);
	return copy_best(query.database, query.key, [&](int number, NameEntry *entry) {
		bool		is_own = used == reference_to(number) || has_given(entry, query.prepared_owner);

		if (!entry->is_label())
			return is_own ? 4 : 3;
		return is_own ? 2 : entry->counts() ? 1 : 0;
	});
}

/* Fetch what is read of an entry, unless its text is long. */
static void
prefetch_entry(int number) noexcept
{
	for (size_t at : {offsetof(NameEntry, state), offsetof(NameEntry, key),
					  offsetof(NameEntry, inline_text)})
		__builtin_prefetch(reinterpret_cast<char *>(entry_of(number)) + at);
}

/* Fetch what find_locked() will read first: the entry that is referred to, or else the bucket. */
static void
prefetch(const NameQuery &query) noexcept
{
	if (query.used.name.generation != 0)
		prefetch_entry(query.used.name.number);
	else
		__builtin_prefetch(bucket_of(hash_of(SharedKey{query.key, query.database})));
}

/* Then, when the bucket is there, its first entry. */
static void
prefetch_first(const NameQuery &query) noexcept
{
	int			first;

	if (query.used.name.generation != 0)
		return;
	first = *bucket_of(hash_of(SharedKey{query.key, query.database}));
	if (first != NO_ENTRY)
		prefetch_entry(first);
}

void
name_find_all(const NameQuery *queries, int count, const KnownName **found)
{
	auto		each = [&](auto work) {
		for (int i = 0; i < count; i++)
		{
			if (OidIsValid(queries[i].database))
				work(queries[i], &found[i]);
		}
	};

	std::fill(found, found + count, nullptr);
	if (!has_name_table())
		return;
	lock_names(LW_SHARED);
	each([](const NameQuery &query, const KnownName **) { prefetch(query); });
	each([](const NameQuery &query, const KnownName **) { prefetch_first(query); });
	each([](const NameQuery &query, const KnownName **name) { *name = find_locked(query); });
	unlock_names();
	each([](const NameQuery &, const KnownName **name) {
		make_fit(const_cast<KnownName *>(*name));
	});
}

const KnownName *
name_find(const NameQuery &query)
{
	const KnownName *found;

	name_find_all(&query, 1, &found);
	return found;
}

const KnownName *
name_find_other(const GivenName &name)
{
	KnownName  *copy;

	if (!has_name_table())
		return nullptr;
	lock_names(LW_SHARED);
	copy = copy_best(MyDatabaseId, name.key, [&](int, NameEntry *entry) {
		if (entry->ns() == name.ns && entry->name() == name.name)
			return 0;
		return !entry->is_label() ? 3 : entry->counts() ? 2 : 1;
	});
	unlock_names();
	return make_fit(copy);
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
