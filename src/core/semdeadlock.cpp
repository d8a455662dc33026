/*
 * core/semdeadlock.cpp
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
#include "base/pg.h"

#include "shmem/waiters.h"
#include "shmem/root.h"
#include "core/semdeadlock.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* More would not be read in an error message. */
static constexpr int DESCRIBED_WAITS = 20;
static constexpr int DESCRIBED_BLOCKERS = 20;

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
	bool		can_get_lock(const Waiter &waiter) const;
	bool		can_get_slot(const Waiter &waiter) const;
	int			first_of_lock(int entry) const noexcept;
	void		settle();
	template <typename Visit>
	void		visit_blockers(const Waiter &waiter, Visit visit) const;
	bool	   *mark_blockers(const Waiter *start) const;
	bool	   *mark_waiters(const Waiter *start) const;
	void		describe_wait(StringInfo out, const Waiter &waiter) const;

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

/*
 * Call visit(pid) for each session in a waiter's way until it returns false; some more
 * than once.
 */
template <typename Visit>
void
Reading::visit_blockers(const Waiter &waiter, Visit visit) const
{
	const LockEntry &entry = entries.entries[waiter.entry];

	if (!waits_for_slot(entry))
	{
		for (int i = first_of_lock(waiter.entry); i < waiter.entry; i++)
		{
			if (is_in_the_way(entries.entries[i], entry) && !visit(session_pid(entries.entries[i])))
				return;
		}
		return;
	}
	for (int i = waiter.entry + 1; i < entries.count && is_same_semaphore(entries.entries[i].tag, entry.tag); i++)
	{
		if (is_slot_in_the_way(entries.entries[i], entry) && !visit(session_pid(entries.entries[i])))
			return;
	}
}

bool
Reading::can_get_lock(const Waiter &waiter) const
{
	bool		all_live = true;

	visit_blockers(waiter, [&](int pid) {
		all_live = is_live(pid);
		return all_live;
	});
	return all_live;
}

bool
Reading::can_get_slot(const Waiter &waiter) const
{
	int			slots = entries.entries[waiter.entry].slots;
	int			held = 0;
	bool		one_live = slots == 0;

	visit_blockers(waiter, [&](int pid) {
		held++;
		/* Itself is no help: it would have to release a slot while it waits. */
		one_live = one_live || (pid != waiter.pid && is_live(pid));
		return !one_live;
	});
	return one_live || held < slots;
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
			waiter.is_live = waits_for_slot(entries.entries[waiter.entry]) ? can_get_slot(waiter) : can_get_lock(waiter);
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

/* The session itself, and all that it waits for, directly or through others: a mark for each waiter; palloc'd. */
bool *
Reading::mark_blockers(const Waiter *start) const
{
	auto	   *marks = static_cast<bool *>(palloc0(sizeof(bool) * (waiter_count + 1)));
	auto	   *stack = static_cast<const Waiter **>(palloc(sizeof(Waiter *) * (waiter_count + 1)));
	int			depth = 0;

	marks[start - waiters] = true;
	stack[depth++] = start;
	while (depth > 0)
	{
		visit_blockers(*stack[--depth], [&](int pid) {
			const Waiter *blocker = find(pid);

			if (blocker != nullptr && !marks[blocker - waiters])
			{
				marks[blocker - waiters] = true;
				stack[depth++] = blocker;
			}
			return true;
		});
	}
	pfree(stack);
	return marks;
}

/* The other way round: itself, and all that wait for it. */
bool *
Reading::mark_waiters(const Waiter *start) const
{
	auto	   *marks = static_cast<bool *>(palloc0(sizeof(bool) * (waiter_count + 1)));
	bool		changed = true;

	marks[start - waiters] = true;
	while (changed)
	{
		changed = false;
		for (int i = 0; i < waiter_count; i++)
		{
			if (marks[i])
				continue;
			visit_blockers(waiters[i], [&](int pid) {
				const Waiter *blocker = find(pid);

				marks[i] = blocker != nullptr && marks[blocker - waiters];
				return !marks[i];
			});
			changed |= marks[i];
		}
	}
	return marks;
}

/* Do all that it waits for wait for it in turn? */
bool
Reading::am_i_in_circle() const
{
	const Waiter *me = find(MyProcPid);
	const bool *blockers = mark_blockers(me);
	const bool *waiting = mark_waiters(me);

	for (int i = 0; i < waiter_count; i++)
	{
		if (blockers[i] && !waiting[i])
			return false;
	}
	return true;
}

/* One line. */
void
Reading::describe_wait(StringInfo out, const Waiter &waiter) const
{
	const LockEntry &entry = entries.entries[waiter.entry];
	int			pids[DESCRIBED_BLOCKERS];
	int			count = 0;
	bool		is_cut = false;

	visit_blockers(waiter, [&](int pid) {
		if (contains(pids, count, pid))
			return true;
		is_cut = count == DESCRIBED_BLOCKERS;
		if (!is_cut)
			pids[count++] = pid;
		return !is_cut;
	});

	appendStringInfo(out, "%sProcess %d waits for ", out->len > 0 ? "\n" : "", session_pid(entry));
	if (waits_for_slot(entry))
		appendStringInfo(out, entry.slots == 1 ? "the only slot of " : "one of the %d slots of ", entry.slots);
	else
		appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, entry.lockmode));
	DescribeLockTag(out, &entry.tag);
	for (int i = 0; i < count; i++)
		appendStringInfo(out, "%s%d",
						 i > 0 ? ", " : count > 1 ? "; blocked by processes " : "; blocked by process ", pids[i]);
	appendStringInfoString(out, is_cut ? " and others." : ".");
}

char *
Reading::describe() const
{
	const Waiter *me = find(MyProcPid);
	const bool *marks = mark_blockers(me);
	StringInfoData out;
	int			described = 1;

	initStringInfo(&out);
	describe_wait(&out, *me);
	for (int i = 0; i < waiter_count; i++)
	{
		if (!marks[i] || &waiters[i] == me)
			continue;
		if (described++ < DESCRIBED_WAITS)
			describe_wait(&out, waiters[i]);
	}
	if (described > DESCRIBED_WAITS)
		appendStringInfo(&out, "\n%d more wait in turn.", described - DESCRIBED_WAITS);
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
