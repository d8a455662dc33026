/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each of which is a lock of its own (locktag.h); a session has a
 * slot if it holds that lock in exclusive mode.  This file takes and releases the slots of
 * one session; semqueue.h waits for one.
 *
 * Names, timeouts, what others are told, and how a wait ends are in lock.h.
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
	int			held;			/* slots that this session has */
	bool		disagreement_reported;
};

/*
 * The semaphore of this name, for a caller that says that it has so many slots and will
 * take one more.  Good until this is called for another semaphore.  WARNING, once a
 * session and semaphore, if other sessions that use it at the moment say otherwise.
 * May ereport (out of memory, a cancel).
 */
Semaphore  *semaphore_open(const LockName &name, int slots);

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
 * After an error out of semaphore_wait(): the session-level slot that it took before,
 * or NO_SLOT.
 */
int			semaphore_survivor(Semaphore *semaphore, int slots);

/* Note the slot that was just taken (hold_note_slot).  May ereport (out of memory). */
void		semaphore_note(Semaphore *semaphore, const LockName &name, Hold *hold, int slot, int slots, Scope scope);

/*
 * Release a session-level slot that this session has.  May ereport (writing to the
 * log), with all done.
 */
void		semaphore_release(Key key, int slot);

/*
 * Have a session-level slot that this session has until the end of the transaction
 * instead, without letting go of it; hold is the note that hold_open gave for the transaction.
 * May ereport (53200), with the session-level slot as it was.
 */
void		semaphore_keep(Key key, int slot, Hold *hold);

/*
 * The session-level slot with this number, or the one that was taken last if it is
 * NO_SLOT; NO_SLOT if this session has none.
 */
int			semaphore_find_slot(Key key, int slot);

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* How many session-level slots this session has of all semaphores; and one of them. */
int			semaphore_slot_count();

struct HeldSlot
{
	Key			key;
	int			slot;
	Scope		scope;
	const Hold *hold;
};

HeldSlot	semaphore_held_slot(int index);

/* ---- For semqueue.cpp ---- */

/* The lock of a slot. */
LOCKTAG		tag_of_slot(const Semaphore *semaphore, int slot) noexcept;

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

/* Called from _PG_init: hears about released locks. */
void		semaphores_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_SEMAPHORE_H */
