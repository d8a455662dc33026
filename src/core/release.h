/*
 * core/release.h
 *		Releasing session-level locks and slots, and ending the session that holds one.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * Release one session-level hold.  If this session has none in this mode, that is counted, and the
 * result is false, with a WARNING that names the lock, or an error (55000):
 * advisory_ext.unlock_not_held says which.
 */
bool		lock_release(const LockName &name, Mode mode);

/* The same for a session-level slot; NO_SLOT means the one that was taken last. */
bool		slot_release(const LockName &name, int slot);

/*
 * Release each of these session-level slots that this session has.  Only then the same for those
 * that it does not have: an error names the first one.  Returns how many it had.
 */
int32		slots_release(const LockName &name, const List *slots);

/* Release every session-level hold in both modes, however taken.  Returns how many there were. */
int64		lock_release_all(const LockName &name);

/*
 * Release every session-level hold and slot that this session took by name in the
 * namespace through this extension.  Returns how many there were.
 */
int64		lock_release_namespace(std::string_view ns);

/*
 * How often this session holds the lock through this extension, in both modes and scopes.  May
 * ereport.
 */
int64		lock_my_count(Key key);

/*
 * End the session with this pid if it holds the lock at that moment, or a slot of the semaphore of
 * that name, or relies on the lease of that name; or only if it has the one of these that is given.
 * Wait for its end (an immediate timeout does not wait).  Returns false, with a WARNING, if it has
 * none, could not be signaled, or is still there when the timeout ends.  Raises 42501 by
 * pg_terminate_backend()'s rules.
 */
bool		terminate_holder(const LockName &name, int pid, const Kind *only, Timeout timeout);

}								/* namespace advisory */
