/*
 * shmem/namewrite.cpp
 *		Writing the name table: the names of locks, shared by all sessions.
 *
 * To change the table hold NameTable.lock exclusively; to read it hold the lock shared.  Counters,
 * the state of an entry, and NameTable.returned are atomic.
 *
 * Entries are allocated in chunks and never freed, so a session can keep the number of an entry.
 * Each text of a key has an entry of its own: usually one, the name.  An entry is free, or it has
 * the sums of the evicted names of a namespace, or it is live.  A live entry is pinned as long as a
 * session holds or awaits its lock.  Its state packs the number of pins and its generation: whoever
 * pins it without a lock needs the generation that it knows, and whoever evicts it changes the
 * generation in the same atomic step that checks that there are no pins.  So either the pin or the
 * eviction comes first.  A live entry is in one of four places:
 *
 *	queue		it may be evicted, when its turn comes
 *	parked		it is new, or had its turn, and has been pinned ever since.  It is in no list
 *	returned	it was parked, and the session that unpinned it last put it onto this stack
 *	held		it had its turn, but its lock had a holder without a pin: a prepared transaction, or
 *				a session that took it through the built-in functions
 *
 * A pin moves no entry, so to lock and unlock a known name changes no list.  A new name first moves
 * all returned entries to the end of the queue.  If the table is full, it takes entries from the
 * head of the queue until it has evicted one: a pinned one is parked, and one that was used again
 * since its last turn goes back to the end.  Whatever is moved was pinned or used since it was
 * moved before.  So a new name moves a few entries in the long run, whatever the size of the table
 * and however many names are in use.  Nobody reports the end of a hold without a pin, so a new name
 * sends one held entry to the queue again, and more if the queue is empty.
 *
 * The hash table is inside the entries.  A dshash allocates memory for each key and can raise an
 * error there, so that each new name would need a subtransaction, and it has no way to pin a known
 * name without a look-up.  (Tried: in a loop new names took 3.2 times as long as bare numbers, not
 * 2.7 times, and locks over pgbench were 2 percent slower.)
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/stoppoint.h"
#include "server/locktable.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* How many names a new name may evict if advisory_ext.max_names was lowered. */
static constexpr int MOST_EVICTED = 8;

/* How many held entries a new name looks at if the queue is empty: a millisecond. */
static constexpr int MOST_HELD = 1000;

/*
 * How many names and labels a key may have, so that looking at all of them is quick.  A name, which
 * its key proves, finds room beside so many labels.
 */
static constexpr int NAMES_PER_KEY = 32;

/* How many namespaces, of all databases, have sums of their evicted names. */
static constexpr int MOST_SUMS = 256;

/* A session with fewer pins than this is not counted, and finds room whatever its role uses. */
static constexpr int MODEST = 8;

NameTable  *name_table = nullptr;
NameEntry  *name_chunks[NAME_MAX_CHUNKS];
static int	known_chunks = 0;

void
lock_names(LWLockMode mode)
{
	LWLockAcquire(&name_table->lock, mode);
	STOP_POINT("names are locked");
	for (; known_chunks < name_table->entry_count / NAME_CHUNK_ENTRIES; known_chunks++)
		name_chunks[known_chunks] = static_cast<NameEntry *>(
			dsa_get_address(shared_area, name_table->chunks[known_chunks]));
}

/* ---- Lists ---- */

static void
push(EntryList *list, int number) noexcept
{
	if (list->first == NO_ENTRY)
		list->first = number;
	else
		entry_of(list->last)->next = number;
	list->last = number;
	entry_of(number)->next = NO_ENTRY;
}

static int
pop(EntryList *list) noexcept
{
	int			number = list->first;

	if (number != NO_ENTRY)
		list->first = entry_of(number)->next;
	return number;
}

/* An entry is parked no longer. */
static void
push_returned(int number) noexcept
{
	uint32		first = pg_atomic_read_u32(&name_table->returned);

	do
		entry_of(number)->next = static_cast<int>(first);
	while (!pg_atomic_compare_exchange_u32(&name_table->returned, &first, number));
}

static void
queue_returned() noexcept
{
	int			number = static_cast<int>(pg_atomic_exchange_u32(&name_table->returned, NO_ENTRY));

	while (number != NO_ENTRY)
	{
		int			next = entry_of(number)->next;

		push(&name_table->queue, number);
		number = next;
	}
}

/* ---- The hash table ---- */

static void
add_to_bucket(int number) noexcept
{
	int		   *first = bucket_of(entry_of(number)->key);

	entry_of(number)->next_in_bucket = *first;
	*first = number;
}

static void
remove_from_bucket(int number) noexcept
{
	int		   *link = bucket_of(entry_of(number)->key);

	while (*link != number)
		link = &entry_of(*link)->next_in_bucket;
	*link = entry_of(number)->next_in_bucket;
}

/* ---- The table itself ---- */

/*
 * Add free entries, and if their number is a power of two, as many buckets.  The table's lock must
 * be held.  May ereport, and then nothing has changed.
 */
static void
add_chunk()
{
	int			first = name_table->entry_count;
	dsa_pointer place = dsa_allocate0(shared_area, sizeof(NameEntry) * NAME_CHUNK_ENTRIES);

	name_chunks[known_chunks] = static_cast<NameEntry *>(dsa_get_address(shared_area, place));
	name_table->chunks[known_chunks++] = place;
	name_table->entry_count += NAME_CHUNK_ENTRIES;
	for (int i = first; i < name_table->entry_count; i++)
	{
		pg_atomic_init_u64(&entry_of(i)->state, ONE_GENERATION);
		entry_of(i)->long_text = InvalidDsaPointer;
		push(&name_table->free, i);
	}
	if ((name_table->entry_count & (name_table->entry_count - 1)) != 0)
		return;
	name_table->bucket_count = name_table->entry_count;
	for (int i = 0; i < name_table->bucket_count; i++)
		entry_of(i)->bucket = NO_ENTRY;
	for (int i = 0; i < name_table->bucket_count; i++)
	{
		if (entry_of(i)->is_live)
			add_to_bucket(i);
	}
}

static void
make_table(SharedRoot *root, void *place)
{
	auto	   *made = static_cast<NameTable *>(place);

	LWLockInitialize(&made->lock, root->names_tranche);
	for (EntryList *list : {&made->free, &made->queue, &made->held, &made->sums})
		list->first = NO_ENTRY;
	pg_atomic_init_u32(&made->returned, NO_ENTRY);
	for (pg_atomic_uint64 *counter : {&made->evicted, &made->not_stored, &made->collisions})
		pg_atomic_init_u64(counter, 0);
}

bool
has_name_table()
{
	if (name_table != nullptr && name_table->entry_count > 0)
		return true;
	name_table = static_cast<NameTable *>(
		shared_part(&SharedRoot::names, offsetof(NameTable, pins) + sizeof(int) * proc_count(),
					make_table));
	if (name_table == nullptr)
		return false;
	/* The hash table needs the first chunk. */
	return name_table->entry_count > 0 || shared_attempt([]() {
		lock_names(LW_EXCLUSIVE);
		if (name_table->entry_count == 0)
			add_chunk();
		unlock_names();
	});
}

/* ---- Pins ---- */

/*
 * How many pins this session has, and how many it may have without asking again.  Others know of
 * the latter, unless it is still the number that is not counted.
 */
static int	my_pins = 0;
static int	my_allowance = MODEST - 1;

static void
allow(int pins) noexcept
{
	my_allowance = Max(pins, MODEST - 1);
	name_table->pins[MyProc - ProcGlobal->allProcs] = my_allowance < MODEST ? 0 : my_allowance;
}

static void
count_pin(int change) noexcept
{
	my_pins += change;
	/* A session that goes up and down by a few pins need not ask each time. */
	if (change < 0 && my_allowance >= MODEST &&
		(my_pins < MODEST || my_allowance - my_pins >= 2 * MODEST))
		allow(my_pins < MODEST ? 0 : my_allowance - MODEST);
}

/*
 * May this session pin one more name?  The sessions of a login role may pin as many as three
 * quarters of advisory_ext.max_names together.  A session says how many it wants before it looks
 * what the others have, so that of two at least one sees the other.
 */
static bool
is_within_share() noexcept
{
	if (my_pins < my_allowance)
		return true;

	int			before = my_allowance;
	int64		room = setting::max_names * INT64CONST(3) / 4 - before;

	allow(before + MODEST);
	pg_memory_barrier();
	for (int i = 0; i < proc_count(); i++)
	{
		const PGPROC *other = &ProcGlobal->allProcs[i];

		if (name_table->pins[i] > 0 && other != MyProc && other->roleId == MyProc->roleId)
			room -= name_table->pins[i];
	}
	if (room < MODEST)
		allow(before + static_cast<int>(Max(room, 0)));
	return room > 0;
}

/* With the table's lock held, so that the entry is not evicted meanwhile. */
static NameReference
pin_entry(int number) noexcept
{
	uint64		state = pg_atomic_fetch_add_u64(&entry_of(number)->state, 1);

	count_pin(1);
	/* A new one is not used again. */
	entry_of(number)->is_used = (state & (IS_PARKED | PIN_MASK)) != IS_PARKED;
	return reference_to(number);
}

bool
name_pin(const NameReference &reference) noexcept
{
	NameEntry  *entry = entry_of(reference.number);
	uint64		state = pg_atomic_read_u64(&entry->state);

	if (!is_within_share())
		return false;
	do
	{
		if (state >> GENERATION_SHIFT != reference.generation)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&entry->state, &state, state + 1));
	count_pin(1);
	if (!entry->is_used)
		entry->is_used = true;
	return true;
}

void
name_unpin(const NameReference &reference) noexcept
{
	NameEntry  *entry = entry_of(reference.number);
	uint64		state = pg_atomic_sub_fetch_u64(&entry->state, 1);

	/* If another session pins it meanwhile, it is that session that returns it. */
	if ((state & (IS_PARKED | PIN_MASK)) == IS_PARKED &&
		pg_atomic_compare_exchange_u64(&entry->state, &state, state & ~IS_PARKED))
		push_returned(reference.number);
	count_pin(-1);
}

/* An entry had its turn: park it if it is pinned. */
static bool
park(NameEntry *entry) noexcept
{
	uint64		state = pg_atomic_read_u64(&entry->state);

	while ((state & PIN_MASK) != 0)
	{
		if (pg_atomic_compare_exchange_u64(&entry->state, &state, state | IS_PARKED))
			return true;
	}
	return false;
}

NameStats *
name_stats(const NameReference &reference) noexcept
{
	return &entry_of(reference.number)->stats;
}

/* ---- Eviction ---- */

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

/* Give an entry another name.  text is for namespace and name, if they are long. */
static void
fill_entry(int number, Oid database, const GivenName &name, Oid role, dsa_pointer text)
{
	NameEntry  *entry = entry_of(number);

	if (entry->long_text != InvalidDsaPointer)
		dsa_free(shared_area, entry->long_text);
	entry->long_text = text;
	entry->ns_length = static_cast<int>(name.ns.size());
	entry->name_length = static_cast<int>(name.name.size());
	memmove(entry->text(), name.ns.data(), name.ns.size());
	memcpy(entry->text() + name.ns.size(), name.name.data(), name.name.size());
	entry->key = SharedKey{name.key, database};
	memset(entry->roles, 0, sizeof(entry->roles));
	entry->is_used = false;
	add_role(entry, role);
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());
}

/*
 * The sums of the evicted names of this namespace, with an empty name.  They take over the text of
 * the evicted entry.  Labels share theirs, in each database, with the namespaces beyond MOST_SUMS.
 * Null if there are too many databases.
 */
static NameEntry *
sums_of(NameEntry *evicted, std::string_view ns)
{
	Oid			database = evicted->key.database;
	dsa_pointer text = InvalidDsaPointer;
	int			count = 0;

	for (int i = name_table->sums.first; i != NO_ENTRY; i = entry_of(i)->next, count++)
	{
		if (entry_of(i)->key.database == database && entry_of(i)->ns() == ns)
			return entry_of(i);
	}
	if (count >= (ns.empty() ? 2 : 1) * MOST_SUMS)
		return ns.empty() ? nullptr : sums_of(evicted, "");
	if (ns.size() > NAME_INLINE_BYTES)
		std::swap(text, evicted->long_text);
	push(&name_table->sums, pop(&name_table->free));
	fill_entry(name_table->sums.last, database, GivenName{Key{0}, ns, ""}, InvalidOid, text);
	return entry_of(name_table->sums.last);
}

/*
 * Remove this entry from the hash table, unless it is in use, and add its statistics to the sums.
 * There must be a free entry.
 */
static bool
remove_entry(int number)
{
	NameEntry  *entry = entry_of(number);
	uint64		state = pg_atomic_read_u64(&entry->state);

	if ((state & (IS_PARKED | PIN_MASK)) != 0 ||
		!pg_atomic_compare_exchange_u64(&entry->state, &state, state + ONE_GENERATION))
		return false;
	remove_from_bucket(number);
	entry->is_live = false;
	if (NameEntry *sums = sums_of(entry, entry->ns()))
	{
		stats_sum(&sums->stats, &entry->stats);
		for (Oid role : entry->roles)
			add_role(sums, role);
	}
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
	return true;
}

/* Is a lock of this key held, by whoever has no pin?  Only a prepared transaction has slots so. */
static bool
is_held(const SharedKey &key)
{
	return is_held_by_anybody(lock_tag(key.database, key.key)) ||
		is_held_by_prepared(key.database, key.key);
}

/* Evict the first name of the queue that is not in use.  There must be a free entry. */
static bool
evict_one()
{
	for (int i = name_table->queue.first == NO_ENTRY ? MOST_HELD : 1;
		 i > 0 && name_table->held.first != NO_ENTRY; i--)
		push(&name_table->queue, pop(&name_table->held));
	while (name_table->queue.first != NO_ENTRY)
	{
		int			number = pop(&name_table->queue);
		NameEntry  *entry = entry_of(number);

		if (park(entry))
			continue;
		if (!entry->is_used && is_held(entry->key))
			push(&name_table->held, number);
		else if (entry->is_used || !remove_entry(number))
		{
			entry->is_used = false;
			push(&name_table->queue, number);
		}
		else
		{
			push(&name_table->free, number);
			name_table->live_count--;
			return true;
		}
	}
	return false;
}

/* Is there room for one more name?  If advisory_ext.max_names was lowered, evict more than one. */
static bool
make_room()
{
	int			evicted = 0;

	queue_returned();
	while (name_table->live_count >= setting::max_names && evicted < MOST_EVICTED && evict_one())
		evicted++;
	return name_table->live_count < setting::max_names || (evicted > 0 && setting::max_names > 0);
}

/* ---- Registering ---- */

/*
 * Add a name, and return its entry, or NO_ENTRY if there is no room.  old_label: a label that has
 * to make room, or NO_ENTRY; its entry stays where it is.  May ereport, and then nothing has
 * changed.
 */
static int
add_name(const GivenName &name, Oid role, int old_label)
{
	size_t		bytes = name.ns.size() + name.name.size();
	bool		replaces = old_label != NO_ENTRY;

	if (name_table->free.first == NO_ENTRY)
		add_chunk();

	dsa_pointer text = bytes > NAME_INLINE_BYTES
		? dsa_allocate(shared_area, bytes) : InvalidDsaPointer;

	if (replaces ? !remove_entry(old_label) : !make_room())
	{
		if (text != InvalidDsaPointer)
			dsa_free(shared_area, text);
		return NO_ENTRY;
	}

	int			number = replaces ? old_label : pop(&name_table->free);

	fill_entry(number, MyDatabaseId, name, role, text);
	add_to_bucket(number);
	entry_of(number)->is_live = true;
	if (!replaces)
	{
		pg_atomic_fetch_or_u64(&entry_of(number)->state, IS_PARKED);
		name_table->live_count++;
	}
	return number;
}

/*
 * With the table's lock held.  is_exclusive: it may be changed; otherwise the name is not stored if
 * that is necessary.
 */
static Registration
register_locked(const GivenName &name, Oid role, bool is_exclusive)
{
	Registration result = {};
	int			number = NO_ENTRY;
	int			key_name = NO_ENTRY;
	int			old_label = NO_ENTRY;
	int			count = 0;

	visit_key(MyDatabaseId, name.key, [&](int its_number, NameEntry *entry) {
		count++;
		if (entry->ns() == name.ns && entry->name() == name.name)
			number = its_number;
		else if (entry->counts())
			result.has_other = true;
		else
			old_label = its_number;
		if (!entry->is_label())
			key_name = its_number;
	});
	result.is_outranked = name.ns.empty() && key_name != NO_ENTRY;
	if (result.is_outranked)
		number = key_name;
	else if (number != NO_ENTRY && is_exclusive)
		add_role(entry_of(number), role);
	else if (number != NO_ENTRY && !entry_of(number)->has_given(role) &&
			 !OidIsValid(entry_of(number)->roles[NAME_ROLES - 1]))
		return result;
	else if (number == NO_ENTRY && is_exclusive)
	{
		result.has_other |= old_label != NO_ENTRY && !name.ns.empty();
		if (count < NAMES_PER_KEY || old_label != NO_ENTRY || !name.ns.empty())
			number = add_name(name, role, count < NAMES_PER_KEY ? NO_ENTRY : old_label);
	}
	if (number != NO_ENTRY)
		result.reference = pin_entry(number);
	return result;
}

Registration
name_register(const GivenName &name, Oid role)
{
	Registration result = {};
	auto		try_with = [&](LWLockMode mode) {
		lock_names(mode);
		result = register_locked(name, role, mode == LW_EXCLUSIVE);
		unlock_names();
		return result.reference.generation != 0;
	};
	auto		try_to_add = [&]() {
		if (name.ns.size() + name.name.size() <= NAME_INLINE_BYTES &&
			name_table->free.first != NO_ENTRY)
			return try_with(LW_EXCLUSIVE);
		return !shared_is_short() && shared_attempt([&]() { try_with(LW_EXCLUSIVE); });
	};

	if (!has_name_table())
		return result;
	/* Eviction reads the server's lock tables, to which no session may attach under an LWLock. */
	lock_tables();
	if (!is_within_share() || !(try_with(LW_SHARED) || try_to_add()) ||
		result.reference.generation == 0)
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
