/*
 * shmem/slotlocks.cpp
 *		What sessions wait for: locks, slots of semaphores, and leases, as entries of locks.
 */
#include "base/pg.h"

#include "shmem/slotlocks.h"
#include "shmem/root.h"
#include "shmem/sessiontable.h"
#include "shmem/slotstate.h"

namespace advisory
{

/*
 * The published wait of an entry's session, if it is one for the lock of that entry.  Who waits for
 * several semaphores publishes one of them, and stands in the queues of all.
 */
static bool
read_wait_there(const LockEntry &entry, PublishedWait *wait)
{
	LOCKTAG		queue;

	if (!read_wait_of(entry, wait))
		return false;
	if (same_tag(wait->tag, entry.tag) || is_same_semaphore(wait->tag, entry.tag))
		return true;
	for (int i = 0; i < MAX_QUEUES; i++)
	{
		if (read_queue_of(entry.proc_number, i, &queue, &wait->slots) && same_tag(queue, entry.tag))
			return true;
	}
	return false;
}

/*
 * A queued session holds the queue lock, but in ShareLock mode a session only sees whether the
 * queue is empty (semaphore.cpp), which does not mean a wait.  Nor does a session hold a lease
 * because it looks whether that is free (lease.cpp).
 */
void
mark_slot_waits(LockEntries *found)
{
	int			kept = 0;

	for (int i = 0; i < found->count; i++)
	{
		LockEntry	entry = found->entries[i];
		bool		is_queued = entry.granted && decode_tag(entry.tag).kind == Kind::queue;
		bool		is_first_for_lease = entry.granted && is_of_lease_queue(entry.tag);
		bool		is_looking = entry.granted && is_of_lease(entry.tag) &&
			entry.lockmode == RowShareLock;
		PublishedWait wait;

		CHECK_FOR_INTERRUPTS();
		if (is_looking || (is_queued && entry.lockmode == ShareLock))
			continue;
		if (is_queued)
		{
			entry.is_head = true;
			entry.granted = false;
			entry.held_modes = 0;
			entry.lockmode = ExclusiveLock;
		}
		if (((!entry.granted && is_of_semaphore(entry.tag)) || is_first_for_lease) &&
			read_wait_there(entry, &wait))
		{
			entry.waits_for_lease = is_first_for_lease;
			entry.lacks_other = !same_tag(wait.tag, entry.tag) &&
				!is_same_semaphore(wait.tag, entry.tag);
			entry.slots = wait.slots;
			entry.wanted = wait.wanted;
			entry.wait_start = wait.since;
		}
		found->entries[kept++] = entry;
	}
	found->count = kept;
}

/* Is it a wait in the queue of a semaphore or of a lease?  The only slot of one has no queue. */
static bool
is_queued(const PublishedWait &wait) noexcept
{
	return is_of_lease_queue(wait.tag) ||
		(wait.slots > 0 && decode_tag(wait.tag).kind == Kind::queue);
}

bool
read_session_wait(int proc_number, LockEntry *wait)
{
	PublishedWait published;

	if (read_awaited_lock(proc_number, wait))
		return wait->wait_start != 0;
	if (!read_wait(proc_number, &published) || published.is_leaving || !is_queued(published))
		return false;
	*wait = LockEntry{};
	wait->tag = published.tag;
	wait->proc_number = proc_number;
	wait->pid = published.pid;
	wait->slots = published.slots;
	wait->wanted = published.wanted;
	wait->tries = published.tries;
	wait->lockmode = ExclusiveLock;
	wait->wait_start = published.since;
	wait->waits_for_lease = is_of_lease_queue(published.tag);
	return true;
}

LockEntries
read_lock_and_slots(Key key)
{
	/*
	 * The slots of a prepared transaction stay, even where all sessions have forgotten the
	 * semaphore.
	 */
	int			slots = Max(highest_slot(key), highest_prepared_slot(MyDatabaseId, key));
	LockEntries found = read_locks({lock_tag(MyDatabaseId, key), queue_tag(MyDatabaseId, key)},
								   slots);

	mark_slot_waits(&found);
	return found;
}

/*
 * By lock; for each lock its holders, then a semaphore's queue by the time of the waits, then the
 * lock manager's queue.
 */
void
sort_slot_entries(LockEntries *found)
{
	auto		rank = [](const LockEntry &entry) {
		return std::make_tuple(order_of(entry.tag), !entry.granted, !entry.is_head,
							   entry.is_head ? entry.wait_start : 0, entry.first_blocker);
	};

	/* Keep the order in which they stand, which is the lock manager's. */
	for (int i = 0; i < found->count; i++)
		found->entries[i].first_blocker = i;
	std::sort(found->entries, found->entries + found->count,
			  [&](const LockEntry &a, const LockEntry &b) { return rank(a) < rank(b); });
}

/* Does any session publish a wait for a slot or a lease?  May ereport for a cancel. */
static bool
anybody_is_queued()
{
	const SharedSession *sessions = all_sessions();

	for (int i = 0; sessions != nullptr && i < process_count(); i++)
	{
		PublishedWait wait;

		CHECK_FOR_INTERRUPTS();
		if (sessions[i].wait.pid != 0 && read_wait(i, &wait) && is_queued(wait))
			return true;
	}
	return false;
}

LockEntries
read_all_waits_and_slots()
{
	LockEntries waits = read_all_waits();
	LockEntries slots;
	int			kept = 0;

	/* The entries of queues are read once more, with all others of their semaphore. */
	for (int i = 0; i < waits.count; i++)
	{
		if (!is_of_semaphore(waits.entries[i].tag) && !is_of_lease_queue(waits.entries[i].tag))
			waits.entries[kept++] = waits.entries[i];
	}
	/* Without shared memory no session can publish that it waits for a slot. */
	if (kept == waits.count && attached_root != nullptr && !anybody_is_queued())
		return waits;

	slots = read_all_locks(true);
	mark_slot_waits(&slots);
	sort_slot_entries(&slots);
	waits.entries = static_cast<LockEntry *>(
		repalloc_huge(waits.entries, sizeof(LockEntry) * (kept + slots.count + 1)));
	memcpy(waits.entries + kept, slots.entries, sizeof(LockEntry) * slots.count);
	waits.count = kept + slots.count;
	return waits;
}

/*
 * For a row of another transaction the server waits for that transaction, for the lock of the row,
 * or for the end of an insertion that may not last.
 */
static bool
is_wait_for_row(const LockEntry &wait) noexcept
{
	int			type = wait.tag.locktag_type;

	return !wait.granted && (type == LOCKTAG_TRANSACTION || type == LOCKTAG_TUPLE ||
							 type == LOCKTAG_SPECULATIVE_TOKEN);
}

/*
 * claim() publishes the lock of its name, as a session does that waits for this lock.  But such a
 * session waits for no row meanwhile.
 */
const LockEntry *
claim_of(const LockEntry &wait)
{
	PublishedWait published;

	if (!is_wait_for_row(wait) || !read_wait_of(wait, &published) ||
		decode_tag(published.tag).kind != Kind::lock)
		return nullptr;

	auto	   *claim = static_cast<LockEntry *>(palloc(sizeof(LockEntry)));

	*claim = wait;
	claim->tag = published.tag;
	return claim;
}

}								/* namespace advisory */
