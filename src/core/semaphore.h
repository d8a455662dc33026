/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each of which is a lock of its own (locktag.h); a session has a slot if
 * it holds that lock in exclusive mode.  lock_take() takes some (acquire.h), by SLOT_ROUTINE.
 */
#pragma once

#include "core/boundedwait.h"
#include "core/held.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* A semaphore as this session knows it. */
struct Semaphore
{
	Key			key;			/* hash key */
	SemaphoreState seen;
	dlist_head	slots;			/* this session's, the last taken last (Hold.in_semaphore) */
	bool		disagreement_reported;
};

/* An attempt to get slots; for lock_take(). */
struct SlotAttempt : HoldAttempt
{
	Semaphore  *semaphore = nullptr;
	/* Its state is &semaphore->seen; or null, if one of the request's has no room for all slots. */
	SlotRequest claim = {};
	int			locked = 0;		/* of the chosen slots */
	bool		awaits_lock = false;	/* it waits in the lock manager, for the only slot */
	bool		has_slots = false;	/* they are locked; those of all attempts for one request */

	SlotAttempt *following() const noexcept
	{
		return static_cast<SlotAttempt *>(next);
	}
	const LockRequest &lacking_request() const noexcept
	{
		return static_cast<SlotAttempt *>(lacking)->request;
	}
};

extern const WaitRoutine SLOT_ROUTINE;

/*
 * The hold of the session-level slot with this number, or for NO_SLOT of the one that was taken
 * last.  Null if this session does not have it.
 */
Hold	   *semaphore_find_slot(Key key, int slot) noexcept;

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* ---- Deadlocks over slots (semdeadlock.cpp) ---- */

/*
 * Call this repeatedly while this session is in the queue of a semaphore of this database and waits
 * for what it requests; of several requests, one that it lacks.  Raises 40P01, with a DETAIL that
 * names the cycle, if the session can never go on, as far as locks decide it, and is part of a
 * cycle.  If there are several such sessions, only one of them gives up, provided that it can tell
 * the others through shared memory.  Usually reads only a few locks.  May ereport (out of memory,
 * cancellation).
 */
void		check_slot_deadlock(const LockRequest &request);

/* ---- For held_init() ---- */

/* Mark a slot that has ended as free, and wake waiters; or that a prepared transaction has it. */
void		semaphore_slot_ended(Hold *slot, bool is_prepared) noexcept;

/* At the end of the session, when all slots are free: detach from the semaphore states. */
void		semaphores_detach() noexcept;

}								/* namespace advisory */
