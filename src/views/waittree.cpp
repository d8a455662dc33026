/*
 * views/waittree.cpp
 *		Who waits for whom, as trees.
 *
 * The lock table is read one partition after the other, so the waits that are read
 * need not have existed at the same time.  A session may seem to wait twice, and there
 * may seem to be a cycle that never existed.  So this code does not assume that the
 * graph is consistent.
 */
#include "base/pg.h"

extern "C" {
#include "miscadmin.h"
#include "utils/timestamp.h"
}

#include <utility>

#include "server/waitgraph.h"
#include "shmem/heldread.h"
#include "shmem/slotlocks.h"
#include "views/waittree.h"

namespace advisory
{

namespace
{

struct Session
{
	const LockEntry *wait;		/* null if it does not wait */
	const LockEntry *blocker;	/* the hold or wait that is in its way; null if there is none */
	List	   *waiters;		/* the sessions (Session *) that are shown under it, longest waits first */
	bool		shown;
	bool		written;		/* has it got its line? */
};

class Forest
{
public:
	explicit Forest(const LockEntries &entries)
		: entries(entries), sessions(static_cast<Session *>(palloc0(sizeof(Session) * proc_count()))),
		  lines(static_cast<WaitLine *>(palloc(sizeof(WaitLine) * proc_count())))
	{
	}

	WaitTrees	grow();

private:
	void		find_waits();
	void		choose_blocker(Session *session);
	void		choose_blockers();
	void		choose_shown();
	void		write_tree(Session *session, const WaitLine *above, int place);

	Session    *session_of(const LockEntry &entry) const noexcept
	{
		return &sessions[entry.leader_number];
	}
	/* The session that this one waits for; null if there is none. */
	Session    *above(const Session &session) const noexcept
	{
		return session.blocker != nullptr ? session_of(*session.blocker) : nullptr;
	}
	bool		waits_for(const Session *session, const Session *other) const noexcept;
	Session    *root_of(Session *session) const noexcept;

	LockEntries entries;
	Session    *sessions;		/* by their leader's number in the server's array of processes */
	List	   *waiting = NIL;	/* the sessions (Session *) that wait, longest waits first */
	WaitLine   *lines;			/* no more than sessions, because each stands once */
	int			count = 0;
	HoldReader	holds;
};

}								/* anonymous namespace */

/* By the start of the wait; then in the order of the entries, which is the order of the queue. */
static int
compare_waiting(const ListCell *a, const ListCell *b)
{
	const LockEntry *wait_a = static_cast<Session *>(lfirst(a))->wait;
	const LockEntry *wait_b = static_cast<Session *>(lfirst(b))->wait;
	TimestampTz start_a = start_of_wait(*wait_a);
	TimestampTz start_b = start_of_wait(*wait_b);

	if (start_a != start_b)
		return start_a < start_b ? -1 : 1;
	return wait_a < wait_b ? -1 : wait_a > wait_b;
}

/* The first entry of the lock that this entry holds or waits for. */
static int
first_of_lock(const LockEntries &entries, const LockEntry &entry)
{
	int			first = static_cast<int>(&entry - entries.entries);

	while (first > 0 && same_tag(entries.entries[first - 1].tag, entry.tag))
		first--;
	return first;
}

/* Call visit(blocker) for the entries that are in the way of a waiter (visit_blockers), until it returns false. */
template <typename Visit>
static void
visit_blockers_of(const LockEntries &entries, const LockEntry &waiter, Visit visit)
{
	visit_blockers(entries, first_of_lock(entries, waiter), static_cast<int>(&waiter - entries.entries),
				   [&](int i) { return visit(entries.entries[i]); });
}

int
count_holders(const LockEntries &entries, const LockEntry &waiter)
{
	Bitmapset  *holders = nullptr;

	visit_blockers_of(entries, waiter, [&](const LockEntry &blocker) {
		if (blocker.granted)
			holders = bms_add_member(holders, blocker.leader_number);
		return blocker.granted;
	});
	return bms_num_members(holders);
}

/* Of several waits of a session the one that counts has the lowest rank: rather one for a lock than for a lease, rather a long one. */
static std::pair<bool, TimestampTz>
rank_of_wait(const LockEntry &wait) noexcept
{
	return {wait.waits_for_lease, start_of_wait(wait)};
}

/* Find what each session waits for.  Parallel workers can wait for several locks at once. */
void
Forest::find_waits()
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry *entry = &entries.entries[i];
		Session    *session = session_of(*entry);

		if (!entry->is_waiting())
			continue;
		if (session->wait == nullptr)
			waiting = lappend(waiting, session);
		if (session->wait == nullptr || rank_of_wait(*entry) < rank_of_wait(*session->wait))
			session->wait = entry;
	}
	list_sort(waiting, compare_waiting);
}

/* Does a session wait for another one, directly or through others, as far as blockers are chosen? */
bool
Forest::waits_for(const Session *session, const Session *other) const noexcept
{
	/* In a cycle this comes through all sessions. */
	for (int steps = 0; session != nullptr && session != other && steps < proc_count(); steps++)
		session = above(*session);
	return session == other;
}

/* For a lock the first blocker; for a slot the one that has had its slot longest, rather one that does not wait for this session. */
void
Forest::choose_blocker(Session *session)
{
	bool		is_for_slot = session->wait->is_head;
	std::pair<bool, TimestampTz> best;

	visit_blockers_of(entries, *session->wait, [&](const LockEntry &other) {
		std::pair<bool, TimestampTz> rank = {is_for_slot && waits_for(session_of(other), session), DT_NOEND};
		KnownHold	hold;

		if (is_for_slot && holds.find(other.proc_number, other.pid, other.tag, other.lockmode, &hold))
			rank.second = hold.hold.acquired_at;
		if (session->blocker == nullptr || rank < best)
		{
			session->blocker = &other;
			best = rank;
		}
		return is_for_slot;
	});
}

/* First for the waits for locks, because the choice for a slot depends on them. */
void
Forest::choose_blockers()
{
	ListCell   *cell;

	for (int is_head = 0; is_head <= 1; is_head++)
	{
		foreach(cell, waiting)
		{
			auto	   *session = static_cast<Session *>(lfirst(cell));

			CHECK_FOR_INTERRUPTS();
			if (!session->wait->granted && session->wait->is_head == (is_head != 0))
				choose_blocker(session);
		}
	}
}

/* Show the sessions that wait for an advisory lock or hold one, and all that they wait for. */
void
Forest::choose_shown()
{
	ListCell   *cell;

	foreach(cell, waiting)
	{
		auto	   *session = static_cast<Session *>(lfirst(cell));

		CHECK_FOR_INTERRUPTS();
		if (!is_advisory(*session->wait) && !holds_advisory_lock(session->wait->leader_number))
			continue;
		for (; session != nullptr && !session->shown; session = above(*session))
			session->shown = true;
	}
}

/* The session at the end of a session's waits; in a cycle the one with the smallest pid. */
Session *
Forest::root_of(Session *session) const noexcept
{
	Session    *smallest;
	int			steps = 0;

	while (session->blocker != nullptr && steps++ < proc_count())
		session = above(*session);
	if (session->blocker == nullptr)
		return session;
	smallest = session;
	for (Session *next = above(*session); next != session; next = above(*next))
	{
		if (session_pid(*next->wait) < session_pid(*smallest->wait))
			smallest = next;
	}
	return smallest;
}

/* Write the line of a session, and those of all sessions that wait for it. */
void
Forest::write_tree(Session *session, const WaitLine *line_above, int place)
{
	WaitLine   *line = &lines[count++];
	ListCell   *cell;
	int			next_place = 0;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	session->written = true;
	*line = WaitLine{session->wait, session->blocker, line_above, line_above != nullptr ? line_above->depth + 1 : 0, place};
	foreach(cell, session->waiters)
	{
		auto	   *waiter = static_cast<Session *>(lfirst(cell));

		/* A root is shown with the lock of its longest waiter. */
		if (line->lock == nullptr)
			line->lock = waiter->blocker;
		/* In a cycle the first session is written already. */
		if (!waiter->written)
			write_tree(waiter, line, next_place++);
	}
}

WaitTrees
Forest::grow()
{
	ListCell   *cell;

	find_waits();
	choose_blockers();
	choose_shown();
	foreach(cell, waiting)
	{
		auto	   *session = static_cast<Session *>(lfirst(cell));

		if (session->shown && session->blocker != nullptr)
			above(*session)->waiters = lappend(above(*session)->waiters, session);
	}
	foreach(cell, waiting)
	{
		auto	   *session = static_cast<Session *>(lfirst(cell));

		if (session->shown && !session->written)
			write_tree(root_of(session), nullptr, 0);
	}
	return WaitTrees{entries, lines, count};
}

WaitTrees
read_wait_trees()
{
	return Forest(read_all_waits_and_slots()).grow();
}

}								/* namespace advisory */
