/*
 * server/backends.cpp
 *		Who the server's sessions are, and what of it the current user may see.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/compat.h"
#include "base/encoding.h"
#include "base/errors.h"

namespace advisory
{

static int
compare_pids(const void *a, const void *b) noexcept
{
	int			pid_a = (*static_cast<LocalPgBackendStatus *const *>(a))->backendStatus.st_procpid;
	int			pid_b = (*static_cast<LocalPgBackendStatus *const *>(b))->backendStatus.st_procpid;

	return pid_a < pid_b ? -1 : pid_a > pid_b;
}

static LocalPgBackendStatus *
copy_backend(const LocalPgBackendStatus *original)
{
	auto	   *copy = static_cast<LocalPgBackendStatus *>(palloc(sizeof(LocalPgBackendStatus)));

	*copy = *original;
	copy->backendStatus.st_appname = pstrdup(original->backendStatus.st_appname);
	copy->backendStatus.st_activity_raw = pstrdup(original->backendStatus.st_activity_raw);
	return copy;
}

Backends::Backends()
{
	/* The server would repeat the transaction's first picture for ever. */
	pgstat_clear_backend_activity_snapshot();
	count = pgstat_fetch_stat_numbackends();
	entries = static_cast<LocalPgBackendStatus **>(palloc(sizeof(*entries) * (count + 1)));
	for (int i = 0; i < count; i++)
		entries[i] = copy_backend(compat::local_beentry_by_index(i + 1));
	qsort(entries, count, sizeof(*entries), compare_pids);
}

const LocalPgBackendStatus *
Backends::find(int pid) const noexcept
{
	int			low = 0;
	int			high = count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (entries[middle]->backendStatus.st_procpid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && entries[low]->backendStatus.st_procpid == pid)
		return entries[low];
	return nullptr;
}

/* Has the current user the privileges of this role?  No, where that cannot be found out. */
static bool
has_privileges_of(Oid role)
{
	bool		answer = false;

	if (superuser() || GetUserId() == role)
		return true;
	return unless_lock_table_is_full([&]() { answer = has_privs_of_role(GetUserId(), role); }) && answer;
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

const char *
state_name(BackendState state) noexcept
{
	if (compat::backend_is_starting(state))
		return "starting";
	switch (state)
	{
		case STATE_IDLE:
			return "idle";
		case STATE_RUNNING:
			return "active";
		case STATE_IDLEINTRANSACTION:
			return "idle in transaction";
		case STATE_FASTPATH:
			return "fastpath function call";
		case STATE_IDLEINTRANSACTION_ABORTED:
			return "idle in transaction (aborted)";
		case STATE_DISABLED:
			return "disabled";
		default:
			return nullptr;
	}
}

bool
client_address(const PgBackendStatus &backend, Datum *address)
{
	const SockAddr &client = backend.st_clientaddr;
	char		host[NI_MAXHOST];
	char		port[NI_MAXSERV];

	if (client.addr.ss_family != AF_INET && client.addr.ss_family != AF_INET6)
		return false;
	if (pg_getnameinfo_all(&client.addr, client.salen, host, sizeof(host), port, sizeof(port),
						   NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return false;
	clean_ipv6_addr(client.addr.ss_family, host);
	*address = DirectFunctionCall1(inet_in, CStringGetDatum(host));
	return true;
}

char *
query_text(const PgBackendStatus &backend)
{
	return escape_foreign(pgstat_clip_activity(backend.st_activity_raw));
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
stored_database_name(Oid database)
{
	char	   *name = nullptr;

	if (OidIsValid(database))
		unless_lock_table_is_full([&]() { name = get_database_name(database); });
	return name;
}

char *
database_name(Oid database)
{
	return escape_foreign(stored_database_name(database));
}

static PreparedXact
read_prepared(HeapTuple row, TupleDesc columns)
{
	PreparedXact xact = {};
	bool		isnull;

	xact.xid = DatumGetTransactionId(SPI_getbinval(row, columns, 1, &isnull));
	xact.gid = SPI_getvalue(row, columns, 2);
	xact.owner = DatumGetObjectId(SPI_getbinval(row, columns, 3, &isnull));
	return xact;
}

PreparedXact *
prepared_xacts(int *count)
{
	MemoryContext callers_context = CurrentMemoryContext;
	PreparedXact *xacts;

	SPI_connect();
	if (SPI_execute("SELECT transaction, gid, ownerid FROM pg_catalog.pg_prepared_xact()",
					true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read pg_prepared_xact()");

	*count = static_cast<int>(SPI_processed);
	xacts = static_cast<PreparedXact *>(MemoryContextAlloc(callers_context,
														   sizeof(PreparedXact) * (*count + 1)));
	for (int i = 0; i < *count; i++)
	{
		xacts[i] = read_prepared(SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
		xacts[i].gid = MemoryContextStrdup(callers_context, escape_foreign(xacts[i].gid));
	}
	SPI_finish();
	return xacts;
}

const PreparedXact *
find_prepared(const PreparedXact *xacts, int count, TransactionId xid) noexcept
{
	for (int i = 0; i < count; i++)
	{
		if (xacts[i].xid == xid)
			return &xacts[i];
	}
	return nullptr;
}

}								/* namespace advisory */
