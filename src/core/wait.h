/*
 * core/wait.h
 *		Getting a lock or a slot from the lock manager: at once, or after a wait.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "core/namecache.h"
#include "core/semaphore.h"

namespace advisory
{

/* An attempt to get a lock or a slot. */
struct Attempt
{
	LockRequest request;
	CachedName *name = nullptr;
	Semaphore  *semaphore = nullptr;	/* stays null for a lock */
	int			slot = NO_SLOT; /* the slot that was taken */
	TimestampTz wait_start = 0; /* 0 if it did not wait */
	TimestampTz wait_end = 0;

	/* The lock that was granted. */
	LOCKTAG		granted_tag() const noexcept
	{
		return request.granted_tag(slot);
	}
};

/* Take the lock or slot without waiting, if it is free.  May ereport (53200). */
bool		take_if_free(Attempt *attempt);

/*
 * Wait for it, as long as the timeout and lock_timeout allow.  Other sessions see that
 * this one waits.  If an error ended the wait, *error is that error; the wait has been
 * cleaned up, and the caller must raise the error.
 */
Outcome		wait_for_grant(Attempt *attempt, Timeout timeout, ErrorData **error);

/* Release the session-level lock or slot that was granted.  Allocates nothing before that. */
void		release_granted(const Attempt &attempt);

/* Log a wait that was longer than log_wait.  May ereport. */
void		log_wait(const Attempt &attempt, const char *end);

}								/* namespace advisory */
