/*
 * core/terminate.h
 *		Ending the session that holds a lock.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * End the session with this pid if it holds the lock at that moment, or a slot of the
 * semaphore of that name, and wait for its end (an immediate timeout does not wait).  Returns
 * false, with a WARNING, if it holds neither, could not be signaled, or is still there when
 * the timeout ends.  Raises 42501 by pg_terminate_backend()'s rules.
 */
bool		terminate_holder(const LockName &name, int pid, Timeout timeout);

}								/* namespace advisory */
