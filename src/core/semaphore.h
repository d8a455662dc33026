/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each of which is a lock of its own (locktag.h); a session has a
 * slot if it holds that lock in exclusive mode.  This file takes and releases the slots of
 * one session; semqueue.h waits for one.
 *
 * What is taken here is among the held locks (held.h) when it is returned.  Names, timeouts,
 * what others are told, and how a wait ends are in acquire.h and wait.h.
 */
#ifndef ADVISORY_EXT_CORE_SEMAPHORE_H
#define ADVISORY_EXT_CORE_SEMAPHORE_H

#include "core/held.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* A semaphore as this session knows it. */
struct Semaphore
{
	Key			key;
	SlotState	state;
	dlist_head	slots;			/* that this session has, in the order in which they were taken (HeldLock.in_semaphore) */
	bool		disagreement_reported;

	/* The caller who asks for a slot at the moment. */
	CachedName *name;
	bool		by_name;
	int			asked_slots;
};

/*
 * The semaphore of this name, for a caller that says that it has so many slots and will
 * take one more.  Good until this is called for another semaphore.  WARNING, once a
 * session and semaphore, if other sessions that use it at the moment say otherwise.
 * May ereport (out of memory, a cancel).
 */
Semaphore  *semaphore_open(const LockName &name, CachedName *cached, int slots);

/*
 * Take a free slot without waiting, if there is one besides those that waiters will get;
 * else NO_SLOT.  A slot that this session has already is not free.  May ereport (53200),
 * with nothing taken.
 */
int			semaphore_try(Semaphore *semaphore, int slots, Scope scope);

/*
 * Wait for a slot, and take it.  Raises 55P03 when lock_timeout, counted from here, is
 * over, 40P01 if none of the sessions that have the slots could ever release theirs, and
 * 57014 when cancelled.  A session-level slot may have been taken all the same: see
 * semaphore_survivor().
 */
int			semaphore_wait(Semaphore *semaphore, int slots, Scope scope);

/*
 * After an error out of semaphore_wait(): the session-level slot that it took before, or
 * NO_SLOT.  It need not be among the held locks.
 */
int			semaphore_survivor(Semaphore *semaphore, int slots) noexcept;

/*
 * The session-level slot with this number, or the one that was taken last if it is
 * NO_SLOT; NO_SLOT if this session has none.
 */
int			semaphore_find_slot(Key key, int slot);

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* ---- For core/held, which knows when a slot has ended; all of these are for callbacks, too ---- */

/* The slot belongs to this semaphore; it belongs to none any more. */
void		semaphore_add_slot(Semaphore *semaphore, HeldLock *held) noexcept;
void		semaphore_remove_slot(HeldLock *held) noexcept;

/* The lock of a slot was released: mark it as free, and wake waiters unless others of the same semaphore follow. */
void		semaphore_slot_is_free(Semaphore *semaphore, int slot, bool others_follow) noexcept;

/* The slot goes on in a prepared transaction, which will not say when it is free. */
void		semaphore_slot_is_prepared(Semaphore *semaphore, int slot) noexcept;

/* The session ends: leave the queue; and, when all slots are free, let go of the semaphore states. */
void		semaphore_stop_waiting() noexcept;
void		semaphores_detach() noexcept;

/* ---- For semqueue.cpp ---- */

/*
 * Take a slot that claim_slot() gave.  False if it could not be locked; it is marked so
 * that nobody claims it again.  May ereport (53200), with the slot marked as free.
 */
bool		take_claimed_slot(Semaphore *semaphore, int slot, Scope scope);

/*
 * Take one of the slots from first to last of which it is not known whether they are
 * free, or one of all these slots, whatever is known of them; NO_SLOT if all are taken.
 * Both may ereport (53200; a cancel), with nothing taken.
 */
int			take_unverified_slot(Semaphore *semaphore, int first, int last, Scope scope);
int			take_any_slot(Semaphore *semaphore, int first, int last, Scope scope);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_SEMAPHORE_H */
