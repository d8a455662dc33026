/*
 * core/await.cpp
 *		Waiting for a lock without keeping a snapshot.
 *
 * ForgetPortalSnapshots(), which COMMIT in a procedure uses, pops every active snapshot before it
 * checks whether all of them belonged to portals.  Its error comes too late to undo that.  So this
 * file calls it only if the only active snapshot is the active portal's.  Inside a query, an atomic
 * PL/pgSQL block or a block with an EXCEPTION clause that is not the case.  Other things that keep
 * xmin set (an open cursor, the query of a FOR loop) are found afterwards, when a new snapshot can
 * still be taken.
 *
 * Having no snapshot while waiting is not enough.  CREATE INDEX CONCURRENTLY lists the transactions
 * that have an old snapshot and waits for the end of each, even if it has released its snapshot
 * since then; and a CALL has a snapshot at first.  To wait for a transaction, it waits for the lock
 * that the transaction holds on its own virtual transaction ID.  So this transaction releases that
 * lock while it sleeps, and takes it again before it takes a snapshot or opens a table
 * (vxidlock.h).  Meanwhile nothing in this transaction can make another session wait, and a session
 * that lists it later finds the lock held as usual.
 */
#include "base/pg.h"

#include "core/await.h"
#include "core/notavailable.h"
#include "core/held.h"
#include "server/locktable.h"

namespace advisory
{

[[noreturn]] static void
raise_cannot_release(const char *procedure, const char *reason, const char *remedy)
{
	/* The portal's may have been released already. */
	EnsurePortalSnapshotExists();
	ereport(ERROR,
			(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
			 errmsg("%s() cannot wait without a snapshot here", procedure),
			 errdetail("%s", reason),
			 errhint("%s", remedy)));
}

/*
 * Is the active portal's snapshot the only active one?  Changes nothing.  In a block with an
 * EXCEPTION clause, which is a subtransaction within the portal, it may be: older minor releases,
 * such as 16.2, push no other one there.  It does not count.
 */
static bool
only_portals_snapshot()
{
	Portal		portal = ActivePortal;

	if (portal == nullptr || !ActiveSnapshotSet() ||
		portal->portalSnapshot != GetActiveSnapshot() ||
		portal->createLevel != GetCurrentTransactionNestLevel())
		return false;

	/* A caller may have pushed the portal's snapshot a second time: look below it. */
	Snapshot	top = RegisterSnapshot(GetActiveSnapshot());
	bool		more;

	PopActiveSnapshot();
	more = ActiveSnapshotSet();
	PushActiveSnapshotWithLevel(top, portal->createLevel);
	portal->portalSnapshot = GetActiveSnapshot();
	UnregisterSnapshot(top);
	return !more;
}

static void
forget_snapshots()
{
	Portal		portal = ActivePortal;

	ForgetPortalSnapshots();
	InvalidateCatalogSnapshot();
	/*
	 * The portal of a procedure that returns a row keeps one more snapshot.  PreCommit_Portals()
	 * releases it in this way.
	 */
	if (portal->holdSnapshot != nullptr)
		UnregisterSnapshotFromOwner(portal->holdSnapshot, portal->resowner);
	portal->holdSnapshot = nullptr;
}

NameHandle
release_snapshots(const LockName &name, const char *procedure)
{
	/* It may read catalogs, which takes a snapshot.  The wait finds the name registered. */
	NameHandle	asked = name_ask(name);
	VirtualTransactionId id = my_vxid();
	LOCKTAG		tag;

	SET_LOCKTAG_VIRTUALTRANSACTION(tag, id);
	if (IsolationUsesXactSnapshot())
		raise_cannot_release(procedure,
							 "In isolation level REPEATABLE READ or SERIALIZABLE a transaction "
							 "keeps its snapshot.",
							 "Use isolation level READ COMMITTED.");
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		raise_cannot_release(procedure,
							 "The transaction has a transaction ID, because it has already written "
							 "or locked rows.",
							 "Make the CALL the first statement of the transaction.");
	if (!only_portals_snapshot())
		raise_cannot_release(procedure,
							 "The call is at a place where a procedure cannot commit: inside a "
							 "query, a function, EXECUTE, a block with an EXCEPTION clause, a "
							 "procedure with SECURITY DEFINER or SET, or a DO block or procedure "
							 "in an explicit transaction.",
							 "CALL it outside of these, for example at top level.");

	forget_snapshots();
	if (TransactionIdIsValid(MyProc->xmin))
		raise_cannot_release(procedure,
							 "The transaction has an open cursor or is inside a loop over a query.",
							 "Close the cursor, or CALL it outside of the loop.");
	/*
	 * A session that waits for the end of this transaction may hold the lock that this session is
	 * going to wait for.
	 */
	if (have_other_locks() && is_mine_awaited(tag))
		raise_cannot_release(procedure,
							 "The transaction has locked tables, and another session waits for its "
							 "end.",
							 "Make the CALL the first statement of the transaction.");
	return asked;
}

int
await_lock(const LockRequest &request, Timeout timeout, const char *procedure)
{
	NameHandle	asked = release_snapshots(request.name, procedure);
	int			slot = NO_SLOT;
	Outcome		outcome;

	outcome = without_vxid_lock([&]() { return lock_take(request, timeout, &slot); });
	name_end(asked);
	PG_TRY();
	{
		EnsurePortalSnapshotExists();
	}
	PG_CATCH();
	{
		/* A session-level lock survives an error. */
		if (outcome == Outcome::granted)
			lock_give_up(request, slot);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (outcome != Outcome::granted)
		raise_not_available(request, outcome, timeout);
	return slot;
}

Outcome
await_if_possible(const LockRequest &request, Timeout timeout, int *slot)
{
	if (timeout.is_immediate() || IsolationUsesXactSnapshot() ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()) || !only_portals_snapshot())
		return lock_take(request, timeout, slot);

	NameHandle	asked = name_ask(request.name);
	Outcome		outcome;

	forget_snapshots();
	outcome = without_vxid_lock([&]() { return lock_take(request, timeout, slot); });
	name_end(asked);
	return outcome;
}

void
refresh_snapshot()
{
	if (!IsolationUsesXactSnapshot() && only_portals_snapshot())
		forget_snapshots();
	EnsurePortalSnapshotExists();
}

}								/* namespace advisory */
