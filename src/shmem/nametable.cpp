/*
 * shmem/nametable.cpp
 *		The name table: the names of locks, shared by all sessions.
 *
 * Locking
 *
 * To change the table hold NameTable.lock exclusively; to read it hold the lock shared.  The lock
 * of a partition of the server's lock table is taken while it is held.  Counters, the state of an
 * entry, and NameTable.returned are atomic.  Nothing is allocated under the lock.
 *
 * Entries
 *
 * Entries are allocated in chunks and never freed, so a session can keep the number of an entry.
 * Each text of a key has an entry of its own: usually one, the name.  An entry is one of these:
 *
 *	free	it has no name; in NameTable.free
 *	sums	it has the sums of the evicted names of a namespace; in NameTable.sums
 *	live	it has a name or label, and can be found by its key
 *
 * A live entry is pinned as long as a session holds or awaits its lock.  Its state packs the
 * number of pins, and its generation: whoever pins it without a lock needs the generation that it
 * knows, and whoever evicts it changes the generation in the same atomic step that checks that
 * there are no pins.  So either the pin or the eviction comes first.
 *
 * Eviction
 *
 * A live entry is in one of four places:
 *
 *	queue		it may be evicted, when its turn comes
 *	held		it had its turn, but its lock had a holder without a pin: a prepared transaction, or a
 *				session that took it through the built-in functions
 *	parked		it had its turn, but was pinned.  Or it is new, and still pinned.  It is in no list
 *	returned	it was parked, and the session that unpinned it last put it onto this stack
 *
 * A pin does not move an entry, so to lock and unlock a known name takes no lock here and changes
 * no list.  A new name first moves all returned entries to the end of the queue.  If the table is
 * full, it then takes entries from the head of the queue until it has evicted one: an entry that
 * was used again since its last turn goes back to the end; a pinned one is parked.  Whatever is
 * moved was pinned or used since it was moved before, so a new name moves two entries in the long
 * run, whatever the size of the table and however many names are in use.  Nobody reports the end of
 * a hold without a pin, so a new name sends one held entry to the queue again, and more if the
 * queue is empty.
 *
 * So a name is stored as long as any other one is not in use.  But the sessions of one login role
 * may not pin more than their share of the table, see is_within_share().
 *
 * What was counted for a name that is evicted is added to the sums of its namespace.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/guc.h"
#include "server/backends.h"
#include "server/locktable.h"
#include "shmem/nametable.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int CHUNK_ENTRIES = 256;	/* a power of two, see add_chunk() */
static constexpr int MAX_CHUNKS = 4096;
static constexpr int INLINE_BYTES = 88;
static constexpr int NO_ENTRY = -1;

/* How many names a new name may evict if advisory_ext.max_names was lowered. */
static constexpr int MOST_EVICTED = 8;

/* How many held entries a new name looks at if the queue is empty. */
static constexpr int MOST_HELD = 16;

/* How many names and labels a key may have, so that looking at all of them is quick. */
static constexpr int NAMES_PER_KEY = 32;

/* How many namespaces, of all databases, have sums of their evicted names. */
static constexpr int MOST_SUMS = 256;

/* A session with fewer pins than this is not counted, and finds room whatever its role uses. */
static constexpr int MODEST = 8;

/* The state of an entry: the pins in the lower half, the generation in the upper half. */
static constexpr int GENERATION_SHIFT = 32;
static constexpr uint64 ONE_GENERATION = UINT64CONST(1) << GENERATION_SHIFT;
static constexpr uint64 IS_PARKED = UINT64CONST(1) << 31;
static constexpr uint64 PIN_MASK = IS_PARKED - 1;

namespace
{

/* The members that every call needs are in the first 64 bytes: up to the first of NameStats.events. */
struct alignas(PG_CACHE_LINE_SIZE / 2) NameEntry
{
	pg_atomic_uint64 state;
	bool		is_live;
	volatile bool is_used;		/* used again since it was created, or since its last turn */
	NameStats	stats;
	SharedKey	key;
	Oid			roles[NAME_ROLES];	/* the first roles that gave it */
	int			bucket;			/* the first entry of a bucket of the hash table; see bucket_of() */
	int			next_in_bucket;
	int			next;			/* in the list that it is in */
	int			ns_length;		/* 0: the label of a key */
	int			name_length;
	dsa_pointer long_text;		/* invalid if inline_text is enough */
	char		inline_text[INLINE_BYTES];	/* namespace and name, one behind the other */

	bool		is_label() const noexcept
	{
		return ns_length == 0;
	}
	char	   *text()
	{
		return long_text == InvalidDsaPointer
			? inline_text : static_cast<char *>(dsa_get_address(shared_area, long_text));
	}
	std::string_view ns()
	{
		return std::string_view(text(), ns_length);
	}
	std::string_view name()
	{
		return std::string_view(text() + ns_length, name_length);
	}
	uint32		generation() noexcept
	{
		return static_cast<uint32>(pg_atomic_read_u64(&state) >> GENERATION_SHIFT);
	}
	/* Is it a name, or a label that a holder or waiter of the lock gave? */
	bool		counts() noexcept
	{
		return !is_label() || (pg_atomic_read_u64(&state) & PIN_MASK) != 0;
	}
	/* Has this role given it, as far as that is remembered? */
	bool		has_given(Oid role) const noexcept
	{
		for (Oid known : roles)
		{
			if (known == role && OidIsValid(role))
				return true;
		}
		return false;
	}
	bool		has_text(const GivenName &given)
	{
		return ns() == given.ns && name() == given.name;
	}
};

/* A list through NameEntry.next. */
struct EntryList
{
	int			first;
	int			last;			/* if the list is not empty */
};

/* How many pins the session with this process number has, roughly, and its login role. */
struct PinCount
{
	Oid			role;
	volatile int pins;			/* rounded down to a multiple of MODEST */
};

struct NameTable
{
	LWLock		lock;
	volatile int entry_count;	/* made so far, in whole chunks */
	int			bucket_count;	/* the largest power of two up to that */
	int			live_count;
	EntryList	free;
	EntryList	queue;
	EntryList	held;
	EntryList	sums;
	pg_atomic_uint32 returned;	/* the first of the stack */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	dsa_pointer chunks[MAX_CHUNKS];
	PinCount	pins[FLEXIBLE_ARRAY_MEMBER];	/* by process number */
};

}								/* anonymous namespace */

/* Null until has_name_table() has found it. */
static NameTable *name_table = nullptr;

/* The addresses of the chunks in this process. */
static NameEntry *chunks[MAX_CHUNKS];
static int	known_chunks = 0;

static NameEntry *
entry_of(int number) noexcept
{
	return &chunks[number / CHUNK_ENTRIES][number % CHUNK_ENTRIES];
}

static NameReference
reference_to(int number) noexcept
{
	return NameReference{number, entry_of(number)->generation()};
}

/* May ereport (no memory to map a chunk). */
static void
lock_names(LWLockMode mode)
{
	LWLockAcquire(&name_table->lock, mode);
	for (; known_chunks < name_table->entry_count / CHUNK_ENTRIES; known_chunks++)
		chunks[known_chunks] = static_cast<NameEntry *>(
			dsa_get_address(shared_area, name_table->chunks[known_chunks]));
}

static void
unlock_names() noexcept
{
	LWLockRelease(&name_table->lock);
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

/* Move the returned entries to the queue, the one that has been there longest first. */
static void
queue_returned() noexcept
{
	int			number = static_cast<int>(pg_atomic_exchange_u32(&name_table->returned, NO_ENTRY));
	int			reversed = NO_ENTRY;

	while (number != NO_ENTRY)
	{
		int			next = entry_of(number)->next;

		entry_of(number)->next = reversed;
		reversed = number;
		number = next;
	}
	while (reversed != NO_ENTRY)
	{
		int			next = entry_of(reversed)->next;

		push(&name_table->queue, reversed);
		reversed = next;
	}
}

/* ---- The hash table ---- */

/*
 * The first entry of the bucket of this key.  Each of the first bucket_count entries has room for
 * one, so that the hash table grows with the entries, and needs no memory of its own.
 */
static int *
bucket_of(const SharedKey &key) noexcept
{
	uint64		hash = hash_bytes_extended(reinterpret_cast<const unsigned char *>(&key),
										   sizeof(SharedKey), attached_root->seed);

	return &entry_of(static_cast<int>(hash & (name_table->bucket_count - 1)))->bucket;
}

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

/* Call visit(number, entry) for each live entry of this key. */
template <typename Visit>
static void
visit_key(Oid database, Key key, Visit visit)
{
	SharedKey	wanted = {key, database};

	for (int number = *bucket_of(wanted); number != NO_ENTRY; number = entry_of(number)->next_in_bucket)
	{
		if (entry_of(number)->key.key == key && entry_of(number)->key.database == database)
			visit(number, entry_of(number));
	}
}

/* ---- The table itself ---- */

/* Add free entries, and sometimes buckets.  May ereport, and then nothing has changed. */
static void
add_chunk()
{
	dsa_pointer place = dsa_allocate0(shared_area, sizeof(NameEntry) * CHUNK_ENTRIES);
	auto	   *made = static_cast<NameEntry *>(dsa_get_address(shared_area, place));

	for (int i = 0; i < CHUNK_ENTRIES; i++)
	{
		pg_atomic_init_u64(&made[i].state, ONE_GENERATION);
		made[i].long_text = InvalidDsaPointer;
	}
	lock_names(LW_EXCLUSIVE);
	if (name_table->free.first != NO_ENTRY || known_chunks == MAX_CHUNKS)
	{
		/* Another session has been quicker. */
		unlock_names();
		return dsa_free(shared_area, place);
	}
	name_table->chunks[known_chunks] = place;
	chunks[known_chunks++] = made;
	name_table->entry_count += CHUNK_ENTRIES;
	for (int i = name_table->entry_count - CHUNK_ENTRIES; i < name_table->entry_count; i++)
		push(&name_table->free, i);
	if ((name_table->entry_count & (name_table->entry_count - 1)) == 0)
	{
		name_table->bucket_count = name_table->entry_count;
		for (int i = 0; i < name_table->bucket_count; i++)
			entry_of(i)->bucket = NO_ENTRY;
		for (int i = 0; i < name_table->bucket_count; i++)
		{
			if (entry_of(i)->is_live)
				add_to_bucket(i);
		}
	}
	unlock_names();
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

static PinCount *
my_pin_count() noexcept
{
	return &name_table->pins[MyProc - ProcGlobal->allProcs];
}

/* Is the table available?  Attaches this session to it if possible.  May ereport. */
static bool
has_name_table()
{
	if (name_table != nullptr)
		return true;
	name_table = static_cast<NameTable *>(
		shared_part(&SharedRoot::names, offsetof(NameTable, pins) + sizeof(PinCount) * proc_count(),
					make_table));
	if (name_table != nullptr && name_table->entry_count == 0 && !shared_attempt(add_chunk))
		name_table = nullptr;
	if (name_table != nullptr)
		*my_pin_count() = PinCount{MyProc->roleId, 0};
	return name_table != nullptr;
}

/* ---- Pins ---- */

/* How many pins this session has, and how many others know of. */
static int	my_pins = 0;
static int	published_pins = 0;

/* With fewer pins than this, the session need not look what others of its role use. */
static int	next_look = MODEST;

static void
count_pin(int change) noexcept
{
	my_pins += change;
	if (my_pins % MODEST != 0 || my_pins == published_pins)
		return;
	if (my_pins < published_pins)
		next_look = my_pins + MODEST;
	published_pins = my_pins;
	my_pin_count()->pins = my_pins;
}

/*
 * May this session pin one more name?  The sessions of a login role may pin as many as three
 * quarters of advisory_ext.max_names.  As with the guard of the lock table (acquire.cpp), a session
 * looks at the others the more seldom, the more room there is.
 */
static bool
is_within_share() noexcept
{
	if (my_pins < next_look)
		return true;

	int64		room = setting::max_names * INT64CONST(3) / 4 - my_pins + published_pins;

	for (int i = 0; i < proc_count(); i++)
	{
		if (name_table->pins[i].role == MyProc->roleId)
			room -= name_table->pins[i].pins;
	}
	if (room > 0)
		next_look = my_pins + static_cast<int>(Max(room / 16, 1));
	return room > 0;
}

/* With the table's lock held, so that the entry is not evicted meanwhile. */
static NameReference
pin_entry(int number) noexcept
{
	uint64		state = pg_atomic_fetch_add_u64(&entry_of(number)->state, 1);

	count_pin(1);
	return NameReference{number, static_cast<uint32>(state >> GENERATION_SHIFT)};
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

/* Give an entry this text, new statistics and this role.  long_text is for the text, if it is long. */
static void
fill_entry(NameEntry *entry, Oid database, const GivenName &name, Oid role, dsa_pointer long_text)
{
	if (entry->long_text != InvalidDsaPointer)
		dsa_free(shared_area, entry->long_text);
	entry->long_text = long_text;
	entry->key = SharedKey{name.key, database};
	entry->ns_length = static_cast<int>(name.ns.size());
	entry->name_length = static_cast<int>(name.name.size());
	/* That of sums is there already, if it is long. */
	memmove(entry->text(), name.ns.data(), name.ns.size());
	memcpy(entry->text() + name.ns.size(), name.name.data(), name.name.size());
	memset(entry->roles, 0, sizeof(entry->roles));
	entry->roles[0] = role;
	entry->is_used = false;
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());
}

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
 * The sums of the evicted names of this namespace, with an empty name.  They get the text of the
 * entry that is evicted.  Labels share theirs, in each database, with the namespaces beyond
 * MOST_SUMS.  Null if there are too many databases.
 */
static NameEntry *
sums_of(NameEntry *evicted, std::string_view ns)
{
	Oid			database = evicted->key.database;
	dsa_pointer text = InvalidDsaPointer;
	int			count = 0;

	for (int i = name_table->sums.first; i != NO_ENTRY; i = entry_of(i)->next)
	{
		count++;
		if (entry_of(i)->key.database == database && entry_of(i)->ns() == ns)
			return entry_of(i);
	}
	if (count >= (ns.empty() ? 2 : 1) * MOST_SUMS)
		return ns.empty() ? nullptr : sums_of(evicted, std::string_view());

	/* Whoever makes room has seen to it that there is a free entry. */
	int			number = pop(&name_table->free);

	if (number == NO_ENTRY)
		return nullptr;
	if (ns.size() > INLINE_BYTES)
		std::swap(text, evicted->long_text);
	fill_entry(entry_of(number), database, GivenName{Key{0}, ns, ""}, InvalidOid, text);
	push(&name_table->sums, number);
	return entry_of(number);
}

/* Add the statistics of an entry to those of evicted names, unless it is in use. */
static bool
give_up_text(NameEntry *entry)
{
	uint64		state = pg_atomic_read_u64(&entry->state);

	if ((state & (IS_PARKED | PIN_MASK)) != 0 ||
		!pg_atomic_compare_exchange_u64(&entry->state, &state, state + ONE_GENERATION))
		return false;
	if (NameEntry *sums = sums_of(entry, entry->ns()))
	{
		stats_sum(&sums->stats, &entry->stats);
		for (Oid role : entry->roles)
			add_role(sums, role);
	}
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
	return true;
}

/* Evict the first name of the queue that is not in use. */
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
		if (!entry->is_used && is_held_by_anybody(lock_tag(entry->key.database, entry->key.key)))
			push(&name_table->held, number);
		else if (entry->is_used || !give_up_text(entry))
		{
			entry->is_used = false;
			push(&name_table->queue, number);
		}
		else
		{
			remove_from_bucket(number);
			entry->is_live = false;
			name_table->live_count--;
			push(&name_table->free, number);
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

	while (name_table->live_count >= setting::max_names && evicted < MOST_EVICTED && evict_one())
		evicted++;
	return name_table->live_count < setting::max_names || (evicted > 0 && setting::max_names > 0);
}

/* ---- Registering ---- */

namespace
{

/* What the table has for the key of a name. */
struct Found
{
	int			same = NO_ENTRY;	/* the name itself */
	int			key_name = NO_ENTRY;	/* a name of the key */
	int			unused_label = NO_ENTRY;
	int			count = 0;
	bool		has_other = false;	/* another name, or label that counts */
};

}								/* anonymous namespace */

static Found
find_given(const GivenName &name)
{
	Found		found;

	visit_key(MyDatabaseId, name.key, [&](int number, NameEntry *entry) {
		found.count++;
		if (entry->has_text(name))
			found.same = number;
		else if (entry->counts())
			found.has_other = true;
		else
			found.unused_label = number;
		if (!entry->is_label())
			found.key_name = number;
	});
	return found;
}

/* The name is in the table, or not wanted there.  is_exclusive: the table may be changed. */
static Registered
pin_found(const Found &found, const GivenName &name, Oid role, bool is_exclusive,
		  NameReference *reference)
{
	bool		is_outranked = name.ns.empty() && found.key_name != NO_ENTRY;
	int			number = is_outranked ? found.key_name : found.same;

	if (number == NO_ENTRY)
		return Registered::not_stored;
	if (!is_outranked && is_exclusive)
		add_role(entry_of(number), role);
	else if (!is_outranked && !entry_of(number)->has_given(role) &&
			 !OidIsValid(entry_of(number)->roles[NAME_ROLES - 1]))
		return Registered::not_stored;
	entry_of(number)->is_used = true;
	*reference = pin_entry(number);
	return is_outranked ? Registered::named : Registered::stored;
}

/* Add the name, and pin it.  Uses *long_text up if it succeeds. */
static Registered
add_name(const Found &found, const GivenName &name, Oid role, dsa_pointer *long_text,
		 NameReference *reference)
{
	int			number = found.unused_label;

	queue_returned();
	if (found.count >= NAMES_PER_KEY)
	{
		/* The entry of a label that does not count stays where it is, with another text. */
		if (number == NO_ENTRY || !give_up_text(entry_of(number)))
			return Registered::not_stored;
		fill_entry(entry_of(number), MyDatabaseId, name, role, *long_text);
	}
	else
	{
		if (!make_room())
			return Registered::not_stored;
		number = pop(&name_table->free);
		fill_entry(entry_of(number), MyDatabaseId, name, role, *long_text);
		pg_atomic_fetch_or_u64(&entry_of(number)->state, IS_PARKED);
		add_to_bucket(number);
		entry_of(number)->is_live = true;
		name_table->live_count++;
	}
	*long_text = InvalidDsaPointer;
	*reference = pin_entry(number);
	return Registered::stored;
}

/* A name that the table does not have, or not as this role's.  Allocates memory before it locks. */
static Registered
register_new(const GivenName &name, Oid role, NameReference *reference, bool *has_other)
{
	Registered	result = Registered::not_stored;
	size_t		bytes = name.ns.size() + name.name.size();
	bool		needs_text = bytes > INLINE_BYTES;
	dsa_pointer text = InvalidDsaPointer;
	bool		is_done = false;

	while (!is_done)
	{
		bool		needs_chunk = name_table->free.first == NO_ENTRY;
		auto		allocate = [&]() {
			if (needs_text && text == InvalidDsaPointer)
				text = dsa_allocate(shared_area, bytes);
			if (needs_chunk)
				add_chunk();
		};

		if ((needs_text || needs_chunk) && (shared_is_short() || !shared_attempt(allocate)))
			break;
		lock_names(LW_EXCLUSIVE);
		is_done = name_table->free.first != NO_ENTRY;
		if (is_done)
		{
			Found		found = find_given(name);

			*has_other = found.has_other;
			result = pin_found(found, name, role, true, reference);
			if (result == Registered::not_stored)
			{
				*has_other |= found.unused_label != NO_ENTRY && !name.ns.empty();
				result = add_name(found, name, role, &text, reference);
			}
		}
		unlock_names();
	}
	if (text != InvalidDsaPointer)
		dsa_free(shared_area, text);
	return result;
}

Registered
name_register(const GivenName &name, Oid role, NameReference *reference, bool *has_other)
{
	Registered	result = Registered::not_stored;

	*reference = NameReference{};
	*has_other = false;
	if (!has_name_table())
		return result;
	/* Eviction reads the server's lock tables, to which no session may attach under an LWLock. */
	lock_tables();
	if (is_within_share())
	{
		lock_names(LW_SHARED);

		Found		found = find_given(name);

		*has_other = found.has_other;
		result = pin_found(found, name, role, false, reference);
		unlock_names();
		if (result == Registered::not_stored)
			result = register_new(name, role, reference, has_other);
	}
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

/* ---- Reading ---- */

/* Copy an entry; palloc'd.  make_fit() must follow.  The table's lock must be held. */
static void
copy_entry(int number, KnownName *known)
{
	NameEntry  *entry = entry_of(number);

	known->key = entry->key.key;
	known->ns = entry->is_label() ? nullptr : to_cstring(entry->ns());
	known->name = to_cstring(entry->name());
	known->counts = entry->counts();
	known->reference = reference_to(number);
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
 * Copy the entry of the key for which rank(number, entry) is highest; null if there is none above
 * 0.  If used refers to the key's name, that is the highest, and need not be searched for.
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

	lock_names(LW_SHARED);
	if (used.generation != 0 && used == reference_to(used.number) &&
		!entry_of(used.number)->is_label())
		best = used.number;
	else
		visit_key(database, key, [&](int number, NameEntry *entry) {
			int			found = rank(number, entry);

			if (found > best_rank)
			{
				best = number;
				best_rank = found;
			}
		});
	if (best != NO_ENTRY)
	{
		known = static_cast<KnownName *>(palloc(sizeof(KnownName)));
		copy_entry(best, known);
	}
	unlock_names();
	if (known != nullptr)
		make_fit(known);
	return known;
}

const KnownName *
name_find(Oid database, Key key, const UsedName &used, Oid prepared_owner)
{
	return find_best(database, key, used.name, [&](int number, NameEntry *entry) {
		bool		is_own = used.name == reference_to(number) || entry->has_given(prepared_owner);

		if (!entry->is_label())
			return is_own ? 4 : 3;
		return is_own ? 2 : entry->counts() ? 1 : 0;
	});
}

const KnownName *
name_find_other(const GivenName &name)
{
	return find_best(MyDatabaseId, name.key, NameReference{}, [&](int, NameEntry *entry) {
		if (entry->has_text(name))
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
	for (int first = 0; first < name_table->entry_count; first += CHUNK_ENTRIES)
	{
		CHECK_FOR_INTERRUPTS();
		lock_names(LW_SHARED);
		for (int number = first; number < first + CHUNK_ENTRIES; number++)
		{
			if (entry_of(number)->key.database == MyDatabaseId)
				visit(number, entry_of(number));
		}
		unlock_names();
	}
}

/* The same, with statistics. */
static NameWithStats *
copy_with_stats(int number)
{
	auto	   *copy = static_cast<NameWithStats *>(palloc(sizeof(NameWithStats)));

	stats_copy(&entry_of(number)->stats, &copy->stats);
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
	visit_entries([&](int number, NameEntry *entry) {
		if (entry->is_live)
			read = lappend(read, copy_with_stats(number));
	});

	/* A name that was evicted meanwhile is in the sums now. */
	lock_names(LW_SHARED);
	foreach(cell, read)
	{
		auto	   *copy = static_cast<NameWithStats *>(lfirst(cell));

		if (copy->name.reference == reference_to(copy->name.reference.number))
			names = lappend(names, copy);
	}
	for (int i = name_table->sums.first; i != NO_ENTRY; i = entry_of(i)->next)
	{
		if (entry_of(i)->key.database == MyDatabaseId)
			names = lappend(names, copy_with_stats(i));
	}
	unlock_names();
	foreach(cell, names)
		make_fit(&static_cast<NameWithStats *>(lfirst(cell))->name);
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
	auto		value = [](pg_atomic_uint64 *counter) {
		return static_cast<int64>(pg_atomic_read_u64(counter));
	};

	if (!has_name_table())
		return NameTableState{};
	return NameTableState{true, name_table->live_count, value(&name_table->evicted),
		value(&name_table->not_stored), value(&name_table->collisions)};
}

}								/* namespace advisory */
