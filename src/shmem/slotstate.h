/*
 * shmem/slotstate.h
 *		Semaphore states: what sessions tell each other about the slots of a semaphore,
 *		and the queue of the sessions that wait for one.
 *
 * Nothing here gives a slot to a session; only the slot's lock does.  The bits of a state are
 * hints.  A slot that is marked as free can be locked, because prepared transactions and sessions
 * without shared memory do not mark slots.  A slot that is marked as taken can be free for a
 * moment.  The bits tell a session where to look first, and which sessions to wake.
 *
 * There is one state for each semaphore, by database and key.
 *
 * Size
 *
 * The first 64 slots have their bits in the entry.  The bits of the others are in blocks, each of
 * which has three times as many as all before it together.  A session that attaches adds the blocks
 * that it needs, so no bit ever moves.  It looks up then where the blocks are, because that can
 * fail, and the end of a transaction must not.  So it does not see blocks that others add later,
 * until it asks for a slot again.  All states together have a limit; a semaphore for which there is
 * no room works without a state.  Half of it is for semaphores without blocks, so that large ones
 * cannot take the room of all others.
 */
#pragma once

#include "shmem/sessiontable.h"

namespace advisory
{

/* A state as this session sees it; zeroed until this session is attached to it. */
struct SemaphoreState
{
	struct SharedState *shared;
	int			slots;			/* that it sees, a power of 4 times 64 */
	bool		has_unknown_slots;	/* this session took one that no session sees */
	struct SlotWord *blocks[SLOT_BLOCKS];
};

/* What is known of a slot. */
enum class SlotMark
{
	free,
	taken,
	unverified					/* taken, but perhaps no session will mark it as free */
};

/*
 * Attach this session to the state of a semaphore of this database, if it is not attached yet, and
 * see all of it.  False if there is no room for this many slots: then do not use it but to mark
 * slots and wake waiters.  May ereport for a cancel.
 */
bool		attach_slot_state(SemaphoreState *state, Key key, int slots);

/* Note whether this session has a slot that no other one knows of; mark_slot() notes that, too. */
void		note_unknown_slots(SemaphoreState *state, bool has_some) noexcept;

/* Detach, if attached.  Allocates, frees and locks nothing. */
void		detach_slot_state(SemaphoreState *state) noexcept;

/*
 * Free the memory of states that no session is attached to, if there are many: the end of a session
 * must not.  Usually reads two numbers.  May ereport for a cancel.
 */
void		sweep_slot_states();

/*
 * As many slots as are wanted, of those of one semaphore from 1 to slots; and, if it is a request
 * for slots of several, of which it gets all that it wants or nothing, what it wants of the next
 * one.  They are in the order of their keys, because their states are locked in this order.
 */
struct SlotRequest
{
	SemaphoreState *state;
	int			slots;
	int			wanted;
	int		   *claimed;		/* returns their numbers */
	SlotRequest *next;			/* at most MAX_QUEUES are linked */
	int			place;			/* of this one among them, from 0 */
};

/*
 * Mark the lowest free slots of each semaphore as taken, and return their numbers in claimed, in
 * their order: all that are wanted, or none.  Returns null, or the first semaphore that lacks some.
 * Slots that are set aside for the sessions ahead in a queue do not count as free.  A session that
 * is not in the queues comes after all that are.  A session that is in the queues leaves them.
 */
const SlotRequest *claim_slots(const SlotRequest *requests);

/* The first unverified slot from this one on, up to last; NO_SLOT if there is none. */
int			next_unverified(SemaphoreState *state, int first, int last) noexcept;

/* Does nothing for slots that this session does not see. */
void		mark_slot(SemaphoreState *state, int slot, SlotMark mark) noexcept;

/*
 * Join the queues of all these semaphores, with one ticket, and so behind all that are in one of
 * them.  again: this session could not lock a slot that it claimed, so it keeps its ticket.  It
 * must not wait for something else.
 */
void		join_queues(const SlotRequest *requests, bool again);

/*
 * Leave the queues at the end of the wait, and wake the sessions that can be served now.  Does
 * nothing if this session does not wait.
 */
void		leave_queues() noexcept;

/*
 * The largest number of slots among all waiters, or among the waiters ahead of this session if
 * it waits itself; 0 if there is none.  Stops when it has found a number of at least enough.
 */
int			most_slots_ahead(SemaphoreState *state, int enough);

/*
 * Has this session attached to the semaphores and their queues?  Attaches if possible; without an
 * LWLock, since that takes a subtransaction.  May ereport for a cancel.
 */
bool		has_semaphores();

/* A waiter ahead of a process in a queue. */
struct WaiterAhead
{
	int			proc_number;
	QueueLink	link;
};

/*
 * Those ahead of this process in the queue of this tag that want more than one slot, or slots of
 * other semaphores, too; none if it does not wait there, or this session has not attached.  Fills
 * them in, in their order, and returns how many they are: at most process_count().
 */
int			read_waiters_ahead(const LOCKTAG &queue, int proc_number, WaiterAhead *ahead);

/*
 * The queue in this place of those that a process is in, and the number of slots that it gave
 * there.  False if there is none.  Takes no lock: check afterwards that it is in the same wait.
 */
bool		read_queue_of(int proc_number, int place, LOCKTAG *queue, int *slots);

/* After slots were marked as free: wake as many waiters, in order, as can be served. */
void		wake_waiters(SemaphoreState *state) noexcept;

/*
 * Agree with the other sessions that the semaphore has this many slots.  False if another number
 * was agreed before, and a session may still use that.  replaces: no session does.
 */
bool		agree_on_slots(SemaphoreState *state, int slots, bool replaces) noexcept;

/*
 * An upper limit for the highest slot in use of a semaphore of this database.  It does not cover
 * slots beyond the first 64 of sessions without shared memory.  MAX_SLOTS if this session has none,
 * or since a session has found no room for more than 64 slots.  May ereport for a cancel.
 */
int			highest_slot(Key key);

}								/* namespace advisory */
