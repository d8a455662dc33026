/*
 * shmem/namewrite.cpp
 *		Writing the name table: the names of locks, shared by all sessions.
 *
 * To change the table hold NameTable.lock exclusively; to read it hold the lock shared.  Counters,
 * the hand, and the state and the mark of an entry change without it.
 *
 * Entries are allocated in chunks and never freed, so a session can keep the number of an entry.
 * Each text of a key has an entry of its own: usually one, the name.  An entry is free, or it has
 * the sums of the evicted names of a namespace, or it is live.  A live entry is pinned as long as a
 * session holds or awaits its lock.  Its state packs the number of pins and its generation: whoever
 * pins it without a lock needs the generation that it knows, and whoever evicts it changes the
 * generation in the same atomic step that checks that there are no pins.  So either the pin or the
 * eviction comes first.
 *
 * Eviction is a clock, as for the server's buffers.  The entries are a circle, and a hand goes
 * round when a new name finds the table full.  It passes over what is free or pinned.  It clears
 * the mark of what was used since it passed there.  It evicts what has no mark, unless the lock has
 * a holder without a pin: a prepared transaction, or a session that took it through the built-in
 * functions.  That is a question to the lock manager, which is asked while the table is not locked.
 * So the hand first only chooses, and the name is evicted later, if nobody has pinned it meanwhile.
 *
 * A pin moves nothing, so to lock and unlock a known name changes no list.  The steps of the hand
 * for one new name are limited.  In the long run it passes only a few: a mark that it clears was
 * set by a use, and a login role cannot pin more than its share of the table.
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

/*
 * How many steps the hand makes for a new name, and how many locks that are held without a pin it
 * finds: about a millisecond each.
 */
static constexpr int MOST_STEPS = 20000;
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

/* ---- Lists of free entries, and of those with sums ---- */

static void
push(int *list, int number) noexcept
{
	entry_of(number)->next = *list;
	*list = number;
}

static int
pop(int *list) noexcept
{
	int			number = *list;

	*list = entry_of(number)->next;
	return number;
}

/* ---- The hash table ---- */

static void
add_to_bucket(int number, uint32 hash) noexcept
{
	int		   *first = bucket_of(hash);

	entry_of(number)->next_in_bucket = *first;
	*first = number;
}

static void
remove_from_bucket(int number) noexcept
{
	int		   *link = bucket_of(hash_of(entry_of(number)->key));

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
	dsa_pointer place = dsa_allocate(shared_area, sizeof(NameEntry) * NAME_CHUNK_ENTRIES);

	name_chunks[known_chunks] = static_cast<NameEntry *>(dsa_get_address(shared_area, place));
	name_table->chunks[known_chunks++] = place;
	name_table->entry_count += NAME_CHUNK_ENTRIES;
	/* The first one is the first to be used. */
	for (int i = name_table->entry_count - 1; i >= first; i--)
	{
		pg_atomic_init_u64(&entry_of(i)->state, ONE_GENERATION);
		entry_of(i)->is_live = false;
		entry_of(i)->key = SharedKey{};
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
			add_to_bucket(i, hash_of(entry_of(i)->key));
	}
}

static void
make_table(SharedRoot *root, void *place)
{
	auto	   *made = static_cast<NameTable *>(place);

	LWLockInitialize(&made->lock, root->names_tranche);
	made->free = made->sums = NO_ENTRY;
	for (pg_atomic_uint32 *number : {&made->hand, &made->allowed})
		pg_atomic_init_u32(number, 0);
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
	volatile int *published = &name_table->pins[MyProc - ProcGlobal->allProcs];
	int			before = *published;

	my_allowance = Max(pins, MODEST - 1);
	*published = my_allowance < MODEST ? 0 : my_allowance;
	pg_atomic_fetch_add_u32(&name_table->allowed, *published - before);
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
 * what the others have, so that of two at least one sees the other.  It need not look at each as
 * long as the sessions of all roles have no more together.
 */
static bool
is_within_share() noexcept
{
	if (my_pins < my_allowance)
		return true;

	int			before = my_allowance;
	int64		most = setting::max_names * INT64CONST(3) / 4;
	int64		room = most - before;

	if (room <= 0)
		return false;
	allow(before + MODEST);
	if (pg_atomic_read_u32(&name_table->allowed) <= most)
		return true;
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
	pg_atomic_fetch_add_u64(&entry_of(number)->state, 1);
	count_pin(1);
	return reference_to(number);
}

/*
 * The pin comes first, and its generation is looked at in what was there before.  To read the state
 * first would bring the entry from another processor twice: once to read it, once to change it.  A
 * pin of another name, for a moment, only keeps that from being evicted just then.
 */
bool
name_pin(const NameReference &reference) noexcept
{
	NameEntry  *entry = entry_of(reference.number);

	if (!is_within_share())
		return false;
	if (pg_atomic_fetch_add_u64(&entry->state, 1) >> GENERATION_SHIFT != reference.generation)
	{
		pg_atomic_fetch_sub_u64(&entry->state, 1);
		return false;
	}
	count_pin(1);
	if (!entry->is_used)
		entry->is_used = true;
	return true;
}

void
name_unpin(const NameReference &reference) noexcept
{
	pg_atomic_fetch_sub_u64(&entry_of(reference.number)->state, 1);
	count_pin(-1);
}

NameStats *
name_stats(const NameReference &reference) noexcept
{
	return &entry_of(reference.number)->stats;
}

/* ---- Eviction ---- */

/* May ereport (it cannot be mapped), and then nothing has changed. */
static void
free_long_text(int number)
{
	NameEntry  *entry = entry_of(number);

	if (entry->long_text == InvalidDsaPointer)
		return;
	dsa_free(shared_area, entry->long_text);
	entry->long_text = InvalidDsaPointer;
}

/* Remember that this role has given it, too, if there is room.  A shared lock is enough. */
static void
add_role(NameEntry *entry, Oid role) noexcept
{
	for (pg_atomic_uint32 &known : entry->roles)
	{
		uint32		before = pg_atomic_read_u32(&known);

		if (before == role || (before == InvalidOid &&
			(pg_atomic_compare_exchange_u32(&known, &before, role) || before == role)))
			return;
	}
}

/* Give a free entry a name.  text is for namespace and name, if they are long. */
static void
fill_entry(int number, Oid database, const GivenName &name, Oid role, dsa_pointer text)
{
	NameEntry  *entry = entry_of(number);

	entry->long_text = text;
	entry->ns_length = static_cast<int>(name.ns.size());
	entry->name_length = static_cast<int>(name.name.size());
	memcpy(entry->text(), name.ns.data(), name.ns.size());
	memcpy(entry->text() + name.ns.size(), name.name.data(), name.name.size());
	entry->key = SharedKey{name.key, database};
	for (pg_atomic_uint32 &known : entry->roles)
		pg_atomic_init_u32(&known, InvalidOid);
	add_role(entry, role);
	entry->is_used = false;
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());
}

/*
 * The sums of this namespace in this database; null if there are none, and then *count is how many
 * others there are.  May ereport (a long text cannot be mapped).
 */
static NameEntry *
find_sums(Oid database, std::string_view ns, int *count)
{
	*count = 0;
	for (int i = name_table->sums; i != NO_ENTRY; i = entry_of(i)->next, (*count)++)
	{
		NameEntry  *sums = entry_of(i);

		if (sums->key.database == database && sums->ns_length == static_cast<int>(ns.size()) &&
			sums->ns() == ns)
			return sums;
	}
	return nullptr;
}

namespace
{

/* Where the statistics of an evicted name go. */
struct SumsPlace
{
	NameEntry  *sums;			/* null if there are none yet */
	bool		has_namespace;	/* else they are those without a namespace */
	bool		has_room;		/* for new ones */
};

}								/* anonymous namespace */

/*
 * Labels have their sums without a namespace, and so has what finds no place beside MOST_SUMS
 * others; for these there are twice as many places.  May ereport (a long text cannot be mapped).
 */
static SumsPlace
find_place(NameEntry *entry)
{
	Oid			database = entry->key.database;
	int			count;
	NameEntry  *sums = find_sums(database, entry->ns(), &count);
	bool		has_namespace = sums != nullptr || count < MOST_SUMS || entry->is_label();

	if (!has_namespace)
		sums = find_sums(database, "", &count);
	return SumsPlace{sums, has_namespace, count < 2 * MOST_SUMS};
}

/* An entry is live no longer.  Without sums it becomes these itself, with an empty name. */
static void
add_to_sums(int number, const SumsPlace &place) noexcept
{
	NameEntry  *entry = entry_of(number);

	if (place.sums != nullptr)
	{
		stats_sum(&place.sums->stats, &entry->stats);
		for (pg_atomic_uint32 &role : entry->roles)
			add_role(place.sums, pg_atomic_read_u32(&role));
	}
	if (place.sums == nullptr && place.has_room)
	{
		if (!place.has_namespace)
			entry->ns_length = 0;
		entry->name_length = 0;
		entry->key.key = Key{0};
		push(&name_table->sums, number);
	}
	else
		push(&name_table->free, number);
}

/*
 * Evict this name, unless it was pinned, used or evicted meanwhile.  The lock must be exclusive.
 * May ereport (a long text cannot be mapped), and then nothing has changed.
 */
static bool
evict(const NameReference &name)
{
	NameEntry  *entry = entry_of(name.number);
	uint64		unpinned = static_cast<uint64>(name.generation) << GENERATION_SHIFT;
	SumsPlace	place = find_place(entry);

	if (entry->is_used ||
		!pg_atomic_compare_exchange_u64(&entry->state, &unpinned, unpinned + ONE_GENERATION))
		return false;
	remove_from_bucket(name.number);
	entry->is_live = false;
	name_table->live_count--;
	add_to_sums(name.number, place);
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
	return true;
}

namespace
{

/* What the hand does for one new name. */
struct Walk
{
	int			most_steps;
	int			steps;
	int			held;			/* names whose lock has a holder without a pin */
};

}								/* anonymous namespace */

/*
 * Move the hand to a name that is not pinned, and not marked.  In the second half of its steps a
 * mark does not help.  Returns NO_ENTRY when it has made all its steps.
 */
static int
move_hand(Walk *walk) noexcept
{
	while (walk->steps < walk->most_steps)
	{
		uint32		passed = pg_atomic_fetch_add_u32(&name_table->hand, 1);
		int			number = static_cast<int>(passed % name_table->entry_count);
		NameEntry  *entry = entry_of(number);

		walk->steps++;
		if (!entry->is_live || entry->is_pinned())
			continue;

		bool		was_used = entry->is_used;

		/* Who uses it from now on keeps it. */
		entry->is_used = false;
		if (!was_used || walk->steps > walk->most_steps / 2)
			return number;
	}
	return NO_ENTRY;
}

/* Is a lock of this key held, by whoever has no pin?  Only a prepared transaction has slots so. */
static bool
is_held(const SharedKey &key)
{
	return is_held_by_anybody(lock_tag(key.database, key.key)) ||
		is_held_by_prepared(key.database, key.key);
}

/* Evict one name.  Returns false if the hand found only names that are in use. */
static bool
evict_one(Walk *walk)
{
	bool		is_evicted = false;

	while (!is_evicted && walk->held < MOST_HELD)
	{
		lock_names(LW_SHARED);

		int			number = move_hand(walk);
		NameReference name = number != NO_ENTRY ? reference_to(number) : NameReference{};
		SharedKey	key = number != NO_ENTRY ? entry_of(number)->key : SharedKey{};

		unlock_names();
		if (number == NO_ENTRY)
			return false;
		if (is_held(key))
		{
			/* The hand leaves it alone for a round. */
			entry_of(number)->is_used = true;
			walk->held++;
			continue;
		}
		lock_names(LW_EXCLUSIVE);
		is_evicted = evict(name);
		unlock_names();
	}
	return is_evicted;
}

/*
 * Make room for one more name.  Returns how many names the table may have with it, or 0 if all are
 * in use.  If advisory_ext.max_names was lowered, the table may have more, but fewer than before.
 */
static int
make_room(Walk *walk)
{
	int			evicted = 0;

	if (name_table->live_count < setting::max_names)
		return setting::max_names;
	walk->most_steps = Min(2 * name_table->entry_count, MOST_STEPS);
	while (name_table->live_count >= setting::max_names && evicted < MOST_EVICTED &&
		   evict_one(walk))
		evicted++;
	return evicted > 0 && setting::max_names > 0
		? Max(setting::max_names, name_table->live_count + 1) : 0;
}

/* ---- Registering ---- */

namespace
{

struct NewName
{
	GivenName	given;
	Oid			role;
	SharedKey	key;
	uint32		hash;			/* of the key */

	size_t		bytes() const noexcept
	{
		return given.ns.size() + given.name.size();
	}
};

}								/* anonymous namespace */

/*
 * Add a name, and return its entry.  There is a free entry, or one can be allocated.  May ereport,
 * and then nothing has changed.
 */
static int
add_name(const NewName &name)
{
	dsa_pointer text = InvalidDsaPointer;
	int			number;

	if (name_table->free == NO_ENTRY)
		add_chunk();
	if (name.bytes() > NAME_INLINE_BYTES)
		text = dsa_allocate(shared_area, name.bytes());
	free_long_text(name_table->free);
	number = pop(&name_table->free);
	fill_entry(number, MyDatabaseId, name.given, name.role, text);
	add_to_bucket(number, name.hash);
	entry_of(number)->is_live = true;
	name_table->live_count++;
	return number;
}

/*
 * With the table's lock held.  room: how many names the table may have, if the lock is exclusive; 0
 * if it is shared, and then only a name that is there is found.
 */
static Registration
register_locked(const NewName &name, int room)
{
	Registration result = {};
	int			number = NO_ENTRY;
	int			key_name = NO_ENTRY;
	int			old_label = NO_ENTRY;
	int			count = 0;
	bool		is_label = name.given.ns.empty();

	visit_key(name.key, name.hash, [&](int its_number, NameEntry *entry) {
		count++;
		if (entry->ns() == name.given.ns && entry->name() == name.given.name)
			number = its_number;
		else if (entry->counts())
			result.has_other = true;
		else
			old_label = its_number;
		if (!entry->is_label())
			key_name = its_number;
	});
	result.is_outranked = is_label && key_name != NO_ENTRY;
	if (result.is_outranked)
		number = key_name;
	else if (number != NO_ENTRY)
		add_role(entry_of(number), name.role);
	if (number != NO_ENTRY)
		entry_of(number)->is_used = true;
	else if (room > 0)
	{
		result.has_other |= old_label != NO_ENTRY && !is_label;
		/* One of too many labels makes room. */
		if (count >= NAMES_PER_KEY && old_label != NO_ENTRY)
		{
			entry_of(old_label)->is_used = false;
			evict(reference_to(old_label));
		}
		else if (count >= NAMES_PER_KEY && is_label)
			return result;
		if (name_table->live_count < room)
			number = add_name(name);
	}
	if (number != NO_ENTRY)
		result.reference = pin_entry(number);
	return result;
}

/* Returns false if there is no memory for the name. */
static bool
register_exclusively(const NewName &name, int room, Registration *result)
{
	auto		try_now = [&]() {
		*result = register_locked(name, room);
		unlock_names();
	};

	lock_names(LW_EXCLUSIVE);
	if (name.bytes() <= NAME_INLINE_BYTES && name_table->free != NO_ENTRY)
	{
		try_now();
		return true;
	}
	unlock_names();
	return !shared_is_short() && shared_attempt([&]() {
		lock_names(LW_EXCLUSIVE);
		try_now();
	});
}

Registration
name_register(const GivenName &name, Oid role)
{
	Registration result = {};
	Walk		walk = {};
	int			room;

	if (!has_name_table())
		return result;
	if (is_within_share())
	{
		SharedKey	key = {name.key, MyDatabaseId};
		NewName		wanted = {name, role, key, hash_of(key)};

		lock_names(LW_SHARED);
		result = register_locked(wanted, 0);
		unlock_names();
		/* Another session may take the room that this one has made. */
		while (result.reference.generation == 0 && (room = make_room(&walk)) > 0 &&
			   register_exclusively(wanted, room, &result) && name_table->live_count >= room)
			;
	}
	if (result.reference.generation == 0)
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
