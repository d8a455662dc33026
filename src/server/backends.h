/*
 * server/backends.h
 *		The server's sessions, as far as the current user may see them.
 *
 * The rules are those of pg_stat_activity.  Every role sees pid, database, role and application
 * name.  Only members of a session's role or of pg_read_all_stats see its state, times, client
 * address and query.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * A session or prepared transaction.  Null or 0 for what it does not have, what the current user
 * may not see, and what cannot be looked up because the server's lock table is full.
 */
struct VisibleSession
{
	int			pid;			/* 0 for a prepared transaction */
	const char *gid;			/* of a prepared transaction */
	bool		gid_is_exact;	/* and not that of another one, with characters replaced */
	const char *role;
	const char *application;
	bool		is_hidden;		/* the current user may not see the rest */
	const char *state;
	TimestampTz state_start;
	const char *query;
	const PgBackendStatus *backend;
};

/*
 * A new snapshot of all sessions, copied into the current memory context, because the server keeps
 * only one.  That context must outlive it.
 */
class Backends
{
public:
	Backends();

	/* The session with this pid, or null if it has gone. */
	const PgBackendStatus *find(int pid) const noexcept;

	/* Who holds or awaits a lock; for a parallel worker its leader.  May ereport. */
	VisibleSession of(const LockEntry &entry);

private:
	/* A prepared transaction, which holds locks without a session. */
	struct Prepared
	{
		TransactionId xid;
		const char *gid;
		bool		is_exact;
	};

	void		read_prepared();
	const Prepared *prepared_of(TransactionId xid);

	MemoryContext context = CurrentMemoryContext;
	PgBackendStatus *entries;	/* by ascending pid */
	int			count;
	Prepared   *prepared = nullptr; /* read when the first is asked for */
	int			prepared_count = 0;
};

/*
 * Does the current user have the privileges of this role?  False if that cannot be looked up
 * because the server's lock table is full.
 */
bool		has_privileges_of(Oid role);

/* May the current user see what all sessions are doing, or those of this role? */
bool		may_see_all();
bool		may_see_role(Oid role);

/* This session as role@application, or the role if it has no application_name; palloc'd. */
char	   *own_description();

/* A session's client address as inet; 0 for none (a socket, or unknown). */
Datum		client_address(const PgBackendStatus &backend);

/* Which server, with its standbys, this is: its system identifier. */
inline int64
server_identifier() noexcept
{
	return static_cast<int64>(GetSystemIdentifier());
}

/*
 * The role that a row of a table means that has its OID, its name, and where they were written: on
 * this server the OID, which a rename keeps and another role of that name does not get; on another
 * one, after a restored dump or pg_upgrade, the name.  InvalidOid if there is none.  May ereport.
 */
Oid			role_here(Oid role, const char *name, int64 server);

/*
 * A role's or database's name, with foreign bytes escaped.  Null if it was dropped, or cannot be
 * looked up because the server's lock table is full.
 */
char	   *role_name(Oid role);
char	   *database_name(Oid database);

}								/* namespace advisory */
