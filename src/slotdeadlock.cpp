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

	/*
	 * Would it help if this session gave up?  Not if it only stands behind a
	 * deadlock of others, which one of them will end.
	 */
	bool		am_i_in_circle() const;

	/* Who waits for whom, from this session on; palloc'd. */
	char	   *describe() const;

private:
	void		list_waiters(const Reading *before);
	bool		was_dead(const LockEntry &entry) const noexcept;
	bool		says_so_still(const LockEntry &entry) const noexcept;
	const Waiter *find(int pid) const noexcept;
	bool		is_live(int pid) const noexcept;
	bool		is_lock_live(int waiter) const;
	bool		is_slot_live(int waiter) const;
	int			first_of_lock(int entry) const noexcept;
	bool		blocks(int entry, int waiter) const;
	void		settle();
	int		   *blockers_of(int waiter, int *count) const;
	int		   *reached_from(int pid, int *count) const;
	void		describe_wait(StringInfo out, int waiter) const;

	LockEntries entries;
	Waiter	   *waiters;		/* in the order of their entries */
	Waiter	  **by_pid;
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
	: entries(read_all_waits_and_all_slots()),
	  waiters(static_cast<Waiter *>(palloc_extended(sizeof(Waiter) * (entries.count + 1), MCXT_ALLOC_HUGE))),
	  by_pid(static_cast<Waiter **>(palloc_extended(sizeof(Waiter *) * (entries.count + 1), MCXT_ALLOC_HUGE))),
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

static int
compare_waiters(const void *a, const void *b) noexcept
{
	int			pid_a = (*static_cast<Waiter *const *>(a))->pid;
	int			pid_b = (*static_cast<Waiter *const *>(b))->pid;

	return pid_a < pid_b ? -1 : pid_a > pid_b;
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

/* Does a session still say that it waits for a slot as it did, and not that it leaves? */
bool
Reading::says_so_still(const LockEntry &entry) const noexcept
{
	for (int i = 0; i < published_count; i++)
	{
		if (published[i].pid == entry.pid)
			return published[i].since == entry.wait_start && !published[i].is_leaving;
	}
	return false;
}

/* All sessions that wait; who is seen to wait twice does not. */
void
Reading::list_waiters(const Reading *before)
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];
		bool		is_live;

		if (entry.granted)
			continue;
		is_live = before != nullptr && !before->was_dead(entry);
		/* The entries were read earlier than what is published. */
		if (entry.is_head && entry.pid != MyProcPid && !says_so_still(entry))
			is_live = true;
		waiters[waiter_count] = Waiter{i, session_pid(entry), is_live};
		by_pid[waiter_count] = &waiters[waiter_count];
		waiter_count++;
	}
	if (waiter_count > 1)
		qsort(by_pid, waiter_count, sizeof(Waiter *), compare_waiters);
	for (int i = 1; i < waiter_count; i++)
	{
		if (by_pid[i - 1]->pid == by_pid[i]->pid)
			by_pid[i - 1]->is_live = by_pid[i]->is_live = true;
	}
}

/* One that is seen to wait twice has several, all of them live. */
const Waiter *
Reading::find(int pid) const noexcept
{
	Waiter		wanted = {0, pid, false};
	Waiter	   *key = &wanted;
	auto	  **found = static_cast<Waiter **>(bsearch(&key, by_pid, waiter_count, sizeof(Waiter *), compare_waiters));

	return found != nullptr ? *found : nullptr;
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

static bool
contains(const int *pids, int count, int pid) noexcept
{
	for (int i = 0; i < count; i++)
	{
		if (pids[i] == pid)
			return true;
	}
	return false;
}

static void
add_pid(int *pids, int *count, int pid) noexcept
{
	if (!contains(pids, *count, pid))
		pids[(*count)++] = pid;
}

/* The sessions in a waiter's way, each once; palloc'd. */
int *
Reading::blockers_of(int waiter, int *count) const
{
	const LockEntry &entry = entries.entries[waiter];
	auto	   *pids = static_cast<int *>(palloc(sizeof(int) * (entries.count + 1)));
	int			first = first_of_lock(waiter);

	*count = 0;
	for (int i = 0; i < entries.count; i++)
	{
		bool		is_blocker = waits_for_slot(entry)
			? is_slot_in_the_way(entries.entries[i], entry)
			: i >= first && i < waiter && blocks(i, waiter);

		if (is_blocker)
			add_pid(pids, count, session_pid(entries.entries[i]));
	}
	return pids;
}

/* A session, and all that it waits for, directly or through others; palloc'd. */
int *
Reading::reached_from(int pid, int *count) const
{
	auto	   *pids = static_cast<int *>(palloc(sizeof(int) * (entries.count + 2)));

	*count = 0;
	add_pid(pids, count, pid);
	for (int i = 0; i < *count; i++)
	{
		const Waiter *waiter = find(pids[i]);
		int		   *blockers;
		int			blocker_count = 0;

		CHECK_FOR_INTERRUPTS();
		if (waiter == nullptr)
			continue;
		blockers = blockers_of(waiter->entry, &blocker_count);
		for (int b = 0; b < blocker_count; b++)
			add_pid(pids, count, blockers[b]);
		pfree(blockers);
	}
	return pids;
}

/* Do all that it waits for wait for it in turn? */
bool
Reading::am_i_in_circle() const
{
	int			count;
	const int  *pids = reached_from(MyProcPid, &count);

	for (int i = 1; i < count; i++)
	{
		int			further_count;
		const int  *further = reached_from(pids[i], &further_count);

		if (!contains(further, further_count, MyProcPid))
			return false;
	}
	return true;
}

/* One line. */
void
Reading::describe_wait(StringInfo out, int waiter) const
{
	const LockEntry &entry = entries.entries[waiter];
	int			count;
	const int  *blockers = blockers_of(waiter, &count);

	if (out->len > 0)
		appendStringInfoChar(out, '\n');
	appendStringInfo(out, "Process %d waits for ", session_pid(entry));
	if (waits_for_slot(entry))
		appendStringInfo(out, entry.slots == 1 ? "the only slot of " : "one of the %d slots of ", entry.slots);
	else
		appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, entry.lockmode));
	DescribeLockTag(out, &entry.tag);
	for (int i = 0; i < count; i++)
		appendStringInfo(out, "%s%d",
						 i > 0 ? ", " : count > 1 ? "; blocked by processes " : "; blocked by process ", blockers[i]);
	appendStringInfoChar(out, '.');
}

char *
Reading::describe() const
{
	StringInfoData out;
	int			count;
	const int  *pids = reached_from(MyProcPid, &count);

	initStringInfo(&out);
	for (int i = 0; i < count; i++)
	{
		if (const Waiter *waiter = find(pids[i]))
			describe_wait(&out, waiter->entry);
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

	if (!second.am_i_dead() || !second.am_i_in_circle())
		return nullptr;
	publish_leaving(true);
	return second.describe();
}

bool
check_slot_deadlock(Key key, int slots)
{
	MemoryContext context;
	MemoryContext old_context;
	SharedRoot *root = shared_root_if_attached();
	char	   *detail;

	/* Who holds nothing that others want can be no part of a circle. */
	if (!am_i_in_the_way())
		return true;
	/* One at a time, so that one that gives up is seen by the next. */
	if (root != nullptr && !LWLockConditionalAcquire(&root->deadlock, LW_EXCLUSIVE))
		return false;
	context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext deadlock", ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
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
	return true;
}

}								/* namespace advisory */
