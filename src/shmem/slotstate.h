/*
 * shmem/slotstate.h
 *		Semaphore states: what sessions tell each other about the slots of a semaphore,
 *		and the queue of those that wait for one.
 *
 * Nothing here gives a slot to a session; only its lock does.  The bits of a state are
 * hints: a slot that is marked free can be locked (prepared transactions and sessions
 * without shared memory do not mark what they take), and one that is marked taken can be
 * free for a moment.  They tell a session where to look first, and whom to wake.
 *
 * There is one state for each semaphore, by database and key.
 */
#ifndef ADVISORY_EXT_SHMEM_SLOTSTATE_H
#define ADVISORY_EXT_SHMEM_SLOTSTATE_H

#include "base/locktag.h"

namespace advisory
{

struct SemaphoreState;
struct SlotWord;

/* A semaphore state as this session has mapped it. */
struct SlotState
{
	SemaphoreState *shared = nullptr;	/* null where there is no shared memory for it */
	SlotWord   *more = nullptr; /* slots 65 and up; null where they are not mapped */
};

/*
 * Attach this session to the state of a semaphore of this database, with the bits of so
 * many slots.  Does what memory allows; see has_bits_of().  May ereport for a cancel.
 */
void		attach_slot_state(SlotState *state, Key key, int slots);

/* Detach it.  Allocates, frees and locks nothing. */
void		detach_slot_state(SlotState *state) noexcept;

/* Are there bits for so many slots?  Slots without bits are never claimed. */
bool		has_bits_of(const SlotState &state, int slots) noexcept;

/*
 * Mark the lowest free slot, from 1 to slots, as taken, and return it; NO_SLOT if there is
 * none besides those that the sessions ahead of this one in the queue will get.  A session
 * that is not in the queue comes after all that are.  One that is in it leaves it.
 */
int			claim_slot(const SlotState &state, int slots);

/* The first slot from this one on, up to last, of which it is not known whether it is free; NO_SLOT if there is none. */
int			next_unverified(const SlotState &state, int first, int last) noexcept;

/* A slot was taken by this session; by somebody unknown, or by nobody; or is free again. */
void		mark_taken(const SlotState &state, int slot) noexcept;
void		mark_unverified(const SlotState &state, int slot) noexcept;
void		mark_free(const SlotState &state, int slot) noexcept;

/*
 * Join the queue, at its end, to wait for one of so many slots.  A session is in one
 * queue at a time.
 */
void		join_queue(const SlotState &state, int slots);

/* The slot that this session claimed could not be locked: it waits again, with the position that it had. */
void		return_to_queue(const SlotState &state);

/* Leave the queue.  Does nothing if this session is in none. */
void		leave_queue();

/*
 * The largest number of slots that a session says which is in the queue, ahead of this one
 * if this one is in it; 0 if there is none.  Looks no further once it has found enough.
 */
int			most_slots_ahead(const SlotState &state, int enough);

/*
 * Slots have been marked free: wake as many waiters, in order, as can be served.  If there
 * are very many of these it wakes the first, and whoever leaves the queue wakes others.
 */
void		wake_waiters(const SlotState &state);

/*
 * How many slots the semaphore was last said to have; 0 if nobody has said anything
 * yet, in which case this many is noted.
 */
int			agree_on_slots(const SlotState &state, int slots) noexcept;
void		set_agreed_slots(const SlotState &state, int slots) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_SLOTSTATE_H */
