/*
 * shmem/nametable.cpp
 *		The name table: the names of locks, shared by all sessions.
 *
 * Locking
 *
 * To change the table hold NameTable.lock exclusively; to read it hold the lock shared.  The
 * locks of the two hash tables, and of a partition of the server's lock table, are taken while
 * it is held.  Counters, and the state of an entry, are atomic.
 *
 * Entries
 *
 * Entries are allocated in chunks and never freed, so a session can keep the address of an
 * entry.  The state of an entry packs three numbers into one: its generation, the number of
 * its pins, and the number of these pins that belong to sessions that gave the label.  A session
 * pins an entry without a lock, provided that the generation is still the one that it knows.  A
 * session that evicts an entry changes the generation in the same atomic step that checks that
 * there are no pins.  A session that replaces a label changes it in the same step that forgets
 * the label's pins.  So either the pin or this step comes first.
 *
 * Eviction
 *
 * A role that has used up its share evicts one of its own names.  Other roles evict the next name
 * that the clock hand reaches.  But a name that another role has given, too, is handed over to that
 * role if it has room in its share.  A name that was used again since it was created or last visited
 * gets a second chance.  Both methods visit at most EVICTION_STEPS entries for each new name,
 * independent of the size of the table.  If they find no name to evict, the new name is refused.
 *
 * Running out of memory
 *
 * Functions allocate memory before they change anything that would have to be undone.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "lib/dshash.h"
#include "mb/pg_wchar.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
}

#include "base/compat.h"
#include "base/encoding.h"
#include "base/guc.h"
#include "server/locktable.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* One role may fill 1/ROLE_SHARE of the table. */
static constexpr int ROLE_SHARE = 4;

/* How many entries are visited to make room for one name. */
static constexpr int EVICTION_STEPS = 128;

/* How long to wait before the next attempt after no name could be evicted, in microseconds. */
static constexpr TimestampTz EVICTION_PAUSE = 10000;

/* How many names a new name may evict if advisory_ext.max_names was lowered. */
static constexpr int MOST_EVICTED = 8;

/* The state of an entry, from the lowest bits on: pins, pins of sessions that gave the label, generation. */
static constexpr int PIN_BITS = 18;		/* there are fewer processes than 2^18 */
static constexpr int GENERATION_SHIFT = 2 * PIN_BITS;
static constexpr uint64 ONE_LABEL_PIN = UINT64CONST(1) << PIN_BITS;
static constexpr uint64 PIN_MASK = ONE_LABEL_PIN - 1;
static constexpr uint64 LABEL_PIN_MASK = PIN_MASK << PIN_BITS;
static constexpr uint64 ONE_GENERATION = UINT64CONST(1) << GENERATION_SHIFT;

/* Either all are null, or none is. */
NameTable  *name_table = nullptr;
NameEntry  *name_chunks[NAME_MAX_CHUNKS];
static dshash_table *index_table = nullptr;
static dshash_table *role_table = nullptr;

/* ---- The table itself ---- */

static dshash_table_handle
make_hash(SharedRoot *root, size_t key_size, size_t entry_size)
{
	dshash_parameters parameters = compat::hash_parameters(key_size, entry_size, root->tranche);
	dshash_table *made = dshash_create(shared_area(), &parameters, &root->seed);
	dshash_table_handle handle = dshash_get_hash_table_handle(made);

	dshash_detach(made);
	return handle;
}

static void
make_table(SharedRoot *root, void *place)
{
	auto	   *made = static_cast<NameTable *>(place);

	LWLockInitialize(&made->lock, root->tranche);
	made->index = make_hash(root, sizeof(NameKey), sizeof(IndexEntry));
	made->roles = make_hash(root, sizeof(Oid), sizeof(RoleEntry));
	made->first_free = NO_ENTRY;
	pg_atomic_init_u64(&made->evicted, 0);
	pg_atomic_init_u64(&made->refused, 0);
	pg_atomic_init_u64(&made->clashes, 0);
}

bool
has_name_table()
{
	if (name_table != nullptr)
		return true;

	auto	   *found = static_cast<NameTable *>(shared_part(&SharedRoot::names, sizeof(NameTable), make_table));

	if (found == nullptr)
		return false;
	return shared_attempt([found]() {
		SharedRoot *root = shared_root();
		dshash_parameters of_index = compat::hash_parameters(sizeof(NameKey), sizeof(IndexEntry), root->tranche);
		dshash_parameters of_roles = compat::hash_parameters(sizeof(Oid), sizeof(RoleEntry), root->tranche);

		index_table = dshash_attach(shared_area(), &of_index, found->index, &root->seed);
		role_table = dshash_attach(shared_area(), &of_roles, found->roles, &root->seed);
		name_table = found;
	});
}

static NameKey
make_key(Oid database, Key key) noexcept
{
	return NameKey{key.value, database, 0};
}

int
name_look_up(Oid database, Key key)
{
	NameKey		wanted = make_key(database, key);
	auto	   *found = static_cast<IndexEntry *>(dshash_find(index_table, &wanted, false));
	int			number = NO_ENTRY;

	if (found != nullptr)
	{
		number = found->number;
		dshash_release_lock(index_table, found);
	}
	return number;
}

/* ---- Pins ---- */

static uint64
pin_of(bool is_own_label) noexcept
{
	return is_own_label ? 1 + ONE_LABEL_PIN : 1;
}

/* The table's lock must be held, so that the entry is not evicted meanwhile. */
static NameReference
pin_entry(NameEntry *entry, bool is_own_label) noexcept
{
	uint64		state = pg_atomic_fetch_add_u64(&entry->state, pin_of(is_own_label));

	entry->is_used = true;
	return NameReference{entry, state >> GENERATION_SHIFT, is_own_label};
}

bool
name_pin(const NameReference &reference) noexcept
{
	NameEntry  *entry = reference.entry;
	uint64		state;

	if (entry == nullptr)
		return false;
	state = pg_atomic_read_u64(&entry->state);
	do
	{
		if (state >> GENERATION_SHIFT != reference.generation)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&entry->state, &state, state + pin_of(reference.is_own_label)));
	if (!entry->is_used)
		entry->is_used = true;
	return true;
}

void
name_unpin(const NameReference &reference) noexcept
{
	NameEntry  *entry = reference.entry;
	uint64		state;

	if (entry == nullptr)
		return;
	state = pg_atomic_read_u64(&entry->state);
	/* If the label was replaced, its pins no longer count for a label. */
	while (!pg_atomic_compare_exchange_u64(&entry->state, &state,
										   state - pin_of(reference.is_own_label && state >> GENERATION_SHIFT == reference.generation)))
		;
}

bool
name_is_current(const NameReference &reference) noexcept
{
	return reference.entry != nullptr && pg_atomic_read_u64(&reference.entry->state) >> GENERATION_SHIFT == reference.generation;
}

bool
name_counts(NameEntry *entry) noexcept
{
	return entry->by_name || (pg_atomic_read_u64(&entry->state) & LABEL_PIN_MASK) != 0;
}

NameStats *
name_stats(const NameReference &reference) noexcept
{
	return &reference.entry->stats;
}

/* ---- The text and the roles of an entry ---- */

/* The part of a text that is kept: whole characters. */
static std::string_view
cut(std::string_view utf8)
{
	if (utf8.size() <= STORED_NAME_BYTES)
		return utf8;
	return first_bytes(utf8, pg_encoding_mbcliplen(PG_UTF8, utf8.data(), static_cast<int>(Min(utf8.size(), size_t{2} * STORED_NAME_BYTES)),
													STORED_NAME_BYTES));
}

static bool
same_part(std::string_view stored, int64 full_length, std::string_view part)
{
	return full_length == static_cast<int64>(part.size()) && stored == first_bytes(part, stored.size());
}

static bool
is_same_name(NameEntry *entry, const GivenName &name)
{
	return entry->by_name == (name.ns.data() != nullptr) &&
		same_part(namespace_of(entry), entry->full_ns_length, name.ns) &&
		same_part(name_of(entry), entry->full_name_length, name.name);
}

/* Store a name.  Allocates memory for it before it changes anything. */
static void
set_text(NameEntry *entry, const GivenName &name)
{
	std::string_view ns = cut(name.ns);
	std::string_view text = cut(name.name);
	dsa_pointer long_text = InvalidDsaPointer;

	if (ns.size() + text.size() > NAME_INLINE_BYTES)
		long_text = dsa_allocate(shared_area(), ns.size() + text.size());
	if (entry->long_text != InvalidDsaPointer)
		dsa_free(shared_area(), entry->long_text);

	entry->long_text = long_text;
	entry->by_name = name.ns.data() != nullptr;
	entry->ns_length = static_cast<int>(ns.size());
	entry->name_length = static_cast<int>(text.size());
	entry->full_ns_length = static_cast<int64>(name.ns.size());
	entry->full_name_length = static_cast<int64>(name.name.size());
	if (!ns.empty())
		memcpy(text_of(entry), ns.data(), ns.size());
	memcpy(text_of(entry) + ns.size(), text.data(), text.size());
}

static void
set_only_role(NameEntry *entry, Oid role) noexcept
{
	memset(entry->roles, 0, sizeof(entry->roles));
	entry->roles[0] = role;
}

/* ---- Making room ---- */

/*
 * The share of a role.  Entries for roles are never deleted, so they do not move.  The table's lock, which must be held
 * exclusively, protects their contents.
 */
static RoleEntry *
role_entry(Oid role)
{
	static RoleEntry *last = nullptr;
	bool		found;

	if (last != nullptr && last->role == role)
		return last;

	auto	   *entry = static_cast<RoleEntry *>(dshash_find_or_insert(role_table, &role, &found));

	if (!found)
		*entry = RoleEntry{role, 0, NO_ENTRY, NO_ENTRY};
	dshash_release_lock(role_table, entry);
	return last = entry;
}

static void
add_to_role(RoleEntry *role, int number)
{
	NameEntry  *entry = name_entry(number);

	entry->older = role->newest;
	entry->newer = NO_ENTRY;
	if (role->newest != NO_ENTRY)
		name_entry(role->newest)->newer = number;
	else
		role->oldest = number;
	role->newest = number;
	role->count++;
}

static void
remove_from_role(RoleEntry *role, int number)
{
	NameEntry  *entry = name_entry(number);

	if (entry->older != NO_ENTRY)
		name_entry(entry->older)->newer = entry->newer;
	else
		role->oldest = entry->newer;
	if (entry->newer != NO_ENTRY)
		name_entry(entry->newer)->older = entry->older;
	else
		role->newest = entry->older;
	role->count--;
}

/* Move an entry to the share of a role, as its newest name. */
static void
change_quota_role(int number, RoleEntry *role)
{
	NameEntry  *entry = name_entry(number);

	remove_from_role(role_entry(entry->quota_role), number);
	entry->quota_role = role->role;
	add_to_role(role, number);
}

static int
share_of_role() noexcept
{
	return Max(setting::max_names / ROLE_SHARE, 1);
}

/*
 * Evict this entry, unless it is pinned, or a holder without a pin has the lock: a prepared
 * transaction, or a session that took it through the built-in functions.
 */
static bool
evict(int number)
{
	NameEntry  *entry = name_entry(number);
	uint64		state = pg_atomic_read_u64(&entry->state);

	if ((state & PIN_MASK) != 0 || is_held_by_anybody(lock_tag(entry->key.database, Key{entry->key.key})))
		return false;
	if (!pg_atomic_compare_exchange_u64(&entry->state, &state, state + ONE_GENERATION))
		return false;
	dshash_delete_key(index_table, &entry->key);
	remove_from_role(role_entry(entry->quota_role), number);
	entry->is_live = false;
	entry->next_free = name_table->first_free;
	name_table->first_free = number;
	name_table->live_count--;
	pg_atomic_fetch_add_u64(&name_table->evicted, 1);
	return true;
}

/*
 * Make room with one of the entries that next() visits, until next() returns NO_ENTRY: the first that was not used lately
 * and for which attempt(number) succeeds, or else the first of the others for which it succeeds.  After a failure, further
 * calls fail until *not_before.
 */
template <typename Next, typename Attempt>
static bool
evict_one(TimestampTz *not_before, Next next, Attempt attempt)
{
	int			used[EVICTION_STEPS];
	int			used_count = 0;

	TimestampTz now = *not_before != 0 ? GetCurrentTimestamp() : 0;

	/* If *not_before is further ahead than that, the clock was set back since; then ignore it. */
	if (now < *not_before && *not_before - now <= EVICTION_PAUSE)
		return false;
	*not_before = 0;
	for (int step = 0; step < EVICTION_STEPS; step++)
	{
		int			number = next();
		NameEntry  *entry = number != NO_ENTRY ? name_entry(number) : nullptr;

		if (entry == nullptr)
			break;
		if (!entry->is_live)
			continue;
		if (entry->is_used)
			used[used_count++] = number;
		else if (attempt(number))
			return true;
		entry->is_used = false;
	}
	for (int i = 0; i < used_count; i++)
	{
		if (attempt(used[i]))
			return true;
	}
	*not_before = GetCurrentTimestamp() + EVICTION_PAUSE;
	return false;
}

/* Move an entry to the share of another role that gave the name, too, and has room. */
static bool
hand_over(int number)
{
	NameEntry  *entry = name_entry(number);

	for (Oid naming : entry->roles)
	{
		RoleEntry  *role = OidIsValid(naming) && naming != entry->quota_role ? role_entry(naming) : nullptr;

		if (role == nullptr || role->count >= share_of_role())
			continue;
		change_quota_role(number, role);
		return true;
	}
	return false;
}

/*
 * Visit the names of this role, beginning with the oldest; a visited name becomes the newest.  A name that can be handed
 * over is not evicted.  hands_over: that is enough, because only the role's share must become smaller.
 */
static bool
evict_from_role(RoleEntry *role, bool hands_over)
{
	int			left = role->count;
	int			looked_at = NO_ENTRY;

	return evict_one(&role->no_eviction_before, [&]() {
		if (looked_at != NO_ENTRY && name_entry(looked_at)->quota_role == role->role)
			change_quota_role(looked_at, role);
		looked_at = left-- > 0 ? role->oldest : NO_ENTRY;
		return looked_at;
	}, [&](int number) {
		return hand_over(number) ? hands_over : evict(number);
	});
}

static bool
evict_from_all()
{
	int			left = name_table->entry_count;

	return evict_one(&name_table->no_eviction_before, [&left]() {
		int			number = name_table->clock_hand;

		if (left-- == 0)
			return NO_ENTRY;
		name_table->clock_hand = (number + 1) % name_table->entry_count;
		return number;
	}, evict);
}

static void
add_chunk()
{
	int			first = name_table->entry_count;
	dsa_pointer place = dsa_allocate0(shared_area(), sizeof(NameEntry) * NAME_CHUNK_ENTRIES);
	auto	   *entries = static_cast<NameEntry *>(dsa_get_address(shared_area(), place));

	for (int i = 0; i < NAME_CHUNK_ENTRIES; i++)
	{
		pg_atomic_init_u64(&entries[i].state, 0);
		entries[i].long_text = InvalidDsaPointer;
		entries[i].next_free = i + 1 < NAME_CHUNK_ENTRIES ? first + i + 1 : NO_ENTRY;
	}
	name_table->chunks[first / NAME_CHUNK_ENTRIES] = place;
	name_table->entry_count += NAME_CHUNK_ENTRIES;
	name_table->first_free = first;
}

/* Has this role room for one more name in its share?  If the share is used up, makes room in it; a superuser has no limit. */
static bool
make_room_in_share(const NamingRole &naming, RoleEntry *role)
{
	return role->count < share_of_role() || naming.is_superuser || evict_from_role(role, true);
}

/* Is there, or can there be, a free entry for this role? */
static bool
make_room(const NamingRole &naming, RoleEntry *role)
{
	int			limit = setting::max_names;
	bool		has_share = role->count >= share_of_role();

	if (limit <= 0 || !make_room_in_share(naming, role))
		return false;
	/* Evict more than one if the setting was lowered. */
	for (int i = 0; name_table->live_count >= limit && i < MOST_EVICTED; i++)
	{
		if (!(has_share && evict_from_role(role, false)) && !evict_from_all())
			break;
	}
	if (name_table->live_count >= limit)
		return false;
	if (name_table->first_free == NO_ENTRY)
		add_chunk();
	return true;
}

/* ---- Registering ---- */

/* A new entry, pinned; an empty reference if there is no room. */
static NameReference
add_name(const NameKey &key, const GivenName &name, const NamingRole &naming)
{
	RoleEntry  *role = role_entry(naming.role);
	bool		found;

	if (!make_room(naming, role))
		return NameReference{};

	int			number = name_table->first_free;
	NameEntry  *entry = name_entry(number);

	/* First do what can fail, while the entry is still free. */
	set_text(entry, name);

	auto	   *place = static_cast<IndexEntry *>(dshash_find_or_insert(index_table, &key, &found));

	place->number = number;
	dshash_release_lock(index_table, place);

	name_table->first_free = entry->next_free;
	name_table->live_count++;
	entry->is_live = true;
	entry->key = key;
	entry->quota_role = naming.role;
	add_to_role(role, number);
	set_only_role(entry, naming.role);
	stats_init(&entry->stats, GetCurrentStatementStartTimestamp());

	NameReference reference = pin_entry(entry, !entry->by_name);

	entry->is_used = false;
	return reference;
}

/*
 * The key has another name.  A name is proved by its key, so it stays, and it replaces a label.  A label is replaced by
 * another one only if the naming role has the lock in exclusive mode, or has it and the old label does not count.
 */
static Registered
settle_clash(int number, const GivenName &name, const NamingRole &naming, OtherName *other)
{
	NameEntry  *entry = name_entry(number);
	std::string_view ns = namespace_of(entry);
	std::string_view text = name_of(entry);
	RoleEntry  *role = role_entry(naming.role);
	uint64		state;

	*other = OtherName{};
	other->by_name = entry->by_name;
	other->counts = name_counts(entry);
	memcpy(other->ns, ns.data(), ns.size());
	memcpy(other->name, text.data(), text.size());
	if (entry->full_ns_length > entry->ns_length)
		strcat(other->ns, CUT_MARK);
	if (entry->full_name_length > entry->name_length)
		strcat(other->name, CUT_MARK);
	memcpy(other->roles, entry->roles, sizeof(other->roles));
	if (entry->by_name ||
		(name.ns.data() == nullptr && !naming.is_exclusive && !(naming.has_lock && !other->counts)) ||
		(role->role != entry->quota_role && !make_room_in_share(naming, role)))
		return Registered::clash;
	set_text(entry, name);
	set_only_role(entry, naming.role);
	if (role->role != entry->quota_role)
		change_quota_role(number, role);
	/* The pins stay, but the sessions that gave the old label notice by the generation that it was replaced. */
	state = pg_atomic_read_u64(&entry->state);
	while (!pg_atomic_compare_exchange_u64(&entry->state, &state, (state & ~LABEL_PIN_MASK) + ONE_GENERATION))
		;
	return Registered::replaced;
}

/* With the table's lock held exclusively. */
static Registered
register_locked(const GivenName &name, const NamingRole &naming, NameReference *reference, OtherName *other)
{
	NameKey		key = make_key(MyDatabaseId, name.key);
	int			number = name_look_up(MyDatabaseId, name.key);
	Registered	result = Registered::stored;

	if (number == NO_ENTRY)
	{
		*reference = add_name(key, name, naming);
		return reference->entry != nullptr ? Registered::stored : Registered::refused;
	}
	if (is_same_name(name_entry(number), name))
	{
		/* Remember that this role has given the name, too, if there is room for it. */
		for (Oid &role : name_entry(number)->roles)
		{
			if (role == naming.role)
				break;
			if (OidIsValid(role))
				continue;
			role = naming.role;
			break;
		}
	}
	else
		result = settle_clash(number, name, naming, other);
	*reference = pin_entry(name_entry(number), result != Registered::clash && name.ns.data() == nullptr);
	return result;
}

/* Is the name registered for this role, or for NAME_ROLES others, so that one more is not remembered?  The lock must be held. */
static bool
find_locked(const GivenName &name, Oid role, NameReference *reference)
{
	int			number = name_look_up(MyDatabaseId, name.key);
	NameEntry  *entry = number != NO_ENTRY ? name_entry(number) : nullptr;
	bool		found = entry != nullptr && OidIsValid(entry->roles[NAME_ROLES - 1]);

	for (int i = 0; entry != nullptr && i < NAME_ROLES; i++)
		found = found || entry->roles[i] == role;
	if (!found || !is_same_name(entry, name))
		return false;
	*reference = pin_entry(entry, !entry->by_name);
	return true;
}

Registered
name_register(const GivenName &name, const NamingRole &naming, NameReference *reference, OtherName *other)
{
	Registered	result = Registered::refused;

	*reference = NameReference{};
	if (!has_name_table())
		return result;
	shared_attempt([&]() {
		bool		found;

		LWLockAcquire(&name_table->lock, LW_SHARED);
		found = find_locked(name, naming.role, reference);
		LWLockRelease(&name_table->lock);
		if (found)
			result = Registered::stored;
		else if (!shared_is_short())
		{
			LWLockAcquire(&name_table->lock, LW_EXCLUSIVE);
			result = register_locked(name, naming, reference, other);
			LWLockRelease(&name_table->lock);
		}
	});
	if (result == Registered::refused)
		pg_atomic_fetch_add_u64(&name_table->refused, 1);
	return result;
}

void
name_count_clash() noexcept
{
	pg_atomic_fetch_add_u64(&name_table->clashes, 1);
}

}								/* namespace advisory */
