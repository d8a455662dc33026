/*
 * core/errors.h
 *		The errors of locks that were not obtained, with the names of locks in them.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "core/acquire.h"

namespace advisory
{

/*
 * What the name table or this session calls a lock, if the current user may see it; else
 * null.  Like billing/invoice:42.  Do not call this in the arguments of ereport(), because
 * it may clear an error of its own.
 */
char	   *visible_name(const LOCKTAG &tag);

/* The lock as messages name it (lockname.h), or by visible_name() if it has no name.  The same holds for it. */
char	   *display_lock(const LockName &name);

/*
 * Raise 55P03, with the sessions that block the request.  outcome is that of asking for it,
 * and limit the timeout that the caller gave.
 */
[[noreturn]] void raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit);

/*
 * Raise the error that ended a wait, once everything is released that has to be.  A deadlock's
 * DETAIL gets the names of locks, and a HINT says which locks survive.
 */
[[noreturn]] void raise_wait_error(ErrorData *error);

/*
 * The session-level locks that are released if an error ends what runs under them, the innermost
 * first.  A deadlock's hint does not count them among the locks that survive.
 */
struct PassingLock
{
	LOCKTAG		tag;
	const PassingLock *outer;
};

extern const PassingLock *passing_locks;

}								/* namespace advisory */
