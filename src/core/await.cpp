/*
 * core/await.cpp
 *		Waiting for a lock without keeping a snapshot.
 *
 * ForgetPortalSnapshots() is what COMMIT in a procedure uses.  It pops every
 * active snapshot and only then finds out whether all of them were portals'
 * own, with an error that comes too late to be undone.  So it is only called
 * where the one active snapshot is the active portal's own, which is also what
 * a query around us, an atomic PL/pgSQL block or one with an EXCEPTION clause
 * would spoil.  What else keeps xmin set (an open cursor, the query of a FOR
 * loop) is seen afterwards, when a new snapshot can still be had.
 *
 * To have none while waiting is not enough.  CREATE INDEX CONCURRENTLY lists the
 * transactions that have an old one and then waits for the end of each, even if
 * it has put it away since; and a CALL has one at first.  What it waits for is the
 * lock that a transaction has on its own number (the virtual transaction ID).
 * So that lock is let go while the wait lasts, and taken again before there can
 * be a snapshot: meanwhile there is nothing of this transaction that anybody
 * could have to wait for, and who lists it later finds the lock as it was.  A
 * transaction that has locked tables keeps it, since that is what others wait by
 * for these locks, too.
 */
#include "base/pg.h"

#include "core/await.h"
#include "core/errors.h"
#include "core/namecache.h"
#include "core/release.h"
#include "server/locktable.h"

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

static VirtualTransactionId
my_transaction() noexcept
{
	VirtualTransactionId id;

	GET_VXID_FROM_PGPROC(id, *MyProc);
	return id;
}

/* As lock_take, without the lock on this transaction's number. */
static Outcome
take_aside(const LockRequest &request, Timeout timeout, int *slot)
{
	volatile Outcome outcome = Outcome::not_free;

	VirtualXactLockTableCleanup();
	PG_TRY();
	{
		outcome = lock_take(request, timeout, slot);
	}
	PG_FINALLY();
	{
		/* Also after an error, as an abort begins: it may end no more than a savepoint. */
		LWLockReleaseAll();
		VirtualXactLockTableInsert(my_transaction());
	}
	PG_END_TRY();
	return outcome;
}

/* There is no snapshot. */
static Outcome
take(const LockRequest &request, Timeout timeout, int *slot)
{
	return have_other_locks() ? lock_take(request, timeout, slot) : take_aside(request, timeout, slot);
}

/* What looks at catalogs comes before: it would take a snapshot. */
static void
prepare(const LockRequest &request)
{
	name_ask(request.name);
}

/* Who waits for its end may have the lock that it is about to wait for. */
static bool
is_end_awaited()
{
	LOCKTAG		tag;
	VirtualTransactionId id = my_transaction();

	SET_LOCKTAG_VIRTUALTRANSACTION(tag, id);
	return have_other_locks() && is_mine_awaited(tag);
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
	if (is_end_awaited())
	{
		EnsurePortalSnapshotExists();
		raise_cannot_release(procedure,
							 "The transaction has locked tables, and another session waits for its end.",
							 "CALL it first in the transaction.");
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
	Outcome		outcome = take(request, timeout, &slot);

	if (outcome == Outcome::granted)
		restore_snapshot(request, slot);
	else
	{
		EnsurePortalSnapshotExists();
		raise_not_available(request, outcome, timeout);
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
	return take(request, timeout, slot);
}

void
refresh_snapshot()
{
	if (!IsolationUsesXactSnapshot() && only_portals_snapshot())
		forget_snapshots();
	EnsurePortalSnapshotExists();
}

}								/* namespace advisory */
