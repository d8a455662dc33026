/*
 * views/waits.cpp
 *		Who waits for whom: the rows of advisory.waits, and the same as text.
 */
#include "base/pg.h"

#include "base/lockname.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "views/visiblename.h"
#include "server/backends.h"
#include "views/waittrees.h"

namespace advisory
{

namespace
{

constexpr int INDENT = 2;		/* columns for each level of depth */

/* The session of a line, as far as the current user may see it; null what is not there. */
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

/* billing/invoice:42; the label; the key as a number where the name was never seen; or the pair. */
static void
append_advisory(StringInfo out, const LockEntry &entry, const VisibleName &shown)
{
	DecodedTag	tag = decode_tag(entry.tag);
	LockName	name = {tag.key};

	if (shown.ns != nullptr)
		name.ns = shown.ns;
	if (shown.name != nullptr)
	{
		name.name = shown.name;
		appendStringInfoString(out, name.name == HIDDEN ? HIDDEN : display_name(name));
	}
	else if (tag.kind == Kind::pair)
		appendStringInfo(out, "%d, %d", tag.key1, tag.key2);
	else if (tag.kind == Kind::foreign)
		appendStringInfo(out, "%d, %d (objsubid %d)", tag.key1, tag.key2, tag.objsubid);
	else
		appendStringInfo(out, INT64_FORMAT, tag.key.value);

	if (tag.database != MyDatabaseId)
	{
		char	   *database = database_name(tag.database);

		appendStringInfoString(out, database != nullptr ? psprintf(" in database \"%s\"", database)
							   : " in a dropped database");
	}
}

/* Any other lock: a relation or row by name where it is to be found from here, the rest in the server's own words. */
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

/* " 12 s", or nothing where the time is not known. */
static void
append_age(StringInfo out, TimestampTz time, TimestampTz now)
{
	if (time != 0)
		appendStringInfo(out, " " INT64_FORMAT " s", Max(now - time, INT64CONST(0)) / USECS_PER_SEC);
}

namespace
{

/* Makes rows out of the lines of trees. */
class View
{
public:
	View(int line_count, bool has_prepared, ReturnSetInfo *result)
		: result(result), now(GetCurrentTimestamp()), names(line_count)
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

		/* From the line of depth 0 that this one stands under. */
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
		row.add_text(lockmode_name(lock.lockmode));
		row.add_age(lock.wait_start, now);
		row.add_text(owner.state);
		row.add_text(owner.application);
		row.add_text(owner.query);
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
		appendStringInfoString(&out, lock.granted ? " holds " : " waits for ");
		if (is_of_semaphore(lock.tag) && lock.granted)
			appendStringInfo(&out, "slot %d of ", decode_tag(lock.tag).slot);
		else if (is_of_semaphore(lock.tag))
			appendStringInfoString(&out, "a slot of ");
		if (is_advisory(lock))
			append_advisory(&out, lock, names.of(lock));
		else
			append_other(&out, lock.tag);
		appendStringInfo(&out, " %s", lockmode_name(lock.lockmode));
		append_age(&out, lock.wait_start, now);
		if (lock.granted && owner.state != nullptr)
		{
			appendStringInfo(&out, ", %s", owner.state);
			append_age(&out, owner.state_start, now);
		}
		if (line.depth == 0 && line.blocker != nullptr)
			appendStringInfo(&out, ", in a circle with %d", session_pid(*line.blocker));
		if (line.seen_above)
			appendStringInfoString(&out, " (see above)");

		/* What is called a name may have anything in it, but must not look like another line. */
		for (int i = 0; i < out.len; i++)
		{
			if (static_cast<unsigned char>(out.data[i]) < ' ' || out.data[i] == '\x7f')
				out.data[i] = '?';
		}
		row.add_text(out.data);
		row.put(result);
	}

private:
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
	TimestampTz now;
	VisibleNames names;
	Backends	backends;
	PreparedXact *prepared = nullptr;
	int			prepared_count = 0;
};

}								/* anonymous namespace */

/* Show each line of the trees. */
template <void (View::*show) (const WaitLine &)>
static void
show_lines(ReturnSetInfo *result)
{
	bool		has_prepared;
	List	   *lines = read_wait_trees(&has_prepared);
	View		view(list_length(lines), has_prepared, result);

	show_each(list_length(lines), [&](int i) {
		(view.*show)(*static_cast<WaitLine *>(list_nth(lines, i)));
	});
}

ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_lines<&View::show>>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<show_lines<&View::print>, MAT_SRF_USE_EXPECTED_DESC>);

}								/* namespace advisory */
