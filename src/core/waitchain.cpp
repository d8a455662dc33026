/*
 * core/waitchain.cpp
 *		What a session waits for, and where a chain of such waits ends.
 */
#include "base/pg.h"

extern "C" {
#include "storage/lock.h"
#include "storage/proc.h"
}

#include "core/waitchain.h"
#include "server/waitgraph.h"
#include "shmem/waiters.h"

namespace advisory
{

bool
read_session_wait(int proc_number, SessionWait *wait)
{
	LockEntry	waiter;
	PublishedWait published;

	if (read_awaited_lock(proc_number, &waiter))
	{
		wait->tag = waiter.tag;
		wait->slots = 0;
		wait->lockmode = waiter.lockmode;
		wait->since = waiter.wait_start;
		return waiter.wait_start != 0;
	}
	if (!read_wait(proc_number, &published) || published.slots == 0 || published.is_leaving ||
		decode_tag(published.tag).kind != Kind::queue)
		return false;
	wait->tag = published.tag;
	wait->slots = published.slots;
	wait->since = published.since;
	return true;
}

/* The same for a lock group: one of its parallel workers may wait while the leader does not. */
static bool
read_group_wait(int leader_number, SessionWait *wait)
{
	PGPROC	   *leader = GetPGProcByNumber(leader_number);

	if (read_session_wait(leader_number, wait))
		return true;
	/* This does not take the group's lock, because find_lock_blocker() checks that the member waits in this group. */
	for (int i = 0; leader->lockGroupLeader == leader && i < static_cast<int>(ProcGlobal->allProcCount); i++)
	{
		if (i != leader_number && GetPGProcByNumber(i)->lockGroupLeader == leader && read_session_wait(i, wait))
			return true;
	}
	return false;
}

/* The first entry that blocks a lock group's wait for a lock; false if none does any more. */
static bool
find_lock_blocker(const SessionWait &wait, int leader_number, LockEntry *blocker)
{
	LockEntries found = read_lock(wait.tag);
	const LockEntry *all = found.entries;
	bool		is_blocked = false;
	int			waiter = 0;

	while (waiter < found.count && (all[waiter].granted || all[waiter].leader_number != leader_number))
		waiter++;
	if (waiter == found.count)
		return false;
	visit_blockers(found, 0, waiter, [&](int i) {
		*blocker = all[i];
		is_blocked = true;
		return false;
	});
	return is_blocked;
}

/*
 * The first holder of a slot that is not yet in the chain, because any free slot ends the wait; if there
 * is none, a holder that is in the chain.  False if no slot is held.
 */
static bool
find_slot_blocker(const SessionWait &wait, const Bitmapset *chain, LockEntry *blocker)
{
	DecodedTag	tag = decode_tag(wait.tag);
	bool		is_blocked = false;

	for (int slot = 1; slot <= wait.slots; slot++)
	{
		LockEntry	holder;

		CHECK_FOR_INTERRUPTS();
		if (!read_holder(slot_tag(tag.database, tag.key, slot), &holder))
			continue;
		*blocker = holder;
		is_blocked = true;
		if (!bms_is_member(holder.leader_number, chain))
			break;
	}
	return is_blocked;
}

bool
follow_waits(const LockEntry &session, WaitChain *chain)
{
	int			me = my_process_number();
	Bitmapset  *seen = bms_make_singleton(me);
	int			steps = 0;
	SessionWait wait;
	LockEntry	blocker;

	chain->last = session;
	/* A prepared transaction waits for nothing.  No session is passed twice, so this ends. */
	while (chain->last.pid != 0 && read_group_wait(chain->last.leader_number, &wait))
	{
		CHECK_FOR_INTERRUPTS();
		seen = bms_add_member(seen, chain->last.leader_number);
		if (!(wait.slots > 0 ? find_slot_blocker(wait, seen, &blocker)
			  : find_lock_blocker(wait, chain->last.leader_number, &blocker)))
			break;
		chain->last = blocker;
		if (steps++ == 0)
			chain->next = blocker;
		if (!bms_is_member(blocker.leader_number, seen))
			continue;
		chain->end = blocker.leader_number == me ? ChainEnd::me : ChainEnd::cycle;
		return true;
	}
	chain->end = ChainEnd::root;
	return steps > 0;
}

}								/* namespace advisory */
