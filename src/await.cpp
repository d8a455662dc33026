/*
 * await.cpp
 *		Waiting for a lock without keeping a snapshot.
 *
 * ForgetPortalSnapshots() is what COMMIT in a procedure uses.  It pops every
 * active snapshot and only then finds out whether all of them were portals'
 * own, with an error that comes too late to be undone.  So it is only called
 * where the one active snapshot is the active portal's own, which is also what
 * a query around us, an atomic PL/pgSQL block or one with an EXCEPTION clause
 * would spoil.  What else keeps xmin set (an open cursor, the query of a FOR
 * loop) is seen afterwards, when a new snapshot can still be had.
 */
#include "pg.h"

#include "await.h"
#include "holds.h"
#include "pool.h"

namespace advisory
{

[[noreturn]] static void
raise_cannot_release(const char *procedure, const char *reason, const char *remedy)
{
	ereport(ERROR,
			(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
			 errmsg("%s() cannot wait without a snapshot here", procedure),
			 errdetail("%s", reason),
			 errhint("%s", remedy)));
	pg_unreachable();
}

/*
 * Are there other active snapshots below the topmost?  The topmost may be the
 * portal's and yet be pushed again by somebody above it, who still wants it.
 * Leaves all as it was.
 */
static bool
has_more_snapshots()
{
	Portal		portal = ActivePortal;
	Snapshot	top = RegisterSnapshot(GetActiveSnapshot());
	bool		more;

	PopActiveSnapshot();
	more = ActiveSnapshotSet();
	PushActiveSnapshotWithLevel(top, portal->createLevel);
	portal->portalSnapshot = GetActiveSnapshot();
	UnregisterSnapshot(top);
	return more;
}

static bool
only_portals_snapshot()
{
	Portal		portal = ActivePortal;

	return portal != nullptr && ActiveSnapshotSet() &&
		portal->portalSnapshot == GetActiveSnapshot() && !has_more_snapshots();
}

/*
 * A procedure that returns a row keeps one more snapshot for the row's sake; it
 * goes where PreCommit_Portals() would drop it at COMMIT.
 */
static void
release_hold_snapshot(Portal portal)
{
	if (portal->holdSnapshot == nullptr)
		return;
	UnregisterSnapshotFromOwner(portal->holdSnapshot, portal->resowner);
	portal->holdSnapshot = nullptr;
}

static void
forget_snapshots()
{
	ForgetPortalSnapshots();
	InvalidateCatalogSnapshot();
	release_hold_snapshot(ActivePortal);
}

/* What looks at catalogs comes before: it would take a snapshot. */
static void
prepare(const LockRequest &request)
{
	pool_first_look();
	hold_open(request.name, request.scope);
}

static void
release_snapshots(const char *procedure)
{
	if (IsolationUsesXactSnapshot())
		raise_cannot_release(procedure,
							 "In isolation level REPEATABLE READ or SERIALIZABLE a transaction keeps its snapshot.",
							 "Use isolation level READ COMMITTED.");
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		raise_cannot_release(procedure,
							 "The transaction has a transaction ID, because it has already written or locked rows.",
							 "CALL it first in the transaction.");
	if (!only_portals_snapshot())
		raise_cannot_release(procedure,
							 "The call is where a procedure could not commit either: inside a query, a function, EXECUTE, "
							 "a block with an EXCEPTION clause, a procedure with SECURITY DEFINER or SET, or a DO block or "
							 "procedure in an explicit transaction.",
							 "CALL it outside of these, for example at top level.");

	forget_snapshots();
	if (TransactionIdIsValid(MyProc->xmin))
	{
		EnsurePortalSnapshotExists();
		raise_cannot_release(procedure,
							 "The transaction has an open cursor or is inside a loop over a query.",
							 "Close the cursor, or CALL it outside of the loop.");
	}
}

/* As before the wait; a session-level lock must not outlive an error on the way. */
static void
restore_snapshot(const LockRequest &request, int slot)
{
	PG_TRY();
	{
		EnsurePortalSnapshotExists();
	}
	PG_CATCH();
	{
		lock_give_up(request, slot);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

int
await_lock(const LockRequest &request, Timeout timeout, const char *procedure)
{
	prepare(request);
	release_snapshots(procedure);

	int			slot;
	Outcome		outcome = lock_take(request, timeout, &slot);

	if (outcome == Outcome::granted)
		restore_snapshot(request, slot);
	else
	{
		EnsurePortalSnapshotExists();
		lock_raise_not_available(request, outcome, timeout);
	}
	return slot;
}

Outcome
await_if_possible(const LockRequest &request, Timeout timeout, int *slot)
{
	if (timeout.is_immediate() || IsolationUsesXactSnapshot() || TransactionIdIsValid(GetTopTransactionIdIfAny()) ||
		!only_portals_snapshot())
		return lock_take(request, timeout, slot);

	prepare(request);
	forget_snapshots();
	return lock_take(request, timeout, slot);
}

void
refresh_snapshot()
{
	if (!IsolationUsesXactSnapshot() && only_portals_snapshot())
		forget_snapshots();
	EnsurePortalSnapshotExists();
}

}								/* namespace advisory */
