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
#pragma once

#include "base/locktag.h"

namespace advisory
{

struct OtherSlots;
struct SemaphoreState;
struct SlotWord;

/* A semaphore state as this session has mapped it. */
struct SlotState
{
	SemaphoreState *shared = nullptr;	/* null where there is no shared memory for it */
	SlotWord   *more = nullptr; /* slots 65 and up; null where they are not mapped */
};

/* What is known of a slot. */
enum class SlotMark
{
	free,
	taken,
	unverified					/* taken, but maybe nobody will mark it as free */
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
 * none besides those that are set aside for the sessions ahead of it in the queue.  A session
 * that is not in the queue comes after all that are.  One that is in it leaves it.
 */
int			claim_slot(const SlotState &state, int slots);

/* The first unverified slot from this one on, up to last; NO_SLOT if there is none. */
int			next_unverified(const SlotState &state, int first, int last) noexcept;

/* Does nothing for a slot without bits. */
void		mark_slot(const SlotState &state, int slot, SlotMark mark) noexcept;

/*
 * Join the queue, at its end, to wait for one of so many slots.  Again, if the slot that this
 * session claimed could not be locked: then it has the position that it had.  A session is in
 * one queue at a time.
 */
void		join_queue(const SlotState &state, int slots, bool again);

/*
 * The wait is over: leave the queue, and wake those that can be served now.  Does nothing if
 * this session does not wait.
 */
void		leave_queue() noexcept;

/*
 * The largest number of slots that a waiter says, ahead of this session if it waits itself;
 * 0 if there is none.  Looks no further once it has found enough.
 */
int			most_slots_ahead(const SlotState &state, int enough);

/* Slots have been marked free: wake as many waiters, in order, as can be served. */
void		wake_waiters(const SlotState &state) noexcept;

/*
 * Say that the semaphore has so many slots.  False if another session that uses it at the moment
 * says another number: *other is that session.  May ereport (out of memory, cancellation).
 */
bool		agree_on_slots(const SlotState &state, Key key, int slots, OtherSlots *other);

/*
 * The highest slot that is in use of a semaphore of this database, or a higher one.  Slots beyond
 * the first 64 are missed if no session with shared memory has used the semaphore with so many.
 * MAX_SLOTS if this session has no shared memory.  May ereport for a cancel.
 */
int			highest_slot(Key key);

}								/* namespace advisory */
