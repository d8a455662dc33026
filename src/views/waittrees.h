/*
 * views/waittrees.h
 *		Who waits for whom, as trees.
 *
 * Wording
 *		session		a lock group (a session with its parallel workers) or a prepared transaction
 *		root		a session that others wait for, and that waits for no session
 *		cycle		sessions that wait for each other: a deadlock not found yet
 *
 * Each session stands once.  A waiter stands under one of the sessions that are in its way:
 *
 *		it waits for a slot		the holder that has had its slot longest, as far as that is known.
 *								But because any slot ends the wait, a holder that itself waits for
 *								the waiter only counts if all holders do.
 *		it waits for a lock		the holder that came first
 *		... for a lease slot	a transaction that has locked one, and that does not wait for it;
 *								without one it is a root, because it waits for a lease
 *		nobody holds it			the nearest waiter ahead of it in the queue
 *
 * The trees follow waits for locks of every type, because the holder of an advisory lock may itself
 * wait for a row.  But they contain only sessions that wait for an advisory lock or in a function
 * of the extension, or hold one, those that they wait for, and those that wait for them.
 *
 * The lock table is read one partition after the other, so the waits that are read need not have
 * existed at the same time. A session may seem to wait twice, and there may seem to be a cycle that
 * never existed.
 */
#pragma once

#include "core/leaserows.h"
#include "shmem/sessiontable.h"

namespace advisory
{

struct Session;

/* What sessions wait for that wait for the same lock or slot in the same way. */
struct Request
{
	struct
	{
		LOCKTAG		tag;
		LOCKMODE	lockmode;
		int			slots;
		int			for_lease;		/* 1 for the first in the queue of a lease */
	}			key;			/* hash key */
	/*
	 * (const LockEntry *) who holds it and is in the way, each session once.  For a semaphore the
	 * slot that the session has had longest, as far as that is known, and the longest first.  For
	 * lease slots the transactions that take or end one, or rely on one that has expired.
	 */
	List	   *holders;
	bool		is_leased;		/* a lease is in the way, which no session holds */
	const Session *counted;		/* the waiter for which the holders were visited last */
};

/*
 * A session, which is one line of a tree.
 *
 *					lock								blocker
 *		root		the lock that it holds with the		null
 *					longest wait of others for it
 *		waiter		the lock that it waits for			the hold or wait of the session above that
 *													is in its way
 *		first of	the same							the same; the blocker is further down
 *		a cycle											the tree
 *
 * A session that waits for a lease, or for a lock that was released meanwhile, is a root with the
 * lock that it waits for.
 */
struct Session
{
	const LockEntry *lock;
	Request    *request;		/* of a session that waits for a lock or a slot */
	const LockEntry *blocker;
	Session    *above;			/* the session of the blocker */
	List	   *waiters;		/* the sessions (Session *) that are shown under it */
	int			depth;
	int			place;			/* among the waiters under the same session, from 0 */
	bool		is_shown;
	bool		is_written;		/* is it among the lines? */
	/* Of a root: how many wait for it, directly or not; the first; and what blocks that one. */
	int			waiter_count;
	const Session *first_waiter;
	const LockEntry *blocking;
	const Session *counted;		/* the waiter for which this session was visited last */
};

/* The trees of the whole server, the one with the longest wait first. */
class WaitTrees
{
public:
	/* Reads them.  May ereport. */
	WaitTrees();

	/* How many sessions hold what this one waits for, and are in its way. */
	int			count_holders(const Session &waiter) const noexcept;

	const Session &line(int i) const noexcept
	{
		return *static_cast<Session *>(list_nth(lines, i));
	}

	LockEntries entries;
	/* (Session *) each root of all waits, and each first waiter for a lease */
	List	   *roots = NIL;
	/* (Session *) each tree from its root down; after a session its waiters, longest waits first */
	List	   *lines = NIL;

private:
	Session    *session_of(const LockEntry &entry) const noexcept
	{
		return &sessions[entry.leader_number];
	}
	void		find_waits();
	List	   *find_holders(const LockEntry &waiter, const LeasedSlots &leased);
	void		find_request(Session *session);
	void		choose_blocker(Session *session);
	bool		concerns_advisory_locks(const Session *session) const;
	void		count_for_roots(Session *session, const Session *waiter);
	void		write_tree(Session *session, int depth, int place);

	Session    *sessions;		/* by their leader's number in the server's array of processes */
	List	   *waiting = NIL;	/* the sessions (Session *) that wait, longest waits first */
	HTAB	   *requests;
	HoldReader	holds;
};

/* A wait whose start is not known yet has only just begun. */
inline TimestampTz
start_of_wait(const LockEntry &wait) noexcept
{
	return wait.wait_start != 0 ? wait.wait_start : DT_NOEND;
}

}								/* namespace advisory */
