/*
 * server/vxidlock.h
 *		The lock that a transaction holds on its own virtual transaction ID.
 *
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for a transaction by waiting for this
 * lock.  A transaction that sleeps without it makes neither of them wait.  While it is released,
 * this transaction must not open a relation: REINDEX CONCURRENTLY would not wait for what it
 * writes, and rows would be missing in the new index.  So it is released around each sleep only.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/* Shall sleeping() release the lock?  core/await.cpp sets it while it waits. */
inline bool sleeps_without_vxid_lock = false;

/* This transaction's virtual transaction ID. */
inline VirtualTransactionId
my_vxid() noexcept
{
	VirtualTransactionId id;

	GET_VXID_FROM_PGPROC(id, *MyProc);
	return id;
}

/*
 * Run sleep(), in which this session waits for a lock or for its latch, with the lock released if
 * that is asked for. A transaction that holds other locks than advisory ones keeps it, because
 * sessions that want to lock the same tables wait for it, too.  So does one that has a snapshot, of
 * an open cursor for example: CREATE INDEX CONCURRENTLY must wait for it.  An error in sleep()
 * takes it again as well, because an abort may end only a savepoint.
 */
template <typename Sleep>
inline void
sleeping(Sleep sleep)
{
	if (!sleeps_without_vxid_lock || TransactionIdIsValid(MyProc->xmin) || have_other_locks())
		return sleep();
	VirtualXactLockTableCleanup();
	PG_TRY();
	{
		sleep();
	}
	PG_FINALLY();
	{
		LWLockReleaseAll();
		VirtualXactLockTableInsert(my_vxid());
	}
	PG_END_TRY();
}

}								/* namespace advisory */
