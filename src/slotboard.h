/*
 * slotboard.h
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
#ifndef ADVISORY_EXT_SLOTBOARD_H
#define ADVISORY_EXT_SLOTBOARD_H

#include "locktag.h"

namespace advisory
{

struct SlotBoard;

/*
 * Attach this session to the board of a semaphore of this database, with room for so
 * many slots.  Null if there is no memory for it at the moment; where only the
 * room for some slots could not be had, those are never found on the board.  May
 * ereport for a cancel.
 */
SlotBoard  *board_attach(Key key, int slots);

/* See that an attached board has room for so many slots, if possible.  As above. */
void		board_make_room(SlotBoard *board, int slots);

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

/* This session is the first in line and wants to be woken, or no more. */
void		board_set_head(SlotBoard *board) noexcept;
void		board_clear_head(SlotBoard *board) noexcept;

/* A slot has become free in the lock manager's eyes, and on the board: wake the first in line. */
void		board_wake_head(SlotBoard *board) noexcept;

/*
 * How many slots the semaphore was last said to have; 0 if nobody has said anything
 * yet, in which case this many is noted.
 */
int			board_agree(SlotBoard *board, int slots) noexcept;
void		board_set_agreed(SlotBoard *board, int slots) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SLOTBOARD_H */
