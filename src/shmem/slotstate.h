/*
 * shmem/slotstate.h
 *		What sessions tell each other about the slots of semaphores: which are
 *		probably taken, and who is to be woken when one becomes free.
 *
 * Nothing here makes a slot somebody's; only the lock manager does.  A slot that is
 * on the board as free can be taken, since not everybody writes on the board
 * (prepared transactions, sessions that have no shared memory), and one that is
 * there as taken can be free for a while.  So it only tells where to look first,
 * and in whose stead nobody needs to look.
 *
 * There is one board for each semaphore, by database and key, as long as some session
 * is attached to it.  All of this is lock-free but for attaching and detaching.
 */
#ifndef ADVISORY_EXT_SHMEM_SLOTSTATE_H
#define ADVISORY_EXT_SHMEM_SLOTSTATE_H

#include "base/locktag.h"

namespace advisory
{

struct SlotBoard;

/*
 * Attach this session to the board of a semaphore of this database, with room for so
 * many slots.  Null if there is no memory for it at the moment; where only the
 * room for some slots could not be had, see board_has_room().  May ereport for a cancel.
 */
SlotBoard  *board_attach(Key key, int slots);

/* See that an attached board has room for so many slots, if possible.  As above. */
void		board_make_room(SlotBoard *board, int slots);

/* Has it?  Slots that it has no room for are never found on it. */
bool		board_has_room(const SlotBoard *board, int slots) noexcept;

/* The last session that detaches removes the board.  May ereport only for a cancel. */
void		board_detach(SlotBoard *board);

/* Mark a free slot, from 1 to slots, as taken, and return it; NO_SLOT if there is none. */
int			board_claim(SlotBoard *board, int slots) noexcept;

/*
 * The next slot after this one, up to slots, of which it is not known whether it is
 * free; begin with NO_SLOT, which is also what comes back when there are no more.
 */
int			board_next_doubtful(SlotBoard *board, int slots, int after) noexcept;

/* A slot was taken by this session, or by somebody who is not known; or is free again. */
void		board_mark_taken(SlotBoard *board, int slot) noexcept;
void		board_mark_doubtful(SlotBoard *board, int slot) noexcept;
void		board_mark_free(SlotBoard *board, int slot) noexcept;

/* This session comes into line, or leaves it; how many there are. */
void		board_enter_line(SlotBoard *board) noexcept;
void		board_leave_line(SlotBoard *board) noexcept;
int			board_line_length(SlotBoard *board) noexcept;

/*
 * The row: those that are woken when slots become free, as many as there are slots, in
 * the order of their tickets.  Who joins it gets the next ticket; one at a time may do
 * so.  May ereport for a cancel.  False if there is no memory for a row.
 */
bool		board_join_row(SlotBoard *board, int slots);
void		board_leave_row(SlotBoard *board) noexcept;

/*
 * This session, which is in the row, has marked a slot as taken and wants no other, so
 * that it stands in nobody's way; or wants one of so many again.
 */
void		board_mark_served(SlotBoard *board) noexcept;
void		board_mark_waiting(SlotBoard *board, int slots) noexcept;

/*
 * This session is in the row: is there a free slot for it, up to this one, beside those
 * for the sessions that are ahead of it?
 */
bool		board_has_slot_for_me(SlotBoard *board, int slots) noexcept;

/* Is it the first in the row? */
bool		board_am_first(SlotBoard *board) noexcept;

/* Slots may have become free in the lock manager's eyes, and on the board: wake those who are to have them. */
void		board_wake(SlotBoard *board) noexcept;

/*
 * How many slots the semaphore was last said to have; 0 if nobody has said anything
 * yet, in which case this many is noted.
 */
int			board_agree(SlotBoard *board, int slots) noexcept;
void		board_set_agreed(SlotBoard *board, int slots) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_SLOTSTATE_H */
