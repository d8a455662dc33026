/*
 * core/await.cpp
 *		Waiting for a lock without keeping a snapshot.
 *
 * ForgetPortalSnapshots(), which COMMIT in a procedure uses, pops every active snapshot
 * before it finds out whether all of them belonged to portals.  Its error then comes too
 * late to be undone.  So it is called only if the only active snapshot is the active
 * portal's, which is not so inside a query, an atomic PL/pgSQL block or a block with an
 * EXCEPTION clause.  Other things that keep xmin set (an open cursor, the query of a FOR
 * loop) are found afterwards, when a new snapshot can still be taken.
 *
 * Having no snapshot while waiting is not enough.  CREATE INDEX CONCURRENTLY lists the
 * transactions that have an old snapshot and waits for the end of each, even if it has
 * released its snapshot since then; and a CALL has a snapshot at first.  It waits by the
 * lock that each transaction holds on its own virtual transaction ID.  So this
 * transaction releases that lock while it waits, and takes it again before it takes a
 * snapshot.  Meanwhile nothing in this transaction can make another session wait, and a
 * session that lists it later finds the lock held as usual.  A transaction that has
 * locked tables keeps the lock, because other sessions wait by it for the tables, too.
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
 * Are there other active snapshots below the top one?  The top one may be the portal's
 * and still have been pushed a second time by a caller that needs it.  Changes nothing.
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
 * The portal of a procedure that returns a row keeps one more snapshot for the row.
 * Release it as PreCommit_Portals() does at COMMIT.
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

/* As lock_take(), with the lock on this transaction's virtual transaction ID released. */
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
		/* After an error, too, because the abort may end only a savepoint. */
		LWLockReleaseAll();
		VirtualXactLockTableInsert(my_transaction());
	}
	PG_END_TRY();
	return outcome;
}

/* Called without a snapshot. */
static Outcome
take(const LockRequest &request, Timeout timeout, int *slot)
{
	return have_other_locks() ? lock_take(request, timeout, slot) : take_aside(request, timeout, slot);
}

/* Do what reads catalogs, and so takes a snapshot, before the snapshots are released. */
static void
prepare(const LockRequest &request)
{
	name_ask(request.name);
}

/* Does a session wait for the end of this transaction?  It may hold the lock that we are going to wait for. */
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

/* Take a snapshot again.  On an error release the lock, which may be session-level. */
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
