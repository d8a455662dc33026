/*
 * core/xactholds.cpp
 *		The locks with transaction-level holds.
 */
#include "base/pg.h"

#include "core/xactholds.h"

namespace advisory
{

static dlist_head holds = DLIST_STATIC_INIT(holds);

void
xact_holds_add(HeldLock *held) noexcept
{
	if (held->xact_count++ > 0)
		return;
	held->xact_level = GetCurrentTransactionNestLevel();
	dlist_push_tail(&holds, &held->in_xact);
}

/* The newest lock of this nesting level or a deeper one; null if there is none. */
static HeldLock *
newest(int level) noexcept
{
	HeldLock   *held;

	if (dlist_is_empty(&holds))
		return nullptr;
	held = held_of(dlist_tail_node(&holds), offsetof(HeldLock, in_xact));
	return held->xact_level >= level ? held : nullptr;
}

bool
xact_holds_any(int level) noexcept
{
	return newest(level) != nullptr;
}

HeldLock *
xact_holds_remove_newest(int level) noexcept
{
	HeldLock   *held = newest(level);

	if (held != nullptr)
	{
		dlist_delete(&held->in_xact);
		held->xact_count = 0;
	}
	return held;
}

void
xact_holds_to_parent(int level) noexcept
{
	for (dlist_node *node = holds.head.prev; node != &holds.head; node = node->prev)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, in_xact));

		if (held->xact_level < level)
			break;
		held->xact_level = level - 1;
	}
}

void
xact_holds_visit(void (*visit) (HeldLock *held, TimestampTz now), TimestampTz now)
{
	for (dlist_node *node = holds.head.next; node != &holds.head; node = node->next)
		visit(held_of(node, offsetof(HeldLock, in_xact)), now);
}

}								/* namespace advisory */
