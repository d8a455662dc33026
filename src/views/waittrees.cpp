/*
 * views/waittrees.cpp
 *		Who waits for whom, as trees.
 */
#include "base/pg.h"

#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/waittrees.h"

namespace advisory
{

/* Run visit(session) for each session of a list. */
template <typename Visit>
static void
each_session(const List *sessions, Visit visit)
{
	ListCell   *cell;

	foreach(cell, sessions)
	{
		CHECK_FOR_INTERRUPTS();
		visit(static_cast<Session *>(lfirst(cell)));
	}
}

/* By the start of the wait; then in the order of the entries, which is the order of the queue. */
static int
compare_waiting(const ListCell *a, const ListCell *b)
{
	const LockEntry *wait_a = static_cast<Session *>(lfirst(a))->lock;
	const LockEntry *wait_b = static_cast<Session *>(lfirst(b))->lock;
	TimestampTz start_a = start_of_wait(*wait_a);
	TimestampTz start_b = start_of_wait(*wait_b);

	if (start_a != start_b)
		return start_a < start_b ? -1 : 1;
	return wait_a < wait_b ? -1 : wait_a > wait_b;
}

/*
 * Of several waits of a session the one that counts has the lowest rank: rather one for a lock than
 * for a lease, rather a long one.
 */
static std::pair<bool, TimestampTz>
rank_of_wait(const LockEntry &wait) noexcept
{
	return {wait.waits_for_lease, start_of_wait(wait)};
}

/* Find what each session waits for.  Parallel workers can wait for several locks at once. */
void
WaitTrees::find_waits()
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry *entry = &entries.entries[i];
		Session    *session = session_of(*entry);

		if (!entry->is_waiting())
			continue;
		if (session->lock == nullptr)
			waiting = lappend(waiting, session);
		if (session->lock == nullptr || rank_of_wait(*entry) < rank_of_wait(*session->lock))
			session->lock = entry;
	}
	list_sort(waiting, compare_waiting);
}

/*
 * Does a session wait for another one, directly or through others, as far as blockers are chosen?
 */
static bool
waits_for(const Session *session, const Session *other) noexcept
{
	/* In a cycle this comes through all sessions. */
	for (int steps = 0; session != nullptr && session != other && steps < proc_count(); steps++)
		session = session->above;
	return session == other;
}

/*
 * For a lock the first blocker; for a slot the one that has had its slot longest, rather one that
 * does not wait for this session.
 */
void
WaitTrees::choose_blocker(Session *session)
{
	bool		is_for_slot = session->lock->is_head;
	std::pair<bool, TimestampTz> best;

	visit_blockers(entries, *session->lock, [&](const LockEntry &other) {
		std::pair<bool, TimestampTz> rank = {is_for_slot && waits_for(session_of(other), session),
											 DT_NOEND};
		TimestampTz acquired_at = is_for_slot ? holds.find(other).hold.acquired_at : 0;

		if (acquired_at != 0)
			rank.second = acquired_at;
		if (session->blocker == nullptr || rank < best)
		{
			session->blocker = &other;
			best = rank;
		}
		return is_for_slot;
	});
	session->above = session->blocker != nullptr ? session_of(*session->blocker) : nullptr;
}

/* The session at the end of a session's waits; in a cycle the one with the smallest pid. */
static Session *
root_of(Session *session) noexcept
{
	Session    *root = session;

	for (int steps = 0; session->above != nullptr && steps < 2 * proc_count(); steps++)
	{
		session = session->above;
		/*
		 * After so many steps this is a cycle, and the other half of them comes through all of its
		 * sessions.
		 */
		if (steps < proc_count() || session_pid(*session->lock) < session_pid(*root->lock))
			root = session;
	}
	return root;
}

/*
 * Does this session, or one that it waits for, wait for an advisory lock or hold one, or wait in a
 * function of the extension, for a window or for the table of leases?
 */
bool
WaitTrees::concerns_advisory_locks(const Session *session) const
{
	PublishedWait published;

	for (int steps = 0; session != nullptr && steps < proc_count();
		 steps++, session = session->above)
	{
		if ((session->lock != nullptr &&
			 (is_advisory(session->lock->tag) || read_wait_of(*session->lock, &published))) ||
			holds_advisory_lock(static_cast<int>(session - sessions)))
			return true;
	}
	return false;
}

/* Count the waiter, which waits for what this session waits for, for each root of that. */
void
WaitTrees::count_for_roots(Session *session, const Session *waiter)
{
	bool		is_blocked = false;
	auto		count = [&](Session *root, const LockEntry &lock) {
		if (root->waiter_count++ == 0)
		{
			roots = lappend(roots, root);
			root->blocking = &lock;
			root->first_waiter = waiter;
		}
	};

	check_stack_depth();
	if (session->lock->waits_for_lease)
		return count(session, *session->lock);
	visit_blockers(entries, *session->lock, [&](const LockEntry &other) {
		Session    *next = session_of(other);

		if (next->counted == waiter || (is_blocked && !other.granted))
			return other.granted;
		is_blocked = true;
		next->counted = waiter;
		if (next->lock != nullptr && next->lock->is_waiting())
			count_for_roots(next, waiter);
		else
			count(next, other);
		return other.granted;
	});
}

/* Write the line of a session, and those of all sessions that wait for it. */
void
WaitTrees::write_tree(Session *session, int depth, int place)
{
	int			next_place = 0;

	check_stack_depth();
	session->depth = depth;
	session->place = place;
	session->is_written = true;
	lines = lappend(lines, session);
	list_sort(session->waiters, compare_waiting);
	/* A root is shown with the lock of its longest waiter. */
	if (session->lock == nullptr)
		session->lock = static_cast<Session *>(linitial(session->waiters))->blocker;
	each_session(session->waiters, [&](Session *waiter) {
		/* In a cycle the first session is written already. */
		if (!waiter->is_written)
			write_tree(waiter, depth + 1, next_place++);
	});
}

WaitTrees::WaitTrees()
	: entries(read_all_waits_and_slots()),
	  sessions(static_cast<Session *>(palloc0(sizeof(Session) * proc_count())))
{
	find_waits();
	/* First for the waits for locks, because the choice for a slot depends on them. */
	for (bool is_head : {false, true})
	{
		each_session(waiting, [&](Session *session) {
			if (!session->lock->granted && session->lock->is_head == is_head)
				choose_blocker(session);
		});
	}
	/*
	 * Show the sessions that wait for an advisory lock or hold one, those behind them, and all that
	 * they wait for.
	 */
	each_session(waiting, [&](Session *session) {
		if (!concerns_advisory_locks(session))
			return;
		for (; !session->is_shown; session = session->above)
		{
			session->is_shown = true;
			if (session->above == nullptr)
				break;
			session->above->waiters = lappend(session->above->waiters, session);
		}
	});
	each_session(waiting, [&](Session *session) {
		if (session->is_shown)
			count_for_roots(session, session);
		if (session->is_shown && !session->is_written)
			write_tree(root_of(session), 0, 0);
	});
}

}								/* namespace advisory */
