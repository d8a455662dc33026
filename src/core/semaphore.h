/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each of which is a lock of its own (locktag.h); a session has a
 * slot if it holds that lock in exclusive mode.
 *
 * What is taken here is among the held locks (held.h) when it is returned.  Names, timeouts,
 * what others are told, and how a wait ends are in acquire.h and wait.h.
 */
#pragma once

extern "C" {
#include "lib/ilist.h"
}

#include "core/held.h"
#include "core/request.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* A semaphore as this session knows it. */
struct Semaphore
{
	Key			key;			/* hash key */
	SlotState	state;
	dlist_head	slots;			/* that this session has, the last taken last (HeldLock.in_semaphore) */
	bool		disagreement_reported;

	/* Of the caller who asks for a slot at the moment. */
	const LockRequest *request;
	CachedName *name;
};

/*
 * The semaphore of a request, for a caller that will take one more slot.  Good until this is
 * called for another semaphore, or the request is gone.  WARNING, once a session and
 * semaphore, if other sessions that use it at the moment say another number of slots.
 * May ereport (out of memory, a cancel).
 */
Semaphore  *semaphore_open(const LockRequest &request, CachedName *name);

/*
 * Take a free slot without waiting, if there is one besides those that waiters will get;
 * else NO_SLOT.  A slot that this session has already is not free.  May ereport (53200),
 * with nothing taken.
 */
int			semaphore_try(Semaphore *semaphore);

/*
 * Wait for a slot, and take it.  Raises 55P03 when lock_timeout, counted from here, is
 * over, 40P01 if none of the sessions that have the slots could ever release theirs, and
 * 57014 when cancelled.  The only slot of a semaphore may have been granted all the same:
 * see semaphore_survivor().
 */
int			semaphore_wait(Semaphore *semaphore);

/*
 * After an error out of semaphore_wait(): the session-level slot whose lock was granted before,
 * or NO_SLOT.  It is not among the held locks.
 */
int			semaphore_survivor(const Semaphore *semaphore) noexcept;

/* Add a slot whose lock was granted to the held locks, unless it is there.  May ereport (out of memory). */
void		semaphore_add_slot(Semaphore *semaphore, int slot);

/*
 * The session-level slot with this number, or the one that was taken last if it is
 * NO_SLOT; NO_SLOT if this session has none.
 */
int			semaphore_find_slot(Key key, int slot);

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* ---- For core/held, which knows when a slot has ended; for callbacks, too ---- */

/* The lock of a slot was released: mark it as free, and wake waiters unless others of the same semaphore follow. */
void		semaphore_slot_released(Semaphore *semaphore, int slot, bool others_follow) noexcept;

/* The session ends, and all slots are free: let go of the semaphore states. */
void		semaphores_detach() noexcept;

}								/* namespace advisory */
