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
#include "server/locktable.h"

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
	LockEntry	entry = {};

	entry.tag = proclock->tag.myLock->tag;
	entry.proc_number = static_cast<int>(proc - ProcGlobal->allProcs);
	entry.pid = proc->pid;
	entry.leader_pid = proc->lockGroupLeader != nullptr ? proc->lockGroupLeader->pid : proc->pid;
	entry.xid = proc->pid == 0 ? proc->xid : InvalidTransactionId;
	entry.role = proc->roleId;
	entry.lockmode = lockmode;
	entry.held_modes = proclock->holdMask;
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

/* The whole queue, in its order. */
static bool
collect_queue(Collector *collector, LOCK *lock)
{
	compat::walk_waiters(lock, [&](PGPROC *waiter) {
		LockEntry	entry = entry_for(waiter->waitProcLock, waiter->waitLockMode);

		entry.wait_start = static_cast<TimestampTz>(pg_atomic_read_u64(&waiter->waitStart));
		return collector->add(entry);
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

LockEntries
read_lock(const LOCKTAG &tag)
{
	Collector	collector;
	int			partition = partition_of(tag);

	read_partition(&collector, partition, [&]() {
		visit_partition(partition, [&](PROCLOCK *proclock) {
			if (!same_tag(proclock->tag.myLock->tag, tag))
				return true;
			return collect_granted(&collector, proclock) && collect_waiters(&collector, proclock);
		});
	});
	return collector.found;
}

LockEntries
read_my_locks()
{
	Collector	collector;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		read_partition(&collector, partition, [&]() {
			visit_session(MyProc, partition, [&](PROCLOCK *proclock) {
				return collect_granted(&collector, proclock);
			});
		});
	}
	return collector.found;
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

		LWLockAcquire(partition_lock, LW_SHARED);
		compat::walk_list<PROCLOCK>(&MyProc->myProcLocks[partition], offsetof(PROCLOCK, procLink),
									[&](PROCLOCK *proclock) {
			found = proclock->holdMask != 0 && matches(proclock->tag.myLock);
			return !found;
		});
		LWLockRelease(partition_lock);
	}
	return found;
}

bool
am_i_in_the_way()
{
	return do_i_hold([](const LOCK *lock) {
		return lock->waitMask != 0 || decode_tag(lock->tag).kind == Kind::semaphore;
	});
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

namespace
{

/* The holders of a lock that somebody waits for, as a list through next_holder. */
struct AwaitedLock
{
	LOCKTAG		tag;			/* hash key */
	int			first_holder;
};

constexpr int NO_HOLDER = -1;

class BlockerFinder
{
public:
	explicit BlockerFinder(LockEntries *found) : found(found)
	{
	}

	void		run()
	{
		if (index_awaited_locks() == 0)
			return;
		index_holders();
		for (int i = 0; i < found->count; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!found->entries[i].granted)
				find_for(i);
		}
		hash_destroy(awaited);
	}

private:
	int			index_awaited_locks();
	void		index_holders();
	void		find_for(int waiter);
	void		add(int pid);

	LockEntries *found;
	HTAB	   *awaited = nullptr;
	int		   *next_holder = nullptr;
	int			capacity = 0;
};

}								/* anonymous namespace */

/* A semaphore's slots and its queue are one thing to be waited for. */
static LOCKTAG
awaited_tag(const LOCKTAG &tag) noexcept
{
	return is_of_semaphore(tag) ? queue_tag(tag.locktag_field1, decode_tag(tag).key) : tag;
}

bool
is_slot_in_the_way(const LockEntry &holder, const LockEntry &waiter) noexcept
{
	DecodedTag	tag = decode_tag(holder.tag);

	return holder.granted && tag.kind == Kind::semaphore && is_same_semaphore(holder.tag, waiter.tag) &&
		(waiter.slots == 0 || tag.slot <= waiter.slots);
}

/* Is a holder, or somebody in the front row of a semaphore's line, in the waiter's way? */
static bool
holds_in_the_way(const LockEntry &holder, const LockEntry &waiter)
{
	if (!is_of_semaphore(waiter.tag))
		return is_in_the_way(holder, waiter);
	if (holder.is_head)
		return holder.pid != waiter.pid && (!waiter.is_head || holder.wait_start < waiter.wait_start);
	return is_slot_in_the_way(holder, waiter) && is_in_the_way(holder, waiter);
}

int
BlockerFinder::index_awaited_locks()
{
	HASHCTL		control = {};
	int			count = 0;

	for (int i = 0; i < found->count; i++)
	{
		LOCKTAG		tag = awaited_tag(found->entries[i].tag);

		if (found->entries[i].granted)
			continue;
		if (awaited == nullptr)
		{
			control.keysize = sizeof(LOCKTAG);
			control.entrysize = sizeof(AwaitedLock);
			control.hcxt = CurrentMemoryContext;
			awaited = hash_create("advisory_ext awaited locks", FIRST_ENTRIES, &control,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		}

		auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_ENTER, nullptr));

		lock->first_holder = NO_HOLDER;
		count++;
	}
	return count;
}

void
BlockerFinder::index_holders()
{
	next_holder = static_cast<int *>(palloc_extended(sizeof(int) * found->count, MCXT_ALLOC_HUGE));
	for (int i = 0; i < found->count; i++)
	{
		LOCKTAG		tag = awaited_tag(found->entries[i].tag);

		if (!found->entries[i].granted && !found->entries[i].is_head)
			continue;

		auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr));

		if (lock == nullptr)
			continue;
		next_holder[i] = lock->first_holder;
		lock->first_holder = i;
	}
}

void
BlockerFinder::add(int pid)
{
	if (found->blocker_count == capacity)
	{
		capacity = Max(2 * capacity, FIRST_ENTRIES);

		Size		bytes = sizeof(int) * capacity;

		found->blockers = static_cast<int *>(found->blockers == nullptr
											 ? palloc(bytes)
											 : repalloc_huge(found->blockers, bytes));
	}
	found->blockers[found->blocker_count++] = pid;
}

static LOCKMASK
conflicts_of(const LockEntry &entry)
{
	return GetLockTagsMethodTable(&entry.tag)->conflictTab[entry.lockmode];
}

static bool
same_group(const LockEntry &a, const LockEntry &b) noexcept
{
	return a.leader_pid == b.leader_pid && a.leader_pid != 0;
}

bool
is_in_the_way(const LockEntry &other, const LockEntry &waiter)
{
	LOCKMASK	conflicts = conflicts_of(waiter);
	LOCKMASK	held = other.held_modes & conflicts;
	LOCKMASK	mode = LOCKBIT_ON(other.lockmode);

	if ((mode & conflicts) == 0 || same_group(other, waiter))
		return false;
	if (!other.granted)
		return held == 0;
	return (held & (mode - 1)) == 0;
}

void
BlockerFinder::find_for(int waiter)
{
	LockEntry  &entry = found->entries[waiter];
	LOCKTAG		tag = awaited_tag(entry.tag);
	auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr));

	entry.first_blocker = found->blocker_count;
	for (int i = lock->first_holder; i != NO_HOLDER; i = next_holder[i])
	{
		if (holds_in_the_way(found->entries[i], entry))
			add(found->entries[i].leader_pid);
	}

	/* Those ahead in the queue, unless they were already named as holders. */
	int			ahead = waiter;

	while (!entry.is_head && ahead > 0 && !found->entries[ahead - 1].granted && !found->entries[ahead - 1].is_head &&
		   same_tag(found->entries[ahead - 1].tag, entry.tag))
		ahead--;
	for (; ahead < waiter; ahead++)
	{
		if (is_in_the_way(found->entries[ahead], entry))
			add(found->entries[ahead].leader_pid);
	}
	entry.blocker_count = found->blocker_count - entry.first_blocker;
}

void
find_all_blockers(LockEntries *found)
{
	BlockerFinder(found).run();
}

/* Call visit(proclock) for each session's part in one lock, with its partition locked. */
template <typename Visit>
static void
visit_lock(const LOCKTAG &tag, Visit visit)
{
	int			partition = partition_of(tag);
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	LWLockAcquire(partition_lock, LW_SHARED);
	visit_partition(partition, [&](PROCLOCK *proclock) {
		return !same_tag(proclock->tag.myLock->tag, tag) || visit(proclock);
	});
	LWLockRelease(partition_lock);
}

bool
is_held_by_anybody(const LOCKTAG &tag)
{
	bool		held = false;

	visit_lock(tag, [&](PROCLOCK *proclock) {
		held = proclock->tag.myLock->nGranted > 0;
		return false;
	});
	return held;
}

bool
signal_holder(const LOCKTAG &tag, int pid, bool *sent)
{
	bool		holds = false;
	int			signal_errno = 0;

	visit_lock(tag, [&](PROCLOCK *proclock) {
		if (proclock->tag.myProc->pid != pid || proclock->holdMask == 0)
			return true;
		holds = true;
		/* Its whole process group, as pg_terminate_backend() does. */
		if (kill(-pid, SIGTERM) != 0)
			signal_errno = errno;
		return false;
	});

	*sent = holds && signal_errno == 0;
	errno = signal_errno;
	return holds;
}

}								/* namespace advisory */
