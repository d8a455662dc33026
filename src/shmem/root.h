/*
 * shmem/root.h
 *		The memory that sessions share, without preloading the library.
 *
 * Mutual exclusion does not depend on this memory.  It holds only names, times and
 * counts, so callers must work without it if it is not available.
 *
 * On servers before 17 the root is a small piece of the server's spare shared
 * memory, which a full lock table can have used up; preloading the library
 * reserves it.  From 17 on the server has a registry for such memory.  Everything
 * else is in a dynamic shared memory area that grows.  The name of the root contains
 * the version of the layout, so that libraries with different layouts do not share
 * one root.
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

/* The root, and the area that dsa_pointers point into; null until this session has attached. */
extern SharedRoot *attached_root;
extern dsa_area *shared_area;

/*
 * The wait event of a session that sleeps until a lease ends.  Before 17, and without shared
 * memory, that of a wait for a lock.
 */
extern uint32 lease_wait_event;

/*
 * Run body(), which may allocate in the area, in a subtransaction.  If it fails, clears the error
 * and returns false; but raises the error of a cancel again.  body must leave shared memory
 * consistent wherever memory may run out.
 *
 * The server has no way to get such memory without an error: DSA_ALLOC_NO_OOM does not avoid those
 * of new segments.  A subtransaction costs as much as half a lock, so do this only where memory is
 * really needed.  What only reads, and may map memory that another session has made, lets errors
 * through.  So does this function in parallel mode, where up to 16 no subtransaction can be
 * started.  Outside of a transaction it does nothing and returns false.
 */
bool		shared_attempt(void (*body) (void *argument), void *argument);

template <typename Body>
inline bool
shared_attempt(Body body)
{
	return shared_attempt([](void *argument) { (*static_cast<Body *>(argument))(); }, &body);
}

/*
 * The part of the shared memory that this member of the root refers to.  The first session that
 * needs it allocates it, zeroed, and calls make(root, place).  Attaches this session to the shared
 * memory, for as long as it lives.  Null if that or the part is not available at the moment; a call
 * tries again after a second.  The first failure to attach is reported to the client with a NOTICE.
 * May ereport only for a cancel.
 */
void	   *shared_part(dsa_pointer SharedRoot::*part, size_t bytes,
						void (*make) (SharedRoot *root, void *place));

/* The same for a hash table whose entries begin with a SharedKey; the first session creates it. */
dshash_table *shared_hash(dshash_table_handle SharedRoot::*handle, size_t entry_bytes,
						  int SharedRoot::*tranche);

/*
 * Has an attempt failed within the last second?  Then the caller should not try to get
 * more memory.
 */
bool		shared_is_short();

/* The message of the last failure. */
inline char shared_last_failure[256] = "";

/* Called from _PG_init: when preloading, reserves the root. */
void		shared_init();

}								/* namespace advisory */
