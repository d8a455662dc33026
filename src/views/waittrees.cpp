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

	if (wait_a == wait_b)
		return 0;
	return std::make_pair(start_of_wait(*wait_a), wait_a) <
		std::make_pair(start_of_wait(*wait_b), wait_b) ? -1 : 1;
}

/*
 * Of several waits of a session the one that counts has the lowest rank: rather one for a lock than
 * for a lease, rather for the semaphore that it lacks, rather a long one.
 */
static std::tuple<bool, bool, TimestampTz>
rank_of_wait(const LockEntry &wait) noexcept
{
	return {wait.waits_for_lease, wait.lacks_other, start_of_wait(wait)};
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
 * Does this session, which has locked a lease slot, keep the waiter from taking one?  Who does not
 * take or end it renews it, or relies on it: if it is held, the lease is in the way.
 */
static bool
keeps_slot(const LockEntry &holder, const LockEntry &waiter, const LeasedSlots &leased)
{
	return holder.leader_number != waiter.leader_number &&
		(holder.lockmode == ExclusiveLock ||
		 (leased.is_known && !bms_is_member(decode_tag(holder.tag).slot, leased.slots)));
}

/* Request.holders of this waiter.  leased: which slots are held, if it waits for a lease slot. */
List *
WaitTrees::find_holders(const LockEntry &waiter, const LeasedSlots &leased)
{
	/* A holder, and since when it has the slot. */
	using Holder = std::pair<TimestampTz, const LockEntry *>;
	auto	   *found = static_cast<Holder *>(palloc(sizeof(Holder) * entries.count));
	int			count = 0;
	Bitmapset  *seen = nullptr;
	List	   *holders = NIL;

	visit_holders(entries, waiter, [&](const LockEntry &holder) {
		if (waiter.waits_for_lease_slot() && !keeps_slot(holder, waiter, leased))
			return true;

		TimestampTz acquired_at = waiter.is_head ? holds.find(holder).hold.acquired_at : 0;

		found[count++] = {acquired_at != 0 ? acquired_at : DT_NOEND, &holder};
		return true;
	});
	std::sort(found, found + count);
	for (int i = 0; i < count; i++)
	{
		const LockEntry *holder = found[i].second;

		if (bms_is_member(holder->leader_number, seen))
			continue;
		seen = bms_add_member(seen, holder->leader_number);
		holders = lappend(holders, const_cast<LockEntry *>(holder));
	}
	pfree(found);
	bms_free(seen);
	return holders;
}

/* Who holds what a session waits for is found once for all that wait for the same. */
void
WaitTrees::find_request(Session *session)
{
	const LockEntry &wait = *session->lock;
	decltype(Request::key) key = {wait.tag, wait.lockmode, wait.slots, wait.waits_for_lease};
	LeasedSlots	leased = {};
	bool		is_known;

	session->request = static_cast<Request *>(
		hash_search(requests, &key, HASH_ENTER, &is_known));
	if (!is_known)
	{
		if (wait.waits_for_lease_slot() && wait.tag.locktag_field1 == MyDatabaseId)
			leased = lease_slots_held(decode_tag(wait.tag).key, wait.slots);
		session->request->holders = find_holders(wait, leased);
		session->request->is_leased = wait.waits_for_lease &&
			(!leased.is_known || leased.slots != nullptr);
		session->request->counted = nullptr;
	}
}

int
WaitTrees::count_holders(const Session &waiter) const noexcept
{
	int			count = 0;
	ListCell   *cell;

	foreach(cell, waiter.request->holders)
		count += session_of(*static_cast<LockEntry *>(lfirst(cell))) != &waiter;
	return count;
}

/*
 * The first holder; for a slot rather one that does not wait for this session, and for a lease slot
 * no other.  Or else the nearest waiter ahead.
 */
void
WaitTrees::choose_blocker(Session *session)
{
	ListCell   *cell;

	foreach(cell, session->request->holders)
	{
		const auto *holder = static_cast<LockEntry *>(lfirst(cell));
		bool		is_better = !session->lock->waits_for_slot() ||
			!waits_for(session_of(*holder), session);

		if (session_of(*holder) != session &&
			(is_better || (session->blocker == nullptr && !session->lock->waits_for_lease)))
			session->blocker = holder;
		if (session->blocker != nullptr && is_better)
			break;
	}
	if (session->blocker == nullptr)
		visit_ahead(entries, *session->lock, [&](const LockEntry &other) {
			session->blocker = &other;
			return false;
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
	auto		count = [&](Session *root, const LockEntry &lock) {
		if (root->waiter_count++ == 0)
		{
			roots = lappend(roots, root);
			root->blocking = &lock;
			root->first_waiter = waiter;
		}
	};

	auto		visit = [&](const LockEntry &other) {
		Session    *next = session_of(other);

		if (next->counted == waiter)
			return;
		next->counted = waiter;
		if (next->lock != nullptr && next->lock->is_waiting())
			count_for_roots(next, waiter);
		else
			count(next, other);
	};
	bool		is_held = false;
	ListCell   *cell;

	check_stack_depth();
	if (session->lock->waits_for_lease &&
		(session->request->is_leased || session->above == nullptr))
		count(session, *session->lock);
	foreach(cell, session->request->holders)
	{
		const auto *holder = static_cast<LockEntry *>(lfirst(cell));

		if (session_of(*holder) == session)
			continue;
		is_held = true;
		/* Another session that waits for the same has visited them. */
		if (session->request->counted == waiter)
			break;
		visit(*holder);
	}
	if (is_held)
		session->request->counted = waiter;
	else
		visit_ahead(entries, *session->lock, [&](const LockEntry &other) {
			visit(other);
			return false;
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
	  sessions(static_cast<Session *>(palloc0(sizeof(Session) * proc_count()))),
	  requests(make_hash_table<decltype(Request::key), Request>("advisory_ext requests", 256))
{
	find_waits();
	/* First for the waits for locks, because the choice for a slot depends on them. */
	for (bool for_slot : {false, true})
	{
		each_session(waiting, [&](Session *session) {
			if (session->lock->waits_for_slot() != for_slot)
				return;
			find_request(session);
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
		session->counted = session;
		if (session->is_shown)
			count_for_roots(session, session);
		if (session->is_shown && !session->is_written)
			write_tree(root_of(session), 0, 0);
	});
}

}								/* namespace advisory */
