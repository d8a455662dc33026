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

#include "shmem/layout.h"

namespace advisory
{

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
