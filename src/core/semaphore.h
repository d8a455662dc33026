/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each of which is a lock of its own (locktag.h); a session has a slot if
 * it holds that lock in exclusive mode.
 *
 * A slot that is taken here is added to the held locks (held.h) before it is returned.  Names,
 * timeouts, the publication of waits, and the end of a wait are in acquire.h.
 */
#pragma once

#include "core/held.h"
#include "core/request.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* A semaphore as this session knows it. */
struct Semaphore
{
	Key			key;			/* hash key */
	SemaphoreState *state;		/* null without shared memory for it */
	dlist_head	slots;			/* slots of this session, the last taken last (HeldLock.in_semaphore) */
	bool		disagreement_reported;

	/* The present request for a slot. */
	const LockRequest *request;
	CachedName *name;
};

/*
 * The semaphore of a request, for a caller that will take one more slot.  Valid until this is
 * called for another semaphore, or until the request is gone.  Raises a WARNING, once per session
 * and semaphore, if another session uses it at the moment with another number of slots.  May
 * ereport (out of memory, cancellation).
 */
Semaphore  *semaphore_open(const LockRequest &request, CachedName *name);

/*
 * Take a free slot without waiting, if there is one that no waiter will get; else returns NO_SLOT.
 * A slot that this session already has is not free.  May ereport (53200), with nothing taken.
 */
int			semaphore_try(Semaphore *semaphore);

/*
 * Wait for a slot, and take it.  Raises 55P03 when lock_timeout, counted from here, expires, 40P01
 * if none of the sessions that have the slots could ever release theirs, and 57014 when canceled.
 * Even after an error the only slot of a semaphore may have been granted: see semaphore_survivor().
 */
int			semaphore_wait(Semaphore *semaphore);

/*
 * After an error in semaphore_wait(): the session-level slot whose lock was granted before the
 * error, or NO_SLOT.  It is not among the held locks.
 */
int			semaphore_survivor(const Semaphore *semaphore) noexcept;

/*
 * Add a slot whose lock was granted to the held locks, unless they contain it.  May ereport (out of
 * memory).
 */
void		semaphore_add_slot(Semaphore *semaphore, int slot);

/*
 * The session-level slot with this number, or for NO_SLOT the one that was taken last.  NO_SLOT if
 * this session does not have it.
 */
int			semaphore_find_slot(Key key, int slot);

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* ---- Deadlocks over slots (semdeadlock.cpp) ---- */

/*
 * Call this repeatedly while this session is in the queue of a semaphore of this database and waits
 * for one of this many slots.  Raises 40P01, with a DETAIL that names the cycle, if the session can
 * never go on, as far as locks decide it, and is part of a cycle.  If there are several such
 * sessions, only one of them gives up, provided that it can tell the others through shared memory.
 * Usually reads only a few locks.  May ereport (out of memory, cancellation).
 */
void		check_slot_deadlock(Key key, int slots);

/* ---- For held_init() ---- */

/*
 * Mark a slot that has ended as free, and wake waiters unless another slot of the semaphore
 * follows.
 */
void		semaphore_slot_ended(HeldLock *held, bool is_prepared) noexcept;

/* At the end of the session, when all slots are free: detach from the semaphore states. */
void		semaphores_detach() noexcept;

}								/* namespace advisory */
