/*
 * server/locktable.cpp
 *		Reading locks, advisory ones above all, out of the server's lock table.
 *
 * The lock table's hash is private to the lock manager, but every session's
 * slot in the process array links the locks that it holds or waits for, by
 * partition.  A partition's lists, and the LOCK and PROCLOCK objects on them,
 * do not change while its LWLock is held.
 *
 * Nothing is allocated while a partition is locked: where memory runs out the
 * partition is let go, the memory enlarged, and the partition read again.
 */
#include "base/pg.h"

#include <signal.h>

#include "base/compat.h"
#include "server/lockhash.h"
#include "server/locktable.h"

namespace advisory
{

namespace
{

constexpr int FIRST_ENTRIES = 16;

/* Where entries are collected; says when it is full instead of growing. */
class Collector
{
public:
	Collector()
	{
		found.entries = static_cast<LockEntry *>(palloc(sizeof(LockEntry) * capacity));
	}

	bool		add(const LockEntry &entry) noexcept
	{
		full = found.count == capacity;
		if (full)
			return false;
		found.entries[found.count++] = entry;
		if (entry.pid == 0)
			found.has_prepared = true;
		return true;
	}

	bool		is_full() const noexcept
	{
		return full;
	}

	/* Forget what came after the mark, and make room for more. */
	void		enlarge(int mark)
	{
		found.count = mark;
		full = false;
		capacity *= 2;
		found.entries = static_cast<LockEntry *>(repalloc_huge(found.entries, sizeof(LockEntry) * capacity));
	}

	LockEntries found = {};

private:
	int			capacity = FIRST_ENTRIES;
	bool		full = false;
};

}								/* anonymous namespace */

int
session_pid(const LockEntry &entry) noexcept
{
	/* A leader that has gone before its workers has no pid any more. */
	return entry.leader_pid != 0 ? entry.leader_pid : entry.pid;
}

/* Prepared transactions stand behind the sessions, and are not counted with them. */
static int
proc_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount) + max_prepared_xacts;
}

static LockEntry
entry_for(const PROCLOCK *proclock, LOCKMODE lockmode) noexcept
{
	const PGPROC *proc = proclock->tag.myProc;
	const PGPROC *leader = proc->lockGroupLeader != nullptr ? proc->lockGroupLeader : proc;
	LockEntry	entry = {};

	entry.tag = proclock->tag.myLock->tag;
	entry.proc_number = static_cast<int>(proc - ProcGlobal->allProcs);
	entry.pid = proc->pid;
	entry.leader_pid = leader->pid;
	entry.leader_number = static_cast<int>(leader - ProcGlobal->allProcs);
	entry.xid = proc->pid == 0 ? proc->xid : InvalidTransactionId;
	entry.role = proc->roleId;
	entry.lockmode = lockmode;
	entry.held_modes = proclock->holdMask;
	entry.is_awaited = proclock->tag.myLock->waitMask != 0;
	return entry;
}

static bool
collect_granted(Collector *collector, const PROCLOCK *proclock) noexcept
{
	for (LOCKMODE lockmode = 1; lockmode < MAX_LOCKMODES; lockmode++)
	{
		if ((proclock->holdMask & LOCKBIT_ON(lockmode)) == 0)
			continue;

		LockEntry	entry = entry_for(proclock, lockmode);

		entry.granted = true;
		if (!collector->add(entry))
			return false;
	}
	return true;
}

static bool
is_first_in_queue(LOCK *lock, const PGPROC *proc)
{
	const PGPROC *first = nullptr;

	compat::walk_waiters(lock, [&](PGPROC *waiter) {
		first = waiter;
		return false;
	});
	return first == proc;
}

/* The wait of a process for a lock, whose partition is locked. */
static LockEntry
waiting_entry(PGPROC *waiter) noexcept
{
	LockEntry	entry = entry_for(waiter->waitProcLock, waiter->waitLockMode);

	entry.wait_start = static_cast<TimestampTz>(pg_atomic_read_u64(&waiter->waitStart));
	return entry;
}

/* The whole queue, in its order. */
static bool
collect_queue(Collector *collector, LOCK *lock)
{
	compat::walk_waiters(lock, [&](PGPROC *waiter) {
		return collector->add(waiting_entry(waiter));
	});
	return !collector->is_full();
}

/* The queue, when its first waiter comes along. */
static bool
collect_waiters(Collector *collector, const PROCLOCK *proclock)
{
	LOCK	   *lock = proclock->tag.myLock;

	if (proclock->tag.myProc->waitLock != lock || !is_first_in_queue(lock, proclock->tag.myProc))
		return true;
	return collect_queue(collector, lock);
}

/* All that hold a lock, then its queue. */
static bool
collect_lock(Collector *collector, LOCK *lock)
{
	compat::walk_proclocks(lock, [&](PROCLOCK *proclock) {
		return collect_granted(collector, proclock);
	});
	return !collector->is_full() && collect_queue(collector, lock);
}

/*
 * Call visit(proclock) for each lock of any type of a session in a partition until it
 * returns false, and return what it did.  The partition must be locked.
 */
template <typename Visit>
static bool
visit_any_of_session(PGPROC *proc, int partition, Visit visit)
{
	bool		going = true;

	compat::walk_list<PROCLOCK>(&proc->myProcLocks[partition], offsetof(PROCLOCK, procLink),
								[&](PROCLOCK *proclock) {
		going = visit(proclock);
		return going;
	});
	return going;
}

static bool
is_advisory(const PROCLOCK *proclock) noexcept
{
	return LOCK_LOCKTAG(*proclock->tag.myLock) == LOCKTAG_ADVISORY;
}

/* The same for advisory locks. */
template <typename Visit>
static bool
visit_session(PGPROC *proc, int partition, Visit visit)
{
	return visit_any_of_session(proc, partition, [&](PROCLOCK *proclock) {
		return !is_advisory(proclock) || visit(proclock);
	});
}

/* The same for each session. */
template <typename Visit>
static void
visit_partition(int partition, Visit visit)
{
	for (int i = 0; i < proc_count(); i++)
	{
		if (!visit_session(GetPGProcByNumber(i), partition, visit))
			return;
	}
}

/* Run read(partition), which must be quick and must not ereport, with each partition locked. */
template <typename Read>
static void
visit_partitions(Read read)
{
	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

		LWLockAcquire(partition_lock, LW_SHARED);
		read(partition);
		LWLockRelease(partition_lock);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Run read(), which locks nothing itself, with the partition locked, as often as
 * it takes for what it collects to find room.
 */
template <typename Read>
static void
read_partition(Collector *collector, int partition, Read read)
{
	int			mark = collector->found.count;
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(partition_lock, LW_SHARED);
		read();
		LWLockRelease(partition_lock);

		if (!collector->is_full())
			return;
		collector->enlarge(mark);
	}
}

/*
 * The lock with this tag, whose hash value's partition is locked; null if nobody holds or awaits
 * it.  Where the hash table cannot be searched, the locks of all sessions are.
 */
static LOCK *
find_lock(const LOCKTAG &tag, uint32 hash, bool by_hash)
{
	LOCK	   *found = nullptr;

	if (by_hash)
		return find_in_lock_table(tag, hash);
	for (int i = 0; i < proc_count() && found == nullptr; i++)
	{
		visit_any_of_session(GetPGProcByNumber(i), LockHashPartition(hash), [&](PROCLOCK *proclock) {
			if (same_tag(proclock->tag.myLock->tag, tag))
				found = proclock->tag.myLock;
			return found == nullptr;
		});
	}
	return found;
}

/* Run read(lock), which must be quick and must not ereport, with the lock's partition locked, if there is such a lock. */
template <typename Read>
static void
visit_lock(const LOCKTAG &tag, Read read)
{
	uint32		hash = LockTagHashCode(&tag);
	bool		by_hash = lock_tables() != nullptr;
	LWLock	   *partition_lock = LockHashPartitionLock(hash);

	LWLockAcquire(partition_lock, LW_SHARED);
	if (LOCK *lock = find_lock(tag, hash, by_hash))
		read(lock);
	LWLockRelease(partition_lock);
}

static int
partition_of(const LOCKTAG &tag)
{
	return LockHashPartition(LockTagHashCode(&tag));
}

/*
 * The lock of this partition, which must be locked, that a session waits for; or
 * null.
 *
 * If its lock is in this partition, the session's waitLock stays as it is.  If
 * not, it can change and the lock go while we look, and what we read of it can be
 * anything.  So the tag only tells where it would be vain to look; what counts is
 * that the lock is among the session's own of this partition, where one that it
 * waits for is the last as a rule.
 */
static LOCK *
awaited_lock(PGPROC *proc, int partition)
{
	LOCK	   *lock = const_cast<LOCK *volatile &>(proc->waitLock);
	LOCK	   *found = nullptr;

	if (lock == nullptr || partition_of(LOCKTAG(lock->tag)) != partition)
		return nullptr;
	compat::walk_list<PROCLOCK>(&proc->myProcLocks[partition], offsetof(PROCLOCK, procLink),
								[&](PROCLOCK *proclock) {
		if (proclock->tag.myLock == lock)
			found = lock;
		return found == nullptr;
	}, &compat::ListNode::prev);
	return found;
}

/* Everything about the locks of a partition that somebody waits for. */
static void
collect_awaited(Collector *collector, int partition)
{
	for (int i = 0; i < proc_count(); i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);
		LOCK	   *lock = awaited_lock(proc, partition);

		/* Once for all of its waiters. */
		if (lock != nullptr && is_first_in_queue(lock, proc) && !collect_lock(collector, lock))
			return;
	}
}

LockEntries
read_all_waits()
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		read_partition(&collector, partition, [&]() {
			collect_awaited(&collector, partition);
		});
	}
	return collector.found;
}

/* Every advisory lock with a tag that is wanted, and its waiters. */
template <typename Wanted>
static LockEntries
read_wanted(Wanted wanted)
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		read_partition(&collector, partition, [&]() {
			visit_partition(partition, [&](PROCLOCK *proclock) {
				return !wanted(proclock->tag.myLock->tag) ||
					(collect_granted(&collector, proclock) && collect_waiters(&collector, proclock));
			});
		});
	}
	return collector.found;
}

LockEntries
read_all_locks()
{
	return read_wanted([](const LOCKTAG &) {
		return true;
	});
}

LockEntries
read_all_slots()
{
	return read_wanted([](const LOCKTAG &tag) {
		return is_of_semaphore(tag);
	});
}

void
visit_locked_tags(void (*visit) (const LOCKTAG &tag, void *argument), void *argument)
{
	visit_partitions([&](int partition) {
		visit_partition(partition, [&](PROCLOCK *proclock) {
			visit(proclock->tag.myLock->tag, argument);
			return true;
		});
	});
}

/* Once for all that hold or await it: is this the first of them?  Its partition must be locked. */
static bool
is_first_of_lock(const PROCLOCK *proclock)
{
	const PROCLOCK *first = nullptr;

	compat::walk_proclocks(proclock->tag.myLock, [&](PROCLOCK *one) {
		first = one;
		return false;
	});
	return first == proclock;
}

void
read_pool_use(PoolTypeUse *types, PoolSessionUse **sessions, int *session_count)
{
	int			count = proc_count();
	auto	   *all = static_cast<PoolSessionUse *>(palloc0(sizeof(PoolSessionUse) * count));
	int			kept = 0;

	memset(types, 0, sizeof(PoolTypeUse) * POOL_TYPES);
	visit_partitions([&](int partition) {
		for (int i = 0; i < count; i++)
		{
			visit_any_of_session(GetPGProcByNumber(i), partition, [&](PROCLOCK *proclock) {
				PoolTypeUse &type = types[LOCK_LOCKTAG(*proclock->tag.myLock)];

				if (all[i].locks++ == 0)
					all[i].holder = entry_for(proclock, NoLock);
				if (is_advisory(proclock))
					all[i].advisory_locks++;
				type.holders++;
				if (is_first_of_lock(proclock))
					type.locks++;
				return true;
			});
		}
	});
	for (int i = 0; i < count; i++)
	{
		if (all[i].locks > 0)
			all[kept++] = all[i];
	}
	*sessions = all;
	*session_count = kept;
}

static void
collect_by_tag(Collector *collector, const LOCKTAG &tag)
{
	uint32		hash = LockTagHashCode(&tag);
	bool		by_hash = lock_tables() != nullptr;

	read_partition(collector, LockHashPartition(hash), [&]() {
		if (LOCK *lock = find_lock(tag, hash, by_hash))
			collect_lock(collector, lock);
	});
}

LockEntries
read_lock(const LOCKTAG &tag)
{
	Collector	collector;

	collect_by_tag(&collector, tag);
	return collector.found;
}

LockEntries
read_semaphore(Oid database, Key key, int slots)
{
	Collector	collector;

	collect_by_tag(&collector, queue_tag(database, key));
	for (int slot = 1; slot <= slots; slot++)
		collect_by_tag(&collector, slot_tag(database, key, slot));
	return collector.found;
}

bool
read_holder(const LOCKTAG &tag, LockEntry *holder)
{
	bool		found = false;

	visit_lock(tag, [&](LOCK *lock) {
		compat::walk_proclocks(lock, [&](PROCLOCK *proclock) {
			found = proclock->holdMask != 0;
			if (found)
				*holder = entry_for(proclock, NoLock);
			return !found;
		});
	});
	return found;
}

bool
read_awaited_lock(int proc_number, LockEntry *waiter)
{
	PGPROC	   *proc = GetPGProcByNumber(proc_number);
	LOCK	   *lock = const_cast<LOCK *volatile &>(proc->waitLock);
	bool		is_awaited = false;

	if (lock == nullptr)
		return false;

	/* The lock may have gone by now; then this is any partition. */
	int			partition = partition_of(LOCKTAG(lock->tag));
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	LWLockAcquire(partition_lock, LW_SHARED);
	lock = awaited_lock(proc, partition);
	is_awaited = lock != nullptr;
	if (is_awaited)
		*waiter = waiting_entry(proc);
	LWLockRelease(partition_lock);
	return is_awaited;
}

/* Call visit(proclock) for each lock that this session has, until it returns false; its partition is locked. */
template <typename Visit>
static void
visit_mine(int partition, Visit visit)
{
	visit_any_of_session(MyProc, partition, [&](PROCLOCK *proclock) {
		return proclock->holdMask == 0 || visit(proclock);
	});
}

/* This session's locks of which matches(lock) is true. */
template <typename Match>
static LockEntries
read_mine(Match matches)
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		/* What others add to this session's own list, they add before they wait. */
		if (compat::is_empty(&MyProc->myProcLocks[partition]))
			continue;
		read_partition(&collector, partition, [&]() {
			visit_mine(partition, [&](PROCLOCK *proclock) {
				return !matches(proclock->tag.myLock) || collect_granted(&collector, proclock);
			});
		});
	}
	return collector.found;
}

LockEntries
read_my_locks()
{
	return read_mine([](const LOCK *lock) {
		return LOCK_LOCKTAG(*lock) == LOCKTAG_ADVISORY;
	});
}

LockEntries
read_my_awaited_locks()
{
	return read_mine([](const LOCK *lock) {
		return lock->waitMask != 0 || (LOCK_LOCKTAG(*lock) == LOCKTAG_ADVISORY && decode_tag(lock->tag).kind == Kind::semaphore);
	});
}

/* Does this session hold a lock of which matches(lock) is true? */
template <typename Match>
static bool
do_i_hold(Match matches)
{
	bool		found = false;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS && !found; partition++)
	{
		LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

		if (compat::is_empty(&MyProc->myProcLocks[partition]))
			continue;
		LWLockAcquire(partition_lock, LW_SHARED);
		visit_mine(partition, [&](PROCLOCK *proclock) {
			found = matches(proclock->tag.myLock);
			return !found;
		});
		LWLockRelease(partition_lock);
	}
	return found;
}

bool
have_other_locks()
{
	return compat::has_fast_path_locks() || do_i_hold([](const LOCK *lock) {
		return lock->tag.locktag_type != LOCKTAG_VIRTUALTRANSACTION && lock->tag.locktag_type != LOCKTAG_ADVISORY;
	});
}

bool
is_mine_awaited(const LOCKTAG &tag)
{
	return do_i_hold([&tag](const LOCK *lock) {
		return lock->waitMask != 0 && same_tag(lock->tag, tag);
	});
}

bool
is_held_by_anybody(const LOCKTAG &tag)
{
	bool		held = false;

	visit_lock(tag, [&](const LOCK *lock) {
		held = lock->nGranted > 0;
	});
	return held;
}

bool
signal_holder(const LOCKTAG &tag, int pid, bool *sent)
{
	bool		holds = false;
	int			signal_errno = 0;

	visit_lock(tag, [&](LOCK *lock) {
		compat::walk_proclocks(lock, [&](PROCLOCK *proclock) {
			if (proclock->tag.myProc->pid != pid || proclock->holdMask == 0)
				return true;
			holds = true;
			/* Its whole process group, as pg_terminate_backend() does. */
			if (kill(-pid, SIGTERM) != 0)
				signal_errno = errno;
			return false;
		});
	});

	*sent = holds && signal_errno == 0;
	errno = signal_errno;
	return holds;
}

}								/* namespace advisory */
