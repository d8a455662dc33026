/*
 * views/waits.cpp
 *		Who waits for whom: the rows of advisory.waits and advisory.blockers, and the trees as text.
 */
#include "base/pg.h"

#include "base/remedy.h"
#include "base/sqlfunction.h"
#include "core/leaserows.h"
#include "server/backends.h"
#include "server/standby.h"
#include "shmem/slotlocks.h"
#include "views/slotsums.h"
#include "views/unnamed.h"
#include "views/visiblename.h"
#include "views/waittrees.h"

namespace advisory
{

static constexpr int SHOWN_WAITERS = 10;	/* under each session, in the text */

/* Who waits for whom, and what is shown of sessions and locks. */
struct Waits
{
	WaitTrees	trees;
	SlotSums	slots{trees.entries};
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;
};

/* ---- Locks as text ---- */

/*
 * A text about a lock.  complete_lines() puts the text of a lock without a name into it.  exact has
 * the same for remedies: no other lock has that text.
 */
struct Line
{
	StringInfo	text = makeStringInfo();
	StringInfo	exact = makeStringInfo();
	const LOCKTAG *unnamed = nullptr;	/* that lock, if there is one */
	int			before = 0;		/* the length of the text before it */

	void		append(const char *part)
	{
		appendStringInfoString(text, part);
		appendStringInfoString(exact, part);
	}

	void		insert(const char *name)
	{
		char	   *after = pstrdup(text->data + before);

		text->len = before;
		appendStringInfo(text, "%s%s", name, after);
	}
};

/*
 * A lock that is not advisory: a relation or row by name if it is in this database, otherwise as
 * the server describes it, by numbers.
 */
static void
append_other(Line *line, const LOCKTAG &tag)
{
	StringInfoData described;

	bool		is_row = tag.locktag_type == LOCKTAG_TUPLE;
	bool		is_here = tag.locktag_field1 == MyDatabaseId || !OidIsValid(tag.locktag_field1);
	const char *name = nullptr;

	/* PreCommit_Notify() locks what no object has, until the transaction has ended. */
	if (tag.locktag_type == LOCKTAG_OBJECT && tag.locktag_field1 == InvalidOid &&
		tag.locktag_field2 == DatabaseRelationId && tag.locktag_field3 == InvalidOid)
		return line->append("NOTIFY's commit lock");
	if (is_here && (is_row || tag.locktag_type == LOCKTAG_RELATION))
	{
		unless_lock_table_is_full([&]() {
			if (char *relation = get_rel_name(tag.locktag_field2))
				name = quote_qualified_identifier(
					get_namespace_name(get_rel_namespace(tag.locktag_field2)), relation);
		});
	}
	initStringInfo(&described);
	if (name == nullptr || !is_printable(name))
		DescribeLockTag(&described, &tag);
	if (name == nullptr)
		return line->append(described.data);

	const char *named = is_row
		? psprintf("row (%u,%u) of %s", tag.locktag_field3, tag.locktag_field4, name)
		: psprintf("relation %s", name);

	appendStringInfoString(line->text, named);
	appendStringInfoString(line->exact, is_printable(name) ? named : described.data);
}

/* The name of a lock; or where complete_lines() has to put it.  The lock must outlive the line. */
static void
append_name(Line *line, const LockEntry &lock, VisibleNames *names)
{
	char	   *exact;
	const char *name = names->text_of(lock, &exact);

	appendStringInfoString(line->exact, exact);
	if (name != nullptr)
		return appendStringInfoString(line->text, name);
	line->unnamed = &lock.tag;
	line->before = line->text->len;
}

/* The name of another database; its number if another one may be shown with that name. */
static void
append_database(Line *line, Oid database)
{
	const char *name = database_name(database);

	if (name == nullptr)
		return line->append(" in a dropped database");
	appendStringInfo(line->text, " in database \"%s\"", name);
	if (is_printable(name) && strchr(name, '\\') == nullptr)
		appendStringInfo(line->exact, " in database \"%s\"", name);
	else
		appendStringInfo(line->exact, " in database %u", database);
}

/* lease_slot: the lease slot that is in the way, if the lock is their queue. */
static void
append_lock(Line *line, const LockEntry &lock, Waits *waits, int lease_slot = NO_SLOT)
{
	VisibleNames *names = &waits->names;

	if (const LockEntry *claim = claim_of(lock))
	{
		line->append("a window of ");
		return append_name(line, *claim, names);
	}
	if (!is_advisory(lock.tag))
		return append_other(line, lock.tag);
	if (is_of_semaphore(lock.tag))
	{
		int			count = waits->slots.slots_of(lock);

		line->append(lock.granted && count == 1
					 ? psprintf("slot %d of ", decode_tag(lock.tag).slot)
					 : psprintf("%s of ", slots_text(count)));
	}
	else if (decode_tag(lock.tag).kind == Kind::lease)
	{
		int			slot = Max(lease_slot, decode_tag(lock.tag).slot);

		line->append(slot != NO_SLOT ? psprintf("slot %d of lease ", slot)
					 : is_of_lease_slot_queue(lock.tag) ? "a slot of lease " : "lease ");
	}
	append_name(line, lock, names);
	if (lock.tag.locktag_field1 != MyDatabaseId)
		append_database(line, lock.tag.locktag_field1);
}

/* What a session waits for in the queue of a lease, or of lease slots; all 0 for anything else. */
struct AwaitedLease
{
	const LeaseRow *row;		/* of the lease, or of the slot that expires first; or null */
	int			held;			/* so many slots */
	int			slots;			/* of so many; 0 for a lease */
};

static AwaitedLease
awaited_lease(const LockEntry &lock)
{
	AwaitedLease awaited = {};
	TimestampTz now = GetCurrentTimestamp();
	LeaseRows	rows;

	if (!lock.waits_for_lease || lock.tag.locktag_field1 != MyDatabaseId)
		return awaited;
	rows = lease_rows_read_now(decode_tag(lock.tag).key, is_of_lease_slot_queue(lock.tag));
	awaited.slots = rows.rows != nullptr ? lock.slots : 0;
	for (const LeaseRow &row : rows)
	{
		bool		is_held = now < row.ends_at;

		/* Whoever gave another number may have a slot beyond those of this waiter. */
		if (row.slot > lock.slots)
			continue;
		awaited.held += is_held;
		if (awaited.row == nullptr && (is_held || row.slot == NO_SLOT))
			awaited.row = &row;
	}
	return awaited;
}

/* The owner and the end of the lease, which is not held by a session; palloc'd, or null. */
static const char *
holder_of_lease(const LockEntry &lock)
{
	AwaitedLease awaited = awaited_lease(lock);
	const LeaseRow *row = awaited.row;

	if (awaited.slots > 0)
		return psprintf(", %d of %d taken", awaited.held, awaited.slots);
	return row == nullptr ? nullptr :
		psprintf(", which %s holds until %s",
				 may_see_role(row->role) ? row->owner : "another owner",
				 timestamptz_to_str(row->ends_at - row->ends_at % USECS_PER_SEC));
}

/*
 * What the root of waits waits for itself, as ", waits for SyncRep (IPC)": no session holds that.
 * Nothing for an idle session: that it waits for its client its state says.
 */
static const char *
wait_of_root(const VisibleSession &session, const LockEntry &hold)
{
	uint32		wait = GetPGProcByNumber(hold.leader_number)->wait_event_info;
	const char *event = pgstat_get_wait_event(wait);

	if (session.backend == nullptr || session.backend->st_state != STATE_RUNNING ||
		event == nullptr)
		return "";
	return psprintf(", waits for %s (%s)", event, pgstat_get_wait_event_type(wait));
}

/* ---- Rows ---- */

/* The line behind this one in wait_tree(): further waiters, and those below them, are left out. */
static int
next_shown(const WaitTrees &trees, int i)
{
	int			next = i + 1;

	while (trees.line(i).place >= SHOWN_WAITERS && next < list_length(trees.lines) &&
		   trees.line(next).depth >= trees.line(i).depth)
		next++;
	return next;
}

/* The texts (Line *) of the lines that wait_tree() shows, and of the first of those left out. */
static List *
texts_of_lines(Waits *waits)
{
	List	   *texts = NIL;

	for (int i = 0; i < list_length(waits->trees.lines); i = next_shown(waits->trees, i))
	{
		auto	   *text = new (palloc(sizeof(Line))) Line();

		CHECK_FOR_INTERRUPTS();
		append_lock(text, *waits->trees.line(i).lock, waits);
		texts = lappend(texts, text);
	}
	complete_lines<Line>(texts);
	return texts;
}

/* Add what only a line of wait_tree() says. */
static void
add_line_columns(Row *row, const Session &line, const Line &text, const VisibleSession &session,
				 Waits *waits)
{
	const LockEntry &lock = *line.lock;

	row->add_text(text.text->data);
	row->add_text(session.gid);
	row->add_text(session.role);
	row->add_bool(lock.is_waiting());
	row->add_age(session.state_start, waits->now);
	row->add_text(wait_of_root(session, lock));
	row->add_text(holder_of_lease(lock));
	row->add_int32(line.depth > 0 ? waits->trees.count_holders(line) - 1 : 0);
}

/*
 * The rows of advisory.waits; or what the lines of wait_tree() are made from.  Each of those takes
 * one line, or all lines that are left out under a session: further waiters, and those below them.
 */
template <bool as_lines>
static void
show_waits(ReturnSetInfo *result)
{
	Waits		waits;
	const WaitTrees &trees = waits.trees;
	List	   *texts = as_lines ? texts_of_lines(&waits) : NIL;
	int			shown = 0;
	int			next = 0;

	tell_reader_of_standby();
	show_each(list_length(trees.lines), [&](int i) {
		const Session &line = trees.line(i);
		const LockEntry &lock = *line.lock;
		TimestampTz wait_start = start_of_wait(lock);

		if (i < next)
			return;
		next = as_lines ? next_shown(trees, i) : i + 1;
		for (int j = i + 1; j < next; j++)
			wait_start = Min(wait_start, start_of_wait(*trees.line(j).lock));

		bool		is_other = !is_advisory(lock.tag);
		DecodedTag	tag = decode_tag(lock.tag);
		bool		is_key = has_key(tag.kind);
		VisibleName name = waits.names.of(lock);
		VisibleSession session = waits.backends.of(lock);
		auto	   *path = static_cast<Datum *>(palloc(sizeof(Datum) * (line.depth + 1)));
		Row			row;

		path[line.depth] = Int32GetDatum(session.pid);
		for (const Session *step = &line; step->depth > 0; step = step->above)
			path[step->depth - 1] = Int32GetDatum(session_pid(*step->above->lock));
		row.add(path[0]);
		row.add_int32(line.depth);
		row.add_int32_array(path, line.depth + 1);
		row.add_int32(session.pid);
		row.add(Int32GetDatum(line.blocker != nullptr ? session_pid(*line.blocker) : 0),
				line.blocker == nullptr);
		row.add_text(name.ns);
		row.add_text(name.name);
		row.add(Int64GetDatum(tag.key.value), !is_key);
		row.add_text(lockmode_name(lock.tag, lock.lockmode));
		row.add_age(wait_start != DT_NOEND ? wait_start : 0, waits.now);
		row.add_text(session.state);
		row.add_text(session.application);
		row.add_reference(raw_text_datum(session.is_hidden ? HIDDEN : session.query));
		row.add(Int32GetDatum(tag.key1), is_other || is_key);
		row.add(Int32GetDatum(tag.key2), is_other || is_key);
		/* As in pg_locks, where it is a smallint. */
		row.add(Int32GetDatum(static_cast<int16>(tag.objsubid)), is_other);
		if (as_lines)
		{
			row.add_int32(line.place < SHOWN_WAITERS ? 0 : next - i);
			add_line_columns(&row, line, *static_cast<Line *>(list_nth(texts, shown++)), session,
							 &waits);
		}
		row.put(result);
	});
}

/*
 * The waiter that is to be cancelled, rather than this root to be ended; null if there is none.
 * The program of the root is idle there with the lock, and works under it in another session, as
 * migrations do: of the same role and application.  That one waits for the snapshot, as CREATE
 * INDEX CONCURRENTLY does, or for the transaction of somebody who waits for the lock.  If the root
 * were ended, the lock would be free while its program works.
 */
static const Session *
find_hindrance(const Session &root, const Waits &waits)
{
	const PgBackendStatus *idle = waits.backends.find(session_pid(*root.blocking));
	ListCell   *waiter_cell;
	ListCell   *worker_cell;

	if (idle == nullptr || idle->st_state == STATE_RUNNING || !is_advisory(root.blocking->tag))
		return nullptr;
	foreach(waiter_cell, root.waiters)
	{
		const auto *waiter = static_cast<Session *>(lfirst(waiter_cell));

		if (!is_advisory(waiter->lock->tag) ||
			!(decode_tag(waiter->lock->tag).key == decode_tag(root.blocking->tag).key))
			continue;
		foreach(worker_cell, waiter->waiters)
		{
			const auto *worker = static_cast<Session *>(lfirst(worker_cell));
			const PgBackendStatus *other = worker->is_written && worker->depth == 2
				? waits.backends.find(session_pid(*worker->lock)) : nullptr;

			if (other != nullptr && other->st_userid == idle->st_userid &&
				strcmp(other->st_appname, idle->st_appname) == 0)
				return waiter;
		}
	}
	return nullptr;
}

/* As in pg_stat_activity. */
static const char *
backend_type_of(const PgBackendStatus &backend)
{
	return backend.st_backendType == B_BG_WORKER
		? GetBackgroundWorkerTypeByPid(backend.st_procpid)
		: GetBackendTypeDesc(backend.st_backendType);
}

/* What advisory.blockers shows of a root. */
struct Blocker
{
	const Session *root;
	VisibleSession session;		/* all 0 for a lease */
	const LeaseRow *lease;		/* null if it is none, or if the current user may not see it */
	Line		lock;
	int			pid_to_cancel;	/* of a waiter, if that is to be cancelled instead; else 0 */

	/* The session's database; that of a prepared transaction. */
	Oid			database() const noexcept
	{
		return GetPGProcByNumber(root->blocking->leader_number)->databaseId;
	}
};

/* The statement that ends a prepared transaction, and where it is to be run; null for none. */
static const char *
remedy_of_prepared(const Blocker &blocker)
{
	const char *statement;

	if (!blocker.session.gid_is_exact)
		return nullptr;
	statement = psprintf("%s;", rollback_statement(blocker.session.gid));
	if (blocker.database() == MyDatabaseId)
		return statement;
	if (const char *name = database_name(blocker.database()))
		return psprintf("%s -- in database %s", statement, quote_identifier(name));
	return statement;
}

/*
 * The statement that ends what is in the way, which is a lock, a slot or a lease of this database;
 * or something else, whose text it has.
 */
static const char *
remedy_of_session(const Blocker &blocker, VisibleNames *names)
{
	const LockEntry &lock = *blocker.root->blocking;
	DecodedTag	tag = decode_tag(lock.tag);
	int			pid = blocker.session.pid;

	if (pid == 0)
		return nullptr;
	if (!has_key(tag.kind) || tag.database != MyDatabaseId)
		return psprintf("%s;", terminate_blocker_statement(pid, blocker.lock.exact->data));
	return psprintf("%s;", terminate_holder_statement(names->of(lock).with_key(tag.key), tag.kind,
													  pid));
}

static const char *
remedy_of(const Blocker &blocker, Waits *waits)
{
	const LockEntry &lock = *blocker.root->blocking;

	/* The program of the holder waits for that waiter, and goes on under the lock. */
	if (blocker.pid_to_cancel != 0)
		return psprintf("%s;", cancel_waiter_statement(blocker.pid_to_cancel,
													   blocker.lock.exact->data));
	/* Whoever has the slot may be right. */
	if (is_of_semaphore(lock.tag) && lock.tag.locktag_field1 == MyDatabaseId &&
		waits->slots.disagree(lock.tag))
		return psprintf("%s; -- they give different numbers of slots",
						show_slots_statement(decode_tag(lock.tag).key));
	if (blocker.session.gid != nullptr)
		return remedy_of_prepared(blocker);
	if (!lock.waits_for_lease)
		return remedy_of_session(blocker, &waits->names);
	/* By the lease's row: its owner need not see a session that waits for it. */
	if (blocker.lease == nullptr || !blocker.lease->is_mine())
		return nullptr;

	const LeaseRow &lease = *blocker.lease;
	const char *statement = break_lease_statement(
		LockName{lease.key, lease.ns, lease.name}, lease.token);

	return statement != nullptr ? psprintf("%s;", statement) : nullptr;
}

/* The lease that is waited for, if the current user may see it. */
static const LeaseRow *
visible_lease(const LockEntry &lock)
{
	const LeaseRow *lease = awaited_lease(lock).row;

	return lease != nullptr && may_see_role(lease->role) ? lease : nullptr;
}

static Blocker *
blocker_of(const Session &root, Waits *waits)
{
	const LockEntry &lock = *root.blocking;
	const LockEntry &waiter = *root.first_waiter->lock; /* which may wait in claim() */
	const Session *hindrance = find_hindrance(root, *waits);
	auto	   *blocker = new (palloc0(sizeof(Blocker))) Blocker{&root};

	CHECK_FOR_INTERRUPTS();
	if (!lock.waits_for_lease)
		blocker->session = waits->backends.of(lock);
	blocker->lease = visible_lease(lock);
	append_lock(&blocker->lock, !is_advisory(lock.tag) && same_tag(waiter.tag, lock.tag)
				? waiter : lock, waits, blocker->lease != nullptr ? blocker->lease->slot : NO_SLOT);
	if (hindrance != nullptr)
		blocker->pid_to_cancel = session_pid(*hindrance->lock);
	return blocker;
}

/* Add the columns that say who it is: pid, gid, role, application_name, state and since. */
static void
add_blocker_columns(Row *row, const Blocker &blocker, TimestampTz now)
{
	const VisibleSession &session = blocker.session;
	const LeaseRow *lease = blocker.lease;

	row->add(Int32GetDatum(session.pid), session.pid == 0);
	row->add_text(session.gid);
	row->add_text(lease != nullptr ? lease->owner : session.role);
	row->add_text(session.application);
	if (lease != nullptr)
		row->add_text(lease->state_at(now));
	else
		row->add_text(session.state == nullptr ? nullptr :
					  psprintf("%s%s", session.state,
							   wait_of_root(session, *blocker.root->blocking)));
	row->add_time(lease != nullptr ? lease->acquired_at : session.state_start);
}

/* The rows that advisory.blockers is made from. */
static void
show_blockers(ReturnSetInfo *result)
{
	Waits		waits;
	List	   *blockers = NIL;
	List	   *lines = NIL;
	ListCell   *cell;

	tell_reader_of_standby();
	foreach(cell, waits.trees.roots)
	{
		Blocker    *blocker = blocker_of(*static_cast<Session *>(lfirst(cell)), &waits);

		blockers = lappend(blockers, blocker);
		lines = lappend(lines, &blocker->lock);
	}
	complete_lines<Line>(lines);
	show_each(list_length(blockers), [&](int i) {
		const auto &blocker = *static_cast<Blocker *>(list_nth(blockers, i));
		const Session *root = blocker.root;
		const VisibleSession &session = blocker.session;
		Row			row;

		add_blocker_columns(&row, blocker, waits.now);
		row.add_text(blocker.lock.text->data);
		row.add_text(blocker.lock.exact->data);
		row.add_int32(root->waiter_count);
		row.add_age(root->first_waiter->lock->wait_start, waits.now);
		row.add_text(remedy_of(blocker, &waits));
		row.add(TransactionIdGetDatum(root->blocking->xid), session.gid == nullptr);
		row.add_text(session.backend != nullptr ? backend_type_of(*session.backend) : nullptr);
		row.add_reference(session.backend != nullptr
						  ? client_address(*session.backend) : Datum(0));
		row.add_reference(raw_text_datum(session.is_hidden ? HIDDEN : session.query));
		row.add(Int32GetDatum(blocker.pid_to_cancel), blocker.pid_to_cancel == 0);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_blockers, rows_function<show_blockers>);
ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_waits<false>>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_waits<true>>);

}								/* namespace advisory */
