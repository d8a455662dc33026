/*
 * shmem/root.h
 *		The memory that sessions share, had without preloading.
 *
 * Nothing that keeps a lock a lock is in here, only names, times and counts, so
 * it may fail to be there: callers do without.
 *
 * On servers before 17 the root is a small piece of the server's spare shared
 * memory, which a full lock table can have used up; preloading the library
 * reserves it.  From 17 on the server has a registry for such memory.  All else is
 * in a dynamic shared memory area that grows.  The root is known by a name that
 * carries the version of the layout, so that libraries of different versions do
 * not meet in it.
 */
#pragma once

extern "C" {
#include "lib/dshash.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
}

namespace advisory
{

/* Changes whenever the layout of anything in shared memory does, or a limit on what is stored there. */
#define ADVISORY_EXT_SHARED_NAME "advisory_ext 9"

/* What every session finds first. */
struct SharedRoot
{
	int			tranche;		/* of all our LWLocks */
	LWLock		lock;			/* protects what follows; each is made by whom first needs it */
	uint64		seed;			/* random, for all hash tables in shared memory */
	dsa_handle	area;
	dsa_pointer names;			/* the name table */
	dsa_pointer sessions;		/* the session table */
	dsa_pointer waiters;
	dshash_table_handle semaphores; /* their states */
	pg_atomic_uint32 semaphore_count;	/* states that there are, whether or not a session is attached to them */
	pg_atomic_uint32 semaphore_limit;	/* beyond which the unused ones are removed */
	LWLock		deadlock;		/* held while somebody finds out whether he is in a deadlock over slots */
};

/*
 * This session's way to the shared memory, or null if it is not to be had at
 * the moment: the first failure is reported to the client with a NOTICE, and it is
 * tried again a second later.  Once it has been had it stays.  May ereport only
 * for a cancel.
 */
SharedRoot *shared_root();

/* The same without trying anew: null unless this session has it already. */
SharedRoot *shared_root_if_attached() noexcept;

/* The area that dsa_pointers point into.  Only while attached. */
dsa_area   *shared_area() noexcept;

/*
 * Run body(), which may allocate in the area: an error that means a lack of
 * memory is swallowed, LWLocks are released and false comes back.  body must
 * leave shared memory in order wherever it may run out.  Other errors are
 * raised.  Not to be called while a session ends, when an error cannot be caught.
 */
template <typename Body>
bool		shared_attempt(Body body);

/*
 * The part of the shared memory that the root has under this name, made by make(root, place),
 * zeroed before, by the first session that needs it; null if it cannot be had at the moment.
 * May ereport for a cancel.
 */
void	   *shared_part(dsa_pointer SharedRoot::*part, size_t bytes, void (*make) (SharedRoot *root, void *place));

/*
 * Was there a lack of memory just now (within a second)?  Then there is no point in
 * trying to get more.
 */
bool		shared_is_short();

/* What the last failure was about; for messages.  Never null. */
const char *shared_last_failure() noexcept;

/* Called from _PG_init: when preloading, reserves the root. */
void		shared_init();

/* ---- implementation of the template ---- */

/* Called in PG_CATCH: clears the error, or rethrows what is no lack of memory. */
void		shared_swallow_error(MemoryContext context, ResourceOwner owner);

template <typename Body>
bool
shared_attempt(Body body)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool succeeded = false;

	PG_TRY();
	{
		/* What is mapped here is the session's, not the transaction's. */
		CurrentResourceOwner = nullptr;
		MemoryContextSwitchTo(TopMemoryContext);
		body();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		succeeded = true;
	}
	PG_CATCH();
	{
		shared_swallow_error(context, owner);
		/* The error has set it to 0; but who has called us may hold interrupts off. */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
	return succeeded;
}

}								/* namespace advisory */
