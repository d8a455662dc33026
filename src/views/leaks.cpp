/*
 * views/leaks.cpp
 *		The rows of advisory.leaks: session-level locks that look forgotten.
 *
 * A lock looks forgotten for one of two reasons.  Its session has been idle outside
 * a transaction for long; all locks that a session holds then are session-level.  Or
 * its session is a pooled connection that has changed its user or its application
 * since it took the lock.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "views/visiblename.h"
#include "server/backends.h"
#include "server/locktable.h"

namespace advisory
{

namespace
{

class LeakFinder
{
public:
	LeakFinder(LockEntries entries, ReturnSetInfo *result)
		: result(result), now(GetCurrentTimestamp()), names(entries.count)
	{
	}

	/* Add a row if the lock looks forgotten.  Leaves garbage in the current memory context. */
	void		look_at(const LockEntry &entry);

private:
	char	   *reason_of(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold *hold);
	void		show(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold *hold, const char *reason);

	ReturnSetInfo *result;
	TimestampTz now;
	VisibleNames names;
	Backends	backends;
};

}								/* anonymous namespace */

static void
start_reason(StringInfo reasons)
{
	if (reasons->len > 0)
		appendStringInfoString(reasons, "; ");
}

static void
add_idle_reason(StringInfo reasons, const PgBackendStatus &backend, TimestampTz now)
{
	int64		idle = now - backend.st_state_start_timestamp;

	if (backend.st_state != STATE_IDLE || backend.st_state_start_timestamp == 0 ||
		idle < setting::leak_after * USECS_PER_SEC)
		return;
	start_reason(reasons);
	appendStringInfo(reasons, "idle outside a transaction for " INT64_FORMAT " s", idle / USECS_PER_SEC);
}

static void
add_application_reason(StringInfo reasons, const PgBackendStatus &backend, const Taker &taker)
{
	if (strcmp(taker.application, backend.st_appname) == 0)
		return;
	start_reason(reasons);
	appendStringInfo(reasons, "taken by application \"%s\", now serves \"%s\"",
					 taker.application, backend.st_appname);
}

/* A role that has been dropped since then has no name. */
static const char *
name_or_oid(Oid role)
{
	const char *name = role_name(role);

	return name != nullptr ? name : psprintf("%u", role);
}

static void
add_role_reason(StringInfo reasons, const LockEntry &entry, const Taker &taker)
{
	Oid			present = present_role(entry.proc_number, entry.pid);

	if (!OidIsValid(present) || present == taker.role)
		return;
	start_reason(reasons);
	appendStringInfo(reasons, "taken as user \"%s\", now acts as \"%s\"",
					 name_or_oid(taker.role), name_or_oid(present));
}

char *
LeakFinder::reason_of(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold *hold)
{
	StringInfoData reasons;

	initStringInfo(&reasons);
	add_idle_reason(&reasons, backend, now);
	if (hold != nullptr && hold->taker != nullptr)
	{
		add_role_reason(&reasons, entry, *hold->taker);
		add_application_reason(&reasons, backend, *hold->taker);
	}
	return reasons.len > 0 ? reasons.data : nullptr;
}

void
LeakFinder::show(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold *hold, const char *reason)
{
	DecodedTag	tag = decode_tag(entry.tag);
	NullableDatum address = {};
	Row			row;

	address.isnull = !client_address(backend, &address.value);
	row.add_int32(entry.pid);
	row.add_text(database_name(tag.database));
	row.add_text(role_name(entry.role));
	row.add_text(backend.st_appname);
	row.add(address);
	row.add_text(state_name(backend.st_state));
	row.add_text(kind_name(tag.kind));
	add_name_columns(row, tag, names.of(entry));
	row.add_text(lockmode_name(entry.lockmode));
	row.add_time(hold != nullptr ? hold->hold.acquired_at : 0);
	row.add_age(hold != nullptr ? hold->hold.acquired_at : 0, now);
	row.add_text(hold != nullptr && hold->taker != nullptr ? role_name(hold->taker->role) : nullptr);
	row.add_text(hold != nullptr && hold->taker != nullptr ? hold->taker->application : nullptr);
	row.add_text(reason);
	row.put(result);
}

void
LeakFinder::look_at(const LockEntry &entry)
{
	const LocalPgBackendStatus *status = entry.granted ? backends.find(entry.pid) : nullptr;

	if (status == nullptr || !may_see_role(status->backendStatus.st_userid))
		return;

	const KnownHold *hold = names.hold_of(entry);
	const char *reason = reason_of(entry, status->backendStatus, hold);

	if (reason != nullptr)
		show(entry, status->backendStatus, hold, reason);
}

/* Looks at the locks of sessions that the current user may see. */
static void
show_leaks(ReturnSetInfo *result)
{
	LockEntries entries = read_all_locks();
	LeakFinder	finder(entries, result);

	show_each(entries.count, [&](int i) {
		finder.look_at(entries.entries[i]);
	});
}

ADVISORY_SQL_FUNCTION(advisory_leaks, rows_function<show_leaks>);

}								/* namespace advisory */
