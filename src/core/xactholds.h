/*
 * core/xactholds.h
 *		The transaction-level holds of this session, in the order in which they were taken.
 *
 * There is one entry for each lock and (sub)transaction that took it, with the nesting level of
 * that (sub)transaction.  Levels never decrease within the list, so the end of a subtransaction
 * concerns only the end of the list.
 */
#pragma once

#include "core/heldlock.h"

namespace advisory
{

/* Get memory for one more hold, and free that of a list which has grown large.  May ereport (out of memory). */
void		xact_holds_reserve();

/* Add a hold of the present (sub)transaction, after xact_holds_reserve(). */
void		xact_holds_add(HeldLock *held) noexcept;

/* How many transaction-level holds a lock has. */
int64		xact_holds_of(const HeldLock *held) noexcept;

/* Have (sub)transactions of this nesting level, or of deeper ones, any hold? */
bool		xact_holds_any(int nest_level) noexcept;

/*
 * Remove the newest hold of this nesting level or a deeper one.  Returns its lock, which may be held
 * otherwise, too; null if there is no such hold.
 */
HeldLock   *xact_holds_remove_newest(int nest_level) noexcept;

/*
 * A subtransaction of this nesting level has succeeded: its parent takes over its holds.  If the parent
 * holds the lock, too, the two entries become one.
 */
void		xact_holds_to_parent(int nest_level) noexcept;

/* Call visit() for each entry, the oldest first.  A lock may have several. */
void		xact_holds_visit(void (*visit) (HeldLock *held, TimestampTz now), TimestampTz now);

}								/* namespace advisory */
