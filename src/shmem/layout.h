/*
 * shmem/layout.h
 *		All that is in shared memory, and how it is laid out.
 *
 *		SharedRoot							root.cpp
 *			NameTable						namewrite.cpp, nameread.cpp
 *				chunks of NameEntry
 *			SharedSession, by process		sessiontable.cpp
 *				list of PublishedHold
 *				links of queues				slotstate.cpp
 *			dshash of SharedState			slotstate.cpp
 *				blocks of SlotWord
 *
 * The root is found by its name.  All else is in a dynamic shared memory area, which has another
 * address in each process: so its parts refer to each other by dsa_pointers and numbers.  Only the
 * files named here look inside.  README.md says which lock protects what.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * Change this with every change to the layout of anything in shared memory, or to a limit on what
 * is stored there.
 */
#define ADVISORY_EXT_SHARED_NAME "advisory_ext 20"

/* ---- The root ---- */

/* The key of the hash tables: of a name or a semaphore. */
struct SharedKey
{
	Key			key;
	Oid			database;
	uint32		padding = 0;	/* keys are compared as bytes */
};

/* What every session finds first; zeroed, so that nothing refers to anything. */
struct SharedRoot
{
	/* Tranches of our LWLocks, for */
	int			memory_tranche; /* the root and the area */
	int			names_tranche;	/* the name table */
	int			sessions_tranche;	/* what a session holds and waits for */
	int			slots_tranche;	/* a semaphore's slots and queue, and deadlocks over slots */
	LWLock		lock;			/* protects what follows; who needs a part first creates it */
	uint64		seed;			/* for all hash tables here: hash_seed of the first session */
	dsa_handle	area;
	dsa_pointer names;			/* the name table */
	dsa_pointer sessions;		/* the session table */
	dshash_table_handle semaphores; /* their states */
	pg_atomic_uint32 semaphore_count;	/* number of states, with or without attached sessions */
	pg_atomic_uint32 unused_semaphores; /* those of them without attached sessions */
	pg_atomic_uint32 semaphore_bytes;	/* what all states take */
	pg_atomic_uint32 unknown_slots; /* SemaphoreStates with unknown slots */
	pg_atomic_uint64 next_ticket;	/* of a waiter, for all queues of semaphores */
	LWLock		deadlock;		/* held while a session looks for a deadlock over slots */
};

/* ---- Names ---- */

/* How many of the roles that gave a name are remembered. */
constexpr int NAME_ROLES = 4;

constexpr int NAME_CHUNK_ENTRIES = 256; /* a power of two, see add_chunk() */
constexpr int NAME_MAX_CHUNKS = 4096;
constexpr int NAME_INLINE_BYTES = 88;
constexpr int NO_ENTRY = -1;

/* The state of an entry: the number of pins, and in the upper half the generation. */
constexpr int GENERATION_SHIFT = 32;
constexpr uint64 ONE_GENERATION = UINT64CONST(1) << GENERATION_SHIFT;
constexpr uint64 PIN_MASK = ONE_GENERATION - 1;

/*
 * An entry of the table, as it was at one time; the same in all processes.  An entry can be given
 * to another name, and then its generation changes.
 */
struct NameReference
{
	int			number;
	uint32		generation;		/* 0: refers to no entry */
};

inline bool
operator==(const NameReference &a, const NameReference &b) noexcept
{
	return a.number == b.number && a.generation == b.generation;
}

/* What a session publishes about the name or label that it used for a lock. */
struct UsedName
{
	NameReference name;
	Oid			role;			/* that used it; invalid if the lock has no stored name */
};

/*
 * What can happen to a request for a lock, or to its release.  The view has a column for each
 * event: see show_stats() in views/stats.cpp, and sql/parts/56-stats.sql.
 */
enum class Event
{
	acquired,					/* it was granted */
	contended,					/* the session had to wait, whether or not it got the lock */
	failed,						/* it was not free, and the session did not wait */
	timed_out,					/* a timeout or lock_timeout ended the wait */
	/* run() did nothing because it was taken, or its window was claimed. */
	skipped,
	not_held					/* it was to be released, but the session did not hold it */
};

constexpr int EVENTS = index_of(Event::not_held) + 1;

/* The total and the longest of several durations. */
struct Duration
{
	pg_atomic_uint64 total;
	pg_atomic_uint64 longest;
};

/* The members that every hold needs come first. */
struct NameStats
{
	pg_atomic_uint64 reset_at;	/* the time before this does not count in a hold; 0 for never */
	pg_atomic_uint64 last_acquired_at;	/* 0 for never */
	Duration	hold;
	pg_atomic_uint64 events[EVENTS];
	Duration	wait;
	pg_atomic_uint64 since;		/* when counting began */
	pg_atomic_uint64 last_skipped_at;	/* 0 for never */
};

/* The members that every call needs are in the first 64 bytes: up to the first of stats.events. */
struct alignas(PG_CACHE_LINE_SIZE / 2) NameEntry
{
	pg_atomic_uint64 state;
	bool		is_live;
	volatile bool is_used;		/* used again since it was created, or since the hand passed */
	NameStats	stats;
	SharedKey	key;
	pg_atomic_uint32 roles[NAME_ROLES]; /* the first roles that gave it */
	int			bucket;			/* the first entry of a bucket of the hash table, see bucket_of() */
	int			next_in_bucket;
	int			next;			/* of a free entry, or one with sums: the next of these */
	int			ns_length;		/* 0: the label of a key */
	int			name_length;
	dsa_pointer long_text;		/* invalid if inline_text is enough */
	char		inline_text[NAME_INLINE_BYTES]; /* namespace and name, one behind the other */

	/* Of the area; see nameentry.h. */
	char	   *text();
	std::string_view ns();
	std::string_view name();

	bool		is_of(Oid database, Key its_key) const noexcept
	{
		return key.key == its_key && key.database == database;
	}
	bool		is_label() const noexcept
	{
		return ns_length == 0;
	}
	bool		is_pinned() noexcept
	{
		return (pg_atomic_read_u64(&state) & PIN_MASK) != 0;
	}
	/* Is it a name, or a label that a holder or waiter of the lock gave? */
	bool		counts() noexcept
	{
		return !is_label() || is_pinned();
	}
};

struct NameTable
{
	LWLock		lock;
	volatile int entry_count;	/* made so far, in whole chunks */
	int			bucket_count;	/* the largest power of two up to that */
	int			live_count;
	int			free;			/* the first of the free entries */
	int			sums;			/* the first of those that have sums */
	pg_atomic_uint32 hand;		/* how many entries the hand has passed */
	pg_atomic_uint32 allowed;	/* the sum of pins */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	dsa_pointer chunks[NAME_MAX_CHUNKS];
	volatile int pins[FLEXIBLE_ARRAY_MEMBER];	/* by process number, see allow() */
};

/* ---- Sessions ---- */

/* Stands for no place in a list. */
constexpr int NO_PLACE = -1;

constexpr int SESSION_READ_HOLDS = 256;
constexpr int SESSION_ACQUIRERS = 8;

/* A session stands in the queues of at most this many semaphores at once. */
constexpr int MAX_QUEUES = 16;

/* One lock or slot that a session holds, in one mode. */
struct PublishedHold
{
	int64		key;
	TimestampTz acquired_at;
	uint16		objsubid;		/* of the lock's tag; 0 for a place that is free */
	uint16		slots;			/* the number of slots that the session gave; 0 for a lock */
	uint8		lockmode;
	Scope		scope;
	int16		acquirer;		/* place in the list of acquirers; NO_PLACE if it is not known */
	uint32		transactions;	/* the session's when the acquirer became known */
	uint32		own_transactions;	/* the acquirer's then */
	UsedName	used;			/* the lock's name or label */
	int32		next_free;		/* of a free place */
};

/*
 * The role and application that took a session-level lock, which can change in a pooled connection.
 * These are the values at the end of the transaction, when SET LOCAL and SECURITY DEFINER no longer
 * apply.
 */
struct Acquirer
{
	Oid			role;			/* the session's user, or that of SET ROLE */
	/* How many began and ended as this role and application, with session-level holds. */
	uint32		transactions;
	char		application[NAMEDATALEN];
};

/* A wait as a session publishes it. */
struct PublishedWait
{
	int			pid;
	/* Of a semaphore its queue, or its only slot; of several the first that it lacks. */
	LOCKTAG		tag;
	int			slots;			/* of the semaphore; 0: a lock */
	int			wanted;			/* slots that it waits for */
	uint32		tries;			/* that have failed after is_leaving */
	TimestampTz since;
	UsedName	used;			/* its name or label */
	/* The session is about to give up, or may have got what it waits for. */
	bool		is_leaving;
};

/*
 * A process in the queue of a semaphore; the lock of that semaphore's state protects it.  A link's
 * number is MAX_QUEUES times the process number, and its place in the array.
 */
struct QueueLink
{
	int			next;			/* number of a link, or NO_LINK */
	/* It waits for as many as wanted of this many slots; 0 while it is not in a queue. */
	int			slots;
	int			wanted;
	uint64		ticket;			/* the same in all queues of the process */
	LOCKTAG		queue;
	bool		is_one_of_several;	/* the process is in other queues, too */
};

constexpr int NO_LINK = -1;

struct SharedSession
{
	LWLock		lock;
	int			st_changecount; /* of the holds; odd while one of them is being changed */
	/* Of the last session in this place that asked for a lock through the extension. */
	int			pid;
	Oid			present_role;	/* at the end of the last transaction with session-level holds */
	uint32		transactions;	/* of all acquirers */
	volatile int hold_count;	/* including free places */
	int			hold_capacity;
	int			acquirer_count;
	dsa_pointer holds;
	/* The last one stands for those that found no place. */
	Acquirer	acquirers[SESSION_ACQUIRERS + 1];
	PublishedWait wait;			/* pid is 0 while the process waits for nothing */
	QueueLink	links[MAX_QUEUES];
};

/* ---- Semaphores ---- */

/* The word of the first slots, and four blocks for more of them. */
constexpr int SLOT_BLOCKS = 5;

/* One bit for each slot. */
struct SlotWord
{
	pg_atomic_uint64 taken;
	pg_atomic_uint64 unverified;	/* see SlotMark */
};

/* The part of a state that sessions share. */
struct SharedState
{
	SharedKey	key;			/* hash key */
	pg_atomic_uint32 attached;	/* sessions */
	pg_atomic_uint32 agreed;	/* slots; 0 if no session has given a number yet */
	/* Protects what follows up to most_wanted, and the links of the waiters. */
	LWLock		lock;
	int			first;			/* waiter: the number of its link, or NO_LINK */
	/* The largest number of slots that a waiter has given since the queue was empty. */
	int			most_wanted;
	/* The lock of the entry protects these two. */
	volatile int block_count;
	dsa_pointer blocks[SLOT_BLOCKS];	/* the first is not used */
	SlotWord	first_block;
};

}								/* namespace advisory */
