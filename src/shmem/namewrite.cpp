/*
 * shmem/namewrite.cpp
 *		Writing the name table: the names of locks, shared by all sessions.
 *
 * Locking
 *
 * To change the table hold NameTable.lock exclusively; to read it hold the lock shared.  The
 * locks of the hash table, and of a partition of the server's lock table, are taken while
 * it is held.  Counters, and the state of an entry, are atomic.
 *
 * Entries
 *
 * Entries are allocated in chunks and never freed, so a session can keep the number of an
 * entry.  The state of an entry packs two numbers into one: its generation, and the number of its
 * pins.  A session pins an entry without a lock, provided that the generation is still the one that
 * it knows.  A session that removes an entry changes the generation in the same atomic step that
 * checks that there are no pins.  So either the pin or the removal comes first.
 *
 * Each text of a key has an entry of its own: usually one, the name.  Only a session that gave a
 * label pins it, so a label counts if it is pinned.
 *
 * Eviction
 *
 * A clock hand goes round the entries and evicts the first that is not in use.  An entry that was
 * used again since it was created, or since the hand last passed, gets a second chance.  So the
 * names that were not used for longest go first, to within one round of the hand.  A new name
 * visits at most EVICTION_STEPS entries, independent of the size of the table.  If all of them are
 * in use, the new name is not stored.
 *
 * What was counted for a name that is evicted is added to the sums of its namespace.  They are an
 * entry that is not in the hash table, not live and never evicted, in a list of its own.
 *
 * Running out of memory
 *
 * Functions allocate memory before they change anything that would have to be undone.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "server/locktable.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* How many entries are visited to make room for one name. */
static constexpr int EVICTION_STEPS = 128;

/* How many names a new name may evict if advisory_ext.max_names was lowered. */
static constexpr int MOST_EVICTED = 8;

/* How many names and labels a key may have, so that looking at all of them is quick. */
static constexpr int NAMES_PER_KEY = 32;

/* How many namespaces, of all databases, have sums of their evicted names. */
static constexpr int MOST_SUMS = 256;

/* Either all are null, or none is. */
NameTable  *name_table = nullptr;
NameEntry  *name_chunks[NAME_MAX_CHUNKS];
static dshash_table *index_table = nullptr;

/* ---- The table itself ---- */

static void
make_table(SharedRoot *root, void *place)
{
	auto	   *made = static_cast<NameTable *>(place);

	LWLockInitialize(&made->lock, root->names_tranche);
	made->first_free = NO_ENTRY;
	made->first_sums = NO_ENTRY;
	pg_atomic_init_u64(&made->evicted, 0);
	pg_atomic_init_u64(&made->not_stored, 0);
	pg_atomic_init_u64(&made->collisions, 0);
}

bool
has_name_table()
{
	if (name_table != nullptr)
		return true;

	auto	   *found = static_cast<NameTable *>(shared_part(&SharedRoot::names, sizeof(NameTable), make_table));

	if (found != nullptr)
		index_table = shared_hash(&SharedRoot::name_index, sizeof(IndexEntry), &SharedRoot::names_tranche);
	if (index_table != nullptr)
		name_table = found;
	return name_table != nullptr;
}

int
name_look_up(Oid database, Key key)
{
	SharedKey	wanted = {key, database};
	auto	   *found = static_cast<IndexEntry *>(dshash_find(index_table, &wanted, false));
	int			number = NO_ENTRY;

	if (found != nullptr)
	{
		number = found->first;
		dshash_release_lock(index_table, found);
	}
	return number;
}

/* ---- Pins ---- */

/* The table's lock must be held, so that the entry is not evicted meanwhile. */
static NameReference
pin_entry(int number)
{
	uint64		state = pg_atomic_fetch_add_u64(&name_entry(number)->state, 1);

	return NameReference{number, static_cast<uint32>(state >> GENERATION_SHIFT)};
}

bool
name_pin(const NameReference &reference) noexcept
{
	NameEntry  *entry = name_entry(reference.number);
	uint64		state = pg_atomic_read_u64(&entry->state);

	do
	{
		if (state >> GENERATION_SHIFT != reference.generation)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&entry->state, &state, state + 1));
	if (!entry->is_used)
		entry->is_used = true;
	return true;
}

void
name_unpin(const NameReference &reference) noexcept
{
	pg_atomic_fetch_sub_u64(&name_entry(reference.number)->state, 1);
}

NameStats *
name_stats(const NameReference &reference) noexcept
{
	return &name_entry(reference.number)->stats;
}

/* ---- Free entries ---- */

static void
add_chunk()
{
	int			first = name_table->entry_count;
	dsa_pointer place = dsa_allocate0(shared_area, sizeof(NameEntry) * NAME_CHUNK_ENTRIES);
	auto	   *entries = static_cast<NameEntry *>(dsa_get_address(shared_area, place));

	for (int i = 0; i < NAME_CHUNK_ENTRIES; i++)
	{
		pg_atomic_init_u64(&entries[i].state, ONE_GENERATION);
		entries[i].long_text = InvalidDsaPointer;
		entries[i].next_free = i + 1 < NAME_CHUNK_ENTRIES ? first + i + 1 : NO_ENTRY;
	}
	name_table->chunks[first / NAME_CHUNK_ENTRIES] = place;
	name_table->entry_count += NAME_CHUNK_ENTRIES;
	name_table->first_free = first;
}

/*
 * Give the first free entry this text, new statistics and this role, and return it.  It stays free
 * until the caller takes it from the list. May ereport, and then nothing has changed.
 */
static int
prepare_entry(Oid database, const GivenName &name, Oid role)
{
	size_t		bytes = name.ns.size() + name.name.size();

	if (name_table->first_free == NO_ENTRY)
		add_chunk();

	NameEntry  *entry = name_entry(name_table->first_free);
	dsa_pointer long_text = bytes > NAME_INLINE_BYTES ? dsa_allocate(shared_area, bytes) : InvalidDsaPointer;

	if (entry->long_text != InvalidDsaPointer)
		dsa_free(shared_area, entry->long_text);
	entry->long_text = long_text;
	entry->ns_length = static_cast<int>(name.ns.size());
	entry->name_length = static_cast<int>(name.name.size());
	if (!name.ns.empty())
		memcpy(entry->text(), name.ns.data(), name.ns.size());
	memcpy(entry->text() + name.ns.size(), name.name.data(), name.name.size());
	entry->key = SharedKey{name.key, database};
	memset(entry->roles, 0, sizeof(entry->roles));
	entry->roles[0] = role;
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());
	return name_table->first_free;
}

/* ---- Making room ---- */

/* Remember that this role has given the name, too, if there is room for it. */
static void
add_role(NameEntry *entry, Oid role) noexcept
{
	for (int i = 0; i < NAME_ROLES && !entry->has_given(role); i++)
	{
		if (!OidIsValid(entry->roles[i]))
			entry->roles[i] = role;
	}
}

/*
 * The sums of this namespace's evicted names, with an empty name.  Labels share theirs, in each
 * database, with the namespaces beyond MOST_SUMS.  Null if there are too many databases.  May
 * ereport, and then nothing has changed.
 */
static NameEntry *
sums_of(Oid database, std::string_view ns)
{
	int			count = 0;

	for (int number = name_table->first_sums; number != NO_ENTRY; number = name_entry(number)->next_free)
	{
		count++;
		if (name_entry(number)->key.database == database && name_entry(number)->ns() == ns)
			return name_entry(number);
	}
	if (count >= (ns.empty() ? 2 : 1) * MOST_SUMS)
		return ns.empty() ? nullptr : sums_of(database, std::string_view());

	int			number = prepare_entry(database, GivenName{Key{0}, ns, ""}, InvalidOid);
	NameEntry  *sums = name_entry(number);

	name_table->first_free = sums->next_free;
	sums->next_free = name_table->first_sums;
	name_table->first_sums = number;
	return sums;
}

/*
 * Remove this entry from the table, unless it is pinned, and add its statistics to those of evicted
 * names.
 */
static bool
remove_entry(int number)
{
	NameEntry  *entry = name_entry(number);
	NameEntry  *sums = sums_of(entry->key.database, entry->ns());
	uint64		state = pg_atomic_read_u64(&entry->state);

	if ((state & PIN_MASK) != 0 || !pg_atomic_compare_exchange_u64(&entry->state, &state, state + ONE_GENERATION))
		return false;

	auto	   *index = static_cast<IndexEntry *>(dshash_find(index_table, &entry->key, true));
	int		   *link = &index->first;

	while (*link != number)
		link = &name_entry(*link)->next_of_key;
	*link = entry->next_of_key;
	if (index->first == NO_ENTRY)
		dshash_delete_entry(index_table, index);
	else
		dshash_release_lock(index_table, index);

	if (sums != nullptr)
	{
		stats_sum(&sums->stats, &entry->stats);
		for (Oid role : entry->roles)
			add_role(sums, role);
	}
	entry->is_live = false;
	entry->next_free = name_table->first_free;
	name_table->first_free = number;
	name_table->live_count--;
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
	return true;
}

/*
 * Evict one of the next entries under the clock hand.  The second round finds those that were used
 * lately.  A lock can have a holder without a pin: a prepared transaction, or a session that took
 * it through the built-in functions.
 */
static bool
evict_one()
{
	int			steps = Min(name_table->entry_count, EVICTION_STEPS);
	int			start = name_table->clock_hand;
	bool		needs_second_round = false;

	for (int step = 0; step < steps || (needs_second_round && step < 2 * steps); step++)
	{
		int			number = (start + step % steps) % name_table->entry_count;
		NameEntry  *entry = name_entry(number);

		if (step < steps)
			name_table->clock_hand = (number + 1) % name_table->entry_count;
		if (entry->is_live && entry->is_used)
			needs_second_round = true;
		else if (entry->is_live && !entry->is_pinned() &&
				 !is_held_by_anybody(lock_tag(entry->key.database, entry->key.key)) && remove_entry(number))
			return true;
		entry->is_used = false;
	}
	return false;
}

/* Is the number of names below advisory_ext.max_names, or can names be evicted for that? */
static bool
make_room()
{
	/* Evict more than one if the setting was lowered. */
	for (int i = 0; name_table->live_count >= setting::max_names && i < MOST_EVICTED; i++)
	{
		if (!evict_one())
			break;
	}
	return name_table->live_count < setting::max_names;
}

/* ---- Registering ---- */

/* The number of a new entry.  May ereport, and then nothing has changed. */
static int
add_name(const GivenName &name, Oid role)
{
	/* First do what can fail, while the entry is still free. */
	int			number = prepare_entry(MyDatabaseId, name, role);
	NameEntry  *entry = name_entry(number);
	bool		found;
	auto	   *index = static_cast<IndexEntry *>(dshash_find_or_insert(index_table, &entry->key, &found));

	entry->next_of_key = found ? index->first : NO_ENTRY;
	index->first = number;
	dshash_release_lock(index_table, index);

	name_table->first_free = entry->next_free;
	name_table->live_count++;
	entry->is_live = true;
	entry->is_used = false;
	return number;
}

/*
 * With the table's lock held.  is_exclusive: it may be changed; otherwise the result is not_stored
 * if that is necessary.
 */
static Registered
register_locked(const GivenName &name, Oid role, bool is_exclusive, NameReference *reference, bool *has_other)
{
	int			same = NO_ENTRY;
	int			key_name = NO_ENTRY;
	int			unused_label = NO_ENTRY;
	int			count = 0;

	*has_other = false;
	for (int number = name_look_up(MyDatabaseId, name.key); number != NO_ENTRY; number = name_entry(number)->next_of_key)
	{
		NameEntry  *entry = name_entry(number);

		count++;
		if (entry->ns() == name.ns && entry->name() == name.name)
			same = number;
		else if (entry->counts())
			*has_other = true;
		else
			unused_label = number;
		if (!entry->is_label())
			key_name = number;
	}
	if (name.ns.empty() && key_name != NO_ENTRY)
	{
		name_entry(key_name)->is_used = true;
		*reference = pin_entry(key_name);
		return Registered::named;
	}
	if (same != NO_ENTRY)
	{
		if (!is_exclusive && !name_entry(same)->has_given(role) && !OidIsValid(name_entry(same)->roles[NAME_ROLES - 1]))
			return Registered::not_stored;
		if (is_exclusive)
			add_role(name_entry(same), role);
		name_entry(same)->is_used = true;
	}
	else if (is_exclusive)
	{
		*has_other = *has_other || (unused_label != NO_ENTRY && !name.ns.empty());
		if ((count < NAMES_PER_KEY || (unused_label != NO_ENTRY && remove_entry(unused_label))) && make_room())
			same = add_name(name, role);
	}
	if (same == NO_ENTRY)
		return Registered::not_stored;
	*reference = pin_entry(same);
	return Registered::stored;
}

Registered
name_register(const GivenName &name, Oid role, NameReference *reference, bool *has_other)
{
	Registered	result = Registered::not_stored;

	*reference = NameReference{};
	*has_other = false;
	if (!has_name_table())
		return result;
	/*
	 * Eviction reads the server's lock tables, and a session must not attach to them with an LWLock
	 * held.
	 */
	lock_tables();
	shared_attempt([&]() {
		LWLockAcquire(&name_table->lock, LW_SHARED);
		result = register_locked(name, role, false, reference, has_other);
		LWLockRelease(&name_table->lock);
		if (result != Registered::not_stored || shared_is_short())
			return;
		LWLockAcquire(&name_table->lock, LW_EXCLUSIVE);
		result = register_locked(name, role, true, reference, has_other);
		LWLockRelease(&name_table->lock);
	});
	if (result == Registered::not_stored)
		pg_atomic_fetch_add_u64(&name_table->not_stored, 1);
	return result;
}

void
name_count_collision() noexcept
{
	if (name_table != nullptr)
		pg_atomic_fetch_add_u64(&name_table->collisions, 1);
}

}								/* namespace advisory */
