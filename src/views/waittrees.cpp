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

constexpr int NONE = -1;

struct Session
{
	int			pid;			/* 0 for a prepared transaction */
	TransactionId xid;			/* of that */
	int			first_wait;		/* its own, through Wait.next; NONE if it waits for nothing */
	int			first_waiter;	/* those that wait for it, side by side in the list of waits */
	int			waiter_count;
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
	int			next;			/* another wait of the same waiter; NONE if there is none */
};

struct Root
{
	TimestampTz since;			/* how long somebody has waited for it */
	int			session;
};

/* Where we are in a session's waiters while its tree is written. */
struct Step
{
	int			session;
	int			line;
	int			next_wait;
};

class Forest
{
public:
	explicit Forest(const LockEntries &entries) : entries(entries)
	{
	}

	WaitTrees	grow();

private:
	void		list_sessions();
	void		list_waits();
	void		list_waits_of(int first, int waiter);
	void		link_waits();
	void		choose();
	void		show_blockers(int session, int *stack, int *depth);

	void		write_roots();
	void		write_root(int session);
	void		write_cycle(int session);
	void		write_tree(int session, int line);
	void		enter(int session, int line);
	int			add_line(const LockEntry *lock, const LockEntry *blocker, int parent);

	int			session_of(const LockEntry &entry) const;
	bool		is_shown(const Wait &wait) const noexcept;
	const Wait *first_shown(int session) const noexcept;
	int			start_of_cycle(int session) const;
	bool	   *blockers_of(int session) const;
	bool	   *waiters_of(int session) const;

	const LockEntries &entries;
	Array<Session> sessions;		/* by pid and xid */
	Array<Wait>	waits;			/* by blocker, longest first */
	Array<Step>	path;			/* from the root to where we are */
	Array<WaitLine> lines;
};

/* A wait whose start is not known yet has only just begun. */
TimestampTz
start_of(const LockEntry &entry) noexcept
{
	return entry.wait_start != 0 ? entry.wait_start : DT_NOEND;
}

template <typename T>
int
compare(T a, T b) noexcept
{
	return a < b ? -1 : a > b;
}

int
compare_sessions(const void *a, const void *b) noexcept
{
	auto	   *session_a = static_cast<const Session *>(a);
	auto	   *session_b = static_cast<const Session *>(b);
	int			result = compare(session_a->pid, session_b->pid);

	return result != 0 ? result : compare(session_a->xid, session_b->xid);
}

/* Entries stand in the order of their queue, so a lock that moved there first comes first. */
int
compare_waits(const void *a, const void *b) noexcept
{
	auto	   *wait_a = static_cast<const Wait *>(a);
	auto	   *wait_b = static_cast<const Wait *>(b);
	int			result = compare(wait_a->blocker, wait_b->blocker);

	if (result == 0)
		result = compare(start_of(*wait_a->lock), start_of(*wait_b->lock));
	if (result == 0)
		result = compare(wait_a->lock, wait_b->lock);
	return result != 0 ? result : compare(wait_a->held, wait_b->held);
}

int
compare_roots(const void *a, const void *b) noexcept
{
	auto	   *root_a = static_cast<const Root *>(a);
	auto	   *root_b = static_cast<const Root *>(b);
	int			result = compare(root_a->since, root_b->since);

	return result != 0 ? result : compare(root_a->session, root_b->session);
}

}								/* anonymous namespace */

/* ---- Sessions and waits ---- */

void
Forest::list_sessions()
{
	for (int i = 0; i < entries.count; i++)
	{
		Session		session = {};

		session.pid = session_pid(entries.entries[i]);
		session.xid = entries.entries[i].xid;
		session.first_wait = NONE;
		sessions.add(session);
	}
	sessions.sort(compare_sessions);
	sessions.count = static_cast<int>(qunique(sessions.items, sessions.count, sizeof(Session), compare_sessions));
}

int
Forest::session_of(const LockEntry &entry) const
{
	Session		wanted = {};

	wanted.pid = session_pid(entry);
	wanted.xid = entry.xid;
	return static_cast<int>(static_cast<Session *>(bsearch(&wanted, sessions.items, sessions.count,
														   sizeof(Session), compare_sessions)) - sessions.items);
}

/*
 * Those that one waiter waits for; first is the first entry of its lock.  Of those ahead of it in a
 * queue only the nearest counts, and that only if no holder is in the way.
 */
void
Forest::list_waits_of(int first, int waiter)
{
	const LockEntry *lock = &entries.entries[waiter];
	Wait		wait = {session_of(*lock), NONE, lock, nullptr, NONE};

	visit_blockers(entries, first, waiter, [&](int blocker) {
		wait.held = &entries.entries[blocker];
		if (!wait.held->granted && wait.blocker != NONE)
			return false;
		/* Before a semaphore all wait for the last of those in its queue. */
		if (!wait.held->granted && !wait.held->is_head && entries.entries[first].is_head)
			return true;
		wait.blocker = session_of(*wait.held);
		waits.add(wait);
		return true;
	});
	if (wait.blocker == NONE && is_advisory(*lock))
		sessions[wait.waiter].stuck = lock;
}

void
Forest::list_waits()
{
	int			first = 0;

	for (int i = 0; i < entries.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!same_tag(entries.entries[i].tag, entries.entries[first].tag))
			first = i;
		if (!entries.entries[i].granted)
			list_waits_of(first, i);
	}
}

/* Sorted, each pair once (a lock group may hold a lock several times), and found from both ends. */
void
Forest::link_waits()
{
	int			kept = 0;

	waits.sort(compare_waits);
	for (int i = 0; i < waits.count; i++)
	{
		if (kept > 0 && waits[kept - 1].blocker == waits[i].blocker && waits[kept - 1].lock == waits[i].lock)
			continue;
		waits[kept++] = waits[i];
	}
	waits.count = kept;

	for (int i = waits.count - 1; i >= 0; i--)
	{
		Session    &waiter = sessions[waits[i].waiter];
		Session    &blocker = sessions[waits[i].blocker];

		waits[i].next = waiter.first_wait;
		waiter.first_wait = i;
		blocker.first_waiter = i;
		blocker.waiter_count++;
	}
}

/* ---- What leads to an advisory lock ---- */

bool
Forest::is_shown(const Wait &wait) const noexcept
{
	return is_advisory(*wait.lock) || sessions[wait.waiter].shown;
}

/* Mark those that a session waits for, and put the newly marked ones on the stack. */
void
Forest::show_blockers(int session, int *stack, int *depth)
{
	for (int i = sessions[session].first_wait; i != NONE; i = waits[i].next)
	{
		Session    &blocker = sessions[waits[i].blocker];

		if (!is_shown(waits[i]) || blocker.shown)
			continue;
		blocker.shown = true;
		stack[(*depth)++] = waits[i].blocker;
	}
}

void
Forest::choose()
{
	auto	   *stack = static_cast<int *>(palloc(sizeof(int) * (sessions.count + 1)));

	for (int i = 0; i < sessions.count; i++)
	{
		int			depth = 0;

		CHECK_FOR_INTERRUPTS();
		if (sessions[i].stuck != nullptr)
			sessions[i].shown = true;
		show_blockers(i, stack, &depth);
		while (depth > 0)
			show_blockers(stack[--depth], stack, &depth);
	}
	pfree(stack);
}

/* ---- Writing the lines ---- */

int
Forest::add_line(const LockEntry *lock, const LockEntry *blocker, int parent)
{
	WaitLine	line = {};

	line.lock = lock;
	line.blocker = blocker;
	line.parent = parent;
	line.depth = parent != NO_LINE ? lines[parent].depth + 1 : 0;
	lines.add(line);
	return lines.count - 1;
}

void
Forest::enter(int session, int line)
{
	sessions[session].expanded = true;
	sessions[session].in_path = true;
	path.add(Step{session, line, sessions[session].first_waiter});
}

/* Everything below a session's line, which has been written. */
void
Forest::write_tree(int session, int line)
{
	enter(session, line);
	while (path.count > 0)
	{
		Step	   &step = path[path.count - 1];
		const Session &blocker = sessions[step.session];

		CHECK_FOR_INTERRUPTS();
		if (step.next_wait == blocker.first_waiter + blocker.waiter_count)
		{
			sessions[step.session].in_path = false;
			path.count--;
			continue;
		}

		const Wait &wait = waits[step.next_wait++];
		const Session &waiter = sessions[wait.waiter];

		/* A wait that would close a cycle leads back to a line above. */
		if (!is_shown(wait) || waiter.in_path)
			continue;
		line = add_line(wait.lock, wait.held, step.line);
		if (!waiter.expanded)
			enter(wait.waiter, line);
		else
			lines[line].seen_above = waiter.shown;
	}
}

/* The longest of the waits for a session that are shown; null if there is none. */
const Wait *
Forest::first_shown(int session) const noexcept
{
	const Session &blocker = sessions[session];

	for (int i = blocker.first_waiter; i < blocker.first_waiter + blocker.waiter_count; i++)
	{
		if (is_shown(waits[i]))
			return &waits[i];
	}
	return nullptr;
}

void
Forest::write_root(int session)
{
	const Wait *wait = first_shown(session);
	const LockEntry *lock = wait != nullptr ? wait->held : sessions[session].stuck;

	write_tree(session, add_line(lock, nullptr, NO_LINE));
}

void
Forest::write_roots()
{
	Array<Root>	roots;

	for (int i = 0; i < sessions.count; i++)
	{
		const Session &session = sessions[i];
		const Wait *wait = first_shown(i);

		if (session.shown && session.first_wait == NONE)
			roots.add(Root{start_of(wait != nullptr ? *wait->lock : *session.stuck), i});
	}
	roots.sort(compare_roots);
	for (int i = 0; i < roots.count; i++)
		write_root(roots[i].session);
}

/* ---- Circles ---- */

/* All that a session waits for, directly or not, itself included: a mark for each session. */
bool *
Forest::blockers_of(int session) const
{
	return mark_reachable(sessions.count, session, [this](int waiter, auto visit) {
		for (int i = sessions[waiter].first_wait; i != NONE; i = waits[i].next)
			visit(waits[i].blocker);
	});
}

/* The other way round: all that wait for it, as far as they are shown. */
bool *
Forest::waiters_of(int session) const
{
	return mark_reachable(sessions.count, session, [this](int blocker, auto visit) {
		const Session &one = sessions[blocker];

		for (int i = one.first_waiter; i < one.first_waiter + one.waiter_count; i++)
		{
			if (is_shown(waits[i]))
				visit(waits[i].waiter);
		}
	});
}

/*
 * Where to begin with what hangs on no root: the smallest pid of a cycle at the
 * very end of what this session waits for.  Every session of such a cycle waits,
 * in the end, for all others of it and for nobody else.
 */
int
Forest::start_of_cycle(int session) const
{
	for (;;)
	{
		const bool *blockers = blockers_of(session);
		const bool *waiters = waiters_of(session);
		int			smallest = NONE;
		int			further = NONE;

		CHECK_FOR_INTERRUPTS();
		for (int i = sessions.count - 1; i >= 0; i--)
		{
			if (!blockers[i])
				continue;
			smallest = i;
			if (!waiters[i])
				further = i;
		}
		if (further == NONE)
			return smallest;
		session = further;
	}
}

void
Forest::write_cycle(int session)
{
	int			first = lines.count;

	for (int i = sessions[session].first_wait; i != NONE; i = waits[i].next)
		add_line(waits[i].lock, waits[i].held, NO_LINE);
	write_tree(session, first);
}

WaitTrees
Forest::grow()
{
	list_sessions();
	list_waits();
	link_waits();
	choose();
	write_roots();
	for (int i = 0; i < sessions.count; i++)
	{
		if (sessions[i].shown && !sessions[i].expanded)
			write_cycle(start_of_cycle(i));
	}
	return WaitTrees{lines.items, lines.count, entries.has_prepared};
}

WaitTrees
read_wait_trees()
{
	/* The lines point into the entries. */
	LockEntries entries = read_all_waits_and_slots();

	return Forest(entries).grow();
}

}								/* namespace advisory */
