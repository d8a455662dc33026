/*
 * core/semaphore.h
 *		Semaphores: at most K at once.
 *
 * A semaphore is K slots, each a lock of its own (locktag.h); to have one is to have
 * its lock in exclusive mode.  Who finds no slot free lines up for one more lock, the
 * semaphore's queue: so the line is the lock manager's own, first come, first served,
 * with its timeouts and cancels.  Who gets to its front joins the front row, lets the next
 * one come forward, and sleeps until there is a slot for it.
 *
 * If there is but one slot, it is waited for as any lock is.
 *
 * Here is what one session takes and releases.  Names, timeouts, what others are told and
 * what comes of a wait is all in lock.h.
 */
#ifndef ADVISORY_EXT_CORE_SEMAPHORE_H
#define ADVISORY_EXT_CORE_SEMAPHORE_H

#include "core/held.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* A semaphore as this session knows it. */
struct Semaphore;

/*
 * The semaphore of this name, about to be used by one who says that it has so many
 * slots, with memory for one more.  Good until this is called for another one.
 * WARNING, once a session and semaphore, if others who use it at the moment say
 * otherwise.  May ereport (out of memory, a cancel).
 */
Semaphore  *semaphore_open(const LockName &name, int slots);

/*
 * Take a free slot without waiting, unless somebody is in line; NO_SLOT if there is
 * none.  A slot that this session has already is not free.  May ereport (53200), with
 * nothing taken.
 */
int			semaphore_try(Semaphore *semaphore, int slots, Scope scope);

/*
 * Line up, and take a slot.  Raises 55P03 when lock_timeout, counted from here, is
 * over, 40P01 if none of those that hold the slots could ever release theirs, and 57014
 * when cancelled.  A session-level slot may have been taken all the same: see
 * semaphore_survivor().
 */
int			semaphore_wait(Semaphore *semaphore, int slots, Scope scope);

/*
 * After an error out of semaphore_wait(): the session-level slot that it took before,
 * or NO_SLOT.
 */
int			semaphore_survivor(Semaphore *semaphore, int slots);

/* A slot that was just taken is among the held locks now. */
void		semaphore_note(Semaphore *semaphore, int slot, HeldLock *held) noexcept;

/* A session-level slot goes on as one of the transaction. */
void		semaphore_kept(Key key, int slot) noexcept;

/*
 * Release a session-level slot that this session has.  May ereport (writing to the
 * log), with all done.
 */
void		semaphore_release(Key key, int slot);

/*
 * The session-level slot with this number, or the one that was taken last if it is
 * NO_SLOT; NO_SLOT if this session has none.
 */
int			semaphore_find_slot(Key key, int slot);

/* Does this session have a slot of the semaphore, in any scope? */
bool		semaphore_has_slot(Key key);

/* Called from _PG_init: hears about released locks. */
void		semaphores_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_SEMAPHORE_H */
