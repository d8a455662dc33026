/*
 * server/locktable.cpp
 *		Reading locks, advisory ones above all, out of the server's lock table.
 *
 * The lock table's hash is private to the lock manager.  A backend can attach to it as to any table
 * in shared memory, and look up one lock. All locks are found from the process array: every
 * session's place there has lists of the locks that it holds or waits for, one list for each
 * partition.  A partition's lists, and the LOCK and PROCLOCK objects on them, do not change while
 * its LWLock is held.
 *
 * Nothing is allocated while a partition is locked.  If the memory is too small,
 * the partition is unlocked, the memory enlarged, and the partition read again.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/latch.h"
#include "server/locktable.h"

namespace advisory
{

/*
 * The server raises an error if it has a table of that name with another size.  It derives the size
 * from the same settings.
 */
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
	tables->holders = compat::attach_shared_table("PROCLOCK hash", &control, 2 * guaranteed_locks(),
												  flags);
}

const LockTables *
lock_tables()
{
	static LockTables tables;
	static bool were_tried = false;
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	if (!were_tried)
	{
		were_tried = true;
		PG_TRY();
		{
			attach_lock_tables(&tables);
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(context);
			FlushErrorState();
			/* The error has set it to 0. */
			InterruptHoldoffCount = holdoff;
		}
		PG_END_TRY();
	}
	return tables.holders != nullptr ? &tables : nullptr;
}

/* Collects entries.  Those that find no room are only counted. */
class Collector
{
public:
	/* expected: how many entries may come. */
	explicit Collector(int64 expected = 0)
		: capacity(static_cast<int>(Max(expected, FIRST_ENTRIES)))
	{
		found.entries = static_cast<LockEntry *>(
			palloc_extended(sizeof(LockEntry) * capacity, MCXT_ALLOC_HUGE));
	}

	/* Add what make() returns, which is made in its place. */
	template <typename Make>
	void		add(Make make) noexcept
	{
		if (found.count < capacity)
			new (&found.entries[found.count]) LockEntry(make());
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
			found.entries = static_cast<LockEntry *>(repalloc_huge(found.entries,
																   sizeof(LockEntry) * capacity));
		}
	}

	LockEntries found = {};

private:
	static constexpr int64 FIRST_ENTRIES = 16;

	int			capacity;
};

static LockEntry
entry_for(const PROCLOCK *proclock, LOCKMODE lockmode, bool granted) noexcept
{
	const PGPROC *proc = proclock->tag.myProc;
	const PGPROC *leader = proc->lockGroupLeader != nullptr ? proc->lockGroupLeader : proc;
	LockEntry	entry = {};

	entry.tag = proclock->tag.myLock->tag;
	entry.proc_number = process_number(proc);
	entry.pid = proc->pid;
	entry.leader_pid = leader->pid;
	entry.leader_number = process_number(leader);
	entry.xid = proc->pid == 0 ? proc->xid : InvalidTransactionId;
	entry.role = proc->roleId;
	entry.lockmode = lockmode;
	entry.held_modes = proclock->holdMask;
	entry.granted = granted;
	return entry;
}

/* The wait of a process for a lock; the lock's partition must be locked. */
static LockEntry
waiting_entry(PGPROC *waiter) noexcept
{
	LockEntry	entry = entry_for(waiter->waitProcLock, waiter->waitLockMode, false);

	entry.wait_start = static_cast<TimestampTz>(pg_atomic_read_u64(&waiter->waitStart));
	return entry;
}

static void
collect_granted(Collector *collector, const PROCLOCK *proclock) noexcept
{
	for (LOCKMODE lockmode = 1; lockmode < MAX_LOCKMODES; lockmode++)
	{
		if ((proclock->holdMask & LOCKBIT_ON(lockmode)) != 0)
			collector->add([&]() { return entry_for(proclock, lockmode, true); });
	}
}

/* The whole queue, in its order. */
static void
collect_queue(Collector *collector, LOCK *lock) noexcept
{
	for (PGPROC *waiter : compat::waiters_of(lock))
		collector->add([&]() { return waiting_entry(waiter); });
}

/* The holders and waiters of a lock. */
static compat::ObjectsOnList<PROCLOCK>
proclocks_of(LOCK *lock) noexcept
{
	return {&lock->procLocks, offsetof(PROCLOCK, lockLink)};
}

/* The locks in a partition that a session holds or awaits. */
static compat::ObjectsOnList<PROCLOCK>
locks_of(PGPROC *proc, int partition,
		 compat::ListNode *compat::ListNode::*link = &compat::ListNode::next) noexcept
{
	return {&proc->myProcLocks[partition], offsetof(PROCLOCK, procLink), link};
}

/* The holders of a lock, then its queue. */
static void
collect_lock(Collector *collector, LOCK *lock) noexcept
{
	for (const PROCLOCK *proclock : proclocks_of(lock))
		collect_granted(collector, proclock);
	collect_queue(collector, lock);
}

static bool
is_first_in_queue(LOCK *lock, const PGPROC *proc) noexcept
{
	return *compat::waiters_of(lock).begin() == proc;
}

/* Run read(), which must be quick and must not ereport, with the partition locked. */
template <typename Read>
static void
with_partition(int partition, Read read)
{
	LWLock	   *partition_lock = LockHashPartitionLockByIndex(partition);

	LWLockAcquire(partition_lock, LW_SHARED);
	read();
	LWLockRelease(partition_lock);
}

/*
 * Is matches(number, proclock) true for what one of these processes holds or awaits?  They are
 * count ones from number first on.  Calls it for each, with its partition locked, until it returns
 * true.  May ereport (cancellation).
 */
template <typename Match>
static bool
any_proclock(Match matches, int first, int count)
{
	bool		found = false;

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS && !found; partition++)
	{
		CHECK_FOR_INTERRUPTS();
		with_partition(partition, [&]() {
			for (int i = first; i < first + count; i++)
			{
				for (const PROCLOCK *proclock : locks_of(GetPGProcByNumber(i), partition))
				{
					found = matches(i, proclock);
					if (found)
						return;
				}
			}
		});
	}
	return found;
}

/* The same with matches(lock) for a lock that one of them holds; by default only this session. */
template <typename Match>
static bool
any_held(Match matches, int first = my_process_number(), int count = 1)
{
	return any_proclock([&](int, const PROCLOCK *proclock) {
		return proclock->holdMask != 0 && matches(proclock->tag.myLock);
	}, first, count);
}

/*
 * Collect what read(collector, partition) adds for each partition while that partition is locked.
 */
template <typename Read>
static LockEntries
read_partitions(Read read, int64 expected = 0)
{
	Collector	collector(expected);

	for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
	{
		collector.collect([&]() {
			with_partition(partition, [&]() { read(&collector, partition); });
		});
	}
	return collector.found;
}

/*
 * If a session holds or awaits the lock, run read(lock), which must be quick and must not ereport,
 * with its partition locked.  If the hash table cannot be searched, searches the locks of all
 * sessions.
 */
template <typename Read>
static void
visit_lock(const LOCKTAG &tag, Read read)
{
	uint32		hash = LockTagHashCode(&tag);
	int			partition = LockHashPartition(hash);
	const LockTables *tables = lock_tables();

	with_partition(partition, [&]() {
		LOCK	   *found = nullptr;

		if (tables != nullptr)
			found = static_cast<LOCK *>(hash_search_with_hash_value(tables->locks, &tag, hash,
																	HASH_FIND, nullptr));
		for (int i = 0; tables == nullptr && found == nullptr && i < proc_count(); i++)
		{
			for (const PROCLOCK *proclock : locks_of(GetPGProcByNumber(i), partition))
			{
				if (same_tag(proclock->tag.myLock->tag, tag))
					found = proclock->tag.myLock;
			}
		}
		if (found != nullptr)
			read(found);
	});
}

/*
 * Is matches(proclock) true for a holder of this lock?  Calls it for one after the other, with the
 * partition locked, until it returns true.
 */
template <typename Match>
static bool
any_holder(const LOCKTAG &tag, Match matches)
{
	bool		found = false;

	visit_lock(tag, [&](LOCK *lock) {
		for (const PROCLOCK *proclock : proclocks_of(lock))
			found = found || (proclock->holdMask != 0 && matches(proclock));
	});
	return found;
}

static int
partition_of(const LOCKTAG &tag)
{
	return LockHashPartition(LockTagHashCode(&tag));
}

/*
 * The lock of this partition that a session waits for, or null.  The partition must be locked.
 *
 * If the lock is in this partition, the session's waitLock does not change meanwhile.  If it is in
 * another one, waitLock can change and the lock can be freed, so the tag that is read here can be
 * anything.  So the tag is only used to skip other partitions.  The answer is certain because the
 * lock is then searched in the session's list of this partition, where a lock that it waits for is
 * usually the last.
 */
static LOCK *
awaited_lock(PGPROC *proc, int partition)
{
	LOCK	   *lock = const_cast<LOCK *volatile &>(proc->waitLock);

	if (lock == nullptr || partition_of(LOCKTAG(lock->tag)) != partition)
		return nullptr;
	for (const PROCLOCK *proclock : locks_of(proc, partition, &compat::ListNode::prev))
	{
		if (proclock->tag.myLock == lock)
			return lock;
	}
	return nullptr;
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
	const LockTables *tables = only_queues ? nullptr : lock_tables();

	/* Most locks are held in one mode. */
	return read_partitions([&](Collector *collector, int partition) {
		for (int i = 0; i < proc_count(); i++)
		{
			PGPROC	   *proc = GetPGProcByNumber(i);

			for (const PROCLOCK *proclock : locks_of(proc, partition))
			{
				LOCK	   *lock = proclock->tag.myLock;

				if (!is_advisory(lock->tag) ||
					(only_queues && !is_of_semaphore(lock->tag) && !is_of_lease_queue(lock->tag) &&
					 !is_of_lease_slot(lock->tag)))
					continue;
				collect_granted(collector, proclock);
				/* Collect the queue only once, with its first waiter. */
				if (proc->waitLock == lock && is_first_in_queue(lock, proc))
					collect_queue(collector, lock);
			}
		}
	}, tables != nullptr ? hash_get_num_entries(tables->holders) : 0);
}

LockUse *
read_lock_use()
{
	auto	   *use = static_cast<LockUse *>(palloc_extended(
		sizeof(LockUse) * LOCK_TYPES * proc_count(), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));

	any_proclock([&](int number, const PROCLOCK *proclock) {
		LOCK	   *lock = proclock->tag.myLock;
		LockUse    &of_type = use[number * LOCK_TYPES + lock->tag.locktag_type];

		of_type.holders++;
		of_type.locks += *proclocks_of(lock).begin() == proclock;
		return false;
	}, 0, proc_count());
	return use;
}

LockEntries
read_locks(std::initializer_list<LOCKTAG> tags, int slots)
{
	const DecodedTag first = decode_tag(*tags.begin());
	Collector	collector;
	auto		collect = [&](const LOCKTAG &tag) {
		collector.collect([&]() {
			visit_lock(tag, [&](LOCK *lock) { collect_lock(&collector, lock); });
		});
	};

	for (const LOCKTAG &tag : tags)
		collect(tag);
	for (int slot = 1; slot <= slots; slot++)
		collect(slot_tag(first.database, first.key, slot));
	return collector.found;
}

template <typename Match>
static bool
any_prepared(Match matches)
{
	return max_prepared_xacts > 0 &&
		any_held(matches, static_cast<int>(ProcGlobal->allProcCount), max_prepared_xacts);
}

int
highest_prepared_slot(Oid database, Key key)
{
	int			highest = 0;

	any_prepared([&](const LOCK *lock) {
		DecodedTag	tag = decode_tag(lock->tag);

		if (is_advisory(lock->tag) && tag.kind == Kind::semaphore && tag.database == database &&
			tag.key == key)
			highest = Max(highest, tag.slot);
		return false;
	});
	return highest;
}

bool
is_held_by_prepared(Oid database, Key key)
{
	return any_prepared([&](const LOCK *lock) {
		DecodedTag	tag = decode_tag(lock->tag);

		return is_advisory(lock->tag) && has_key(tag.kind) && tag.database == database &&
			tag.key == key;
	});
}

bool
holds_advisory_lock(int proc_number)
{
	return any_held([](const LOCK *lock) { return is_advisory(lock->tag); }, proc_number);
}

bool
is_held_by_anybody(const LOCKTAG &tag, LockEntry *holder)
{
	return any_holder(tag, [&](const PROCLOCK *proclock) {
		if (holder != nullptr)
			*holder = entry_for(proclock, NoLock, false);
		return true;
	});
}

bool
is_held_by_others(const LOCKTAG &tag)
{
	return any_holder(tag, [](const PROCLOCK *proclock) {
		return proclock->tag.myProc != MyProc;
	});
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
	int			partition = partition_of(LOCKTAG(lock->tag));

	with_partition(partition, [&]() {
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
		for (const PROCLOCK *proclock : locks_of(MyProc, partition))
		{
			if (is_advisory(proclock->tag.myLock->tag))
				collect_granted(collector, proclock);
		}
	});
}

bool
have_other_locks()
{
	return compat::has_fast_path_locks() || any_held([](const LOCK *lock) {
		return lock->tag.locktag_type != LOCKTAG_VIRTUALTRANSACTION && !is_advisory(lock->tag);
	});
}

int
count_my_lease_locks()
{
	int			count = 0;

	any_held([&count](const LOCK *lock) {
		if (decode_tag(lock->tag).kind == Kind::lease)
			count++;
		return false;
	});
	return count;
}

bool
is_mine_awaited(const LOCKTAG &tag)
{
	return any_held([&tag](const LOCK *lock) {
		return lock->waitMask != 0 && same_tag(lock->tag, tag);
	});
}

void
wake_holders(const LOCKTAG &tag) noexcept
{
	any_holder(tag, [](const PROCLOCK *proclock) {
		wake(process_number(proclock->tag.myProc));
		return false;
	});
}

bool
signal_holder(Oid database, Key key, int pid, const Kind *only, bool *sent)
{
	int			signal_errno = 0;
	auto		signal_if_same = [&](const PROCLOCK *proclock) {
		if (proclock->tag.myProc->pid != pid)
			return false;
		/* Signal its whole process group, as pg_terminate_backend() does. */
		if (kill(-pid, SIGTERM) != 0)
			signal_errno = errno;
		return true;
	};
	auto		counts = [=](Kind kind) { return only == nullptr || *only == kind; };
	bool		holds =
		(counts(Kind::lock) && any_holder(lock_tag(database, key), signal_if_same)) ||
		(counts(Kind::lease) && any_holder(lease_tag(database, key, NO_SLOT), signal_if_same));

	for (int slot = 1; (only == nullptr || *only != Kind::lock) && slot <= MAX_SLOTS && !holds;
		 slot++)
	{
		CHECK_FOR_INTERRUPTS();
		holds = (counts(Kind::semaphore) &&
				 any_holder(slot_tag(database, key, slot), signal_if_same)) ||
			(counts(Kind::lease) && any_holder(lease_tag(database, key, slot), signal_if_same));
	}

	*sent = holds && signal_errno == 0;
	errno = signal_errno;
	return holds;
}

}								/* namespace advisory */
