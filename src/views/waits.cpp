/*
 * views/waits.cpp
 *		Who waits for whom: the rows of advisory.waits, and the same as text.
 */
#include "base/pg.h"

extern "C" {
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

#include "base/encoding.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "core/lease.h"
#include "server/backends.h"
#include "views/visiblename.h"
#include "views/waittree.h"

namespace advisory
{

/* Columns of the text for each level of depth. */
static constexpr int INDENT = 2;

/* How many waiters the text shows under each session. */
static constexpr int SHOWN_WAITERS = 10;

/* ---- Rows ---- */

/* The rows of advisory.waits. */
static void
show_waits(ReturnSetInfo *result)
{
	WaitTrees	trees = read_wait_trees();
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;

	show_each(trees.count, [&](int i) {
		const WaitLine &line = trees.lines[i];
		const LockEntry &lock = *line.lock;
		bool		is_other = !is_advisory(lock);
		DecodedTag	tag = decode_tag(lock.tag);
		bool		is_key = !is_other && has_key(tag.kind);
		VisibleName name = is_other ? VisibleName{} : names.of(lock);
		VisibleSession session = backends.of(lock);
		auto	   *path = static_cast<int *>(palloc(sizeof(int) * (line.depth + 1)));
		Row			row;

		/* The path begins with the line of depth 0 above this one. */
		for (const WaitLine *step = &line; step != nullptr; step = step->above)
			path[step->depth] = session_pid(*step->lock);
		row.add_int32(path[0]);
		row.add_int32(line.depth);
		row.add_int32_array(path, line.depth + 1);
		row.add_int32(session.pid);
		row.add(Int32GetDatum(line.blocker != nullptr ? session_pid(*line.blocker) : 0), line.blocker == nullptr);
		row.add_text(name.ns);
		row.add_text(name.name);
		row.add(Int64GetDatum(tag.key.value), !is_key);
		row.add_text(lockmode_name(lock.tag, lock.lockmode));
		row.add_age(lock.wait_start, now);
		row.add_text(session.state);
		row.add_text(session.application);
		row.add_text(session.is_hidden ? HIDDEN : session.query);
		row.add(Int32GetDatum(tag.key1), is_other || is_key);
		row.add(Int32GetDatum(tag.key2), is_other || is_key);
		row.add(Int32GetDatum(tag.objsubid), is_other);
		row.put(result);
	});
}

/* ---- Text ---- */

namespace
{

/*
 * Prints lines of trees, as
 *
 *		4711 app@worker holds billing/invoice:42 exclusive, idle in transaction 35 s
 *		  4712 app@web waits for billing/invoice:42 exclusive 12 s
 */
class TreeText
{
public:
	explicit TreeText(const LockEntries &entries) : entries(entries), now(GetCurrentTimestamp())
	{
	}

	void		append_line(StringInfo out, const WaitLine &line);

	/* Stands for waiters that are left out, and for those below them. */
	void		append_more(StringInfo out, const WaitLine &first, int count, TimestampTz longest) const;

private:
	void		append_lock(StringInfo out, const LockEntry &lock);
	void		append_lease(StringInfo out, Key key);
	void		append_age(StringInfo out, TimestampTz time) const;

	const LockEntries &entries;
	MemoryContext context = CurrentMemoryContext;
	TimestampTz now;
	VisibleNames names;
	Backends	backends;
	LeaseRow   *leases = nullptr;	/* read when a waiter for one is shown */
	int			lease_count = 0;
};

}								/* anonymous namespace */

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

/* " in database "other"", unless it is the current one. */
static void
append_database(StringInfo out, Oid database)
{
	char	   *name = database != MyDatabaseId ? database_name(database) : nullptr;

	if (name != nullptr)
		appendStringInfo(out, " in database \"%s\"", name);
	else if (database != MyDatabaseId)
		appendStringInfoString(out, " in a dropped database");
}

/* The schema and name of a relation of this database.  Null if there is none, or if the server's lock table is full. */
static const char *
relation_name(Oid relation)
{
	const char *text = nullptr;

	unless_lock_table_is_full([&]() {
		if (char *name = get_rel_name(relation))
			text = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
	});
	return text;
}

/* A lock that is not advisory: a relation or row by name if it is in this database, otherwise as the server describes it. */
static void
append_other(StringInfo out, const LOCKTAG &tag)
{
	bool		is_row = tag.locktag_type == LOCKTAG_TUPLE;
	bool		is_here = tag.locktag_field1 == MyDatabaseId || !OidIsValid(tag.locktag_field1);
	const char *name = nullptr;

	if (is_here && (is_row || tag.locktag_type == LOCKTAG_RELATION))
		name = relation_name(tag.locktag_field2);
	if (name == nullptr)
		DescribeLockTag(out, &tag);
	else if (is_row)
		appendStringInfo(out, "row (%u,%u) of %s", tag.locktag_field3, tag.locktag_field4, name);
	else
		appendStringInfo(out, "relation %s", name);
}

void
TreeText::append_lock(StringInfo out, const LockEntry &lock)
{
	if (!is_advisory(lock))
		return append_other(out, lock.tag);
	if (is_of_semaphore(lock.tag) && lock.granted)
		appendStringInfo(out, "slot %d of ", decode_tag(lock.tag).slot);
	else if (is_of_semaphore(lock.tag))
		appendStringInfoString(out, "a slot of ");
	else if (decode_tag(lock.tag).kind == Kind::lease)
		appendStringInfoString(out, "lease ");
	appendStringInfoString(out, names.text_of(lock));
	append_database(out, lock.tag.locktag_field1);
}

/* Add the owner and the end of the lease, which is not held by a session. */
void
TreeText::append_lease(StringInfo out, Key key)
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

		if (lease.key == key)
			appendStringInfo(out, ", which %s holds until %s",
							 lease_is_visible(lease) ? lease.owner : "another owner", timestamptz_to_str(lease.ends_at));
	}
}

/* " 12 s", or nothing if the time is unknown. */
void
TreeText::append_age(StringInfo out, TimestampTz time) const
{
	if (time != 0 && time != DT_NOEND)
		appendStringInfo(out, " " INT64_FORMAT " s", Max(now - time, INT64CONST(0)) / USECS_PER_SEC);
}

void
TreeText::append_line(StringInfo out, const WaitLine &line)
{
	const LockEntry &lock = *line.lock;
	VisibleSession session = backends.of(lock);
	int			others = line.depth > 0 ? count_holders(entries, lock) - 1 : 0;

	appendStringInfoSpaces(out, INDENT * line.depth);
	append_session(out, session);
	appendStringInfoString(out, lock.is_waiting() ? " waits for " : " holds ");
	append_lock(out, lock);
	appendStringInfo(out, " %s", lockmode_name(lock.tag, lock.lockmode));
	append_age(out, lock.wait_start);
	if (!lock.is_waiting() && session.state != nullptr)
	{
		appendStringInfo(out, ", %s", session.state);
		append_age(out, session.state_start);
	}
	if (lock.waits_for_lease && lock.tag.locktag_field1 == MyDatabaseId)
		append_lease(out, decode_tag(lock.tag).key);
	if (line.depth == 0 && line.blocker != nullptr)
		appendStringInfo(out, ", in a cycle with %d", session_pid(*line.blocker));
	if (others > 0)
		appendStringInfo(out, " (and %d more holder%s)", others, others > 1 ? "s" : "");
}

void
TreeText::append_more(StringInfo out, const WaitLine &first, int count, TimestampTz longest) const
{
	appendStringInfoSpaces(out, INDENT * first.depth);
	appendStringInfo(out, "%s and %d more", GetDatabaseEncoding() == PG_UTF8 ? "…" : "...", count);
	if (longest != DT_NOEND)
		appendStringInfoString(out, ", the longest");
	append_age(out, longest);
}

/* The rows of advisory.wait_tree(). */
static void
show_wait_tree(ReturnSetInfo *result)
{
	WaitTrees	trees = read_wait_trees();
	TreeText	text(trees.entries);
	int			next = 0;

	/* Each row takes one line, or all lines that are left out under a session. */
	show_each(trees.count, [&](int i) {
		const WaitLine &line = trees.lines[i];
		TimestampTz longest = DT_NOEND;
		StringInfoData out;
		Row			row;

		if (i < next)
			return;
		next = i + 1;
		initStringInfo(&out);
		if (line.place < SHOWN_WAITERS)
			text.append_line(&out, line);
		else
		{
			for (next = i; next < trees.count && trees.lines[next].depth >= line.depth; next++)
				longest = Min(longest, start_of_wait(*trees.lines[next].lock));
			text.append_more(&out, line, next - i, longest);
		}
		/* A name may contain any characters, but must not look like another line. */
		make_printable(out.data);
		row.add_text(out.data);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_waits>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_wait_tree, MAT_SRF_USE_EXPECTED_DESC>);

}								/* namespace advisory */
