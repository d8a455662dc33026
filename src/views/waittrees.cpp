/*
 * views/waittrees.cpp
 *		Who waits for whom, as trees.
 *
 * The lock table is read one partition after the other, so what comes back need
 * not have been true at any one instant: a session may be seen to wait twice, or
 * a cycle be seen that never was.  All that is taken for granted here is that
 * there may be anything.
 */
#include "base/pg.h"

#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/waittrees.h"

namespace advisory
{

namespace
{

/* Its number is its leader's in the server's array of processes. */
struct Session
{
	int			pid;			/* 0 for a prepared transaction */
	List	   *waits;			/* its own (Wait *) */
	List	   *waiters;		/* the waits of others for it, longest first */
	const LockEntry *stuck;		/* an advisory lock that it waits for with nobody in its way */
	bool		shown;			/* it or somebody below it waits for an advisory lock */
	bool		expanded;		/* are those below it in the tree already? */
	bool		in_path;		/* is it between the root and the line that is being written? */
};

/* waiter waits for blocker.  These two are numbers of sessions. */
struct Wait
{
	int			waiter;
	int			blocker;
	const LockEntry *lock;		/* what the waiter waits for */
	const LockEntry *held;		/* what the blocker has of it: a hold, or its place in the queue */
};

/* A session to begin with: a root, or one that waits and may be in no root's tree. */
struct Start
{
	bool		is_waiting;
	TimestampTz since;			/* how long somebody has waited for it */
	int			pid;
	int			session;
	const LockEntry *lock;
};

}								/* anonymous namespace */

template <typename T>
static int
compare(T a, T b) noexcept
{
	return a < b ? -1 : a > b;
}

/* A wait whose start is not known yet has only just begun. */
static TimestampTz
start_of(const LockEntry &entry) noexcept
{
	return entry.wait_start != 0 ? entry.wait_start : DT_NOEND;
}

/* Entries stand in the order of their queue, so a lock that moved there first comes first. */
static int
compare_waits(const ListCell *a, const ListCell *b)
{
	auto	   *wait_a = static_cast<const Wait *>(lfirst(a));
	auto	   *wait_b = static_cast<const Wait *>(lfirst(b));
	int			result = compare(session_pid(*wait_a->held), session_pid(*wait_b->held));

	if (result == 0)
		result = compare(wait_a->held->xid, wait_b->held->xid);
	if (result == 0)
		result = compare(start_of(*wait_a->lock), start_of(*wait_b->lock));
	return result != 0 ? result : compare(wait_a->lock, wait_b->lock);
}

/* Roots by their longest wait, then the others by pid. */
static int
compare_starts(const void *a, const void *b) noexcept
{
	auto	   *start_a = static_cast<const Start *>(a);
	auto	   *start_b = static_cast<const Start *>(b);
	int			result = compare(start_a->is_waiting, start_b->is_waiting);

	if (result == 0)
		result = compare(start_a->since, start_b->since);
	if (result == 0)
		result = compare(start_a->pid, start_b->pid);
	return result != 0 ? result : compare(start_a->lock->xid, start_b->lock->xid);
}

static Wait *
wait_in(const ListCell *cell) noexcept
{
	return static_cast<Wait *>(lfirst(cell));
}

namespace
{

class Forest
{
public:
	explicit Forest(const LockEntries &entries)
		: entries(entries), count(proc_count()), sessions(static_cast<Session *>(palloc0(sizeof(Session) * count)))
	{
	}

	WaitTrees	grow()
	{
		auto	   *starts = static_cast<Start *>(palloc(sizeof(Start) * count));
		int			start_count = 0;

		list_waits();
		choose();
		for (int i = 0; i < count; i++)
		{
			if (sessions[i].shown)
				starts[start_count++] = start_with(i);
		}
		qsort(starts, start_count, sizeof(Start), compare_starts);
		for (int i = 0; i < start_count; i++)
		{
			if (!starts[i].is_waiting)
				write_tree(starts[i].session, add_line(starts[i].lock, nullptr, nullptr));
			else if (!sessions[starts[i].session].expanded)
				write_cycle(start_of_cycle(starts[i].session));
		}
		return WaitTrees{lines, entries.has_prepared};
	}

private:
	void		list_waits()
	{
		int			first = 0;	/* of the lock's entries */

		for (int waiter = 0; waiter < entries.count; waiter++)
		{
			const LockEntry *lock = &entries.entries[waiter];
			Session    &session = sessions[lock->leader_number];
			bool		is_blocked = false;

			CHECK_FOR_INTERRUPTS();
			if (!same_tag(lock->tag, entries.entries[first].tag))
				first = waiter;
			if (lock->granted)
				continue;
			session.pid = session_pid(*lock);
			visit_blockers(entries, first, waiter, [&](int i) {
				const LockEntry *held = &entries.entries[i];
				Session    &blocker = sessions[held->leader_number];

				/* Of those ahead in a queue only the nearest counts, and that only if no holder is in the way. */
				if (!held->granted && is_blocked)
					return false;
				/* Before a semaphore all wait for the last of those in its queue. */
				if (!held->granted && !held->is_head && entries.entries[first].is_head)
					return true;
				is_blocked = true;
				/* A lock group may hold a lock several times. */
				if (blocker.waiters != NIL && static_cast<Wait *>(llast(blocker.waiters))->lock == lock)
					return true;

				auto	   *wait = static_cast<Wait *>(palloc(sizeof(Wait)));

				*wait = Wait{lock->leader_number, held->leader_number, lock, held};
				blocker.pid = session_pid(*held);
				blocker.waiters = lappend(blocker.waiters, wait);
				session.waits = lappend(session.waits, wait);
				return true;
			});
			if (!is_blocked && is_advisory(*lock))
				session.stuck = lock;
		}
		for (int i = 0; i < count; i++)
		{
			list_sort(sessions[i].waits, compare_waits);
			list_sort(sessions[i].waiters, compare_waits);
		}
	}

	/* Find the sessions that lead to a waiter for an advisory lock. */
	void		choose()
	{
		List	   *shown = NIL;
		ListCell   *cell;
		ListCell   *wait;
		auto		show = [&](int session) {
			if (!sessions[session].shown)
				shown = lappend_int(shown, session);
			sessions[session].shown = true;
		};

		for (int i = 0; i < count; i++)
		{
			if (sessions[i].stuck != nullptr)
				show(i);
			foreach(wait, sessions[i].waits)
			{
				if (is_advisory(*wait_in(wait)->lock))
					show(wait_in(wait)->blocker);
			}
		}
		/* What is added to the list is visited, too. */
		foreach(cell, shown)
		{
			CHECK_FOR_INTERRUPTS();
			foreach(wait, sessions[lfirst_int(cell)].waits)
				show(wait_in(wait)->blocker);
		}
	}

	bool		is_shown(const Wait *wait) const noexcept
	{
		return is_advisory(*wait->lock) || sessions[wait->waiter].shown;
	}

	/* How to begin with a session that is shown. */
	Start		start_with(int number) const
	{
		const Session &session = sessions[number];
		ListCell   *cell;

		if (session.waits != NIL)
			return Start{true, 0, session.pid, number, wait_in(list_head(session.waits))->lock};
		foreach(cell, session.waiters)
		{
			if (is_shown(wait_in(cell)))
				return Start{false, start_of(*wait_in(cell)->lock), session.pid, number, wait_in(cell)->held};
		}
		return Start{false, start_of(*session.stuck), session.pid, number, session.stuck};
	}

	WaitLine   *add_line(const LockEntry *lock, const LockEntry *blocker, const WaitLine *parent)
	{
		auto	   *line = static_cast<WaitLine *>(palloc(sizeof(WaitLine)));

		*line = WaitLine{lock, blocker, parent, parent != nullptr ? parent->depth + 1 : 0, false};
		lines = lappend(lines, line);
		return line;
	}

	/* Everything below a session's line, which has been written. */
	void		write_tree(int number, const WaitLine *line)
	{
		Session    &session = sessions[number];
		ListCell   *cell;

		check_stack_depth();
		CHECK_FOR_INTERRUPTS();
		session.expanded = true;
		session.in_path = true;
		foreach(cell, session.waiters)
		{
			const Wait *wait = wait_in(cell);
			const Session &waiter = sessions[wait->waiter];
			WaitLine   *below;

			/* A wait that would close a cycle leads back to a line above. */
			if (!is_shown(wait) || waiter.in_path)
				continue;
			below = add_line(wait->lock, wait->held, line);
			if (!waiter.expanded)
				write_tree(wait->waiter, below);
			else
				below->seen_above = waiter.shown;
		}
		session.in_path = false;
	}

	int			smallest_pid_of(const Bitmapset *numbers) const noexcept
	{
		int			smallest = bms_next_member(numbers, -1);

		for (int i = smallest; i >= 0; i = bms_next_member(numbers, i))
		{
			if (sessions[i].pid < sessions[smallest].pid)
				smallest = i;
		}
		return smallest;
	}

	/*
	 * Where to begin with what hangs on no root: the smallest pid of a cycle at the
	 * very end of what this session waits for.  Every session of such a cycle waits,
	 * in the end, for all others of it and for nobody else.
	 */
	int			start_of_cycle(int session) const
	{
		for (;;)
		{
			Bitmapset  *blockers = reachable(session, [this](int waiter, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[waiter].waits)
					visit(wait_in(cell)->blocker);
			});
			Bitmapset  *waiters = reachable(session, [this](int blocker, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[blocker].waiters)
					visit(wait_in(cell)->waiter);
			});
			int			further = smallest_pid_of(bms_difference(blockers, waiters));

			CHECK_FOR_INTERRUPTS();
			if (further < 0)
				return smallest_pid_of(blockers);
			session = further;
		}
	}

	void		write_cycle(int session)
	{
		WaitLine   *first = nullptr;
		ListCell   *cell;

		foreach(cell, sessions[session].waits)
		{
			WaitLine   *line = add_line(wait_in(cell)->lock, wait_in(cell)->held, nullptr);

			first = first != nullptr ? first : line;
		}
		write_tree(session, first);
	}

	const LockEntries &entries;
	int			count;
	Session    *sessions;
	List	   *lines = NIL;	/* WaitLine * */
};

}								/* anonymous namespace */

WaitTrees
read_wait_trees()
{
	/* The lines point into the entries. */
	LockEntries entries = read_all_waits_and_slots();

	return Forest(entries).grow();
}

}								/* namespace advisory */
