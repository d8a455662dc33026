/*
 * core/blockers.cpp
 *		Which sessions block a lock or a slot, for error messages.
 */
#include "base/pg.h"

extern "C" {
#include "storage/proc.h"
#include "utils/timestamp.h"
}

#include "base/encoding.h"
#include "core/blockers.h"
#include "server/backends.h"
#include "server/waitgraph.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* How many sessions an error message describes; nobody would read more. */
static constexpr int DESCRIBED_BLOCKERS = 5;

static void
append_session(StringInfo out, const VisibleSession &session)
{
	if (session.gid != nullptr)
		appendStringInfo(out, "Prepared transaction \"%s\"", session.gid);
	else if (session.pid == 0)
		appendStringInfoString(out, "A prepared transaction");
	else
		appendStringInfo(out, "Process %d", session.pid);
	if (session.pid != 0 && session.role != nullptr)
		appendStringInfo(out, " of role \"%s\"", session.role);
	if (session.application != nullptr && session.application[0] != '\0')
		appendStringInfo(out, ", application \"%s\",", session.application);
}

static void
append_hold(StringInfo out, const LockEntry &entry)
{
	if (!is_of_semaphore(entry.tag))
		appendStringInfo(out, " %s it in %s mode",
						 !entry.granted ? "waits for" : decode_tag(entry.tag).kind == Kind::lease ? "has locked" : "holds",
						 lockmode_name(entry.tag, entry.lockmode));
	else if (entry.granted)
		appendStringInfo(out, " has slot %d", decode_tag(entry.tag).slot);
	else
		appendStringInfoString(out, " waits for a slot");
}

/* The wait of a holder, or of one of its parallel workers.  False if none waits. */
static bool
read_group_wait(const LockEntry &holder, LockEntry *wait)
{
	PGPROC	   *leader = GetPGProcByNumber(holder.leader_number);

	if (read_session_wait(holder.leader_number, wait))
		return true;
	/* This does not take the group's lock: what it reads may be out of date at once anyway. */
	for (int i = 0; leader->lockGroupLeader == leader && i < static_cast<int>(ProcGlobal->allProcCount); i++)
	{
		if (i != holder.leader_number && GetPGProcByNumber(i)->lockGroupLeader == leader && read_session_wait(i, wait))
			return true;
	}
	return false;
}

/* What a holder waits for, and since when; null if it waits for nothing. */
static const char *
what_it_awaits(const LockEntry &holder, TimestampTz *since)
{
	PublishedWait published;
	LockEntry	wait;

	if (holder.pid == 0)
		return nullptr;
	if (read_group_wait(holder, &wait))
	{
		*since = wait.wait_start;
		return is_of_semaphore(wait.tag) ? "slot" : is_of_lease_queue(wait.tag) ? "lease" : "lock";
	}
	/* No session holds what the first in the queue of a lease waits for. */
	if (!read_wait(holder.proc_number, &published) || published.pid != holder.pid ||
		decode_tag(published.tag).kind != Kind::lease)
		return nullptr;
	*since = published.since;
	return "lease";
}

/* Add a sentence about a session that holds or awaits the lock or slot.  Returns whether that session waits. */
static bool
append_blocker(StringInfo out, const LockEntry &entry, const VisibleSession &session)
{
	const char *awaited = nullptr;
	TimestampTz since;
	int			start;

	if (out->len > 0)
		appendStringInfoChar(out, '\n');
	start = out->len;
	append_session(out, session);
	append_hold(out, entry);
	if (entry.granted)
		awaited = what_it_awaits(entry, &since);
	if (awaited != nullptr)
		appendStringInfo(out, "; it is waiting for a %s since %s", awaited, timestamptz_to_str(since));
	else if (session.state != nullptr)
	{
		appendStringInfo(out, "; it is %s", session.state);
		if (session.state_start != 0)
			appendStringInfo(out, " since %s", timestamptz_to_str(session.state_start));
	}
	appendStringInfoChar(out, '.');
	/* Names of roles and prepared transactions must not look like further lines. */
	make_printable(out->data + start);
	out->len = static_cast<int>(strlen(out->data));
	return awaited != nullptr || !entry.granted;
}

/* The holders and waiters of what is requested, with waits marked; for a slot in the order of the queue and of the slots. */
static LockEntries
read_requested(const LockRequest &request)
{
	LockEntries found;

	if (!request.is_for_slot())
		return read_lock(request.is_for_lease() ? lease_tag(MyDatabaseId, request.name.key) : request.tag());
	found = read_semaphore(MyDatabaseId, request.name.key, request.slots);
	mark_slot_waits(&found);
	sort_slot_entries(&found);
	return found;
}

/* The request as if this session waited for it, behind all others. */
static LockEntry
as_waiter(const LockRequest &request)
{
	LockEntry	waiter = {};

	waiter.tag = request.tag();
	waiter.leader_pid = MyProcPid;
	waiter.lockmode = lockmode_of(request.mode);
	waiter.slots = request.slots;
	return waiter;
}

Blockers
find_blockers(const LockRequest &request)
{
	LockEntries found = read_requested(request);
	LockEntry	me = as_waiter(request);
	Blockers	blockers = {};
	Backends	backends;
	StringInfoData out;
	int			count = 0;
	int			own = 0;

	initStringInfo(&out);
	/* Holders first, because they block the waiters, too. */
	for (bool granted : {true, false})
	{
		for (int i = 0; i < found.count; i++)
		{
			const LockEntry &entry = found.entries[i];

			if (entry.granted != granted)
				continue;
			own += granted && request.is_for_slot() && entry.pid == MyProcPid;
			if (!is_in_the_way(entry, me) || count++ >= DESCRIBED_BLOCKERS)
				continue;

			VisibleSession session = backends.of(entry);
			bool		is_waiting = append_blocker(&out, entry, session);

			if (count == 1)
				blockers.is_waiting = is_waiting;
			if (granted && blockers.holder_pid == 0)
				blockers.holder_pid = entry.pid;
			if (granted && blockers.holder_gid == nullptr)
				blockers.holder_gid = session.gid;
		}
	}
	if (count > DESCRIBED_BLOCKERS)
		appendStringInfo(&out, "\n%d more hold or wait for it.", count - DESCRIBED_BLOCKERS);
	if (own > 0)
		appendStringInfo(&out, "%sThis session has %d of the slots itself.", count > 0 ? "\n" : "", own);
	if (out.len > 0)
		blockers.description = out.data;
	return blockers;
}

}								/* namespace advisory */
