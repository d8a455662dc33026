/*
 * core/acquire.h
 *		Taking one lock, or one slot of a semaphore.
 *
 * Whatever happens, in every race: true means held; false or an error means
 * not held (unless it was held before).
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/* The result of asking for a lock. */
enum class Outcome
{
	granted,
	not_free,					/* and the caller did not want to wait */
	timeout,					/* the caller's timeout ended the wait */
	lock_timeout				/* the setting lock_timeout did */
};

/*
 * Take a lock or a slot, waiting at most as long as the timeout or lock_timeout says.
 *
 *		granted							Outcome::granted
 *		not obtained in time			one of the others; the transaction goes on
 *		deadlock						error 40P01, with a hint where locks of
 *										this session survive it
 *		cancelled, statement_timeout	error 57014
 *		lock table full					error 53200
 *		lock table nearly full, and this
 *		session holds many locks		error 53400 (poolguard.h)
 *		in a parallel worker			error 25000
 *
 * A session-level lock that was granted while a timeout was ending the wait counts as
 * granted; before any other error it is released.  Where a timeout is to end the wait, it
 * runs in an internal subtransaction.  *slot is the slot that was taken.
 */
Outcome		lock_take(const LockRequest &request, Timeout timeout, int *slot = nullptr);

/* The same, but an error that ended a wait is handed over, not raised; *error is null if there is none. */
Outcome		lock_take_or_hand_over(const LockRequest &request, Timeout timeout, int *slot, ErrorData **error);

/* Is it granted? */
bool		lock_try(const LockRequest &request, Timeout timeout);

/* The same, but unless it is granted error 55P03, which says who is in the way. */
void		lock_must(const LockRequest &request, Timeout timeout);

/* The same for a slot of a semaphore: which one, or NO_SLOT; or error 55P03 instead. */
int			slot_try(const LockRequest &request, Timeout timeout);
int			slot_must(const LockRequest &request, Timeout timeout);

/* What was to be done under it is not done, since somebody else does it or has done it: for the statistics. */
void		lock_count_skipped(const LockName &name);

}								/* namespace advisory */
