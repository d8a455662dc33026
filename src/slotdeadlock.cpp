/*
 * slotdeadlock.cpp
 *		Deadlocks over the slots of semaphores.
 *
 * The lock table is read partition by partition, so what is read may never have been
 * true all at once.  What a session holds stays the same while it waits, however: so it
 * is read twice, and the second time only those can be dead that were dead the first
 * time and have gone on with the very same wait.  All of these waited, and held what
 * is read the second time, at the moment between the two.
 *
 * Where in doubt a session is live.
 */
#include "pg.h"

#include "published.h"
#include "shared.h"
#include "slotdeadlock.h"
#include "slotlocks.h"
#include "waits.h"

namespace advisory
{

namespace
{

/* A session that waits; index of its entry. */
struct Waiter
{
	int			entry;
	int			pid;
	bool		is_live;
};

/* What one reading says. */
class Reading
{
public:
	/* before: what an earlier one said, or null. */
	Reading(Key key, int slots, const Reading *before);

	bool		am_i_dead() const noexcept
	{
		const Waiter *me = find(MyProcPid);

		return me != nullptr && !me->is_live;
	}

	/* Who waits for whom, from this session on; palloc'd. */
	char	   *describe() const;

private:
	void		list_waiters(const Reading *before);
	bool		was_dead(const LockEntry &entry) const noexcept;
	const Waiter *find(int pid) const noexcept;
	bool		is_live(int pid) const noexcept;
	bool		is_lock_live(int waiter) const;
	bool		is_slot_live(int waiter) const;
	int			first_of_lock(int entry) const noexcept;
	bool		blocks(int entry, int waiter) const;
	void		settle();
	void		describe_wait(StringInfo out, int waiter, int *pids, int *count) const;

	LockEntries entries;
	Waiter	   *waiters;
	int			waiter_count = 0;
	PublishedWait *published;
	int			published_count;
};

}								/* anonymous namespace */

static bool
waits_for_slot(const LockEntry &entry) noexcept
{
	return entry.is_head;
}

Reading::Reading(Key key, int slots, const Reading *before)
	: entries(read_all_waits_and_slots()),
	  waiters(static_cast<Waiter *>(palloc_extended(sizeof(Waiter) * (entries.count + 1), MCXT_ALLOC_HUGE))),
	  published(read_slot_waits(&published_count))
{
	LOCKTAG		mine = queue_tag(MyDatabaseId, key);

	/* This session knows what it waits for, also where others cannot. */
	for (int i = 0; i < entries.count; i++)
	{
		if (entries.entries[i].pid == MyProcPid && same_tag(entries.entries[i].tag, mine))
			entries.entries[i].slots = slots;
	}
	list_waiters(before);
	settle();
}

bool
Reading::was_dead(const LockEntry &entry) const noexcept
{
	const Waiter *waiter = find(session_pid(entry));

	if (waiter == nullptr || waiter->is_live)
		return false;

	const LockEntry &earlier = entries.entries[waiter->entry];

	return earlier.proc_number == entry.proc_number && same_tag(earlier.tag, entry.tag) &&
		earlier.wait_start == entry.wait_start && earlier.is_head == entry.is_head &&
		(entry.wait_start != 0 || entry.pid == MyProcPid);
}

/* All sessions that wait; who is seen to wait twice does not. */
void
Reading::list_waiters(const Reading *before)
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];
		Waiter	   *known;

		if (entry.granted)
			continue;
		known = const_cast<Waiter *>(find(session_pid(entry)));
		if (known != nullptr)
		{
			known->is_live = true;
			continue;
		}
		waiters[waiter_count++] = Waiter{i, session_pid(entry), before != nullptr && !before->was_dead(entry)};
	}
	for (int i = 0; i < published_count; i++)
	{
		Waiter	   *known = const_cast<Waiter *>(find(published[i].pid));

		if (published[i].is_victim && known != nullptr)
			known->is_live = true;
	}
}

const Waiter *
Reading::find(int pid) const noexcept
{
	for (int i = 0; i < waiter_count; i++)
	{
		if (waiters[i].pid == pid)
			return &waiters[i];
	}
	return nullptr;
}

bool
Reading::is_live(int pid) const noexcept
{
	const Waiter *waiter = find(pid);

	return waiter == nullptr || waiter->is_live;
}

int
Reading::first_of_lock(int entry) const noexcept
{
	while (entry > 0 && same_tag(entries.entries[entry - 1].tag, entries.entries[entry].tag))
		entry--;
	return entry;
}

bool
Reading::blocks(int entry, int waiter) const
{
	return entry != waiter && is_in_the_way(entries.entries[entry], entries.entries[waiter]);
}

bool
Reading::is_lock_live(int waiter) const
{
	for (int i = first_of_lock(waiter); i < waiter; i++)
	{
		if (blocks(i, waiter) && !is_live(session_pid(entries.entries[i])))
			return false;
	}
	return true;
}

bool
Reading::is_slot_live(int waiter) const
{
	const LockEntry &head = entries.entries[waiter];
	int			held = 0;

	if (head.slots == 0)
		return true;
	for (int i = waiter + 1; i < entries.count && is_same_semaphore(entries.entries[i].tag, head.tag); i++)
	{
		if (!is_slot_in_the_way(entries.entries[i], head))
			continue;
		/* Itself is no help: it would have to release a slot while it waits. */
		if (session_pid(entries.entries[i]) != session_pid(head) && is_live(session_pid(entries.entries[i])))
			return true;
		held++;
	}
	return held < head.slots;
}

/* From nobody who waits being live, as far as that follows. */
void
Reading::settle()
{
	bool		changed = true;

	while (changed)
	{
		changed = false;
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < waiter_count; i++)
		{
			Waiter	   &waiter = waiters[i];

			if (waiter.is_live)
				continue;
			waiter.is_live = waits_for_slot(entries.entries[waiter.entry])
				? is_slot_live(waiter.entry) : is_lock_live(waiter.entry);
			changed |= waiter.is_live;
		}
	}
}

static void
add_pid(int *pids, int *count, int pid) noexcept
{
	for (int i = 0; i < *count; i++)
	{
		if (pids[i] == pid)
			return;
	}
	pids[(*count)++] = pid;
}

/* One line; adds those in its way to the list of pids. */
void
Reading::describe_wait(StringInfo out, int waiter, int *pids, int *count) const
{
	const LockEntry &entry = entries.entries[waiter];
	int			first = first_of_lock(waiter);
	auto	   *blockers = static_cast<int *>(palloc(sizeof(int) * (entries.count + 1)));
	int			blocker_count = 0;

	for (int i = 0; i < entries.count; i++)
	{
		bool		is_blocker = waits_for_slot(entry)
			? is_slot_in_the_way(entries.entries[i], entry)
			: i >= first && i < waiter && blocks(i, waiter);

		if (is_blocker)
			add_pid(blockers, &blocker_count, session_pid(entries.entries[i]));
	}

	if (out->len > 0)
		appendStringInfoChar(out, '\n');
	appendStringInfo(out, "Process %d waits for ", session_pid(entry));
	if (waits_for_slot(entry))
		appendStringInfo(out, entry.slots == 1 ? "the only slot of " : "one of the %d slots of ", entry.slots);
	else
		appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, entry.lockmode));
	DescribeLockTag(out, &entry.tag);
	for (int i = 0; i < blocker_count; i++)
	{
		appendStringInfo(out, "%s%d",
						 i > 0 ? ", " : blocker_count > 1 ? "; blocked by processes " : "; blocked by process ",
						 blockers[i]);
		add_pid(pids, count, blockers[i]);
	}
	appendStringInfoChar(out, '.');
	pfree(blockers);
}

char *
Reading::describe() const
{
	StringInfoData out;
	auto	   *pids = static_cast<int *>(palloc(sizeof(int) * (entries.count + 2)));
	int			count = 0;

	initStringInfo(&out);
	add_pid(pids, &count, MyProcPid);
	for (int i = 0; i < count; i++)
	{
		if (const Waiter *waiter = find(pids[i]))
			describe_wait(&out, waiter->entry, pids, &count);
	}
	return out.data;
}

/* With the others told, if this session gives up; what it is to say then, or null. */
static char *
find_deadlock(Key key, int slots)
{
	Reading		first(key, slots, nullptr);

	if (!first.am_i_dead())
		return nullptr;

	Reading		second(key, slots, &first);

	if (!second.am_i_dead())
		return nullptr;
	publish_victim();
	return second.describe();
}

void
check_slot_deadlock(Key key, int slots)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext deadlock",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	SharedRoot *root = shared_root_if_attached();
	char	   *detail;

	/* One at a time, so that one that gives up is seen by the next. */
	if (root != nullptr)
		LWLockAcquire(&root->deadlock, LW_EXCLUSIVE);
	detail = find_deadlock(key, slots);
	if (root != nullptr)
		LWLockRelease(&root->deadlock);
	MemoryContextSwitchTo(old_context);
	if (detail != nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail_internal("%s", detail)));
	MemoryContextDelete(context);
}

}								/* namespace advisory */
