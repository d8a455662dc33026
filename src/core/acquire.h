/*
 * core/acquire.h
 *		Taking one lock, or slots of semaphores.
 *
 * In every case and every race, true means held, and false or an error means not held (unless the
 * session held it before).
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * Take a lock or slots, waiting at most as long as the timeout or lock_timeout says.
 *
 *		granted							Outcome::granted
 *		held by this session already	Outcome::mine_already, if advisory_ext.reentrant says so
 *		not obtained in time			one of the others; the transaction goes on
 *		deadlock						error 40P01, with a hint where locks of
 *										this session survive it
 *		canceled, statement_timeout		error 57014
 *		lock table full					error 53200
 *		lock table nearly full, and this
 *		session holds many locks		error 53400 (poolguard.h)
 *		in a parallel worker			error 25000
 *		on a standby					error 25006 or a WARNING, if
 *										advisory_ext.standby_locks says so
 *
 * A session-level lock that was granted while a timeout was ending the wait counts as granted.
 * Before any other error it is released.  If a timeout limits the wait, the wait runs in an
 * internal subtransaction.  slots: for slots an array for as many as are wanted; it returns their
 * numbers, in their order.
 */
Outcome		lock_take(const LockRequest &request, Timeout timeout, int *slots = nullptr);

/*
 * The same for one slot of each of several semaphores, from 1 to MAX_QUEUES and all different: all
 * of them, or none.  Returns their slots in the order of the requests.  If they are not obtained,
 * *lacking is the place of one that was not free.
 */
Outcome		slots_take_all(const LockRequest *requests, int count, Timeout timeout, int *slots,
						   int *lacking);

}								/* namespace advisory */
