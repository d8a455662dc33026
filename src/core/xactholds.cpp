/*
 * core/xactholds.cpp
 *		The transaction-level holds of this session.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
}

#include "core/xactholds.h"
#include "shmem/sessiontable.h"

namespace advisory
{

static constexpr int FIRST_CAPACITY = 64;

/* An empty list that is larger than this is freed when the session asks for the next lock. */
static constexpr int KEPT_CAPACITY = 16384;

namespace
{

/* The holds of one lock that were taken in one (sub)transaction. */
struct XactHold
{
	HeldLock   *held;
	int			nest_level;
	int			older;			/* place of the lock's next older XactHold; NO_PLACE if there is none */
	int64		count;
};

}								/* anonymous namespace */

static XactHold *holds = nullptr;
static int	hold_count = 0;
static int	capacity = 0;

void
xact_holds_reserve()
{
	if (hold_count == 0 && capacity > KEPT_CAPACITY)
	{
		pfree(holds);
		holds = nullptr;
		capacity = 0;
	}
	if (hold_count < capacity)
		return;

	int			wanted = Max(2 * capacity, FIRST_CAPACITY);
	Size		bytes = sizeof(XactHold) * wanted;

	holds = static_cast<XactHold *>(holds == nullptr ? MemoryContextAlloc(TopMemoryContext, bytes) : repalloc_huge(holds, bytes));
	capacity = wanted;
}

void
xact_holds_add(HeldLock *held) noexcept
{
	int			level = GetCurrentTransactionNestLevel();
	int			newest = held->newest_xact_hold;

	if (newest != NO_PLACE && holds[newest].nest_level == level)
	{
		holds[newest].count++;
		return;
	}
	holds[hold_count] = XactHold{held, level, newest, 1};
	held->newest_xact_hold = hold_count++;
}

int64
xact_holds_of(const HeldLock *held) noexcept
{
	int64		count = 0;

	for (int i = held->newest_xact_hold; i != NO_PLACE; i = holds[i].older)
		count += holds[i].count;
	return count;
}

bool
xact_holds_any(int nest_level) noexcept
{
	return hold_count > 0 && holds[hold_count - 1].nest_level >= nest_level;
}

HeldLock *
xact_holds_remove_newest(int nest_level) noexcept
{
	if (!xact_holds_any(nest_level))
		return nullptr;

	const XactHold &hold = holds[--hold_count];

	hold.held->newest_xact_hold = hold.older;
	return hold.held;
}

void
xact_holds_to_parent(int nest_level) noexcept
{
	int			first = hold_count;
	int			kept;

	while (first > 0 && holds[first - 1].nest_level >= nest_level)
		first--;
	kept = first;
	for (int i = first; i < hold_count; i++)
	{
		XactHold	hold = holds[i];

		hold.nest_level = nest_level - 1;
		hold.held->newest_xact_hold = hold.older;
		if (hold.older != NO_PLACE && holds[hold.older].nest_level == nest_level - 1)
		{
			holds[hold.older].count += hold.count;
			continue;
		}
		hold.held->newest_xact_hold = kept;
		holds[kept++] = hold;
	}
	hold_count = kept;
}

void
xact_holds_visit(void (*visit) (HeldLock *held, TimestampTz now), TimestampTz now)
{
	for (int i = 0; i < hold_count; i++)
		visit(holds[i].held, now);
}

}								/* namespace advisory */
