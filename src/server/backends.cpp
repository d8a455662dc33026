/*
 * server/backends.cpp
 *		The server's sessions, as far as the current user may see them.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/compat.h"
#include "base/encoding.h"
#include "base/errors.h"

namespace advisory
{

Backends::Backends()
{
	/* Otherwise the server would return the transaction's first snapshot again. */
	pgstat_clear_backend_activity_snapshot();
	count = pgstat_fetch_stat_numbackends();
	entries = static_cast<PgBackendStatus *>(palloc_extended(sizeof(*entries) * (count + 1),
															 MCXT_ALLOC_HUGE));
	for (int i = 0; i < count; i++)
	{
		entries[i] = compat::local_beentry_by_index(i + 1)->backendStatus;
		entries[i].st_appname = pstrdup(entries[i].st_appname);
		entries[i].st_activity_raw = pstrdup(entries[i].st_activity_raw);
	}
	std::sort(entries, entries + count, [](const PgBackendStatus &a, const PgBackendStatus &b) {
		return a.st_procpid < b.st_procpid;
	});
}

const PgBackendStatus *
Backends::find(int pid) const noexcept
{
	auto	   *end = entries + count;
	auto	   *found =
		std::lower_bound(entries, end, pid, [](const PgBackendStatus &backend, int wanted) {
		return backend.st_procpid < wanted;
	});

	return found != end && found->st_procpid == pid ? found : nullptr;
}

/* May ereport, also because the lock table is full. */
void
Backends::read_prepared()
{
	SPI_connect();
	if (SPI_execute("SELECT transaction, gid FROM pg_catalog.pg_prepared_xact()", true, 0) !=
		SPI_OK_SELECT)
		elog(ERROR, "could not read pg_prepared_xact()");

	auto	   *xacts = static_cast<Prepared *>(
		MemoryContextAlloc(context, sizeof(Prepared) * (SPI_processed + 1)));

	prepared_count = static_cast<int>(SPI_processed);
	for (int i = 0; i < prepared_count; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	columns = SPI_tuptable->tupdesc;
		bool		isnull;

		xacts[i].xid = DatumGetTransactionId(SPI_getbinval(row, columns, 1, &isnull));
		char	   *gid = SPI_getvalue(row, columns, 2);
		char	   *shown = escape_foreign(gid);

		xacts[i].gid = MemoryContextStrdup(context, shown);
		xacts[i].is_exact = shown == gid && is_printable(gid);
	}
	SPI_finish();
	prepared = xacts;
}

/* Null if it is not known. */
const Backends::Prepared *
Backends::prepared_of(TransactionId xid)
{
	if (prepared == nullptr)
		unless_lock_table_is_full([this]() { read_prepared(); });
	for (int i = 0; prepared != nullptr && i < prepared_count; i++)
	{
		if (prepared[i].xid == xid)
			return &prepared[i];
	}
	return nullptr;
}

/* "idle in transaction" and so on; null if the server does not track it. */
static const char *
state_name(BackendState state) noexcept
{
	static const char *const names[] = {"idle", "active", "idle in transaction",
		"fastpath function call", "idle in transaction (aborted)", "disabled"};

	/* Up to 17 the only state before idle is undefined; 18 added starting. */
	if (state < STATE_IDLE)
		return state == STATE_UNDEFINED ? nullptr : "starting";
	return names[state - STATE_IDLE];
}

VisibleSession
Backends::of(const LockEntry &entry)
{
	VisibleSession session = {};

	session.pid = session_pid(entry);

	const PgBackendStatus *backend = find(session.pid);
	Oid			role = backend != nullptr ? backend->st_userid : entry.role;

	session.role = role_name(role);
	if (const Prepared *xact = entry.pid == 0 ? prepared_of(entry.xid) : nullptr)
	{
		session.gid = xact->gid;
		session.gid_is_exact = xact->is_exact;
	}
	if (backend == nullptr)
		return session;
	session.application = backend->st_appname;
	session.is_hidden = !may_see_role(role);
	if (session.is_hidden)
		return session;
	session.backend = backend;
	session.state = state_name(backend->st_state);
	session.state_start = backend->st_state_start_timestamp;
	session.query = escape_foreign(pgstat_clip_activity(backend->st_activity_raw));
	return session;
}

bool
has_privileges_of(Oid role)
{
	bool		answer = false;

	if (superuser() || GetUserId() == role)
		return true;
	return unless_lock_table_is_full([&]() { answer = has_privs_of_role(GetUserId(), role); }) &&
		answer;
}

bool
may_see_all()
{
	return has_privileges_of(ROLE_PG_READ_ALL_STATS);
}

bool
may_see_role(Oid role)
{
	return may_see_all() || has_privileges_of(role);
}

char *
own_description()
{
	char	   *role = GetUserNameFromId(GetUserId(), false);

	return application_name != nullptr && application_name[0] != '\0'
		? psprintf("%s@%s", role, application_name) : role;
}

Datum
client_address(const PgBackendStatus &backend)
{
	const SockAddr &client = backend.st_clientaddr;
	char		host[NI_MAXHOST];
	char		port[NI_MAXSERV];

	if ((client.addr.ss_family != AF_INET && client.addr.ss_family != AF_INET6) ||
		pg_getnameinfo_all(&client.addr, client.salen, host, sizeof(host), port, sizeof(port),
						   NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return Datum(0);
	clean_ipv6_addr(client.addr.ss_family, host);
	return DirectFunctionCall1(inet_in, CStringGetDatum(host));
}

Oid
role_here(Oid role, const char *name, int64 server)
{
	return server == server_identifier() ? role : get_role_oid(name, true);
}

char *
role_name(Oid role)
{
	char	   *name = nullptr;

	if (OidIsValid(role))
		unless_lock_table_is_full([&]() { name = GetUserNameFromId(role, true); });
	return escape_foreign(name);
}

char *
database_name(Oid database)
{
	char	   *name = nullptr;

	if (OidIsValid(database))
		unless_lock_table_is_full([&]() { name = get_database_name(database); });
	return escape_foreign(name);
}

}								/* namespace advisory */
