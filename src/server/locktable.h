/*
 * server/locktable.h
 *		Reading locks, advisory ones above all, out of the server's lock table.
 *
 * Never more than one of the table's partitions is locked at a time, and that
 * one in shared mode, so a reader holds up no more than 1/16 of the server's
 * locking and only for the time of its own partition.  What comes back is
 * therefore not one instant: a lock that moves meanwhile may appear twice or
 * not at all.  What is said of one lock (its holders, its waiters, who blocks
 * whom) is of one instant.
 *
 * What returns LockEntries may ereport (out of memory, cancellation) with no lock held.
 */
#pragma once

extern "C" {
#include "access/twophase.h"
#include "storage/lock.h"
#include "storage/proc.h"
}

#include "base/locktag.h"

namespace advisory
{

/* One mode that a session or prepared transaction holds or waits for. */
struct LockEntry
{
	LOCKTAG		tag;
	int			proc_number;	/* in the server's array of processes */
	int			pid;			/* 0 for a prepared transaction */
	int			leader_pid;		/* of its lock group, by which others know it; else pid */
	int			leader_number;	/* the leader's proc_number */
	TransactionId xid;			/* of a prepared transaction */
	Oid			role;			/* of the session; invalid if it has none */
	LOCKMODE	lockmode;
	LOCKMASK	held_modes;		/* all that it holds of this lock */
	bool		granted;
	bool		is_awaited;		/* it has waiters in the lock manager's queue */
	bool		is_head;		/* waits for a slot in a semaphore's queue (slotlocks.h) */
	bool		waits_for_lease;	/* holds a lease's queue, and waits for the lease (slotlocks.h) */
	int			slots;			/* of the semaphore that it waits for, as it says; 0 if that is not known */
	TimestampTz wait_start;		/* 0 where not waiting, or not yet known */
	int			first_blocker;	/* in LockEntries.blockers */
	int			blocker_count;

	/* For the lock, or for the lease whose queue it is. */
	bool		is_waiting() const noexcept
	{
		return !granted || waits_for_lease;
	}
};

inline bool
is_advisory(const LockEntry &entry) noexcept
{
	return LOCK_LOCKTAG(entry) == LOCKTAG_ADVISORY;
}

/* How many places the server's array of processes has; prepared transactions stand behind the sessions. */
inline int
proc_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount) + max_prepared_xacts;
}

/* The pid by which others know an entry's session; 0 for a prepared transaction. */
inline int
session_pid(const LockEntry &entry) noexcept
{
	/* A leader that has gone before its workers has no pid any more. */
	return entry.leader_pid != 0 ? entry.leader_pid : entry.pid;
}

/* The waiters of a lock stand together, in the order of their queue. */
struct LockEntries
{
	LockEntry  *entries;
	int			count;
	List	   *blockers;		/* pids (int); 0 stands for a prepared transaction */
	bool		has_prepared;
};

/*
 * Every advisory lock and waiter on the server, or those of semaphores' slots and queues and of
 * leases' queues, session by session within a partition.
 */
LockEntries read_all_locks(bool only_queues = false);

/* How many entries of the server's two lock tables are used for locks of one type. */
struct PoolTypeUse
{
	int64		locks;
	int64		holders;		/* one for each session that holds or awaits such a lock */
};

constexpr int POOL_TYPES = LOCKTAG_LAST_TYPE + 1;

/* How many locks in the tables a session or prepared transaction holds or awaits. */
struct PoolSessionUse
{
	LockEntry	holder;			/* one of them: who it is */
	int64		locks;
	int64		advisory_locks;
};

/*
 * Count what is in the lock tables: in types[POOL_TYPES] by the type of the lock, and
 * by session, with those that have any (palloc'd).  Visits every lock.  May ereport.
 */
void		read_pool_use(PoolTypeUse *types, PoolSessionUse **sessions, int *session_count);

/* All that hold one lock, then its queue in its order.  Looks at no other lock. */
LockEntries read_lock(const LOCKTAG &tag);

/* The same of a semaphore's queue, and then of its slots up to this one. */
LockEntries read_semaphore(Oid database, Key key, int slots);

/* The same of a key: of its lock, and then of its semaphore. */
LockEntries read_key(Oid database, Key key, int slots);

/* Does a prepared transaction hold any lock? */
bool		has_prepared_locks();

/* Somebody that holds this lock; its mode is not filled in.  False if nobody does. */
bool		read_holder(const LOCKTAG &tag, LockEntry *holder);

/*
 * Does this process wait for a lock?  Then the entry of its wait; wait_start is 0 if it has only just
 * begun.  False also if that changes while it is being read.
 */
bool		read_awaited_lock(int proc_number, LockEntry *waiter);

/*
 * Every lock, of any type, that somebody waits for: lock by lock all that hold
 * it, then its whole queue.  Costs by the number of sessions and of waits, not by
 * that of locks.
 */
LockEntries read_all_waits();

/* The advisory locks that this session holds, of every kind and in both scopes. */
LockEntries read_my_locks();

/* What this session holds that others may wait for: locks of any type that have waiters, and slots. */
LockEntries read_my_awaited_locks();

/* Does this session hold a lock that is no advisory one, but for that on its transaction's own number? */
bool		have_other_locks();

/* Does this session hold this lock, of any type, and somebody wait for it? */
bool		is_mine_awaited(const LOCKTAG &tag);

/* Does anybody hold this lock at the moment? */
bool		is_held_by_anybody(const LOCKTAG &tag);

/* Set the latch of each session that holds this lock. */
void		wake_holders(const LOCKTAG &tag) noexcept;

/*
 * Send SIGTERM to the session with this pid, provided that it holds the key's lock, or a slot
 * of its semaphore, at that very moment: the partition stays locked in between, so that it
 * cannot let go.  Returns whether it does; *sent says whether the signal went out (errno
 * says why not).  Checks no privilege.  May ereport (cancellation) before the signal.
 */
bool		signal_holder(Oid database, Key key, int pid, bool *sent);

}								/* namespace advisory */
