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

struct Session
{
	int			pid;			/* 0 for a prepared transaction */
	TransactionId xid;			/* of that */
	List	   *waits;			/* its own (Wait *) */
	List	   *waiters;		/* the waits of others for it, longest first */
	const LockEntry *top;		/* what is said of it if it waits for nobody; null otherwise */
	TimestampTz since;			/* how long somebody has waited for that */
	bool		shown;			/* it or somebody below it waits for an advisory lock */
	bool		expanded;		/* are those below it in the tree already? */
	bool		in_path;		/* is it between the root and the line that is being written? */
};

/* waiter waits for blocker. */
struct Wait
{
	Session    *waiter;
	Session    *blocker;
	const LockEntry *lock;		/* what the waiter waits for */
	const LockEntry *held;		/* what the blocker has of it: a hold, or its place in the queue */
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

static Wait *
wait_in(const ListCell *cell) noexcept
{
	return static_cast<Wait *>(lfirst(cell));
}

static int
compare_sessions(const Session &a, const Session &b) noexcept
{
	int			result = compare(a.pid, b.pid);

	return result != 0 ? result : compare(a.xid, b.xid);
}

/* Entries stand in the order of their queue, so a lock that moved there first comes first. */
static int
compare_waits(const ListCell *a, const ListCell *b)
{
	int			result = compare_sessions(*wait_in(a)->blocker, *wait_in(b)->blocker);

	if (result == 0)
		result = compare(start_of(*wait_in(a)->lock), start_of(*wait_in(b)->lock));
	return result != 0 ? result : compare(wait_in(a)->lock, wait_in(b)->lock);
}

/* Those that wait for nobody, by the longest wait for them; then the others. */
static int
compare_tops(const ListCell *a, const ListCell *b)
{
	auto	   *session_a = static_cast<const Session *>(lfirst(a));
	auto	   *session_b = static_cast<const Session *>(lfirst(b));
	int			result = compare(session_a->waits != NIL, session_b->waits != NIL);

	if (result == 0 && session_a->waits == NIL)
		result = compare(session_a->since, session_b->since);
	return result != 0 ? result : compare_sessions(*session_a, *session_b);
}

namespace
{

class Forest
{
public:
	explicit Forest(const LockEntries &entries)
		: entries(entries), sessions(static_cast<Session *>(palloc0(sizeof(Session) * proc_count())))
	{
	}

	/* The lines. */
	List	   *grow()
	{
		ListCell   *cell;

		list_waits();
		choose();
		foreach(cell, shown)
		{
			auto	   *session = static_cast<Session *>(lfirst(cell));

			if (session->waits == NIL)
				write_tree(session, add_line(session->top, nullptr, nullptr));
			else if (!session->expanded)
				write_cycle(start_of_cycle(session));
		}
		return lines;
	}

private:
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

				*wait = Wait{&session, &blocker, lock, held};
				blocker.pid = session_pid(*held);
				blocker.xid = held->xid;
				blocker.waiters = lappend(blocker.waiters, wait);
				session.waits = lappend(session.waits, wait);
				return true;
			});
			if (!is_blocked && is_advisory(*lock))
			{
				session.top = lock;
				session.since = start_of(*lock);
			}
		}
	}

	void		show(Session *session)
	{
		if (!session->shown)
			shown = lappend(shown, session);
		session->shown = true;
	}

	/* Find the sessions that lead to a waiter for an advisory lock, in the order in which to begin with them. */
	void		choose()
	{
		ListCell   *cell;
		ListCell   *wait;

		for (int i = 0; i < proc_count(); i++)
		{
			if (sessions[i].top != nullptr)
				show(&sessions[i]);
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
			foreach(wait, static_cast<Session *>(lfirst(cell))->waits)
				show(wait_in(wait)->blocker);
		}
		foreach(cell, shown)
		{
			auto	   *session = static_cast<Session *>(lfirst(cell));

			list_sort(session->waits, compare_waits);
			list_sort(session->waiters, compare_waits);
			foreach(wait, session->waiters)
			{
				if (!is_shown(wait_in(wait)))
					continue;
				session->top = wait_in(wait)->held;
				session->since = start_of(*wait_in(wait)->lock);
				break;
			}
		}
		list_sort(shown, compare_tops);
	}

	bool		is_shown(const Wait *wait) const noexcept
	{
		return is_advisory(*wait->lock) || wait->waiter->shown;
	}

	WaitLine   *add_line(const LockEntry *lock, const LockEntry *blocker, const WaitLine *parent)
	{
		auto	   *line = static_cast<WaitLine *>(palloc(sizeof(WaitLine)));

		*line = WaitLine{lock, blocker, parent, parent != nullptr ? parent->depth + 1 : 0, false};
		lines = lappend(lines, line);
		return line;
	}

	/* Everything below a session's line, which has been written. */
	void		write_tree(Session *session, const WaitLine *line)
	{
		ListCell   *cell;

		check_stack_depth();
		CHECK_FOR_INTERRUPTS();
		session->expanded = true;
		session->in_path = true;
		foreach(cell, session->waiters)
		{
			const Wait *wait = wait_in(cell);
			WaitLine   *below;

			/* A wait that would close a cycle leads back to a line above. */
			if (!is_shown(wait) || wait->waiter->in_path)
				continue;
			below = add_line(wait->lock, wait->held, line);
			if (!wait->waiter->expanded)
				write_tree(wait->waiter, below);
			else
				below->seen_above = wait->waiter->shown;
		}
		session->in_path = false;
	}

	Session    *smallest_pid_of(const Bitmapset *numbers) const noexcept
	{
		Session    *smallest = nullptr;

		for (int i = bms_next_member(numbers, -1); i >= 0; i = bms_next_member(numbers, i))
		{
			if (smallest == nullptr || sessions[i].pid < smallest->pid)
				smallest = &sessions[i];
		}
		return smallest;
	}

	/*
	 * Where to begin with what hangs on no root: the smallest pid of a cycle at the
	 * very end of what this session waits for.  Every session of such a cycle waits,
	 * in the end, for all others of it and for nobody else.
	 */
	Session    *start_of_cycle(const Session *session) const
	{
		for (;;)
		{
			Bitmapset  *blockers = reachable(session - sessions, [this](int waiter, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[waiter].waits)
					visit(wait_in(cell)->blocker - sessions);
			});
			Bitmapset  *waiters = reachable(session - sessions, [this](int blocker, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[blocker].waiters)
					visit(wait_in(cell)->waiter - sessions);
			});

			CHECK_FOR_INTERRUPTS();
			session = smallest_pid_of(bms_difference(blockers, waiters));
			if (session == nullptr)
				return smallest_pid_of(blockers);
		}
	}

	void		write_cycle(Session *session)
	{
		WaitLine   *first = nullptr;
		ListCell   *cell;

		foreach(cell, session->waits)
		{
			WaitLine   *line = add_line(wait_in(cell)->lock, wait_in(cell)->held, nullptr);

			first = first != nullptr ? first : line;
		}
		write_tree(session, first);
	}

	const LockEntries &entries;
	Session    *sessions;		/* by their leader's number in the server's array of processes */
	List	   *shown = NIL;	/* Session * */
	List	   *lines = NIL;	/* WaitLine * */
};

}								/* anonymous namespace */

List *
read_wait_trees(bool *has_prepared)
{
	/* The lines point into the entries. */
	LockEntries entries = read_all_waits_and_slots();

	*has_prepared = entries.has_prepared;
	return Forest(entries).grow();
}

}								/* namespace advisory */
