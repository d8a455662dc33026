/*
 * views/waits.cpp
 *		Who waits for whom: the rows of advisory.waits and advisory.blockers, and the trees as text.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "core/leaserows.h"
#include "server/backends.h"
#include "shmem/slotlocks.h"
#include "views/visiblename.h"
#include "views/waittrees.h"

namespace advisory
{

static constexpr int SHOWN_WAITERS = 10;	/* under each session, in the text */

/* Who waits for whom, and what is shown of sessions and locks. */
struct Waits
{
	WaitTrees	trees;
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;
};

/* ---- Locks as text ---- */

/* A text about a lock.  SQL puts the text of a lock without a name into it (unnamed()). */
struct Line
{
	StringInfo	text = makeStringInfo();
	const LOCKTAG *unnamed = nullptr;	/* that lock, if there is one */
	int			before = 0;		/* the length of the text before it */

	/* Add the columns before_lock, after_lock, and datid to objsubid of that lock. */
	void		add_to(Row *row) const
	{
		row->add_text(unnamed != nullptr ? pnstrdup(text->data, before) : text->data);
		row->add_text(unnamed != nullptr ? text->data + before : nullptr);
		add_tag_columns(*row, unnamed);
	}
};

/*
 * A lock that is not advisory: a relation or row by name if it is in this database, otherwise as
 * the server describes it.
 */
static void
append_other(StringInfo out, const LOCKTAG &tag)
{
	bool		is_row = tag.locktag_type == LOCKTAG_TUPLE;
	bool		is_here = tag.locktag_field1 == MyDatabaseId || !OidIsValid(tag.locktag_field1);
	const char *name = nullptr;

	/* PreCommit_Notify() locks what no object has, until the transaction has ended. */
	if (tag.locktag_type == LOCKTAG_OBJECT && tag.locktag_field1 == InvalidOid &&
		tag.locktag_field2 == DatabaseRelationId && tag.locktag_field3 == InvalidOid)
		return appendStringInfoString(out, "NOTIFY's commit lock");
	if (is_here && (is_row || tag.locktag_type == LOCKTAG_RELATION))
	{
		unless_lock_table_is_full([&]() {
			if (char *relation = get_rel_name(tag.locktag_field2))
				name = quote_qualified_identifier(
					get_namespace_name(get_rel_namespace(tag.locktag_field2)), relation);
		});
	}
	if (name == nullptr)
		DescribeLockTag(out, &tag);
	else if (is_row)
		appendStringInfo(out, "row (%u,%u) of %s", tag.locktag_field3, tag.locktag_field4, name);
	else
		appendStringInfo(out, "relation %s", name);
}

/* The name of a lock; or where SQL has to put it.  The lock must outlive the line. */
static void
append_name(Line *line, const LockEntry &lock, VisibleNames *names)
{
	const char *name = names->text_of(lock);

	if (name != nullptr)
		return appendStringInfoString(line->text, name);
	line->unnamed = &lock.tag;
	line->before = line->text->len;
}

/* How many slots a waiter wants, or the session of a slot, one of the entries, has. */
static int
count_slots(const LockEntries &entries, const LockEntry &lock)
{
	const LockEntry *entry = &lock;
	int			count = 0;

	while (entry > entries.entries && is_same_semaphore(entry[-1].tag, lock.tag))
		entry--;
	for (; entry < entries.entries + entries.count && is_same_semaphore(entry->tag, lock.tag);
		 entry++)
		count += entry->granted && entry->leader_number == lock.leader_number;
	return lock.granted ? count : lock.wanted;
}

static void
append_lock(Line *line, const LockEntry &lock, Waits *waits)
{
	VisibleNames *names = &waits->names;
	StringInfo	out = line->text;

	if (const LockEntry *claim = claim_of(lock))
	{
		appendStringInfoString(out, "a window of ");
		return append_name(line, *claim, names);
	}
	if (!is_advisory(lock.tag))
		return append_other(out, lock.tag);
	if (is_of_semaphore(lock.tag))
	{
		int			count = count_slots(waits->trees.entries, lock);

		appendStringInfo(out, "%s of ", lock.granted && count == 1
						 ? psprintf("slot %d", decode_tag(lock.tag).slot) : slots_text(count));
	}
	else if (decode_tag(lock.tag).kind == Kind::lease)
		appendStringInfoString(out, "lease ");
	append_name(line, lock, names);
	if (lock.tag.locktag_field1 == MyDatabaseId)
		return;
	if (char *database = database_name(lock.tag.locktag_field1))
		appendStringInfo(out, " in database \"%s\"", database);
	else
		appendStringInfoString(out, " in a dropped database");
}

/* The owner and the end of the lease, which is not held by a session; palloc'd, or null. */
static const char *
holder_of_lease(Key key)
{
	const LeaseRow *lease = lease_row_read_now(key);

	return lease == nullptr ? nullptr :
		psprintf(", which %s holds until %s",
				 may_see_role(lease->role) ? lease->owner : "another owner",
				 timestamptz_to_str(lease->ends_at - lease->ends_at % USECS_PER_SEC));
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

/* Add what only a line of wait_tree() says. */
static void
add_line_columns(Row *row, const Session &line, const VisibleSession &session, Waits *waits)
{
	const LockEntry &lock = *line.lock;
	Line		text;

	append_lock(&text, lock, waits);
	text.add_to(row);
	row->add_text(session.gid);
	row->add_text(session.role);
	row->add_bool(lock.is_waiting());
	row->add_age(session.state_start, waits->now);
	row->add_text(wait_of_root(session, lock));
	row->add_text(lock.waits_for_lease && lock.tag.locktag_field1 == MyDatabaseId
				  ? holder_of_lease(decode_tag(lock.tag).key) : nullptr);
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
	int			next = 0;

	show_each(list_length(trees.lines), [&](int i) {
		const Session &line = trees.line(i);
		const LockEntry &lock = *line.lock;
		TimestampTz wait_start = start_of_wait(lock);

		if (i < next)
			return;
		for (next = i + 1; as_lines && line.place >= SHOWN_WAITERS &&
			 next < list_length(trees.lines) && trees.line(next).depth >= line.depth; next++)
			wait_start = Min(wait_start, start_of_wait(*trees.line(next).lock));

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
		row.add(Int32GetDatum(tag.objsubid), is_other);
		if (as_lines)
		{
			row.add_int32(line.place < SHOWN_WAITERS ? 0 : next - i);
			add_line_columns(&row, line, session, &waits);
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

	if (idle == nullptr || idle->st_state == STATE_RUNNING || !is_advisory(root.blocking->tag))
		return nullptr;
	for (int i = 0; i < list_length(waits.trees.lines); i++)
	{
		const Session &line = waits.trees.line(i);
		const PgBackendStatus *other = line.depth == 2 && line.above->above == &root
			? waits.backends.find(session_pid(*line.lock)) : nullptr;

		if (other != nullptr && is_advisory(line.above->lock->tag) &&
			decode_tag(line.above->lock->tag).key == decode_tag(root.blocking->tag).key &&
			other->st_userid == idle->st_userid && strcmp(other->st_appname, idle->st_appname) == 0)
			return line.above;
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

/* The rows that advisory.blockers is made from. */
static void
show_blockers(ReturnSetInfo *result)
{
	Waits		waits;

	show_each(list_length(waits.trees.roots), [&](int i) {
		const auto *root = static_cast<Session *>(list_nth(waits.trees.roots, i));
		const Session *hindrance = find_hindrance(*root, waits);
		const LockEntry &lock = *root->blocking;
		const LockEntry &waiter = *root->first_waiter->lock;	/* which may wait in claim() */
		DecodedTag	tag = decode_tag(lock.tag);
		Oid			database = GetPGProcByNumber(lock.leader_number)->databaseId;
		VisibleSession session = lock.waits_for_lease ? VisibleSession{} : waits.backends.of(lock);
		Line		text;
		Row			row;

		append_lock(&text, !is_advisory(lock.tag) && same_tag(waiter.tag, lock.tag) ? waiter : lock,
					&waits);
		row.add(Int32GetDatum(session.pid), session.pid == 0);
		row.add_text(session.gid);
		row.add_text(session.role);
		row.add_text(session.application);
		row.add_text(database != MyDatabaseId ? database_name(database) : nullptr);
		row.add_text(session.state == nullptr ? nullptr :
					 psprintf("%s%s", session.state, wait_of_root(session, lock)));
		row.add_time(session.state_start);
		text.add_to(&row);
		row.add_int32(root->waiter_count);
		row.add_age(waiter.wait_start, waits.now);
		if (tag.database != MyDatabaseId)
			tag.kind = Kind::foreign;	/* no statement of this database can name it */
		add_name_columns(row, tag,
						 tag.kind != Kind::foreign ? waits.names.of(lock) : VisibleName{});
		row.add(TransactionIdGetDatum(lock.xid), session.gid == nullptr);
		row.add_text(session.backend != nullptr ? backend_type_of(*session.backend) : nullptr);
		row.add_reference(session.backend != nullptr
						  ? client_address(*session.backend) : Datum(0));
		row.add_reference(raw_text_datum(session.is_hidden ? HIDDEN : session.query));
		row.add(Int32GetDatum(hindrance != nullptr ? session_pid(*hindrance->lock) : 0),
				hindrance == nullptr);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_blockers, rows_function<show_blockers>);
ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_waits<false>>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_waits<true>>);

}								/* namespace advisory */
