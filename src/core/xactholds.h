/*
 * core/xactholds.h
 *		The locks with transaction-level holds, in the order in which this session took them.
 *
 * Each has the nesting level of the (sub)transaction that took its first hold; the later holds of deeper ones end nothing.
 * Levels never decrease within the list, so the end of a subtransaction concerns only the end of the list.
 */
#pragma once

#include "core/heldlock.h"

namespace advisory
{

/* Add a hold of the present (sub)transaction. */
void		xact_holds_add(HeldLock *held) noexcept;

/* Have (sub)transactions of this nesting level, or of deeper ones, any hold? */
bool		xact_holds_any(int level) noexcept;

/*
 * Remove the holds of the newest lock of this nesting level or a deeper one.  Returns the lock, which may be held for the
 * session, too; null if there is none.
 */
HeldLock   *xact_holds_remove_newest(int level) noexcept;

/* A subtransaction of this nesting level has succeeded: its parent takes over its holds. */
void		xact_holds_to_parent(int level) noexcept;

/* Call visit() for each lock, the oldest first. */
void		xact_holds_visit(void (*visit) (HeldLock *held, TimestampTz now), TimestampTz now);

}								/* namespace advisory */
