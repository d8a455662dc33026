/*
 * views/slotsums.cpp
 *		How many slots the sessions have, and which semaphores they use with different numbers.
 */
#include "base/pg.h"

#include "views/slotsums.h"

namespace advisory
{

/* The slots of one session. */
struct HeldSlots
{
	struct
	{
		LOCKTAG		tag;		/* of the semaphore's queue */
		int			leader_number;
	}			key;			/* hash key */
	int			count;
};

/* The numbers of slots that are given for one semaphore. */
struct GivenNumbers
{
	LOCKTAG		tag;			/* hash key: of its queue */
	int			first;			/* 0 if none is known */
	bool		disagree;
};

static HeldSlots *
find_held(HTAB *held, const LockEntry &entry, HASHACTION action, bool *is_known = nullptr)
{
	decltype(HeldSlots::key) key = {whole_lock(entry.tag), entry.leader_number};

	return static_cast<HeldSlots *>(hash_search(held, &key, action, is_known));
}

SlotSums::SlotSums(const LockEntries &entries)
	: context(CurrentMemoryContext), entries(entries),
	  held(make_hash_table<decltype(HeldSlots::key), HeldSlots>("advisory_ext held slots", 256))
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];
		bool		is_known;

		if (!entry.granted || !is_of_semaphore(entry.tag))
			continue;

		HeldSlots  *slots = find_held(held, entry, HASH_ENTER, &is_known);

		slots->count = is_known ? slots->count + 1 : 1;
	}
}

int
SlotSums::slots_of(const LockEntry &entry) const
{
	const HeldSlots *slots = entry.granted ? find_held(held, entry, HASH_FIND) : nullptr;

	return slots != nullptr ? slots->count : entry.wanted;
}

void
SlotSums::read_numbers()
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	HoldReader	holds;

	numbers = make_hash_table<LOCKTAG, GivenNumbers>("advisory_ext given numbers", 256, context);
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];

		if (!is_of_semaphore(entry.tag))
			continue;

		LOCKTAG		tag = whole_lock(entry.tag);
		int			number = slots_given(entry, holds.find(entry));
		bool		is_known;
		auto	   *given = static_cast<GivenNumbers *>(
			hash_search(numbers, &tag, HASH_ENTER, &is_known));

		CHECK_FOR_INTERRUPTS();
		if (!is_known)
		{
			given->first = 0;
			given->disagree = false;
		}
		if (given->first == 0)
			given->first = number;
		given->disagree |= number != 0 && number != given->first;
	}
	MemoryContextSwitchTo(old_context);
}

bool
SlotSums::disagree(const LOCKTAG &tag)
{
	LOCKTAG		queue = whole_lock(tag);

	if (numbers == nullptr)
		read_numbers();

	const auto *given = static_cast<GivenNumbers *>(
		hash_search(numbers, &queue, HASH_FIND, nullptr));

	return given != nullptr && given->disagree;
}

}								/* namespace advisory */
