/*
 * views/waits.cpp
 *		Who waits for whom: the rows of advisory.waits and advisory.blockers, and the trees as text.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "core/leaserows.h"
#include "server/backends.h"
#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/visiblename.h"
#include "views/waittrees.h"

namespace advisory
{

static constexpr int INDENT = 2;	/* columns of the text for each level of depth */
static constexpr int SHOWN_WAITERS = 10;	/* under each session, in the text */

/* Who waits for whom, and what is shown of sessions and locks. */
struct Waits
{
	WaitTrees	trees;
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;
};

/* ---- Rows ---- */

/* The rows of advisory.waits. */
static void
show_waits(ReturnSetInfo *result)
{
	Waits		waits;

	show_each(list_length(waits.trees.lines), [&](int i) {
		const Session &line = waits.trees.line(i);
		const LockEntry &lock = *line.lock;
		bool		is_other = !is_advisory(lock.tag);
		DecodedTag	tag = decode_tag(lock.tag);
		bool		is_key = has_key(tag.kind);
		VisibleName name = waits.names.of(lock);
		VisibleSession session = waits.backends.of(lock);
		auto	   *path = static_cast<int *>(palloc(sizeof(int) * (line.depth + 1)));
		Row			row;

		path[line.depth] = session.pid;
		for (const Session *step = &line; step->depth > 0; step = step->above)
			path[step->depth - 1] = session_pid(*step->above->lock);
		row.add_int32(path[0]);
		row.add_int32(line.depth);
		row.add_int32_array(path, line.depth + 1);
		row.add_int32(session.pid);
		row.add(Int32GetDatum(line.blocker != nullptr ? session_pid(*line.blocker) : 0),
				line.blocker == nullptr);
		row.add_text(name.ns);
		row.add_text(name.name);
		row.add(Int64GetDatum(tag.key.value), !is_key);
		row.add_text(lockmode_name(lock.tag, lock.lockmode));
		row.add_age(lock.wait_start, waits.now);
		row.add_text(session.state);
		row.add_text(session.application);
		row.add_reference(raw_text_datum(session.is_hidden ? HIDDEN : session.query));
		row.add(Int32GetDatum(tag.key1), is_other || is_key);
		row.add(Int32GetDatum(tag.key2), is_other || is_key);
		row.add(Int32GetDatum(tag.objsubid), is_other);
		row.put(result);
	});
}

/*
 * ---- Text ----
 *
 *		4711 app@worker holds billing/invoice:42 exclusive, idle in transaction 35 s
 *		  4712 app@web waits for billing/invoice:42 exclusive 12 s
 */

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

static void
append_session(StringInfo out, const VisibleSession &session)
{
	if (session.gid != nullptr)
		appendStringInfo(out, "prepared transaction \"%s\"", session.gid);
	else if (session.pid == 0)
		appendStringInfoString(out, "a prepared transaction");
	else
		appendStringInfo(out, "%d", session.pid);
	if (session.role != nullptr)
		appendStringInfo(out, "%s%s", session.pid != 0 ? " " : " of ", session.role);
	if (session.application != nullptr && session.application[0] != '\0')
		appendStringInfo(out, "%s@%s", session.role != nullptr ? "" : " ", session.application);
}

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

static void
append_lock(Line *line, const LockEntry &lock, VisibleNames *names)
{
	StringInfo	out = line->text;

	if (const LockEntry *claim = claim_of(lock))
	{
		appendStringInfoString(out, "a window of ");
		return append_name(line, *claim, names);
	}
	if (!is_advisory(lock.tag))
		return append_other(out, lock.tag);
	if (is_of_semaphore(lock.tag) && lock.granted)
		appendStringInfo(out, "slot %d of ", decode_tag(lock.tag).slot);
	else if (is_of_semaphore(lock.tag))
		appendStringInfoString(out, "a slot of ");
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

/* Add the owner and the end of the lease, which is not held by a session. */
static void
append_lease(StringInfo out, Key key)
{
	if (const LeaseRow *lease = lease_row_read_now(key))
		appendStringInfo(out, ", which %s holds until %s",
						 may_see_role(lease->role) ? lease->owner : "another owner",
						 timestamptz_to_str(lease->ends_at - lease->ends_at % USECS_PER_SEC));
}

/* " 12 s", or nothing if the time is unknown. */
static void
append_age(StringInfo out, TimestampTz time, TimestampTz now)
{
	if (time != 0 && time != DT_NOEND)
		appendStringInfo(out, " " INT64_FORMAT " s",
						 Max(now - time, INT64CONST(0)) / USECS_PER_SEC);
}

static void
append_line(Line *out_line, const Session &line, Waits *waits)
{
	StringInfo	out = out_line->text;
	const LockEntry &lock = *line.lock;
	VisibleSession session = waits->backends.of(lock);
	int			others = line.depth > 0 ? waits->trees.count_holders(line) - 1 : 0;

	append_session(out, session);
	appendStringInfoString(out, lock.is_waiting() ? " waits for " : " holds ");
	append_lock(out_line, lock, &waits->names);
	appendStringInfo(out, " %s", lockmode_name(lock.tag, lock.lockmode));
	append_age(out, lock.wait_start, waits->now);
	if (!lock.is_waiting() && session.state != nullptr)
	{
		appendStringInfo(out, ", %s", session.state);
		append_age(out, session.state_start, waits->now);
	}
	if (lock.waits_for_lease && lock.tag.locktag_field1 == MyDatabaseId)
		append_lease(out, decode_tag(lock.tag).key);
	if (line.depth == 0 && line.blocker != nullptr)
		appendStringInfo(out, ", in a cycle with %d", session_pid(*line.blocker));
	if (others > 0)
		appendStringInfo(out, " (and %d more holder%s)", others, others > 1 ? "s" : "");
}

/* The lines of advisory.wait_tree(). */
static void
show_wait_tree(ReturnSetInfo *result)
{
	Waits		waits;
	const WaitTrees &trees = waits.trees;
	bool		has_ellipsis = GetDatabaseEncoding() == PG_UTF8 &&
		pg_get_client_encoding() == PG_UTF8;
	int			next = 0;

	/*
	 * Each row takes one line, or all lines that are left out under a session: further waiters, and
	 * those below them.
	 */
	show_each(list_length(trees.lines), [&](int i) {
		const Session &line = trees.line(i);
		TimestampTz longest = DT_NOEND;
		Row			row;

		if (i < next)
			return;
		next = i + 1;

		Line		out_line;
		StringInfo	out = out_line.text;

		appendStringInfoSpaces(out, INDENT * line.depth);
		if (line.place < SHOWN_WAITERS)
			append_line(&out_line, line, &waits);
		else
		{
			for (next = i; next < list_length(trees.lines) && trees.line(next).depth >= line.depth;
				 next++)
				longest = Min(longest, start_of_wait(*trees.line(next).lock));
			appendStringInfo(out, "%s and %d more", has_ellipsis ? "…" : "...", next - i);
			if (longest != DT_NOEND)
				appendStringInfoString(out, ", the longest");
			append_age(out, longest, waits.now);
		}
		out_line.add_to(&row);
		row.put(result);
	});
}

/* The rows that advisory.blockers is made from. */
static void
show_blockers(ReturnSetInfo *result)
{
	Waits		waits;

	show_each(list_length(waits.trees.roots), [&](int i) {
		const auto *root = static_cast<Session *>(list_nth(waits.trees.roots, i));
		const LockEntry &lock = *root->blocking;
		const LockEntry &waiter = *root->first_waiter->lock;	/* which may wait in claim() */
		DecodedTag	tag = decode_tag(lock.tag);
		Oid			database = GetPGProcByNumber(lock.leader_number)->databaseId;
		VisibleSession session = lock.waits_for_lease ? VisibleSession{} : waits.backends.of(lock);
		Line		text;
		Row			row;

		append_lock(&text, !is_advisory(lock.tag) && same_tag(waiter.tag, lock.tag) ? waiter : lock,
					&waits.names);
		row.add(Int32GetDatum(session.pid), session.pid == 0);
		row.add_text(session.gid);
		row.add_text(session.role);
		row.add_text(session.application);
		row.add_text(database != MyDatabaseId ? database_name(database) : nullptr);
		row.add_text(session.state);
		row.add_time(session.state_start);
		text.add_to(&row);
		row.add_int32(root->waiter_count);
		row.add_age(waiter.wait_start, waits.now);
		if (tag.database != MyDatabaseId)
			tag.kind = Kind::foreign;	/* no statement of this database can name it */
		add_name_columns(row, tag,
						 tag.kind != Kind::foreign ? waits.names.of(lock) : VisibleName{});
		row.add(TransactionIdGetDatum(lock.xid), session.gid == nullptr);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_blockers, rows_function<show_blockers>);
ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_waits>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_wait_tree>);

}								/* namespace advisory */
