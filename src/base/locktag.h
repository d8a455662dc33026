/*
 * base/locktag.h
 *		Keys, modes, scopes and the lock tags they make.
 *
 * The layout of a tag (the type is LOCKTAG_ADVISORY; field 1 is the database):
 *
 *		field 2, field 3	field 4 (objsubid)	what it is
 *		key high, key low	1					a lock by bigint key (ours and the built-ins')
 *		key1, key2			2					a lock by int4 pair (the built-ins')
 *		key high, key low	16380				the queue of the lease slots of a name
 *		key high, key low	16381				the queue of a lease
 *		key high, key low	16382				the lock of a lease
 *		key high, key low	16383				the queue of a semaphore
 *		key high, key low	16384 + slot		a slot of a semaphore, slot 1 to 16000
 *		key high, key low	32768 + slot		the lock of a lease slot, slot 1 to 16000;
 *							in pg_locks a negative number: slot - 32768
 *		anything			anything else		foreign
 */
#pragma once

namespace advisory
{

struct Key
{
	int64		value;
};

inline bool
operator==(Key a, Key b) noexcept
{
	return a.value == b.value;
}

/*
 * A random number of this process, so that users cannot choose keys that collide in its hash
 * tables.
 */
inline uint64 hash_seed = 0;

/* Called from _PG_init: chooses the seed. */
void		hash_seed_init();

/*
 * The hash of the two halves of a key, and of a number that comes with it.  Hash tables in shared
 * memory have a seed of their own.
 */
inline uint32
hash_of_halves(uint32 high, uint32 low, uint32 besides, uint64 seed = hash_seed) noexcept
{
	uint32		hash = murmurhash32(low ^ static_cast<uint32>(seed));

	hash = murmurhash32(hash ^ high ^ static_cast<uint32>(seed >> 32));
	return murmurhash32(hash ^ besides);
}

inline uint32
hash_of_key(int64 key, uint32 besides, uint64 seed = hash_seed) noexcept
{
	return hash_of_halves(static_cast<uint32>(static_cast<uint64>(key) >> 32),
						  static_cast<uint32>(key), besides, seed);
}

/* A hash table of entries that begin with a key, whose bytes are compared. */
template <typename Key, typename Entry>
inline HTAB *
make_hash_table(const char *name, long size, MemoryContext context = CurrentMemoryContext)
{
	HASHCTL		control = {};

	control.keysize = sizeof(Key);
	control.entrysize = sizeof(Entry);
	control.hcxt = context;
	return hash_create(name, size, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

enum class Mode
{
	exclusive,
	shared
};

enum class Scope : uint8
{
	session,
	transaction
};

constexpr Mode ALL_MODES[] = {Mode::exclusive, Mode::shared};
constexpr Scope ALL_SCOPES[] = {Scope::session, Scope::transaction};

/* The number of a mode, a scope or another enumerator, from 0. */
template <typename Enum>
constexpr int
index_of(Enum enumerator) noexcept
{
	return static_cast<int>(enumerator);
}

constexpr Mode
other_mode(Mode mode) noexcept
{
	return mode == Mode::exclusive ? Mode::shared : Mode::exclusive;
}

/* The lock manager's mode for our mode. */
constexpr LOCKMODE
lockmode_of(Mode mode) noexcept
{
	return mode == Mode::exclusive ? ExclusiveLock : ShareLock;
}

/* "exclusive" or "shared", as in messages and views. */
constexpr const char *
mode_name(Mode mode) noexcept
{
	return mode == Mode::exclusive ? "exclusive" : "shared";
}

/*
 * The same for a mode of the lock manager on this lock.  Modes that the extension does not use
 * there have the server's name.
 */
const char *lockmode_name(const LOCKTAG &tag, LOCKMODE lockmode) noexcept;

constexpr const char *
scope_name(Scope scope) noexcept
{
	return scope == Scope::session ? "session" : "transaction";
}

/* The kind of lock that a tag identifies. */
enum class Kind
{
	lock,						/* by bigint key */
	pair,						/* by two int4 keys; also shown as a lock */
	semaphore,					/* a slot */
	queue,						/* the queue of a semaphore */
	lease,						/* the lock or queue of a lease, or of lease slots */
	foreign						/* another program's use of another objsubid */
};

constexpr uint16 OBJSUBID_KEY = 1;
constexpr uint16 OBJSUBID_PAIR = 2;
constexpr uint16 OBJSUBID_LEASE_SLOT_QUEUE = 16380;
constexpr uint16 OBJSUBID_LEASE_QUEUE = 16381;
constexpr uint16 OBJSUBID_LEASE = 16382;
constexpr uint16 OBJSUBID_QUEUE = 16383;
constexpr uint16 OBJSUBID_SLOT_BASE = 16384;
constexpr uint16 OBJSUBID_LEASE_SLOT_BASE = 32768;
constexpr int MAX_SLOTS = 16000;

/* Stands for no slot. */
constexpr int NO_SLOT = 0;

struct DecodedTag
{
	Kind		kind;
	Oid			database;
	Key			key;			/* lock, semaphore, queue, lease */
	int32		key1;			/* pair and foreign: the two halves, signed */
	int32		key2;
	int			slot;			/* of a semaphore, or a lease slot */
	uint16		objsubid;
};

/* Do locks of this kind have one 64-bit key instead of two 32-bit ones? */
constexpr bool
has_key(Kind kind) noexcept
{
	return kind != Kind::pair && kind != Kind::foreign;
}

/* "lock", "semaphore", "queue", "lease" or "foreign", as in the views. */
const char *kind_name(Kind kind) noexcept;

/* The tag of the lock with this key in this database; of a semaphore's slot, or of its queue. */
inline LOCKTAG
lock_tag(Oid database, Key key, int objsubid = OBJSUBID_KEY) noexcept
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, database,
						 static_cast<uint32>(static_cast<uint64>(key.value) >> 32),
						 static_cast<uint32>(key.value),
						 static_cast<uint16>(objsubid));
	return tag;
}

inline LOCKTAG
slot_tag(Oid database, Key key, int slot) noexcept
{
	return lock_tag(database, key, OBJSUBID_SLOT_BASE + slot);
}

/* The slot whose tag this is. */
inline int
slot_of(const LOCKTAG &tag) noexcept
{
	return tag.locktag_field4 - OBJSUBID_SLOT_BASE;
}

inline LOCKTAG
queue_tag(Oid database, Key key) noexcept
{
	return lock_tag(database, key, OBJSUBID_QUEUE);
}

/* The lock of a lease (NO_SLOT) or of a lease slot. */
inline LOCKTAG
lease_tag(Oid database, Key key, int slot) noexcept
{
	return lock_tag(database, key, slot == NO_SLOT
					? OBJSUBID_LEASE : OBJSUBID_LEASE_SLOT_BASE + slot);
}

/* Do both tags belong to the same key of one database, whatever they are of it? */
inline bool
is_same_key(const LOCKTAG &a, const LOCKTAG &b) noexcept
{
	return a.locktag_field1 == b.locktag_field1 && a.locktag_field2 == b.locktag_field2 &&
		a.locktag_field3 == b.locktag_field3;
}

/* The queue of a lease, or of the lease slots of this name. */
inline LOCKTAG
lease_queue_tag(Oid database, Key key, bool of_slots) noexcept
{
	return lock_tag(database, key, of_slots ? OBJSUBID_LEASE_SLOT_QUEUE : OBJSUBID_LEASE_QUEUE);
}

/* The two halves of a key, or the pair. */
inline Key
key_in(const LOCKTAG &tag) noexcept
{
	return Key{static_cast<int64>(
		(static_cast<uint64>(tag.locktag_field2) << 32) | tag.locktag_field3)};
}

/* A tag of another type than LOCKTAG_ADVISORY is foreign. */
DecodedTag decode_tag(const LOCKTAG &tag) noexcept;

inline bool
same_tag(const LOCKTAG &a, const LOCKTAG &b) noexcept
{
	return memcmp(&a, &b, sizeof(LOCKTAG)) == 0;
}

/* Is this the tag of a slot or of a queue? */
bool is_of_semaphore(const LOCKTAG &tag) noexcept;

inline bool
is_advisory(const LOCKTAG &tag) noexcept
{
	return tag.locktag_type == LOCKTAG_ADVISORY;
}

/* Is this the tag of a lease slot's lock? */
inline bool
is_of_lease_slot(const LOCKTAG &tag) noexcept
{
	return is_advisory(tag) && tag.locktag_field4 > OBJSUBID_LEASE_SLOT_BASE &&
		tag.locktag_field4 <= OBJSUBID_LEASE_SLOT_BASE + MAX_SLOTS;
}

/* Is this the tag of the queue of lease slots? */
inline bool
is_of_lease_slot_queue(const LOCKTAG &tag) noexcept
{
	return is_advisory(tag) && tag.locktag_field4 == OBJSUBID_LEASE_SLOT_QUEUE;
}

/* Is this the tag of the lock of a lease or of a lease slot? */
inline bool
is_of_lease(const LOCKTAG &tag) noexcept
{
	return (is_advisory(tag) && tag.locktag_field4 == OBJSUBID_LEASE) || is_of_lease_slot(tag);
}

/* Is this the tag of the queue of a lease or of lease slots? */
inline bool
is_of_lease_queue(const LOCKTAG &tag) noexcept
{
	return (is_advisory(tag) && tag.locktag_field4 == OBJSUBID_LEASE_QUEUE) ||
		is_of_lease_slot_queue(tag);
}

/* Do both tags belong to the same semaphore? */
inline bool
is_same_semaphore(const LOCKTAG &a, const LOCKTAG &b) noexcept
{
	return is_same_key(a, b) && is_of_semaphore(a) && is_of_semaphore(b);
}

/* The queue of a semaphore, of a lease, or of lease slots stands for all of it. */
inline LOCKTAG
whole_lock(const LOCKTAG &tag) noexcept
{
	LOCKTAG		whole = tag;

	if (is_of_semaphore(tag))
		whole.locktag_field4 = OBJSUBID_QUEUE;
	else if (is_of_lease(tag))
		whole.locktag_field4 = is_of_lease_slot(tag)
			? OBJSUBID_LEASE_SLOT_QUEUE : OBJSUBID_LEASE_QUEUE;
	return whole;
}

/* What tags are sorted by: the database, then the key, then the objsubid. */
inline std::tuple<Oid, int64, uint16>
order_of(const LOCKTAG &tag) noexcept
{
	DecodedTag	decoded = decode_tag(tag);

	return {decoded.database, decoded.key.value, decoded.objsubid};
}

}								/* namespace advisory */
