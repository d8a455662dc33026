/*
 * views/waits.cpp
 *		Who waits for whom, as trees: the rows of advisory.waits, and the same as text.
 *
 * Wording
 *		session		a lock group (a session with its parallel workers) or a prepared transaction
 *		wait		one session waiting for another that is in its way
 *		root		a session that others wait for, and that waits for nothing
 *		cycle		sessions that wait for each other: a deadlock not found yet
 *
 * The trees follow waits for locks of every type, because the holder of an advisory
 * lock may itself wait for a row.  But they contain only branches that lead to a waiter
 * for an advisory lock.
 *
 * The lock table is read one partition after the other, so the waits that are read
 * need not have existed at the same time.  A session may seem to wait twice, and there
 * may seem to be a cycle that never existed.  So this code does not assume that the
 * graph is consistent.
 */
#include "base/pg.h"

extern "C" {
#include "funcapi.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

#include "base/encoding.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "core/lease.h"
#include "server/backends.h"
#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/visiblename.h"

namespace advisory
{

/* ---- Trees ---- */

namespace
{

/*
 * One line of a tree.
 *
 *					lock								blocker
 *		root		the lock that it holds with the		null
 *					longest wait of others for it
 *		waiter		the lock that it waits for			the hold or wait that blocks it
 *		first of	the same							the same; the blocker is
 *		a cycle										further down the tree
 */
struct WaitLine
{
	const LockEntry *lock;
	const LockEntry *blocker;
	const WaitLine *parent;		/* the line above it; null at depth 0 */
	int			depth;
	bool		seen_above;		/* the sessions that wait for it are under an earlier line */
};

struct Session
{
	int			pid;			/* 0 for a prepared transaction */
	TransactionId xid;			/* of the prepared transaction */
	List	   *waits;			/* its own (Wait *) */
	List	   *waiters;		/* the waits of others for it, longest first */
	const LockEntry *top;		/* the lock in its line if it is a root */
	TimestampTz since;			/* when the longest wait for that lock began */
	bool		shown;			/* it or a session below it waits for an advisory lock */
	bool		expanded;		/* are the sessions below it in the tree already? */
	bool		in_path;		/* is it between the root and the line that is being written? */
};

/* waiter waits for blocker. */
struct Wait
{
	Session    *waiter;
	Session    *blocker;
	const LockEntry *lock;		/* the wait of the waiter */
	const LockEntry *held;		/* the blocker's hold of the lock, or its place in the queue */
};

}								/* anonymous namespace */

template <typename T>
static int
compare(T a, T b) noexcept
{
	return a < b ? -1 : a > b;
}

/* A wait whose start is not known yet has only just begun. */
static TimestampTz
start_of(const LockEntry &entry) noexcept
{
	return entry.wait_start != 0 ? entry.wait_start : DT_NOEND;
}

static Wait *
wait_in(const ListCell *cell) noexcept
{
	return static_cast<Wait *>(lfirst(cell));
}

static int
compare_sessions(const Session &a, const Session &b) noexcept
{
	int			result = compare(a.pid, b.pid);

	return result != 0 ? result : compare(a.xid, b.xid);
}

/* By blocker, then by the start of the wait; then in the order of the entries, which is the order of the queue. */
static int
compare_waits(const ListCell *a, const ListCell *b)
{
	int			result = compare_sessions(*wait_in(a)->blocker, *wait_in(b)->blocker);

	if (result == 0)
		result = compare(start_of(*wait_in(a)->lock), start_of(*wait_in(b)->lock));
	return result != 0 ? result : compare(wait_in(a)->lock, wait_in(b)->lock);
}

/* First the sessions that do not wait, by the longest wait for them; then the others. */
static int
compare_tops(const ListCell *a, const ListCell *b)
{
	auto	   *session_a = static_cast<const Session *>(lfirst(a));
	auto	   *session_b = static_cast<const Session *>(lfirst(b));
	int			result = compare(session_a->waits != NIL, session_b->waits != NIL);

	if (result == 0 && session_a->waits == NIL)
		result = compare(session_a->since, session_b->since);
	return result != 0 ? result : compare_sessions(*session_a, *session_b);
}

namespace
{

class Forest
{
public:
	explicit Forest(const LockEntries &entries)
		: entries(entries), sessions(static_cast<Session *>(palloc0(sizeof(Session) * proc_count())))
	{
	}

	/*
	 * The lines (WaitLine *) of all trees, each followed by its branches.  A waiter stands under
	 * every session whose hold blocks it.  If there is none, it stands under the nearest blocker
	 * ahead of it in the queue.  Longest waits come first, cycles last.
	 */
	List	   *grow()
	{
		ListCell   *cell;
		ListCell   *wait;

		list_waits();
		choose();
		foreach(cell, shown)
		{
			auto	   *session = static_cast<Session *>(lfirst(cell));

			if (session->waits == NIL)
				write_tree(session, add_line(session->top, nullptr, nullptr));
			else if (!session->expanded)
			{
				WaitLine   *first = nullptr;

				session = start_of_cycle(session);
				foreach(wait, session->waits)
				{
					WaitLine   *line = add_line(wait_in(wait)->lock, wait_in(wait)->held, nullptr);

					first = first != nullptr ? first : line;
				}
				write_tree(session, first);
			}
		}
		return lines;
	}

private:
	void		list_waits()
	{
		int			first = 0;	/* of the lock's entries */

		for (int waiter = 0; waiter < entries.count; waiter++)
		{
			const LockEntry *lock = &entries.entries[waiter];
			Session    &session = sessions[lock->leader_number];
			bool		is_blocked = false;

			CHECK_FOR_INTERRUPTS();
			if (!same_tag(lock->tag, entries.entries[first].tag))
				first = waiter;
			if (lock->waits_for_lease)
			{
				session.pid = session_pid(*lock);
				session.top = lock;
				session.since = start_of(*lock);
			}
			if (lock->granted)
				continue;
			session.pid = session_pid(*lock);
			visit_blockers(entries, first, waiter, [&](int i) {
				const LockEntry *held = &entries.entries[i];
				Session    &blocker = sessions[held->leader_number];

				/* Of the waiters ahead in a queue only the nearest counts, and only if no holder blocks this one. */
				if (!held->granted && is_blocked)
					return false;
				/* Waiters for the queue lock of a semaphore wait for the last session in its queue. */
				if (!held->granted && !held->is_head && entries.entries[first].is_head)
					return true;
				is_blocked = true;
				/* A lock group may hold a lock several times. */
				if (blocker.waiters != NIL && static_cast<Wait *>(llast(blocker.waiters))->lock == lock)
					return true;

				auto	   *wait = static_cast<Wait *>(palloc(sizeof(Wait)));

				*wait = Wait{&session, &blocker, lock, held};
				blocker.pid = session_pid(*held);
				blocker.xid = held->xid;
				blocker.waiters = lappend(blocker.waiters, wait);
				session.waits = lappend(session.waits, wait);
				return true;
			});
			if (!is_blocked && is_advisory(*lock))
			{
				session.top = lock;
				session.since = start_of(*lock);
			}
		}
	}

	void		show(Session *session)
	{
		if (!session->shown)
			shown = lappend(shown, session);
		session->shown = true;
	}

	/* Find the sessions whose trees lead to a waiter for an advisory lock, in the order of the trees. */
	void		choose()
	{
		ListCell   *cell;
		ListCell   *wait;

		for (int i = 0; i < proc_count(); i++)
		{
			if (sessions[i].top != nullptr)
				show(&sessions[i]);
			foreach(wait, sessions[i].waits)
			{
				if (is_advisory(*wait_in(wait)->lock))
					show(wait_in(wait)->blocker);
			}
		}
		/* The loop also visits sessions that are added to the list meanwhile. */
		foreach(cell, shown)
		{
			CHECK_FOR_INTERRUPTS();
			foreach(wait, static_cast<Session *>(lfirst(cell))->waits)
				show(wait_in(wait)->blocker);
		}
		foreach(cell, shown)
		{
			auto	   *session = static_cast<Session *>(lfirst(cell));

			list_sort(session->waits, compare_waits);
			list_sort(session->waiters, compare_waits);
			foreach(wait, session->waiters)
			{
				if (!is_shown(wait_in(wait)))
					continue;
				session->top = wait_in(wait)->held;
				session->since = start_of(*wait_in(wait)->lock);
				break;
			}
		}
		list_sort(shown, compare_tops);
	}

	bool		is_shown(const Wait *wait) const noexcept
	{
		return is_advisory(*wait->lock) || wait->waiter->shown;
	}

	WaitLine   *add_line(const LockEntry *lock, const LockEntry *blocker, const WaitLine *parent)
	{
		auto	   *line = static_cast<WaitLine *>(palloc(sizeof(WaitLine)));

		*line = WaitLine{lock, blocker, parent, parent != nullptr ? parent->depth + 1 : 0, false};
		lines = lappend(lines, line);
		return line;
	}

	/* Write everything below a session's line, which is already written. */
	void		write_tree(Session *session, const WaitLine *line)
	{
		ListCell   *cell;

		check_stack_depth();
		CHECK_FOR_INTERRUPTS();
		session->expanded = true;
		session->in_path = true;
		foreach(cell, session->waiters)
		{
			const Wait *wait = wait_in(cell);
			WaitLine   *below;

			/* A wait that would close a cycle leads back to a line above. */
			if (!is_shown(wait) || wait->waiter->in_path)
				continue;
			below = add_line(wait->lock, wait->held, line);
			if (!wait->waiter->expanded)
				write_tree(wait->waiter, below);
			else
				below->seen_above = wait->waiter->shown;
		}
		session->in_path = false;
	}

	Session    *smallest_pid_of(const Bitmapset *numbers) const noexcept
	{
		Session    *smallest = nullptr;

		for (int i = bms_next_member(numbers, -1); i >= 0; i = bms_next_member(numbers, i))
		{
			if (smallest == nullptr || sessions[i].pid < smallest->pid)
				smallest = &sessions[i];
		}
		return smallest;
	}

	/*
	 * The first session of a tree without a root: the smallest pid of a cycle at the end
	 * of the chain of waits of this session.  Every session of such a cycle waits,
	 * directly or through others, for all other sessions of the cycle and for no others.
	 */
	Session    *start_of_cycle(const Session *session) const
	{
		for (;;)
		{
			Bitmapset  *blockers = reachable(session - sessions, [this](int waiter, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[waiter].waits)
					visit(wait_in(cell)->blocker - sessions);
			});
			Bitmapset  *waiters = reachable(session - sessions, [this](int blocker, auto visit) {
				ListCell   *cell;

				foreach(cell, sessions[blocker].waiters)
					visit(wait_in(cell)->waiter - sessions);
			});

			CHECK_FOR_INTERRUPTS();
			session = smallest_pid_of(bms_difference(blockers, waiters));
			if (session == nullptr)
				return smallest_pid_of(blockers);
		}
	}

	const LockEntries &entries;
	Session    *sessions;		/* by their leader's number in the server's array of processes */
	List	   *shown = NIL;	/* Session * */
	List	   *lines = NIL;	/* WaitLine * */
};

/* ---- Rows and text ---- */

constexpr int INDENT = 2;		/* columns for each level of depth */

/* The session of a line.  Null for values that it does not have, or that the current user may not see. */
struct Owner
{
	int			pid;			/* 0 for a prepared transaction */
	const char *title;			/* the pid, or which prepared transaction it is */
	const char *role;
	const char *application;
	const char *state;
	TimestampTz state_start;	/* 0 where unknown */
	const char *query;
};

}								/* anonymous namespace */

static void
append_advisory(StringInfo out, const LockEntry &entry, VisibleNames *names)
{
	Oid			database = entry.tag.locktag_field1;

	appendStringInfoString(out, names->text_of(entry));
	if (database != MyDatabaseId)
	{
		char	   *shown = database_name(database);

		appendStringInfoString(out, shown != nullptr ? psprintf(" in database \"%s\"", shown)
							   : " in a dropped database");
	}
}

/* Any other lock: a relation or row by name if it is in this database, otherwise as the server describes it. */
static void
append_other(StringInfo out, const LOCKTAG &tag)
{
	Oid			relation = tag.locktag_field2;
	bool		is_row = tag.locktag_type == LOCKTAG_TUPLE;
	bool		is_here = tag.locktag_field1 == MyDatabaseId || !OidIsValid(tag.locktag_field1);
	char	   *name = nullptr;

	if (is_here && (is_row || tag.locktag_type == LOCKTAG_RELATION))
		name = get_rel_name(relation);
	if (name == nullptr)
		return DescribeLockTag(out, &tag);
	if (is_row)
		appendStringInfo(out, "row (%u,%u) of ", tag.locktag_field3, tag.locktag_field4);
	else
		appendStringInfoString(out, "relation ");
	appendStringInfoString(out, quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name));
}

static void
append_owner(StringInfo out, const Owner &owner)
{
	appendStringInfoString(out, owner.title);
	if (owner.role != nullptr)
		appendStringInfo(out, "%s%s", owner.pid != 0 ? " " : " of ", owner.role);
	if (owner.application != nullptr && owner.application[0] != '\0')
		appendStringInfo(out, "%s@%s", owner.role != nullptr ? "" : " ", owner.application);
}

/* " 12 s", or nothing if the time is unknown. */
static void
append_age(StringInfo out, TimestampTz time, TimestampTz now)
{
	if (time != 0)
		appendStringInfo(out, " " INT64_FORMAT " s", Max(now - time, INT64CONST(0)) / USECS_PER_SEC);
}

namespace
{

/* Makes rows from the lines of trees. */
class View
{
public:
	View(bool has_prepared, ReturnSetInfo *result)
		: result(result), now(GetCurrentTimestamp())
	{
		if (has_prepared)
			prepared = prepared_xacts(&prepared_count);
	}

	/* A row of advisory.waits. */
	void		show(const WaitLine &line)
	{
		const LockEntry &lock = *line.lock;
		Owner		owner = owner_of(lock);
		DecodedTag	tag = decode_tag(lock.tag);
		VisibleName name = {};
		Row			row;
		auto	   *path = static_cast<Datum *>(palloc(sizeof(Datum) * (line.depth + 1)));

		/* The path begins with the line of depth 0 above this one. */
		for (const WaitLine *step = &line; step != nullptr; step = step->parent)
			path[step->depth] = Int32GetDatum(session_pid(*step->lock));
		row.add(path[0]);
		row.add_int32(line.depth);
		row.add(PointerGetDatum(construct_array(path, line.depth + 1, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
		row.add_int32(owner.pid);
		if (line.blocker != nullptr)
			row.add_int32(session_pid(*line.blocker));
		else
			row.add_null();
		if (is_advisory(lock))
			name = names.of(lock);
		row.add_text(name.ns);
		row.add_text(name.name);
		if (is_advisory(lock) && has_key(tag.kind))
			row.add_int64(tag.key.value);
		else
			row.add_null();
		row.add_text(lockmode_name(lock.tag, lock.lockmode));
		row.add_age(lock.wait_start, now);
		row.add_text(owner.state);
		row.add_text(owner.application);
		row.add_text(owner.query);
		row.add(Int32GetDatum(tag.key1), !is_advisory(lock) || has_key(tag.kind));
		row.add(Int32GetDatum(tag.key2), !is_advisory(lock) || has_key(tag.kind));
		row.add(Int32GetDatum(tag.objsubid), !is_advisory(lock));
		row.put(result);
	}

	/*
	 * The same, as one indented text each:
	 *
	 *		4711 app@worker holds billing/invoice:42 exclusive, idle in transaction 35 s
	 *		  4712 app@web waits for billing/invoice:42 exclusive 12 s
	 */
	void		print(const WaitLine &line)
	{
		const LockEntry &lock = *line.lock;
		Owner		owner = owner_of(lock);
		StringInfoData out;
		Row			row;

		initStringInfo(&out);
		appendStringInfoSpaces(&out, INDENT * line.depth);
		append_owner(&out, owner);
		appendStringInfoString(&out, lock.is_waiting() ? " waits for " : " holds ");
		if (is_of_semaphore(lock.tag) && lock.granted)
			appendStringInfo(&out, "slot %d of ", decode_tag(lock.tag).slot);
		else if (is_of_semaphore(lock.tag))
			appendStringInfoString(&out, "a slot of ");
		else if (is_advisory(lock) && decode_tag(lock.tag).kind == Kind::lease)
			appendStringInfoString(&out, "lease ");
		if (is_advisory(lock))
			append_advisory(&out, lock, &names);
		else
			append_other(&out, lock.tag);
		appendStringInfo(&out, " %s", lockmode_name(lock.tag, lock.lockmode));
		append_age(&out, lock.wait_start, now);
		if (!lock.is_waiting() && owner.state != nullptr)
		{
			appendStringInfo(&out, ", %s", owner.state);
			append_age(&out, owner.state_start, now);
		}
		if (lock.waits_for_lease && lock.tag.locktag_field1 == MyDatabaseId)
			append_lease(&out, decode_tag(lock.tag).key);
		if (line.depth == 0 && line.blocker != nullptr)
			appendStringInfo(&out, ", in a cycle with %d", session_pid(*line.blocker));
		if (line.seen_above)
			appendStringInfoString(&out, " (see above)");

		/* A name may contain any characters, but must not look like another line. */
		make_printable(out.data);
		row.add_text(out.data);
		row.put(result);
	}

private:
	/* Add the owner and the end of the lease, which is not held by a session. */
	void		append_lease(StringInfo out, Key key)
	{
		if (leases == nullptr)
		{
			/* Read the leases once for all rows. */
			MemoryContext row_context = MemoryContextSwitchTo(context);

			leases = lease_read_all(&lease_count);
			MemoryContextSwitchTo(row_context);
		}
		for (int i = 0; i < lease_count; i++)
		{
			const LeaseRow &lease = leases[i];

			if (!(lease.key == key))
				continue;
			appendStringInfo(out, ", which %s holds until %s",
							 lease_is_visible(lease) ? lease.owner : "another owner", timestamptz_to_str(lease.ends_at));
		}
	}

	Owner		owner_of(const LockEntry &entry) const
	{
		Owner		owner = {};

		owner.pid = session_pid(entry);
		owner.title = psprintf("%d", owner.pid);
		if (entry.pid == 0)
		{
			const PreparedXact *xact = find_prepared(prepared, prepared_count, entry.xid);

			owner.title = xact != nullptr ? psprintf("prepared transaction \"%s\"", xact->gid) : "a prepared transaction";
			owner.role = xact != nullptr ? role_name(xact->owner) : nullptr;
			return owner;
		}

		const LocalPgBackendStatus *status = backends.find(owner.pid);
		Oid			role = status != nullptr ? status->backendStatus.st_userid : entry.role;

		owner.role = role_name(role);
		if (status == nullptr)
			return owner;

		const PgBackendStatus &backend = status->backendStatus;

		owner.application = backend.st_appname;
		if (!may_see_role(role))
		{
			owner.query = HIDDEN;
			return owner;
		}
		owner.state = state_name(backend.st_state);
		owner.state_start = backend.st_state_start_timestamp;
		owner.query = query_text(backend);
		return owner;
	}

	ReturnSetInfo *result;
	MemoryContext context = CurrentMemoryContext;
	TimestampTz now;
	VisibleNames names;
	Backends	backends;
	PreparedXact *prepared = nullptr;
	int			prepared_count = 0;
	LeaseRow   *leases = nullptr;	/* read when a waiter for one is shown */
	int			lease_count = 0;
};

}								/* anonymous namespace */

/* Show each line of the trees. */
template <void (View::*show) (const WaitLine &)>
static void
show_lines(ReturnSetInfo *result)
{
	/* The lines point into the entries. */
	LockEntries entries = read_all_waits_and_slots();
	List	   *lines = Forest(entries).grow();
	View		view(entries.has_prepared, result);

	show_each(list_length(lines), [&](int i) {
		(view.*show)(*static_cast<WaitLine *>(list_nth(lines, i)));
	});
}

ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_lines<&View::show>>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_lines<&View::print>, MAT_SRF_USE_EXPECTED_DESC>);

}								/* namespace advisory */
