/*
 * server/locktable.cpp
 *		Reading locks, advisory ones above all, out of the server's lock table.
 *
 * The lock table's hash is private to the lock manager.  A backend can attach to it as to any table in shared memory, and look up one lock.
 * All locks are found from the process array: every session's place there has lists of the locks that it holds or waits for, one list for
 * each partition.  A partition's lists, and the LOCK and PROCLOCK objects on them, do not change while its LWLock is held.
 *
 * Nothing is allocated while a partition is locked.  If the memory is too small,
 * the partition is unlocked, the memory enlarged, and the partition read again.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/locktable.h"

namespace advisory
{

/* The server raises an error if it has a table of that name with another size.  It derives the size from the same settings. */
static void
attach_lock_tables(LockTables *tables)
{
	HASHCTL		control = {};
	int			flags = HASH_ELEM | HASH_BLOBS | HASH_PARTITION;

	control.num_partitions = NUM_LOCK_PARTITIONS;
	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(LOCK);
	tables->locks = compat::attach_shared_table("LOCK hash", &control, guaranteed_locks(), flags);
	control.keysize = sizeof(PROCLOCKTAG);
	control.entrysize = sizeof(PROCLOCK);
	tables->holders = compat::attach_shared_table("PROCLOCK hash", &control, 2 * guaranteed_locks(), flags);
}

const LockTables *
lock_tables()
{
	static LockTables tables;
	static bool were_tried = false;
	static bool are_attached = false;

	if (were_tried)
		return are_attached ? &tables : nullptr;

	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	PG_TRY();
	{
		attach_lock_tables(&tables);
		are_attached = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		/* The error has set it to 0. */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
	were_tried = true;
	return are_attached ? &tables : nullptr;
}

/* Collects entries.  Those that find no room are only counted. */
class Collector
{
public:
	void		add(const LockEntry &entry) noexcept
	{
		if (found.count < capacity)
			found.entries[found.count] = entry;
		found.count++;
	}

	/* Run read(), which adds entries, and repeat it with more memory if they have found no room. */
	template <typename Read>
	void		collect(Read read)
	{
		int			mark = found.count;

		for (;;)
		{
			CHECK_FOR_INTERRUPTS();
			read();
			if (found.count <= capacity)
				return;
			capacity = 2 * found.count;
			found.count = mark;
			found.entries = static_cast<LockEntry *>(repalloc_huge(found.entries, sizeof(LockEntry) * capacity));
		}
	}

	LockEntries found = {static_cast<LockEntry *>(palloc(sizeof(LockEntry) * FIRST_ENTRIES)), 0, nullptr};

private:
	static constexpr int FIRST_ENTRIES = 16;

	int			capacity = FIRST_ENTRIES;
};

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
	return entry;
}

/* The wait of a process for a lock; the lock's partition must be locked. */
static LockEntry
waiting_entry(PGPROC *waiter) noexcept
{
	LockEntry	entry = entry_for(waiter->waitProcLock, waiter->waitLockMode);

	entry.wait_start = static_cast<TimestampTz>(pg_atomic_read_u64(&waiter->waitStart));
	return entry;
}

static void
collect_granted(Collector *collector, const PROCLOCK *proclock) noexcept
{
	for (LOCKMODE lockmode = 1; lockmode < MAX_LOCKMODES; lockmode++)
	{
		if ((proclock->holdMask & LOCKBIT_ON(lockmode)) == 0)
			continue;

		LockEntry	entry = entry_for(proclock, lockmode);

		entry.granted = true;
		collector->add(entry);
	}
}

/* The whole queue, in its order. */
static void
collect_queue(Collector *collector, LOCK *lock)
{
	compat::walk_waiters(lock, [&](PGPROC *waiter) {
		collector->add(waiting_entry(waiter));
		return true;
	});
}

/* The holders of a lock, then its queue. */
static void
collect_lock(Collector *collector, LOCK *lock)
{
	compat::walk_proclocks(lock, [&](PROCLOCK *proclock) {
		collect_granted(collector, proclock);
		return true;
	});
	collect_queue(collector, lock);
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

/* Call visit(proclock) for each lock of a session in a partition, which must be locked, until it returns false. */
template <typename Visit>
static void
walk_session(PGPROC *proc, int partition, Visit visit, compat::ListNode *compat::ListNode::*link = &compat::ListNode::next)
{
	compat::walk_list<PROCLOCK>(&proc->myProcLocks[partition], offsetof(PROCLOCK, procLink), visit, link);
}

/* Run read(partition), which must be quick and must not ereport, with the partition locked. */
template <typename Read>
static void
with_partition(int partition, Read read)
{
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	LWLockAcquire(partition_lock, LW_SHARED);
	read(partition);
	LWLockRelease(partition_lock);
}

/*
 * Is matches(proclock) true for a lock that one of the processes from number first to before end holds or awaits?  Calls it for
 * each of them, with its partition locked, until it returns true.  May ereport (cancellation).
 */
template <typename Match>
static bool
any_proclock(int first, int end, Match matches)
{
	bool		found = false;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS && !found; partition++)
	{
		CHECK_FOR_INTERRUPTS();
		with_partition(partition, [&](int) {
			for (int i = first; i < end && !found; i++)
			{
				walk_session(GetPGProcByNumber(i), partition, [&](PROCLOCK *proclock) {
					found = matches(proclock);
					return !found;
				});
			}
		});
	}
	return found;
}

/* Collect what read(collector, partition) adds for each partition while that partition is locked. */
template <typename Read>
static LockEntries
read_partitions(Read read)
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		collector.collect([&]() {
			with_partition(partition, [&](int) {
				read(&collector, partition);
			});
		});
	}
	return collector.found;
}

/*
 * If a session holds or awaits the lock, run read(lock), which must be quick and must not ereport, with its
 * partition locked.  If the hash table cannot be searched, searches the locks of all sessions.
 */
template <typename Read>
static void
visit_lock(const LOCKTAG &tag, Read read)
{
	uint32		hash = LockTagHashCode(&tag);
	const LockTables *tables = lock_tables();

	with_partition(LockHashPartition(hash), [&](int partition) {
		LOCK	   *found = nullptr;

		if (tables != nullptr)
			found = static_cast<LOCK *>(hash_search_with_hash_value(tables->locks, &tag, hash, HASH_FIND, nullptr));
		for (int i = 0; tables == nullptr && found == nullptr && i < proc_count(); i++)
		{
			walk_session(GetPGProcByNumber(i), partition, [&](PROCLOCK *proclock) {
				if (same_tag(proclock->tag.myLock->tag, tag))
					found = proclock->tag.myLock;
				return found == nullptr;
			});
		}
		if (found != nullptr)
			read(found);
	});
}

static int
partition_of(const LOCKTAG &tag)
{
	return LockHashPartition(LockTagHashCode(&tag));
}

/*
 * The lock of this partition that a session waits for, or null.  The partition must be locked.
 *
 * If the lock is in this partition, the session's waitLock does not change meanwhile.  If it is in another one, waitLock can change and the
 * lock can be freed, so the tag that is read here can be anything.  So the tag is only used to skip other partitions.  The answer is
 * certain because the lock is then searched in the session's list of this partition, where a lock that it waits for is usually the last.
 */
static LOCK *
awaited_lock(PGPROC *proc, int partition)
{
	LOCK	   *lock = const_cast<LOCK *volatile &>(proc->waitLock);
	LOCK	   *found = nullptr;

	if (lock == nullptr || partition_of(LOCKTAG(lock->tag)) != partition)
		return nullptr;
	walk_session(proc, partition, [&](PROCLOCK *proclock) {
		if (proclock->tag.myLock == lock)
			found = lock;
		return found == nullptr;
	}, &compat::ListNode::prev);
	return found;
}

LockEntries
read_all_waits()
{
	return read_partitions([](Collector *collector, int partition) {
		for (int i = 0; i < proc_count(); i++)
		{
			PGPROC	   *proc = GetPGProcByNumber(i);
			LOCK	   *lock = awaited_lock(proc, partition);

			/* Collect the lock only once, with its first waiter. */
			if (lock != nullptr && is_first_in_queue(lock, proc))
				collect_lock(collector, lock);
		}
	});
}

LockEntries
read_all_locks(bool only_queues)
{
	return read_partitions([&](Collector *collector, int partition) {
		for (int i = 0; i < proc_count(); i++)
		{
			PGPROC	   *proc = GetPGProcByNumber(i);

			walk_session(proc, partition, [&](PROCLOCK *proclock) {
				LOCK	   *lock = proclock->tag.myLock;

				if (LOCK_LOCKTAG(*lock) != LOCKTAG_ADVISORY || (only_queues && !is_of_semaphore(lock->tag) && !is_of_lease_queue(lock->tag)))
					return true;
				collect_granted(collector, proclock);
				/* Collect the queue only once, with its first waiter. */
				if (proc->waitLock == lock && is_first_in_queue(lock, proc))
					collect_queue(collector, lock);
				return true;
			});
		}
	});
}

static void
collect_by_tag(Collector *collector, const LOCKTAG &tag)
{
	collector->collect([&]() {
		visit_lock(tag, [&](LOCK *lock) {
			collect_lock(collector, lock);
		});
	});
}

LockEntries
read_lock(const LOCKTAG &tag)
{
	Collector	collector;

	collect_by_tag(&collector, tag);
	return collector.found;
}

static void
collect_semaphore(Collector *collector, Oid database, Key key, int slots)
{
	collect_by_tag(collector, queue_tag(database, key));
	for (int slot = 1; slot <= slots; slot++)
		collect_by_tag(collector, slot_tag(database, key, slot));
}

LockEntries
read_semaphore(Oid database, Key key, int slots)
{
	Collector	collector;

	collect_semaphore(&collector, database, key, slots);
	return collector.found;
}

LockEntries
read_key(Oid database, Key key, int slots)
{
	Collector	collector;

	collect_by_tag(&collector, lock_tag(database, key));
	collect_semaphore(&collector, database, key, slots);
	return collector.found;
}

bool
has_prepared_locks()
{
	return any_proclock(static_cast<int>(ProcGlobal->allProcCount), proc_count(), [](PROCLOCK *) { return true; });
}

bool
holds_advisory_lock(int proc_number)
{
	return any_proclock(proc_number, proc_number + 1, [](PROCLOCK *proclock) {
		return LOCK_LOCKTAG(*proclock->tag.myLock) == LOCKTAG_ADVISORY && proclock->holdMask != 0;
	});
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
	bool		is_waiting = false;

	if (lock == nullptr)
		return false;
	/* The lock may have been freed by now; then this is any partition. */
	with_partition(partition_of(LOCKTAG(lock->tag)), [&](int partition) {
		is_waiting = awaited_lock(proc, partition) != nullptr;
		if (is_waiting)
			*waiter = waiting_entry(proc);
	});
	return is_waiting;
}

LockEntries
read_my_locks()
{
	return read_partitions([](Collector *collector, int partition) {
		walk_session(MyProc, partition, [&](PROCLOCK *proclock) {
			if (LOCK_LOCKTAG(*proclock->tag.myLock) == LOCKTAG_ADVISORY)
				collect_granted(collector, proclock);
			return true;
		});
	});
}

/* Does this session hold a lock for which matches(lock) is true? */
template <typename Match>
static bool
do_i_hold(Match matches)
{
	auto		me = static_cast<int>(MyProc - ProcGlobal->allProcs);

	return any_proclock(me, me + 1, [=](PROCLOCK *proclock) {
		return proclock->holdMask != 0 && matches(proclock->tag.myLock);
	});
}

bool
have_other_locks()
{
	return compat::has_fast_path_locks() || do_i_hold([](const LOCK *lock) {
		return lock->tag.locktag_type != LOCKTAG_VIRTUALTRANSACTION && lock->tag.locktag_type != LOCKTAG_ADVISORY;
	});
}

int
count_my_lease_locks()
{
	int			count = 0;

	do_i_hold([&count](const LOCK *lock) {
		if (LOCK_LOCKTAG(*lock) == LOCKTAG_ADVISORY && decode_tag(lock->tag).kind == Kind::lease)
			count++;
		return false;
	});
	return count;
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
	LockEntry	holder;

	return read_holder(tag, &holder);
}

void
wake_holders(const LOCKTAG &tag) noexcept
{
	visit_lock(tag, [](LOCK *lock) {
		compat::walk_proclocks(lock, [](PROCLOCK *proclock) {
			if (proclock->holdMask != 0)
				SetLatch(&proclock->tag.myProc->procLatch);
			return true;
		});
	});
}

bool
signal_holder(Oid database, Key key, int pid, bool *sent)
{
	bool		holds = false;
	int			signal_errno = 0;
	auto		signal_if_held = [&](LOCK *lock) {
		compat::walk_proclocks(lock, [&](PROCLOCK *proclock) {
			if (proclock->tag.myProc->pid != pid || proclock->holdMask == 0)
				return true;
			holds = true;
			/* Signal its whole process group, as pg_terminate_backend() does. */
			if (kill(-pid, SIGTERM) != 0)
				signal_errno = errno;
			return false;
		});
	};

	visit_lock(lock_tag(database, key), signal_if_held);
	for (int slot = 1; slot <= MAX_SLOTS && !holds; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		visit_lock(slot_tag(database, key, slot), signal_if_held);
	}

	*sent = holds && signal_errno == 0;
	errno = signal_errno;
	return holds;
}

}								/* namespace advisory */
