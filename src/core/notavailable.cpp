/*
 * core/notavailable.cpp
 *		The error of what could not be obtained in time, and the sessions in its way.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/remedy.h"
#include "core/notavailable.h"
#include "core/leaserows.h"
#include "core/namecache.h"
#include "server/backends.h"
#include "server/locktable.h"
#include "server/waitgraph.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"

namespace advisory
{

char *
describe_request(const LockRequest &request, int slot)
{
	char	   *name = display_lock(request.name);

	if (!request.is_for_slot())
		return psprintf("advisory lock \"%s\"", name);
	return psprintf("%s of semaphore \"%s\"", slot == NO_SLOT
					? slots_text(request.wanted) : psprintf("slot %d", slot), name);
}

char *
describe_lease(const char *name, bool is_slot, int slot)
{
	return !is_slot ? psprintf("lease \"%s\"", name)
		: slot == NO_SLOT ? psprintf("a slot of lease \"%s\"", name)
		: psprintf("slot %d of lease \"%s\"", slot, name);
}

/* ---- The sessions in the way ---- */

/* How many sessions an error message describes; nobody would read more. */
static constexpr int DESCRIBED_BLOCKERS = 5;

struct Blockers
{
	char	   *description;	/* null if no session blocks it any more */
	bool		is_waiting;		/* the first session in the description itself waits */
	bool		disagree;		/* other sessions give other numbers of slots */
	int			holder_pid;		/* a session that holds the lock; 0 if none does */
	const char *holder_gid;		/* a prepared transaction that does; null if none does */
	bool		gid_is_exact;
	TransactionId holder_xid;	/* of that */
};

static void
append_session(StringInfo out, const VisibleSession &session, TransactionId xid)
{
	/* What is shown of such an identifier can be that of another one. */
	if (session.gid != nullptr && !session.gid_is_exact)
		appendStringInfo(out, "Prepared transaction \"%s\" (transaction %u)", session.gid, xid);
	else if (session.gid != nullptr)
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
	int			slot = decode_tag(entry.tag).slot;

	if (!is_of_semaphore(entry.tag))
		appendStringInfo(out, " %s %s in %s mode",
						 entry.is_waiting() ? "waits for" :
						 decode_tag(entry.tag).kind == Kind::lease ? "has locked" : "holds",
						 slot == NO_SLOT ? "it" : psprintf("slot %d", slot),
						 lockmode_name(entry.tag, entry.lockmode));
	else if (entry.granted)
		appendStringInfo(out, " has slot %d", slot);
	else
		appendStringInfo(out, " waits for %s", slots_text(entry.wanted));
}

/* What a holder, or one of its parallel workers, waits for, and since when; or null. */
static const char *
what_it_awaits(const LockEntry &holder, TimestampTz *since)
{
	const PGPROC *leader = GetPGProcByNumber(holder.leader_number);
	LockEntry	wait;

	if (holder.pid == 0)
		return nullptr;
	/* The leader first.  Without the group's lock: what is read may soon be out of date anyway. */
	for (int i = 0; i < process_count(); i++)
	{
		int			number = (holder.leader_number + i) % process_count();

		if ((i == 0 || GetPGProcByNumber(number)->lockGroupLeader == leader) &&
			read_session_wait(number, &wait))
		{
			*since = wait.wait_start;
			return is_of_semaphore(wait.tag) ? slots_text(wait.wanted) :
				is_of_lease_slot_queue(wait.tag) ? "a slot of a lease" :
				is_of_lease_queue(wait.tag) ? "a lease" : "a lock";
		}
	}
	return nullptr;
}

/* Add a sentence about a holder or waiter.  Returns whether that session itself waits. */
static bool
append_blocker(StringInfo out, const LockEntry &entry, const VisibleSession &session)
{
	const char *awaited = nullptr;
	TimestampTz since;
	int			start;

	if (out->len > 0)
		appendStringInfoChar(out, '\n');
	start = out->len;
	append_session(out, session, entry.xid);
	append_hold(out, entry);
	if (entry.granted)
		awaited = what_it_awaits(entry, &since);
	if (awaited != nullptr)
		appendStringInfo(out, "; it is waiting for %s since %s",
						 awaited, timestamptz_to_str(since));
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

/* The holders and waiters of what is requested, waits marked; of slots in their order. */
static LockEntries
read_requested(const LockRequest &request)
{
	LockEntries found;

	if (!request.is_for_slot())
		return read_locks({request.tag()});
	found = read_locks({queue_tag(MyDatabaseId, request.name.key)}, request.slots);
	mark_slot_waits(&found);
	sort_slot_entries(&found);
	return found;
}

/* Those who are in the way among these, as if this session waited behind all others, as me says. */
static Blockers
find_blockers(const LockEntries &found, LockEntry me)
{
	Blockers	blockers = {};
	Backends	backends;
	HoldReader	holds;
	StringInfoData out;
	int			count = 0;
	int			own = 0;

	me.leader_pid = MyProcPid;
	initStringInfo(&out);
	/* Holders first, because they block the waiters, too. */
	for (bool granted : {true, false})
	{
		for (int i = 0; i < found.count; i++)
		{
			const LockEntry &entry = found.entries[i];

			if (entry.granted != granted)
				continue;

			if (me.slots > 0)
			{
				/* To look for a hold copies all that its session holds. */
				int			slots = slots_given(entry, holds.find(entry));

				blockers.disagree |= slots > 0 && slots != me.slots;
				own += granted && entry.pid == MyProcPid;
			}
			if (!is_in_the_way(entry, me) || count++ >= DESCRIBED_BLOCKERS)
				continue;

			VisibleSession session = backends.of(entry);
			bool		is_waiting = append_blocker(&out, entry, session);

			if (count == 1)
				blockers.is_waiting = is_waiting;
			if (granted && blockers.holder_pid == 0)
				blockers.holder_pid = entry.pid;
			if (granted && blockers.holder_gid == nullptr && session.gid != nullptr)
			{
				blockers.holder_gid = session.gid;
				blockers.gid_is_exact = session.gid_is_exact;
				blockers.holder_xid = entry.xid;
			}
		}
	}
	if (count > DESCRIBED_BLOCKERS)
		appendStringInfo(&out, "\n%d more hold or wait for it.", count - DESCRIBED_BLOCKERS);
	if (own > 0)
		appendStringInfo(&out, "%sThis session has %d of the slots itself.",
						 count > 0 ? "\n" : "", own);
	if (out.len > 0)
		blockers.description = out.data;
	return blockers;
}

static Blockers
find_blockers(const LockRequest &request)
{
	LockEntry	me = {};

	me.tag = request.tag();
	me.lockmode = lockmode_of(request.mode);
	me.slots = request.slots;
	return find_blockers(read_requested(request), me);
}

char *
describe_blockers(const LockRequest &request)
{
	return find_blockers(request).description;
}

/* ---- Not available ---- */

/* Only while others wait does it show anything, but then in a few lines what there is to do. */
#define LOOK_HINT "To see what others wait for: SELECT * FROM advisory.blockers."

/* The HINT: where to look, and the statement that ends the session that holds this. */
static int
set_terminate_hint(const LockName &name, Kind kind, int pid)
{
	if (pid == 0)
		return errhint(LOOK_HINT);
	return errhint(LOOK_HINT " To end %s: %s.",
				   kind == Kind::semaphore ? "the first of these sessions" : "that session",
				   terminate_holder_statement(name, kind, pid));
}

/* The HINT: statements that show who is in the way, and that end such a session. */
static int
set_holder_hint(const LockRequest &request, const Blockers &blockers)
{
	/* Whoever is in the way may be right. */
	if (blockers.disagree)
		return errhint("To see who gives which number of slots: "
					   "SELECT * FROM advisory.semaphores.");
	if (blockers.holder_gid != nullptr && !blockers.gid_is_exact)
		return errhint("To see the prepared transaction that holds it: "
					   "SELECT * FROM pg_catalog.pg_prepared_xacts WHERE transaction = '%u'.",
					   blockers.holder_xid);
	if (blockers.holder_gid != nullptr)
		return errhint("To end the prepared transaction that holds it: COMMIT PREPARED %s or %s.",
					   quote_literal_cstr(blockers.holder_gid),
					   rollback_statement(blockers.holder_gid));
	/* Ending a session that itself waits would not end what it waits for. */
	if (blockers.is_waiting)
		return errhint("To see who waits for whom: SELECT * FROM advisory.wait_tree().");
	return set_terminate_hint(request.name, request.is_for_slot() ? Kind::semaphore : Kind::lock,
							  blockers.holder_pid);
}

/* How long the session waited, as a part of the sentence: "within 250 ms", "within 5 s". */
static char *
describe_limit(Outcome outcome, Timeout limit)
{
	bool		is_setting = outcome == Outcome::lock_timeout;
	const char *what = is_setting ? "lock_timeout of " : "";
	int			milliseconds = is_setting ? LockTimeout : limit.milliseconds;

	if (milliseconds <= 0)
		return pstrdup("without waiting");
	if (milliseconds % 1000 == 0)
		return psprintf("within %s%d s", what, milliseconds / 1000);
	return psprintf("within %s%d ms", what, milliseconds);
}

[[noreturn]] void
raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit)
{
	char	   *what = describe_request(request);
	Blockers	blockers;

	if (outcome == Outcome::mine_already)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("this session already holds %s", what),
				 errdetail("\"advisory_ext.reentrant\" is \"off\"."),
				 set_lock_fields(request.name)));
	blockers = find_blockers(request);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain %s %s", what, describe_limit(outcome, limit)),
			 blockers.description != nullptr ? errdetail("%s", blockers.description) : 0,
			 set_holder_hint(request, blockers),
			 set_lock_fields(request.name)));
}

/*
 * Who has locked the lease, or the first of so many slots that is locked but not taken; or who
 * waits for it before this session.
 */
static Blockers
find_lease_blockers(Key key, int slots, const Bitmapset *taken)
{
	Blockers	blockers = {};
	LockEntry	me = {};
	LockEntries queue;

	me.lockmode = ExclusiveLock;
	for (int slot = slots > 0 ? 1 : NO_SLOT; slot <= slots && blockers.description == nullptr;
		 slot++)
	{
		CHECK_FOR_INTERRUPTS();
		me.tag = lease_tag(MyDatabaseId, key, slot);
		if (bms_is_member(slot, taken) || !is_held_by_anybody(me.tag))
			continue;
		blockers = find_blockers(read_locks({me.tag}), me);
	}
	if (blockers.description != nullptr)
		return blockers;
	me.tag = lease_queue_tag(MyDatabaseId, key, slots > 0);
	queue = read_locks({me.tag});
	mark_slot_waits(&queue);
	blockers = find_blockers(queue, me);
	blockers.holder_pid = 0;	/* to end it would not help */
	return blockers;
}

[[noreturn]] void
raise_lease_not_available(const LockName &name, int slots, Outcome outcome, Timeout limit)
{
	bool		is_slot = slots > 0;
	char	   *what = describe_lease(display_lock(name), is_slot);
	Bitmapset  *taken = nullptr;
	char	   *detail = is_slot
		? lease_describe_slots(name.key, slots, &taken) : lease_describe_holder(name.key);
	int			holder = 0;

	/* Nobody may hold the lease, but a transaction is taking it or relies on it. */
	if (is_slot ? detail != nullptr && bms_num_members(taken) < slots : detail == nullptr)
	{
		Blockers	blockers = find_lease_blockers(name.key, slots, taken);

		if (detail == nullptr)
			detail = blockers.description;
		else if (blockers.description != nullptr)
			detail = psprintf("%s\n%s", detail, blockers.description);
		holder = blockers.holder_pid;
	}
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain %s %s", what, describe_limit(outcome, limit)),
			 detail != nullptr ? errdetail("%s", detail) : 0,
			 holder != 0
			 ? set_terminate_hint(name, Kind::lease, holder)
			 : errhint("To see who holds %s: SELECT * FROM advisory.leases.",
					   is_slot ? "them" : "it"),
			 set_lock_fields(name)));
}

}								/* namespace advisory */
