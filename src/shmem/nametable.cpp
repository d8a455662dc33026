/*
 * shmem/nametable.cpp
 *		The names of locks, shared by all sessions.
 *
 * Locking
 *
 * Directory.lock is held exclusively to change anything in the directory, and
 * shared to read it, but for what is atomic: the counters, and each entry's life
 * and its mark of use.  The hash tables' own locks are taken below it, and so are the
 * lock table's partition locks, when names have to make room.
 *
 * Lives of an entry
 *
 * Entries are made in chunks and never given back, so that a session can keep an
 * entry's address.  The life of an entry is a number that grows; its low bits say
 * what state it is in:
 *
 *		free -> live		a name is registered		(Directory.lock held)
 *		live -> leaving		it may have to make room	(Directory.lock held)
 *		leaving -> live		it was used, or its lock is held or waited for
 *		leaving -> free		its lock is not; the number grows	(Directory.lock held)
 *
 * A name that makes room is marked as leaving before the lock table is looked at.
 * A session looks at the life of its entry after it was granted the lock: either it
 * sees the mark and takes it away, or the other saw the lock.  When all are marked,
 * and before the lock table is looked at, the directory's epoch changes, so that
 * while it is the same as when the session last looked, it need not look again: who
 * saw the new epoch sees the marks.
 *
 * Running out of memory
 *
 * Whatever allocates does so before anything is changed that would have to be undone.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/compat.h"
#include "shmem/nametable.h"
#include "base/encoding.h"
#include "base/guc.h"
#include "server/locktable.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int CHUNK_ENTRIES = 256;
static constexpr int MAX_CHUNKS = 4096;
static constexpr int INLINE_TEXT_BYTES = 64;
static constexpr int NO_ENTRY = -1;

/* Stands at the end of what was cut. */
static constexpr char CUT_MARK[] = "...";

/* What one role may fill, and what makes room at a time, as parts of the whole. */
static constexpr int ROLE_SHARE = 4;
static constexpr int EVICTED_SHARE = 2;

/* Looking at the lock table in vain is to take no more than one part in so many of the time. */
static constexpr int VAIN_EVICTION_SHARE = 50;

static constexpr uint32 UNUSED = 0;
static constexpr uint32 USED = 1;
static constexpr uint32 HELD = 2;

static constexpr uint64 STATE_MASK = 3;
static constexpr uint64 STATE_FREE = 0;
static constexpr uint64 STATE_LIVE = 1;
static constexpr uint64 STATE_LEAVING = 2;

namespace
{

struct DirectoryKey
{
	int64		key;
	Oid			database;
	uint32		padding;		/* always 0, since keys are compared as bytes */
};

struct IndexEntry
{
	DirectoryKey key;			/* hash key */
	int			number;
};

/* How many entries a role has. */
struct RoleEntry
{
	Oid			role;			/* hash key */
	int			count;
	TimestampTz no_eviction_before;
};

struct Directory
{
	LWLock		lock;
	dshash_table_handle index;
	dshash_table_handle roles;
	int			entry_count;	/* made so far, in whole chunks */
	int			live_count;
	int			first_free;
	int			clock_hand;
	TimestampTz no_eviction_before;
	pg_atomic_uint32 epoch;		/* grows with each time that names make room, or are replaced */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 refused;
	pg_atomic_uint64 clashes;
	dsa_pointer chunks[MAX_CHUNKS];
};

}								/* anonymous namespace */

/* What every call touches stands in the first cache line. */
struct alignas(PG_CACHE_LINE_SIZE / 2) DirectoryEntry
{
	pg_atomic_uint64 life;
	pg_atomic_uint32 used;		/* UNUSED since the clock hand came by, USED, or probably HELD */
	bool		by_name;		/* else the label of a key */
	NameStats	stats;
	DirectoryKey key;
	Oid			payer;			/* the role to whose share it counts */
	Oid			roles[ENTRY_ROLES];	/* that gave the name */
	int			next_free;
	int			ns_length;		/* as stored */
	int			name_length;
	int64		full_ns_length; /* before it was cut */
	int64		full_name_length;
	dsa_pointer long_text;		/* invalid where inline_text is enough */
	char		inline_text[INLINE_TEXT_BYTES]; /* namespace and name, one behind the other */
};

/* All null, or all there. */
static Directory *directory = nullptr;
static dshash_table *index_table = nullptr;
static dshash_table *role_table = nullptr;

static dshash_parameters
index_parameters(const SharedRoot *root)
{
	return compat::hash_parameters(sizeof(DirectoryKey), sizeof(IndexEntry), root->tranche);
}

static dshash_parameters
role_parameters(const SharedRoot *root)
{
	return compat::hash_parameters(sizeof(Oid), sizeof(RoleEntry), root->tranche);
}

static void
make_directory(SharedRoot *root)
{
	dsa_pointer place = dsa_allocate0(shared_area(), sizeof(Directory));
	auto	   *made = static_cast<Directory *>(dsa_get_address(shared_area(), place));
	dshash_parameters parameters = index_parameters(root);
	dshash_table *table = dshash_create(shared_area(), &parameters, nullptr);

	LWLockInitialize(&made->lock, root->tranche);
	made->index = dshash_get_hash_table_handle(table);
	dshash_detach(table);

	parameters = role_parameters(root);
	table = dshash_create(shared_area(), &parameters, nullptr);
	made->roles = dshash_get_hash_table_handle(table);
	dshash_detach(table);

	made->first_free = NO_ENTRY;
	pg_atomic_init_u32(&made->epoch, 0);
	pg_atomic_init_u64(&made->evicted, 0);
	pg_atomic_init_u64(&made->refused, 0);
	pg_atomic_init_u64(&made->clashes, 0);
	root->directory = place;
}

static void
attach_directory(SharedRoot *root)
{
	dshash_parameters parameters;

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->directory == InvalidDsaPointer)
		make_directory(root);
	LWLockRelease(&root->lock);

	auto	   *found = static_cast<Directory *>(dsa_get_address(shared_area(), root->directory));

	parameters = index_parameters(root);
	index_table = dshash_attach(shared_area(), &parameters, found->index, nullptr);
	parameters = role_parameters(root);
	role_table = dshash_attach(shared_area(), &parameters, found->roles, nullptr);
	directory = found;
}

/* Is the directory there?  May ereport for a cancel. */
static bool
is_attached()
{
	if (directory != nullptr)
		return true;

	SharedRoot *root = shared_root();

	return root != nullptr && shared_attempt([root]() { attach_directory(root); });
}

static DirectoryEntry *
entry_at(int number)
{
	auto	   *chunk = static_cast<DirectoryEntry *>(dsa_get_address(shared_area(),
																	  directory->chunks[number / CHUNK_ENTRIES]));

	return &chunk[number % CHUNK_ENTRIES];
}

static uint64
life_of(const DirectoryEntry *entry) noexcept
{
	return pg_atomic_read_u64(const_cast<pg_atomic_uint64 *>(&entry->life));
}

static bool
is_free(const DirectoryEntry *entry) noexcept
{
	return (life_of(entry) & STATE_MASK) == STATE_FREE;
}

static char *
text_of(DirectoryEntry *entry)
{
	if (entry->long_text != InvalidDsaPointer)
		return static_cast<char *>(dsa_get_address(shared_area(), entry->long_text));
	return entry->inline_text;
}

static std::string_view
namespace_of(DirectoryEntry *entry)
{
	return std::string_view(text_of(entry), entry->ns_length);
}

static std::string_view
name_of(DirectoryEntry *entry)
{
	return std::string_view(text_of(entry) + entry->ns_length, entry->name_length);
}

/* As much of it as is kept: whole characters. */
static std::string_view
cut(std::string_view utf8)
{
	if (utf8.size() <= STORED_NAME_BYTES)
		return utf8;
	return first_bytes(utf8, pg_encoding_mbcliplen(PG_UTF8, utf8.data(), static_cast<int>(Min(utf8.size(), 2 * STORED_NAME_BYTES)),
													STORED_NAME_BYTES));
}

static bool
same_part(std::string_view stored, int64 full_length, std::string_view part)
{
	return full_length == static_cast<int64>(part.size()) && stored == first_bytes(part, stored.size());
}

/* A label may also be the name alone, or namespace and name as they are shown. */
static bool
is_fitting_label(DirectoryEntry *entry, const RegisteredName &given)
{
	std::string_view label = given.name;
	std::string_view ns = namespace_of(entry);
	std::string_view name = name_of(entry);

	if (!entry->by_name || given.ns.data() != nullptr)
		return false;
	if (same_part(name, entry->full_name_length, label))
		return true;
	return label.size() == ns.size() + 1 + name.size() && first_bytes(label, ns.size()) == ns &&
		label[ns.size()] == '/' &&
		std::string_view(label.data() + ns.size() + 1, name.size()) == name;
}

static bool
is_same_name(DirectoryEntry *entry, const RegisteredName &name)
{
	return entry->by_name == (name.ns.data() != nullptr) &&
		same_part(namespace_of(entry), entry->full_ns_length, name.ns) &&
		same_part(name_of(entry), entry->full_name_length, name.name);
}

/* Store a name; room for it is had before anything changes. */
static void
set_text(DirectoryEntry *entry, const RegisteredName &name)
{
	std::string_view ns = cut(name.ns);
	std::string_view text = cut(name.name);
	dsa_pointer long_text = InvalidDsaPointer;

	if (ns.size() + text.size() > INLINE_TEXT_BYTES)
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

static bool
has_role(const DirectoryEntry *entry, Oid role) noexcept
{
	for (Oid each : entry->roles)
	{
		if (each == role)
			return true;
	}
	return false;
}

/* Remember that this role gave the name, too, while there is room for that. */
static void
add_role(DirectoryEntry *entry, Oid role) noexcept
{
	if (has_role(entry, role))
		return;
	for (Oid &each : entry->roles)
	{
		if (OidIsValid(each))
			continue;
		each = role;
		return;
	}
}

/* The name is this role's only. */
static void
set_giver(DirectoryEntry *entry, Oid role) noexcept
{
	memset(entry->roles, 0, sizeof(entry->roles));
	entry->roles[0] = role;
}

static bool
knows_role(const DirectoryEntry *entry, Oid role) noexcept
{
	return has_role(entry, role) || OidIsValid(entry->roles[ENTRY_ROLES - 1]);
}

static void
mark_used(DirectoryEntry *entry) noexcept
{
	if (pg_atomic_read_u32(&entry->used) == UNUSED)
		pg_atomic_write_u32(&entry->used, USED);
}

static DirectoryKey
directory_key(Oid database, Key key) noexcept
{
	return DirectoryKey{key.value, database, 0};
}

/* The entry of a key, or null.  Directory.lock must be held. */
static DirectoryEntry *
look_up(const DirectoryKey &key)
{
	auto	   *found = static_cast<IndexEntry *>(dshash_find(index_table, &key, false));

	if (found == nullptr)
		return nullptr;

	int			number = found->number;

	dshash_release_lock(index_table, found);
	return entry_at(number);
}

/* ---- Making room ---- */

/*
 * What a role has.  Such entries are never deleted and do not move, so that the one
 * asked for last is remembered.  Directory.lock must be held exclusively; it protects
 * what is in them.
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
		*entry = RoleEntry{role, 0, 0};
	dshash_release_lock(role_table, entry);
	last = entry;
	return entry;
}

/* The role with the most entries, of which there is at least one. */
static RoleEntry *
find_largest_role()
{
	RoleEntry  *largest = nullptr;
	dshash_seq_status status;

	dshash_seq_init(&status, role_table, false);
	while (auto *role = static_cast<RoleEntry *>(dshash_seq_next(&status)))
	{
		if (largest == nullptr || role->count > largest->count)
			largest = role;
	}
	dshash_seq_term(&status);
	return largest;
}

static int
share_of_role() noexcept
{
	return Max(max_names_setting() / ROLE_SHARE, 1);
}

namespace
{

struct Victim
{
	DirectoryKey key;
	int			number;
	bool		in_use;
	char		status;
};

bool
same_directory_key(const DirectoryKey &a, const DirectoryKey &b) noexcept
{
	return a.key == b.key && a.database == b.database;
}

#define SH_PREFIX victims
#define SH_ELEMENT_TYPE Victim
#define SH_KEY_TYPE DirectoryKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, (wanted).database)
#define SH_EQUAL(table, a, b) same_directory_key(a, b)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* The names that are to make room, and which of them cannot. */
class Eviction
{
public:
	/* The victims' role, or InvalidOid for all roles. */
	Eviction(Oid role, int wanted);

	/* How many made room. */
	int			run();

private:
	void		choose();
	bool		may_leave(DirectoryEntry *entry) const noexcept;
	void		add(int number, DirectoryEntry *entry);
	void		spare_those_in_use();
	void		finish(Victim *victim);
	static void mark_in_use(const LOCKTAG &tag, void *argument);

	Oid			role;
	int			wanted;
	bool		doubts_hints = false;
	int			chosen = 0;
	int			evicted = 0;
	victims_hash *victims;
};

}								/* anonymous namespace */

Eviction::Eviction(Oid role, int wanted)
	: role(role), wanted(wanted), victims(victims_create(CurrentMemoryContext, wanted, nullptr))
{
}

bool
Eviction::may_leave(DirectoryEntry *entry) const noexcept
{
	if (is_free(entry))
		return false;
	if (OidIsValid(role) && entry->payer != role)
		return false;
	switch (pg_atomic_read_u32(&entry->used))
	{
		case UNUSED:
			return true;
		case USED:
			/* A second chance for what was used since the hand last came by. */
			pg_atomic_write_u32(&entry->used, UNUSED);
			return false;
		default:
			return doubts_hints;
	}
}

void
Eviction::add(int number, DirectoryEntry *entry)
{
	bool		found;
	Victim	   *victim = victims_insert(victims, entry->key, &found);
	uint64		live = (life_of(entry) & ~STATE_MASK) | STATE_LIVE;

	victim->number = number;
	victim->in_use = false;
	chosen++;
	/* It can be marked already, by one who then ran out of memory. */
	pg_atomic_compare_exchange_u64(&entry->life, &live, live + STATE_LEAVING - STATE_LIVE);
}

/* From where the last one stopped, twice around at most. */
void
Eviction::choose()
{
	for (int64 looked_at = 0; looked_at < 2 * static_cast<int64>(directory->entry_count) && chosen < wanted; looked_at++)
	{
		int			number = directory->clock_hand;
		DirectoryEntry *entry = entry_at(number);

		directory->clock_hand = (number + 1) % directory->entry_count;
		if (may_leave(entry))
			add(number, entry);
	}
}

void
Eviction::mark_in_use(const LOCKTAG &tag, void *argument)
{
	DecodedTag	decoded = decode_tag(tag);
	Victim	   *victim = victims_lookup(static_cast<victims_hash *>(argument),
										 directory_key(decoded.database, decoded.key));

	if (victim != nullptr)
		victim->in_use = true;
}

void
Eviction::spare_those_in_use()
{
	visit_locked_tags(mark_in_use, victims);
}

void
Eviction::finish(Victim *victim)
{
	DirectoryEntry *entry = entry_at(victim->number);
	uint64		leaving = life_of(entry);
	uint64		next_life = (leaving & ~STATE_MASK) + STATE_MASK + 1;

	/* Somebody may have taken the mark away in the meantime. */
	if ((leaving & STATE_MASK) != STATE_LEAVING)
		return;
	if (victim->in_use)
	{
		pg_atomic_compare_exchange_u64(&entry->life, &leaving, leaving + STATE_LIVE - STATE_LEAVING);
		mark_used(entry);
		return;
	}
	if (!pg_atomic_compare_exchange_u64(&entry->life, &leaving, next_life | STATE_FREE))
		return;

	dshash_delete_key(index_table, &entry->key);
	role_entry(entry->payer)->count--;
	entry->next_free = directory->first_free;
	directory->first_free = victim->number;
	directory->live_count--;
	evicted++;
}

int
Eviction::run()
{
	victims_iterator iterator;

	choose();
	if (chosen == 0)
	{
		/* All held?  Look, since the hints may be wrong. */
		doubts_hints = true;
		choose();
	}
	pg_atomic_fetch_add_u32(&directory->epoch, 1);
	if (chosen > 0)
		spare_those_in_use();
	victims_start_iterate(victims, &iterator);
	while (Victim *victim = victims_iterate(victims, &iterator))
		finish(victim);
	victims_destroy(victims);
	pg_atomic_fetch_add_u64(&directory->evicted, evicted);
	return evicted;
}

/*
 * Have names of this role (or of any) make room, so many if possible.  If that
 * was to no great effect, *not_before says when it is to be tried again.  Returns
 * whether there is room now.
 */
static bool
evict(Oid role, int wanted, TimestampTz *not_before)
{
	TimestampTz start = GetCurrentTimestamp();

	if (start < *not_before)
		return false;

	int			evicted = Eviction(role, wanted).run();

	if (evicted < wanted)
	{
		TimestampTz end = GetCurrentTimestamp();

		*not_before = end + (end - start) * VAIN_EVICTION_SHARE;
	}
	return evicted > 0;
}

/* When the directory is full: those make room first that have more than a share. */
static bool
evict_from_all()
{
	int			limit = max_names_setting();
	int			wanted = Min(Max(limit / EVICTED_SHARE, directory->live_count - limit + 1), directory->live_count);
	RoleEntry  *largest;

	if (GetCurrentTimestamp() < directory->no_eviction_before)
		return false;
	largest = find_largest_role();
	if (largest->count > share_of_role() && evict(largest->role, wanted, &largest->no_eviction_before))
		return true;
	return evict(InvalidOid, wanted, &directory->no_eviction_before);
}

/* When a role has its share. */
static bool
evict_from_role(RoleEntry *role)
{
	return evict(role->role, Max(share_of_role() / EVICTED_SHARE, role->count - share_of_role() + 1),
				 &role->no_eviction_before);
}

static void
add_chunk()
{
	int			first = directory->entry_count;
	dsa_pointer place = dsa_allocate0(shared_area(), sizeof(DirectoryEntry) * CHUNK_ENTRIES);
	auto	   *entries = static_cast<DirectoryEntry *>(dsa_get_address(shared_area(), place));

	for (int i = 0; i < CHUNK_ENTRIES; i++)
	{
		pg_atomic_init_u64(&entries[i].life, STATE_FREE);
		pg_atomic_init_u32(&entries[i].used, 0);
		entries[i].long_text = InvalidDsaPointer;
		entries[i].next_free = i + 1 < CHUNK_ENTRIES ? first + i + 1 : NO_ENTRY;
	}
	directory->chunks[first / CHUNK_ENTRIES] = place;
	directory->entry_count += CHUNK_ENTRIES;
	directory->first_free = first;
}

/* Is there a free entry for this role, with nothing to be done? */
static bool
has_room(const Giver &giver)
{
	return directory->first_free != NO_ENTRY && directory->live_count < max_names_setting() &&
		(giver.is_superuser || role_entry(giver.role)->count < share_of_role());
}

/* Is there, or can there be, a free entry for this role? */
static bool
make_room(const Giver &giver)
{
	RoleEntry  *role = role_entry(giver.role);

	if (max_names_setting() <= 0)
		return false;
	if (role->count >= share_of_role() && !giver.is_superuser && !evict_from_role(role))
		return false;
	if (directory->live_count >= max_names_setting() && !evict_from_all())
		return false;
	if (directory->live_count >= max_names_setting())
		return false;
	if (directory->first_free == NO_ENTRY)
		add_chunk();
	return true;
}

/* ---- Registering ---- */

static DirectoryReference
reference_to(DirectoryEntry *entry) noexcept
{
	return DirectoryReference{entry, (life_of(entry) & ~STATE_MASK) | STATE_LIVE, 0};
}

/* The entry of a key, or a new one, for which there must be room. */
static DirectoryEntry *
find_or_add(const DirectoryKey &key, const RegisteredName &name, const Giver &giver, bool *found)
{
	int			number = directory->first_free;
	DirectoryEntry *entry = entry_at(number);
	RoleEntry  *payer = role_entry(giver.role);

	/* Into an entry that is free still; what can fail comes first. */
	set_text(entry, name);

	auto	   *place = static_cast<IndexEntry *>(dshash_find_or_insert(index_table, &key, found));

	if (*found)
		number = place->number;
	else
		place->number = number;
	dshash_release_lock(index_table, place);
	if (*found)
		return entry_at(number);

	payer->count++;
	directory->first_free = entry->next_free;
	directory->live_count++;
	entry->key = key;
	entry->payer = giver.role;
	set_giver(entry, giver.role);
	stats_init(&entry->stats, giver.since);
	/* Whoever gives a name is about to have the lock. */
	pg_atomic_write_u32(&entry->used, HELD);
	pg_atomic_fetch_add_u64(&entry->life, STATE_LIVE - STATE_FREE);
	return entry;
}

static void
note_other(DirectoryEntry *entry, OtherName *other) noexcept
{
	std::string_view ns = namespace_of(entry);
	std::string_view name = name_of(entry);

	*other = OtherName{};
	other->by_name = entry->by_name;
	memcpy(other->ns, ns.data(), ns.size());
	memcpy(other->name, name.data(), name.size());
	memcpy(other->roles, entry->roles, sizeof(other->roles));
}

/* The key is there under another name. */
static Registered
clash(DirectoryEntry *entry, const RegisteredName &name, const Giver &giver, OtherName *other)
{
	/* Who has the lock has been here before, when he asked for it. */
	if (!giver.has_lock)
		pg_atomic_fetch_add_u64(&directory->clashes, 1);
	note_other(entry, other);
	/* To name a key is proof enough of its name; a label is anybody's word. */
	if (entry->by_name || (name.ns.data() == nullptr && !giver.has_lock))
		return Registered::clash;
	set_text(entry, name);
	set_giver(entry, giver.role);
	/* Another life, so that all who knew the old name notice. */
	pg_atomic_fetch_add_u64(&entry->life, STATE_MASK + 1);
	pg_atomic_fetch_add_u32(&directory->epoch, 1);
	return Registered::replaced;
}

/*
 * The entry of a name's key, made if it is not there.  *is_new says whether that is
 * expected, and then whether it was so.  False if there is no room.
 */
static bool
find_or_make(const RegisteredName &name, const Giver &giver, DirectoryEntry **entry, bool *is_new)
{
	DirectoryKey key = directory_key(MyDatabaseId, name.key);
	bool		found;

	if (!*is_new || !has_room(giver))
	{
		*entry = look_up(key);
		*is_new = *entry == nullptr;
		if (!*is_new)
			return true;
		if (!make_room(giver))
			return false;
	}
	*entry = find_or_add(key, name, giver, &found);
	*is_new = !found;
	return true;
}

/* With Directory.lock held exclusively. */
static Registered
register_name(const RegisteredName &name, const Giver &giver, DirectoryReference *reference, OtherName *other,
			  bool *is_new)
{
	DirectoryEntry *entry;
	Registered	result = Registered::stored;

	if (!find_or_make(name, giver, &entry, is_new))
		return Registered::refused;
	if (*is_new)
		;						/* nothing else to be done */
	else if (is_same_name(entry, name))
		add_role(entry, giver.role);
	else if (is_fitting_label(entry, name))
		result = Registered::fits;	/* which is no proof of knowing the rest */
	else
		result = clash(entry, name, giver, other);
	*reference = reference_to(entry);
	directory_is_current(reference);
	return result;
}

/* With Directory.lock held. */
static Found
find_registered(const RegisteredName &name, Oid role, DirectoryReference *reference)
{
	DirectoryEntry *entry = look_up(directory_key(MyDatabaseId, name.key));

	if (entry == nullptr)
		return Found::nothing;
	if (!is_same_name(entry, name) || !knows_role(entry, role))
		return Found::other;
	*reference = reference_to(entry);
	return directory_is_current(reference) ? Found::name : Found::other;
}

static Found
look_shared(const RegisteredName &name, Oid role, DirectoryReference *reference)
{
	Found		found;

	LWLockAcquire(&directory->lock, LW_SHARED);
	found = find_registered(name, role, reference);
	LWLockRelease(&directory->lock);
	return found;
}

Giver
present_giver(bool has_lock)
{
	return Giver{GetUserId(), superuser(), has_lock, GetCurrentStatementStartTimestamp()};
}

Found
directory_look(const RegisteredName &name, Oid role, DirectoryReference *reference)
{
	Found		found = Found::nothing;

	*reference = DirectoryReference{};
	if (!is_attached())
		return found;
	shared_attempt([&]() {
		found = look_shared(name, role, reference);
	});
	return found;
}

Registered
directory_register(const RegisteredName &name, const Giver &giver, DirectoryReference *reference, OtherName *other)
{
	static bool expect_new = false;
	Registered	result = Registered::refused;

	*reference = DirectoryReference{};
	if (!is_attached())
		return result;

	shared_attempt([&]() {
		/* New names seldom come alone, so the last one tells where to begin. */
		if (!expect_new && look_shared(name, giver.role, reference) == Found::name)
		{
			result = Registered::stored;
			return;
		}
		if (shared_is_short())
			return;

		LWLockAcquire(&directory->lock, LW_EXCLUSIVE);
		result = register_name(name, giver, reference, other, &expect_new);
		LWLockRelease(&directory->lock);
	});
	if (result == Registered::refused)
		pg_atomic_fetch_add_u64(&directory->refused, 1);
	return result;
}

bool
directory_is_current(DirectoryReference *reference) noexcept
{
	DirectoryEntry *entry = reference->entry;
	uint64		leaving = reference->life + STATE_LEAVING - STATE_LIVE;
	uint32		epoch;

	if (entry == nullptr)
		return false;
	epoch = pg_atomic_read_u32(&directory->epoch);
	pg_read_barrier();
	if (life_of(entry) != reference->life &&
		!pg_atomic_compare_exchange_u64(&entry->life, &leaving, reference->life))
		return false;
	reference->epoch = epoch;
	mark_used(entry);
	return true;
}

bool
directory_is_undisturbed(DirectoryReference *reference) noexcept
{
	if (reference->entry == nullptr)
		return false;
	return reference->epoch == pg_atomic_read_u32(&directory->epoch) || directory_is_current(reference);
}

void
directory_mark_free(const DirectoryReference &reference) noexcept
{
	/* Of names that were used only once there are many; they make room first. */
	if (pg_atomic_read_u32(&reference.entry->used) == HELD)
		pg_atomic_write_u32(&reference.entry->used, UNUSED);
}

NameStats *
directory_stats(const DirectoryReference &reference) noexcept
{
	return &reference.entry->stats;
}

/* ---- Reading ---- */

/* As it stands in the directory, with room for a mark behind it; what comes behind that. */
static char *
copy_text(char *copy, std::string_view text) noexcept
{
	memcpy(copy, text.data(), text.size());
	copy[text.size()] = '\0';
	return copy + text.size() + sizeof(CUT_MARK);
}

/* palloc'd, and not yet fit to be shown.  Directory.lock must be held. */
static void
copy_entry(DirectoryEntry *entry, KnownName *known)
{
	auto	   *copy = static_cast<char *>(palloc(entry->ns_length + entry->name_length + 2 * sizeof(CUT_MARK)));

	known->database = entry->key.database;
	known->key = Key{entry->key.key};
	known->ns = entry->by_name ? copy : nullptr;
	known->name = copy_text(copy, namespace_of(entry));
	copy_text(known->name, name_of(entry));
	known->ns_is_cut = entry->full_ns_length > entry->ns_length;
	known->name_is_cut = entry->full_name_length > entry->name_length;
	memcpy(known->roles, entry->roles, sizeof(known->roles));
	known->stats = stats_read(&entry->stats);
}

static char *
make_text_fit(char *text, bool is_cut)
{
	if (is_cut)
		strcat(text, CUT_MARK);
	return pg_is_ascii(text) ? text : from_utf8(text);
}

/* To be done when no lock is held any more. */
static void
make_fit(KnownName *known)
{
	if (known->ns != nullptr)
		known->ns = make_text_fit(known->ns, known->ns_is_cut);
	known->name = make_text_fit(known->name, known->name_is_cut);
}

const KnownName *
directory_find(Oid database, Key key)
{
	KnownName  *known = nullptr;

	if (!is_attached())
		return nullptr;

	LWLockAcquire(&directory->lock, LW_SHARED);
	if (DirectoryEntry *entry = look_up(directory_key(database, key)))
	{
		known = static_cast<KnownName *>(palloc(sizeof(KnownName)));
		copy_entry(entry, known);
	}
	LWLockRelease(&directory->lock);
	if (known != nullptr)
		make_fit(known);
	return known;
}

static KnownName *
copy_entries(Oid database, int *count)
{
	KnownName  *copies;

	LWLockAcquire(&directory->lock, LW_SHARED);
	copies = static_cast<KnownName *>(palloc_extended(sizeof(KnownName) * (directory->live_count + 1), MCXT_ALLOC_HUGE));
	for (int number = 0; number < directory->entry_count; number++)
	{
		DirectoryEntry *entry = entry_at(number);

		if (!is_free(entry) && (!OidIsValid(database) || entry->key.database == database))
			copy_entry(entry, &copies[(*count)++]);
	}
	LWLockRelease(&directory->lock);
	return copies;
}

KnownName *
directory_read(Oid database, int *count)
{
	KnownName  *names;

	*count = 0;
	if (!is_attached())
		return nullptr;
	names = copy_entries(database, count);
	for (int i = 0; i < *count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		make_fit(&names[i]);
	}
	return names;
}

bool
may_see_name(const Oid *roles)
{
	for (int i = 0; i < ENTRY_ROLES && OidIsValid(roles[i]); i++)
	{
		if (may_see_role(roles[i]))
			return true;
	}
	return false;
}

void
directory_reset_stats()
{
	if (!is_attached())
		return;
	LWLockAcquire(&directory->lock, LW_SHARED);
	for (int number = 0; number < directory->entry_count; number++)
	{
		DirectoryEntry *entry = entry_at(number);

		if (!is_free(entry) && entry->key.database == MyDatabaseId)
			stats_clear(&entry->stats);
	}
	LWLockRelease(&directory->lock);
}

DirectoryState
directory_state()
{
	DirectoryState state = {};

	if (!is_attached())
		return state;
	state.available = true;
	LWLockAcquire(&directory->lock, LW_SHARED);
	state.names = directory->live_count;
	LWLockRelease(&directory->lock);
	state.evicted = static_cast<int64>(pg_atomic_read_u64(&directory->evicted));
	state.refused = static_cast<int64>(pg_atomic_read_u64(&directory->refused));
	state.clashes = static_cast<int64>(pg_atomic_read_u64(&directory->clashes));
	return state;
}

}								/* namespace advisory */
