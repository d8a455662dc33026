/*
 * locktable.cpp
 *		Reading advisory locks out of the server's lock table.
 *
 * The lock table's hash is private to the lock manager, but every session's
 * slot in the process array links the locks that it holds or waits for, by
 * partition.  A partition's lists, and the LOCK and PROCLOCK objects on them,
 * do not change while its LWLock is held.
 *
 * Nothing is allocated while a partition is locked: where memory runs out the
 * partition is let go, the memory enlarged, and the partition read again.
 */
#include "pg.h"

#include <signal.h>

#include "compat.h"
#include "locktable.h"

namespace advisory
{

namespace
{

constexpr int FIRST_ENTRIES = 256;

/* Where entries are collected; says when it is full instead of growing. */
class Collector
{
public:
	Collector()
	{
		entry_capacity = FIRST_ENTRIES;
		blocker_capacity = FIRST_ENTRIES;
		found.entries = static_cast<LockEntry *>(palloc(sizeof(LockEntry) * entry_capacity));
		found.blockers = static_cast<int *>(palloc(sizeof(int) * blocker_capacity));
	}

	bool		add_entry(const LockEntry &entry) noexcept
	{
		if (found.count == entry_capacity)
			return overflow();
		found.entries[found.count++] = entry;
		if (entry.pid == 0)
			found.has_prepared = true;
		return true;
	}

	bool		add_blocker(int pid) noexcept
	{
		if (found.blocker_count == blocker_capacity)
			return overflow();
		found.blockers[found.blocker_count++] = pid;
		return true;
	}

	bool		has_blocker_since(int first, int pid) const noexcept
	{
		for (int i = first; i < found.blocker_count; i++)
		{
			if (found.blockers[i] == pid)
				return true;
		}
		return false;
	}

	bool		is_full() const noexcept
	{
		return full;
	}

	/* Forget what came after the mark, and make room for more. */
	void		enlarge(int entry_mark, int blocker_mark)
	{
		found.count = entry_mark;
		found.blocker_count = blocker_mark;
		full = false;
		entry_capacity *= 2;
		blocker_capacity *= 2;
		found.entries = static_cast<LockEntry *>(repalloc_huge(found.entries, sizeof(LockEntry) * entry_capacity));
		found.blockers = static_cast<int *>(repalloc_huge(found.blockers, sizeof(int) * blocker_capacity));
	}

	LockEntries found = {};

private:
	bool		overflow() noexcept
	{
		full = true;
		return false;
	}

	int			entry_capacity;
	int			blocker_capacity;
	bool		full = false;
};

}								/* anonymous namespace */

/* Prepared transactions stand behind the sessions, and are not counted with them. */
static int
proc_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount) + max_prepared_xacts;
}

static LOCKMASK
conflicts_of(const LOCK *lock, LOCKMODE lockmode)
{
	return GetLocksMethodTable(lock)->conflictTab[lockmode];
}

/* The pid that others know a session by: a parallel worker's is its leader's. */
static int
visible_pid(const PGPROC *proc) noexcept
{
	return proc->lockGroupLeader != nullptr ? proc->lockGroupLeader->pid : proc->pid;
}

static const PGPROC *
group_leader(const PGPROC *proc) noexcept
{
	return proc->lockGroupLeader != nullptr ? proc->lockGroupLeader : proc;
}

/*
 * Who is in a waiter's way: those that hold a conflicting mode, and those that
 * wait for one further ahead in the queue, as pg_blocking_pids() has it.
 */
static bool
collect_blockers(Collector *collector, LOCK *lock, const PGPROC *waiter)
{
	LOCKMASK	conflicts = conflicts_of(lock, waiter->waitLockMode);
	int			first = collector->found.blocker_count;

	auto		add = [&](const PGPROC *proc) {
		int			pid = visible_pid(proc);

		return collector->has_blocker_since(first, pid) || collector->add_blocker(pid);
	};

	compat::walk_list<PROCLOCK>(&lock->procLocks, offsetof(PROCLOCK, lockLink), [&](PROCLOCK *other) {
		const PGPROC *holder = other->tag.myProc;

		if (group_leader(holder) != group_leader(waiter) && (other->holdMask & conflicts) != 0)
			return add(holder);
		return true;
	});
	compat::walk_waiters(lock, [&](PGPROC *ahead) {
		if (ahead == waiter)
			return false;
		if (group_leader(ahead) != group_leader(waiter) &&
			(LOCKBIT_ON(ahead->waitLockMode) & conflicts) != 0)
			return add(ahead);
		return true;
	});
	return !collector->is_full();
}

static LockEntry
entry_for(const PGPROC *proc, const LOCK *lock, LOCKMODE lockmode) noexcept
{
	LockEntry	entry = {};

	entry.tag = lock->tag;
	entry.pid = proc->pid;
	entry.xid = proc->pid == 0 ? proc->xid : InvalidTransactionId;
	entry.role = proc->roleId;
	entry.lockmode = lockmode;
	return entry;
}

static bool
collect_granted(Collector *collector, const PROCLOCK *proclock) noexcept
{
	for (LOCKMODE lockmode = 1; lockmode < MAX_LOCKMODES; lockmode++)
	{
		if ((proclock->holdMask & LOCKBIT_ON(lockmode)) == 0)
			continue;

		LockEntry	entry = entry_for(proclock->tag.myProc, proclock->tag.myLock, lockmode);

		entry.granted = true;
		if (!collector->add_entry(entry))
			return false;
	}
	return true;
}

static bool
collect_awaited(Collector *collector, const PROCLOCK *proclock)
{
	PGPROC	   *proc = proclock->tag.myProc;
	LOCK	   *lock = proclock->tag.myLock;

	if (proc->waitLock != lock)
		return true;

	LockEntry	entry = entry_for(proc, lock, proc->waitLockMode);

	entry.wait_start = static_cast<TimestampTz>(pg_atomic_read_u64(&proc->waitStart));
	entry.first_blocker = collector->found.blocker_count;
	if (!collect_blockers(collector, lock, proc))
		return false;
	entry.blocker_count = collector->found.blocker_count - entry.first_blocker;
	return collector->add_entry(entry);
}

/*
 * Call visit(proclock) for each advisory lock of each session in a partition
 * until it returns false.  The partition must be locked.
 */
template <typename Visit>
static void
visit_partition(int partition, Visit visit)
{
	bool		going = true;

	for (int i = 0; going && i < proc_count(); i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);

		compat::walk_list<PROCLOCK>(&proc->myProcLocks[partition], offsetof(PROCLOCK, procLink),
									[&](PROCLOCK *proclock) {
			if (LOCK_LOCKTAG(*proclock->tag.myLock) == LOCKTAG_ADVISORY)
				going = visit(proclock);
			return going;
		});
	}
}

static void
read_partition(Collector *collector, int partition, const LOCKTAG *only)
{
	int			entry_mark = collector->found.count;
	int			blocker_mark = collector->found.blocker_count;
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(partition_lock, LW_SHARED);
		visit_partition(partition, [&](PROCLOCK *proclock) {
			if (only != nullptr && !same_tag(proclock->tag.myLock->tag, *only))
				return true;
			return collect_granted(collector, proclock) && collect_awaited(collector, proclock);
		});
		LWLockRelease(partition_lock);

		if (!collector->is_full())
			return;
		collector->enlarge(entry_mark, blocker_mark);
	}
}

static int
partition_of(const LOCKTAG &tag)
{
	return LockHashPartition(LockTagHashCode(&tag));
}

LockEntries
read_all_locks()
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
		read_partition(&collector, partition, nullptr);
	return collector.found;
}

LockEntries
read_lock(const LOCKTAG &tag)
{
	Collector	collector;

	read_partition(&collector, partition_of(tag), &tag);
	return collector.found;
}

bool
is_held_by_anybody(const LOCKTAG &tag)
{
	int			partition = partition_of(tag);
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);
	bool		held = false;

	LWLockAcquire(partition_lock, LW_SHARED);
	visit_partition(partition, [&](PROCLOCK *proclock) {
		if (same_tag(proclock->tag.myLock->tag, tag))
			held = proclock->tag.myLock->nGranted > 0;
		return !held;
	});
	LWLockRelease(partition_lock);
	return held;
}

bool
signal_holder(const LOCKTAG &tag, int pid, bool *sent)
{
	int			partition = partition_of(tag);
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);
	bool		holds = false;
	int			signal_errno = 0;

	LWLockAcquire(partition_lock, LW_SHARED);
	visit_partition(partition, [&](PROCLOCK *proclock) {
		if (proclock->tag.myProc->pid != pid || proclock->holdMask == 0 ||
			!same_tag(proclock->tag.myLock->tag, tag))
			return true;
		holds = true;
		/* Its whole process group, as pg_terminate_backend() does. */
		if (kill(-pid, SIGTERM) != 0)
			signal_errno = errno;
		return false;
	});
	LWLockRelease(partition_lock);

	*sent = holds && signal_errno == 0;
	errno = signal_errno;
	return holds;
}

}								/* namespace advisory */
