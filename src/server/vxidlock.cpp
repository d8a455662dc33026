/*
 * server/vxidlock.cpp
 *		The lock that a transaction holds on its own virtual transaction ID.
 */
#include "base/pg.h"

extern "C" {
#include "storage/proc.h"
}

#include "server/locktable.h"
#include "server/vxidlock.h"

namespace advisory
{

bool		sleeps_without_vxid_lock = false;

VirtualTransactionId
my_vxid() noexcept
{
	VirtualTransactionId id;

	GET_VXID_FROM_PGPROC(id, *MyProc);
	return id;
}

bool
release_vxid_lock()
{
	if (!sleeps_without_vxid_lock || TransactionIdIsValid(MyProc->xmin) || have_other_locks())
		return false;
	VirtualXactLockTableCleanup();
	return true;
}

}								/* namespace advisory */
