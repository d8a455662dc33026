/*
 * server/locktable.h
 *		Reading locks, advisory ones above all, out of the server's lock table.
 *
 * A reader locks one partition of the table at a time, in shared mode.  So it delays no more than
 * 1/16 of the server's locking, and only while it reads that partition.  The result is therefore
 * not a consistent snapshot: a lock that moves meanwhile may appear twice or not at all.  But the
 * data about one lock (its holders, its waiters, and which session blocks which) is consistent.
 *
 * Functions that return LockEntries may ereport (out of memory, cancellation), with no lock held.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * The hash tables of the server's lock manager: one of locks, and one of holders, with an entry for
 * each session that holds or awaits a lock.  Counting their entries takes no lock.
 */
struct LockTables
{
	HTAB	   *locks;
	HTAB	   *holders;		/* only to count its entries: its hash function is not ours */
};

/*
 * The tables; null if they are not what this version of the library expects.  Attaches to
 * them in the first call, which must not be made with an LWLock held.  Reads no catalog.
 */
const LockTables *lock_tables();

/*
 * The number of locks that the server's formula gives the first table; the second has twice as many
 * entries.
 */
inline int64
guaranteed_locks() noexcept
{
	return static_cast<int64>(max_locks_per_xact) * (MaxBackends + max_prepared_xacts);
}

/* One mode that a session or prepared transaction holds or waits for. */
struct LockEntry
{
	LOCKTAG		tag;
	int			proc_number;	/* in the server's array of processes */
	int			pid;			/* 0 for a prepared transaction */
	int			leader_pid;		/* of the leader of its lock group; without a group, pid */
	int			leader_number;	/* the leader's proc_number */
	TransactionId xid;			/* of a prepared transaction */
	Oid			role;			/* of the session, or that prepared it; invalid if it has none */
	LOCKMODE	lockmode;
	LOCKMASK	held_modes;		/* all modes in which it holds this lock */
	bool		granted;
	bool		is_head;		/* waits for a slot in a semaphore's queue (slotlocks.h) */
	/* Holds a lease's queue, and waits for the lease (slotlocks.h). */
	bool		waits_for_lease;
	bool		lacks_other;	/* of several semaphores it is said to await another one */
	/* Number of slots that a waiter for a semaphore gave, and wants; 0 if unknown. */
	int			slots;
	int			wanted;
	uint32		tries;			/* that have failed so far, of such a waiter */
	TimestampTz wait_start;		/* 0 if it does not wait, or if not yet known */
	int			first_blocker;	/* in LockEntries.blockers */
	int			blocker_count;

	/* Does it wait for the lock, or for the lease whose queue this is? */
	bool		is_waiting() const noexcept
	{
		return !granted || waits_for_lease;
	}
	/* Does it wait for a lease slot, as the first in their queue? */
	bool		waits_for_lease_slot() const noexcept
	{
		return waits_for_lease && is_of_lease_slot_queue(tag);
	}
	/* Does it wait for any slot of a semaphore, or of a lease, that becomes free? */
	bool		waits_for_slot() const noexcept
	{
		return is_head || waits_for_lease_slot();
	}
};

/*
 * How many places the server's array of processes has.  Prepared transactions have places behind
 * those of the sessions.
 */
inline int
proc_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount) + max_prepared_xacts;
}

/* The number of a process, or of a prepared transaction, in the server's array of processes. */
inline int
process_number(const PGPROC *proc) noexcept
{
	return static_cast<int>(proc - ProcGlobal->allProcs);
}

inline int
my_process_number() noexcept
{
	return process_number(MyProc);
}

/* The pid that views and messages show for an entry's session; 0 for a prepared transaction. */
inline int
session_pid(const LockEntry &entry) noexcept
{
	/* A leader that has ended before its workers has no pid any more. */
	return entry.leader_pid != 0 ? entry.leader_pid : entry.pid;
}

/* How many slots a waiter wants, as messages say it; palloc'd. */
inline const char *
slots_text(int wanted)
{
	return wanted > 1 ? psprintf("%d slots", wanted) : "a slot";
}

/* The waiters of a lock stand together, in the order of their queue. */
struct LockEntries
{
	LockEntry  *entries;
	int			count;
	List	   *blockers;		/* pids (int); 0 stands for a prepared transaction */
};

/*
 * Every advisory lock and waiter on the server, session by session within a partition.
 * only_queues: only those of semaphores and lease slots with their queues, and of the queues of
 * leases.
 */
LockEntries read_all_locks(bool only_queues = false);

/* Of one session or prepared transaction, and one type of lock. */
struct LockUse
{
	int64		holders;		/* locks of it that the session holds or awaits */
	int64		locks;			/* of these, those that no other session came to before */
};

constexpr int LOCK_TYPES = LOCKTAG_LAST_TYPE + 1;

/*
 * The use of the lock table, palloc'd: LOCK_TYPES for each place in the server's array of processes
 * (proc_count()).  Without the fast path.  May ereport (cancellation).
 */
LockUse    *read_lock_use();

/*
 * The holders of each of these locks, then its queue in order.  After them the same for the slots
 * up to this one of the first one's key.
 */
LockEntries read_locks(std::initializer_list<LOCKTAG> tags, int slots = 0);

/* The highest slot of this semaphore that a prepared transaction has; 0 if none has one. */
int			highest_prepared_slot(Oid database, Key key);

/* Does one hold a lock, a slot or a lease of this key?  With an LWLock held it does not ereport. */
bool		is_held_by_prepared(Oid database, Key key);

/* Does the process with this number hold an advisory lock? */
bool		holds_advisory_lock(int proc_number);

/*
 * Does any session or prepared transaction hold this lock at the moment?  Then *holder is the entry
 * of one; its mode is not filled in.
 */
bool		is_held_by_anybody(const LOCKTAG &tag, LockEntry *holder = nullptr);

/* Does another session, or a prepared transaction, hold this lock at the moment? */
bool		is_held_by_others(const LOCKTAG &tag);

/*
 * Does this process wait for a lock?  Then *waiter is its entry; wait_start is 0 if the wait has
 * only just begun.  May also return false if that changes meanwhile.
 */
bool		read_awaited_lock(int proc_number, LockEntry *waiter);

/*
 * Every lock of any type that a session waits for: for each lock its holders, then its whole queue.
 * The cost depends on the number of sessions and waits, not on the number of locks.
 */
LockEntries read_all_waits();

/* The advisory locks that this session holds, of every kind and in both scopes. */
LockEntries read_my_locks();

/*
 * Does this session hold a lock that is not an advisory lock, except that on its own virtual
 * transaction ID?
 */
bool		have_other_locks();

/* How many locks of leases, and of their queues, does this session hold? */
int			count_my_lease_locks();

/* Does this session hold this lock, of any type, and does another session wait for it? */
bool		is_mine_awaited(const LOCKTAG &tag);

/* Wake each session that holds this lock (server/latch.h). */
void		wake_holders(const LOCKTAG &tag) noexcept;

/*
 * Send SIGTERM to the session with this pid, provided that it holds the key's lock, or a slot of
 * its semaphore, or relies on its lease, at that moment; only one of these if it is named.  The
 * partition stays locked meanwhile, so that the session cannot release the lock.  Returns whether
 * it holds one.  *sent tells whether the signal was sent, and errno why not.  Checks no privileges.
 * May ereport (cancellation) before the signal.
 */
bool		signal_holder(Oid database, Key key, int pid, const Kind *only, bool *sent);

}								/* namespace advisory */
