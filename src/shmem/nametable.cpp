/*
 * shmem/nametable.cpp
 *		The name table: the names of locks, shared by all sessions.
 *
 * A hash table finds the entries of a key: usually one, the name.  Each text has an entry of its
 * own.  As in PostgreSQL's pgstat_shmem.c, a lock on a part of the hash table protects its entries,
 * and an entry with pins stays, so that whoever has pinned it needs no lock.  Only with the lock on
 * its part, shared or exclusive, can an entry be pinned; only with the exclusive one is it removed.
 * NameTable.lock is held exclusively to add or evict a name, and protects the rest of NameTable;
 * held shared, it keeps the sums as they are.  It comes before the lock on a part.
 *
 * An entry is pinned as long as a session holds or awaits its lock.  It is in one of four places:
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
 * A name is thus stored as long as another one is not in use.  But the sessions of one login role
 * may not pin more than their share of the table, see is_within_share().
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/guc.h"
#include "server/locktable.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* How many names a new name may evict if advisory_ext.max_names was lowered. */
static constexpr int MOST_EVICTED = 8;

/* How many held entries a new name looks at if the queue is empty. */
static constexpr int MOST_HELD = 16;

/* How many labels a key may have, so that looking at all of them is quick.  It has one name. */
static constexpr int LABELS_PER_KEY = 32;

/* How many namespaces, of all databases, have sums of their evicted names. */
static constexpr int MOST_SUMS = 256;

/* A session with fewer pins than this is not counted, and finds room whatever its role uses. */
static constexpr int MODEST = 8;

NameTable  *name_table = nullptr;
dshash_table *names_by_key = nullptr;

static void
make_table(SharedRoot *root, void *place)
{
	auto	   *made = static_cast<NameTable *>(place);

	LWLockInitialize(&made->lock, root->names_tranche);
	dsa_pointer_atomic_init(&made->returned, InvalidDsaPointer);
	for (pg_atomic_uint64 *counter : {&made->evicted, &made->not_stored, &made->collisions})
		pg_atomic_init_u64(counter, 0);
}

bool
has_name_table()
{
	if (name_table == nullptr)
		name_table = static_cast<NameTable *>(
			shared_part(&SharedRoot::names,
						offsetof(NameTable, pins) + sizeof(int) * proc_count(), make_table));
	if (name_table != nullptr && names_by_key == nullptr)
		names_by_key = shared_hash(&SharedRoot::names_by_key, sizeof(NamesOfKey),
								   &SharedRoot::names_tranche);
	return names_by_key != nullptr;
}

/* ---- Lists ---- */

static void
push(EntryList *list, NameEntry *entry)
{
	if (list->first == InvalidDsaPointer)
		list->first = entry->self;
	else
		entry_at(list->last)->next = entry->self;
	list->last = entry->self;
	entry->next = InvalidDsaPointer;
}

/* The list must not be empty. */
static NameEntry *
pop(EntryList *list)
{
	NameEntry  *entry = entry_at(list->first);

	list->first = entry->next;
	return entry;
}

static void
push_returned(NameEntry *entry) noexcept
{
	entry->next = dsa_pointer_atomic_read(&name_table->returned);
	while (!dsa_pointer_atomic_compare_exchange(&name_table->returned, &entry->next, entry->self))
		;
}

/* Only with NameTable.lock held exclusively is anything taken from the stack. */
static void
queue_returned()
{
	dsa_pointer first;

	while ((first = dsa_pointer_atomic_read(&name_table->returned)) != InvalidDsaPointer)
	{
		NameEntry  *entry = entry_at(first);

		if (dsa_pointer_atomic_compare_exchange(&name_table->returned, &first, entry->next))
			push(&name_table->queue, entry);
	}
}

/* ---- Pins ---- */

/* How many pins this session has, and how many others know of: a multiple of MODEST. */
static int	my_pins = 0;
static int	published_pins = 0;

/* With fewer pins than this, the session need not look what others of its role use. */
static int	next_look = MODEST;

static void
count_pin(int change) noexcept
{
	my_pins += change;

	int			rounded = my_pins - my_pins % MODEST;

	if (rounded == published_pins)
		return;
	if (rounded < published_pins)
		next_look = rounded + MODEST;
	published_pins = rounded;
	name_table->pins[MyProc - ProcGlobal->allProcs] = rounded;
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
		if (name_table->pins[i] > 0 && ProcGlobal->allProcs[i].roleId == MyProc->roleId)
			room -= name_table->pins[i];
	}
	if (room > 0)
		next_look = my_pins + static_cast<int>(Max(room / 16, 1));
	return room > 0;
}

static void
pin(NameEntry *entry) noexcept
{
	/* A new one, parked without a pin, is not used again. */
	bool		is_used = pg_atomic_fetch_add_u32(&entry->state, 1) != IS_PARKED;

	if (entry->is_used != is_used)
		entry->is_used = is_used;
	count_pin(1);
}

/* Once it has no pin, an entry that is in a list may be gone at any time. */
void
name_unpin(NameEntry *entry) noexcept
{
	uint32		last_pin = IS_PARKED | 1;
	uint32		state = pg_atomic_read_u32(&entry->state);

	while (!pg_atomic_compare_exchange_u32(&entry->state, &state,
										   state == last_pin ? 0 : state - 1))
		;
	if (state == last_pin)
		push_returned(entry);
	count_pin(-1);
}

/* An entry had its turn: park it if it is pinned. */
static bool
park(NameEntry *entry) noexcept
{
	uint32		state = pg_atomic_read_u32(&entry->state);

	while (state != 0)
	{
		if (pg_atomic_compare_exchange_u32(&entry->state, &state, state | IS_PARKED))
			return true;
	}
	return false;
}

NameStats *
name_stats(NameEntry *entry) noexcept
{
	return &entry->stats;
}

void
name_count_collision() noexcept
{
	if (name_table != nullptr)
		pg_atomic_fetch_add_u64(&name_table->collisions, 1);
}

/* ---- Entries; NameTable.lock is held exclusively ---- */

/* Remember that this role has given the name, too, if there is room for it. */
static void
add_role(NameEntry *entry, Oid role) noexcept
{
	if (entry->has_given(role))
		return;
	for (pg_atomic_uint32 &known : entry->roles)
	{
		uint32		present = InvalidOid;

		/* Another session can add a role at the same time. */
		if (pg_atomic_compare_exchange_u32(&known, &present, role) || present == role)
			return;
	}
}

/* What an entry is called; its memory is large enough. */
static void
fill_entry(NameEntry *entry, const GivenName &name, Oid role) noexcept
{
	entry->id = ++name_table->last_id;
	entry->is_used = false;
	entry->ns_length = static_cast<uint16>(name.ns.size());
	entry->name_length = static_cast<uint16>(name.name.size());
	memcpy(entry->text, name.ns.data(), name.ns.size());
	memcpy(entry->text + name.ns.size(), name.name.data(), name.name.size());
	for (int i = 0; i < NAME_ROLES; i++)
		pg_atomic_init_u32(&entry->roles[i], i == 0 ? role : InvalidOid);
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());
}

/* A new entry, parked without a pin.  May ereport. */
static NameEntry *
make_entry(Oid database, const GivenName &name, Oid role)
{
	/* A label can be replaced by any other label. */
	size_t		bytes = name.ns.empty()
		? NAME_BYTES + sizeof(CUT_MARK) : name.ns.size() + name.name.size();
	dsa_pointer place = dsa_allocate(shared_area, offsetof(NameEntry, text) + bytes);
	NameEntry  *entry = entry_at(place);

	pg_atomic_init_u32(&entry->state, IS_PARKED);
	entry->key = SharedKey{name.key, database};
	entry->self = place;
	fill_entry(entry, name, role);
	return entry;
}

/*
 * The sums of the evicted names of this namespace, with an empty name.  Labels share theirs, in
 * each database, with the namespaces beyond MOST_SUMS.  Null if there are too many databases.  May
 * ereport.
 */
static NameEntry *
sums_of(Oid database, std::string_view ns)
{
	NameEntry  *found = nullptr;

	visit_list(name_table->sums, &NameEntry::next, [&](NameEntry *sums) {
		if (sums->key.database == database && sums->ns() == ns)
			found = sums;
	});
	if (found != nullptr)
		return found;
	if (name_table->sum_count >= (ns.empty() ? 2 : 1) * MOST_SUMS)
		return ns.empty() ? nullptr : sums_of(database, std::string_view());
	found = make_entry(database, GivenName{Key{0}, ns, ""}, InvalidOid);
	found->next = name_table->sums;
	name_table->sums = found->self;
	name_table->sum_count++;
	return found;
}

/* Add the statistics of a name that nobody can find any longer to the sums, which may be null. */
static void
give_up_stats(NameEntry *entry, NameEntry *sums) noexcept
{
	/* Who has unpinned it last counted before that. */
	pg_read_barrier();
	if (sums != nullptr)
	{
		stats_sum(&sums->stats, &entry->stats);
		for (pg_atomic_uint32 &role : entry->roles)
			add_role(sums, pg_atomic_read_u32(&role));
	}
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
}

/*
 * Remove the first entry of the queue, and free it; unless it is pinned.  May ereport: then either
 * nothing has changed, or its key stays without entries, which does no harm, or its memory is lost.
 */
static bool
remove_first(NameEntry *entry)
{
	NameEntry  *sums = sums_of(entry->key.database, entry->ns());
	auto	   *found = static_cast<NamesOfKey *>(dshash_find(names_by_key, &entry->key, true));
	/* An error while dshash grew can have lost the key. */
	dsa_pointer none = entry->self;
	dsa_pointer *link = found != nullptr ? &found->first : &none;
	bool		is_pinned = entry->is_pinned();

	if (!is_pinned)
	{
		while (*link != entry->self)
			link = &entry_at(*link)->next_of_key;
		pop(&name_table->queue);
		*link = entry->next_of_key;
		give_up_stats(entry, sums);
		name_table->name_count--;
		dsa_free(shared_area, entry->self);
	}
	if (found != nullptr && found->first == InvalidDsaPointer)
		dshash_delete_entry(names_by_key, found);
	else if (found != nullptr)
		dshash_release_lock(names_by_key, found);
	return !is_pinned;
}

/* Evict the first name of the queue that is not in use.  May ereport. */
static bool
evict_one()
{
	EntryList  *queue = &name_table->queue;
	EntryList  *held = &name_table->held;

	for (int i = queue->first == InvalidDsaPointer ? MOST_HELD : 1;
		 i > 0 && held->first != InvalidDsaPointer; i--)
		push(queue, pop(held));
	while (queue->first != InvalidDsaPointer)
	{
		NameEntry  *entry = entry_at(queue->first);
		bool		is_idle = !entry->is_used && !entry->is_pinned();
		bool		is_held = is_idle &&
			is_held_by_anybody(lock_tag(entry->key.database, entry->key.key));

		if (is_idle && !is_held && remove_first(entry))
			return true;
		pop(queue);
		if (park(entry))
			continue;
		entry->is_used = false;
		push(is_held ? held : queue, entry);
	}
	return false;
}

/* Is there room for one more name?  If advisory_ext.max_names was lowered, evict more than one. */
static bool
make_room()
{
	int			evicted = 0;

	/* push() must not fail where an entry is in no list, so map the memory that it needs. */
	for (EntryList *list : {&name_table->queue, &name_table->held})
	{
		if (list->first != InvalidDsaPointer)
			entry_at(list->last);
	}
	queue_returned();
	while (name_table->name_count >= setting::max_names && evicted < MOST_EVICTED && evict_one())
		evicted++;
	return name_table->name_count < setting::max_names || (evicted > 0 && setting::max_names > 0);
}

/* ---- Registering ---- */

/* What the table has for a name. */
struct Match
{
	NameEntry  *entry;			/* the name itself; or that of the key, if it is a label */
	NameEntry  *old_label;		/* another one, that does not count */
	bool		has_other;		/* another one, that counts */
	int			count;
};

static Match
match_name(const NamesOfKey *known, const GivenName &name)
{
	Match		match = {};
	NameEntry  *of_key = nullptr;

	visit_list(known->first, &NameEntry::next_of_key, [&](NameEntry *entry) {
		match.count++;
		if (entry->is_named(name))
			match.entry = entry;
		else if (entry->counts())
			match.has_other = true;
		else
			match.old_label = entry;
		if (!entry->is_label())
			of_key = entry;
	});
	if (name.ns.empty() && of_key != nullptr)
		match.entry = of_key;
	return match;
}

/* Pin what was found, with the lock on its part of the hash table held. */
static Registration
pin_match(const Match &match, const GivenName &name, Oid role) noexcept
{
	NameEntry  *entry = match.entry;

	pin(entry);
	if (!entry->is_named(name))
		return Registration{entry, UsedName{}, match.has_other};
	add_role(entry, role);
	return Registration{entry, UsedName{entry->id, role}, match.has_other};
}

/* Pin the name if the table has it.  Sets count to the number of entries of the key. */
static Registration
pin_known(const GivenName &name, Oid role, int *count)
{
	Registration result = {};

	*count = 0;
	if (NamesOfKey *known = find_key(MyDatabaseId, name.key))
	{
		Match		match = match_name(known, name);

		*count = match.count;
		if (match.entry != nullptr)
			result = pin_match(match, name, role);
		dshash_release_lock(names_by_key, known);
	}
	return result;
}

/*
 * Pin a name, and add it unless another session has done so meanwhile.  NameTable.lock must be held
 * exclusively.  May ereport; then nothing is added, but for a key without entries.
 */
static Registration
add_name(const GivenName &name, Oid role)
{
	SharedKey	key = {name.key, MyDatabaseId};
	int			count;
	Registration result = pin_known(name, role, &count);
	bool		exists;

	if (result.entry != nullptr)
		return result;
	/* Else a label takes the place of another one. */
	if ((count < LABELS_PER_KEY || !name.ns.empty()) && !make_room())
		return result;

	auto	   *known = static_cast<NamesOfKey *>(dshash_find_or_insert(names_by_key, &key, &exists));

	if (!exists)
		known->first = InvalidDsaPointer;

	Match		match = match_name(known, name);

	if (match.count < LABELS_PER_KEY || !name.ns.empty())
	{
		match.entry = make_entry(MyDatabaseId, name, role);
		match.entry->next_of_key = known->first;
		known->first = match.entry->self;
		name_table->name_count++;
	}
	else if (match.old_label != nullptr)
	{
		give_up_stats(match.old_label, sums_of(MyDatabaseId, std::string_view()));
		fill_entry(match.old_label, name, role);
		match.entry = match.old_label;
	}
	match.has_other |= match.old_label != nullptr && !name.ns.empty();
	if (match.entry != nullptr)
		result = pin_match(match, name, role);
	dshash_release_lock(names_by_key, known);
	return result;
}

Registration
name_register(const GivenName &name, Oid role)
{
	Registration result = {};
	int			count;

	if (!has_name_table())
		return result;
	if (is_within_share())
	{
		result = pin_known(name, role, &count);
		if (result.entry == nullptr && !shared_is_short())
		{
			/* Eviction reads the server's lock tables; nobody may attach to them under an LWLock. */
			lock_tables();
			shared_attempt([&]() {
				LWLockAcquire(&name_table->lock, LW_EXCLUSIVE);
				result = add_name(name, role);
				LWLockRelease(&name_table->lock);
			});
		}
	}
	if (result.entry == nullptr)
		pg_atomic_fetch_add_u64(&name_table->not_stored, 1);
	return result;
}

}								/* namespace advisory */
