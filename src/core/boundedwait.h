/*
 * core/boundedwait.h
 *		What a session can wait for, and a wait that a timeout may end.
 *
 * There are three kinds of things that a session can wait for: a lock, slots of a semaphore, and a
 * lease.  A WaitRoutine says how each is got, like the routine of an access method.  The order of
 * the steps is the same for a lock and for slots, and stands in acquire.cpp.  A lease has its own
 * (lease.cpp).
 */
#pragma once

#include "core/namecache.h"
#include "core/request.h"

namespace advisory
{

struct Lease;
struct Semaphore;

/* An attempt to get what is requested. */
struct Attempt
{
	LockRequest request;
	NameHandle	name;			/* from name_ask() to name_end() */
	int		   *slots = nullptr;	/* the caller's array for request.wanted of them */
	bool		has_slots = false;	/* they are taken */
	Semaphore  *semaphore = nullptr;	/* of slots */
	Lease	   *lease = nullptr;
	TimestampTz wait_start = 0; /* 0 if it did not wait */
	TimestampTz wait_end = 0;

	/* The slot in this place of the array; NO_SLOT for a lock, which takes one place. */
	int			slot(int i) const noexcept
	{
		return request.is_for_slot() ? slots[i] : NO_SLOT;
	}
};

/* Functions that are null have nothing to do, or say no. */
struct WaitRoutine
{
	bool		is_held;		/* what is granted is held: a lock or a slot, but not a lease */

	/* Get ready, before anything is taken.  May ereport. */
	void		(*prepare) (Attempt *attempt);

	/* Take it without waiting, if it is free.  May ereport (53200). */
	bool		(*try_now) (Attempt *attempt);

	/* Would a wait end at once, though it is not free, because this session comes first? */
	bool		(*comes_first) (const LockRequest &request);

	/*
	 * Publish the wait, which the caller withdraws, and wait.  lock_timeout may end the wait, with
	 * 55P03; the caller restores the setting.  May ereport, as a wait for a lock.
	 */
	void		(*wait) (Attempt *attempt);

	/*
	 * After an error that ended the wait: does this session nevertheless hold what is requested?
	 * Only in session scope: the rollback of a subtransaction releases the rest.  Allocates
	 * nothing.
	 */
	bool		(*survived) (Attempt *attempt);

	/*
	 * Add what was granted to the held locks, unless they contain it already.  May ereport (out of
	 * memory), and adds nothing then.
	 */
	void		(*add) (const Attempt &attempt);

	/* What the session waits for, in messages: a format of its name, and of mode or slots. */
	const char *what;
};

/*
 * Wait for what is requested, as long as the timeout and lock_timeout allow, whichever is shorter.
 * Returns Outcome::granted, timeout or lock_timeout.  Other sessions see that this one waits.  An
 * error that ends the wait is raised again when nothing is left of the wait.
 */
Outcome		bounded_wait(const WaitRoutine &routine, Attempt *attempt, Timeout timeout);

/* Log a wait that was longer than log_wait.  end: how it ended.  May ereport. */
void		log_wait(const WaitRoutine &routine, const Attempt &attempt, const char *end);

/* Count it in the statistics of the name. */
void		count_event(const CachedName *name, Event event) noexcept;

}								/* namespace advisory */
