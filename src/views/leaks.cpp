/*
 * views/leaks.cpp
 *		The rows of advisory.leaks: session-level locks that look forgotten.
 *
 * A lock looks forgotten for one of two reasons.  Its session has been idle outside a transaction for long; all locks that
 * a session holds then are session-level.  Or its session is a pooled connection that has changed its user or its application
 * since it took the lock, or worked for others and has changed back.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "views/visiblename.h"
#include "server/backends.h"
#include "server/locktable.h"

namespace advisory
{

/* The name of a role, or its OID if it has been dropped. */
static const char *
name_or_oid(Oid role)
{
	const char *name = role_name(role);

	return name != nullptr ? name : psprintf("%u", role);
}

/* Why the lock looks forgotten; null if it does not.  hold is null if it is not published. */
static const char *
reason_of(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold *hold, TimestampTz now)
{
	const Acquirer *acquirer = hold != nullptr ? hold->acquirer : nullptr;
	static constexpr char SEPARATOR[] = "; ";
	int64		idle = now - backend.st_state_start_timestamp;
	StringInfoData reasons;

	initStringInfo(&reasons);
	if (backend.st_state == STATE_IDLE && backend.st_state_start_timestamp != 0 && idle >= setting::leak_after * USECS_PER_SEC)
		appendStringInfo(&reasons, "%sidle outside a transaction for " INT64_FORMAT " s", SEPARATOR, idle / USECS_PER_SEC);
	if (acquirer != nullptr)
	{
		if (OidIsValid(hold->present_role) && hold->present_role != acquirer->role)
			appendStringInfo(&reasons, "%staken as user \"%s\", now acts as \"%s\"",
							 SEPARATOR, name_or_oid(acquirer->role), name_or_oid(hold->present_role));
		if (strcmp(acquirer->application, backend.st_appname) != 0)
			appendStringInfo(&reasons, "%staken by application \"%s\", now serves \"%s\"",
							 SEPARATOR, acquirer->application, backend.st_appname);
		if (hold->by_others > 0)
			appendStringInfo(&reasons, "%sheld through %u transaction%s of others' work",
							 SEPARATOR, hold->by_others, hold->by_others == 1 ? "" : "s");
	}
	return reasons.len > 0 ? reasons.data + strlen(SEPARATOR) : nullptr;
}

/* Add the forgotten locks of the sessions that the current user may see. */
static void
show_leaks(ReturnSetInfo *result)
{
	LockEntries entries = read_all_locks();
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;

	show_each(entries.count, [&](int i) {
		const LockEntry &entry = entries.entries[i];
		const PgBackendStatus *status = entry.granted ? backends.find(entry.pid) : nullptr;

		if (status == nullptr || !may_see_role(status->st_userid))
			return;

		const PgBackendStatus &backend = *status;
		const KnownHold *hold = names.hold_of(entry);
		const Acquirer *acquirer = hold != nullptr ? hold->acquirer : nullptr;
		TimestampTz acquired = hold != nullptr ? hold->hold.acquired_at : 0;
		const char *reason = reason_of(entry, backend, hold, now);

		if (reason == nullptr)
			return;

		DecodedTag	tag = decode_tag(entry.tag);
		Row			row;

		row.add_int32(entry.pid);
		row.add_text(database_name(tag.database));
		row.add_text(role_name(entry.role));
		row.add_text(backend.st_appname);
		row.add_reference(client_address(backend));
		row.add_text(state_name(backend.st_state));
		row.add_text(kind_name(tag.kind));
		add_name_columns(row, tag, names.of(entry));
		row.add_text(lockmode_name(entry.tag, entry.lockmode));
		row.add_time(acquired);
		row.add_age(acquired, now);
		row.add_text(acquirer != nullptr ? role_name(acquirer->role) : nullptr);
		row.add_text(acquirer != nullptr ? acquirer->application : nullptr);
		row.add_text(reason);
		row.add(ObjectIdGetDatum(tag.database));
		row.add_int32(tag.key1);
		row.add_int32(tag.key2);
		row.add_int32(tag.objsubid);
		row.add(Int64GetDatum(acquirer != nullptr ? hold->transactions : 0), acquirer == nullptr);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_leaks, rows_function<show_leaks>);

}								/* namespace advisory */
