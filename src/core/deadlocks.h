/*
 * core/deadlocks.h
 *		What the error says that ended a wait, above all that of a deadlock.
 *
 * An error releases no session-level lock.  So the victim of a deadlock keeps those that it has,
 * and others may go on waiting for it; the HINT says so.  But locks that a function has taken only
 * for its own work are released by that function after an error.  It says which, by
 * under_own_locks().
 */
#pragma once

#include "base/lockname.h"
#include "base/locktag.h"

namespace advisory
{

/*
 * Raise the error that ended a wait for something of this name.  The caller has released everything
 * that it must release.  The error gets the fields of the lock.  The DETAIL of a deadlock gets the
 * names of locks, and its HINT says which locks survive.
 */
[[noreturn]] void raise_wait_error(ErrorData *error, const LockName &name);

/* Add to the HINT of an error, which may be none yet; null adds nothing. */
void		add_hint(ErrorData *error, char *hint);

/* Session-level locks in exclusive mode, each once, that a function releases after an error. */
struct OwnLocks
{
	const LOCKTAG *tags;		/* sorted by order_of() */
	int			count;			/* may grow while the function takes them */
};

/* Marks an entry of the server's stack of error contexts, whose argument is an OwnLocks. */
void		own_locks_context(void *locks);

/*
 * Run body(), in which the caller has these locks.  They stand in the stack of error contexts, so
 * the server itself forgets them when an error leaves body().
 */
template <typename Body>
inline void
under_own_locks(OwnLocks *locks, Body body)
{
	ErrorContextCallback context = {error_context_stack, own_locks_context, locks};

	error_context_stack = &context;
	body();
	error_context_stack = context.previous;
}

}								/* namespace advisory */
