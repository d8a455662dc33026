/*
 * core/boundedwait.h
 *		What a session can wait for, and a wait that a timeout may end.
 *
 * There are three kinds of things that a session can wait for: a lock, slots of a semaphore, and a
 * lease.  A WaitRoutine says how each is got and given up, like the routine of an access method.
 * Each kind has an attempt of its own, which begins with the members of Attempt.  The order of the
 * steps is the same for a lock and for slots, and stands in acquire.cpp.  A lease has its own
 * (lease.cpp).
 */
#pragma once

#include "core/namecache.h"
#include "core/request.h"

namespace advisory
{

struct WaitRoutine;

/* An attempt to get something of this name. */
struct Attempt
{
	const WaitRoutine &routine;
	const LockName &given;
	NameHandle	name;			/* from name_ask() to name_end() */
	TimestampTz wait_start = 0; /* 0 if it did not wait */
	TimestampTz wait_end = 0;
	bool		in_subtransaction = false;	/* it waited in one */
	/* Of several attempts for one request, the first that found something that is not free. */
	Attempt    *lacking = this;
};

/*
 * An attempt to get what will be held: a lock, or slots.  If it is for slots of several semaphores,
 * all or none, there is an attempt for each, and the first stands for all.
 */
struct HoldAttempt : Attempt
{
	const LockRequest &request;
	int		   *slots = nullptr;	/* the caller's array for request.wanted of them */
	HoldAttempt *next = nullptr;	/* of the same request */
	volatile int added = 0;		/* of what was granted, to the held locks */

	/* The slot in this place of the array; NO_SLOT for a lock, which takes one place. */
	int			slot(int i) const noexcept
	{
		return request.is_for_slot() ? slots[i] : NO_SLOT;
	}
};

struct WaitRoutine
{
	/* ---- Every kind has these ---- */

	/* Take it without waiting, if it is free.  May ereport (53200). */
	bool		(*try_now) (Attempt *attempt);

	/*
	 * Publish the wait, which the caller withdraws, and wait.  lock_timeout may end the wait, with
	 * 55P03; the caller restores the setting.  May ereport, as a wait for a lock.
	 */
	void		(*wait) (Attempt *attempt);

	/*
	 * An error has ended the wait: leave the queue.  Does this session nevertheless have what it
	 * asked for?  Only in session scope: the rollback of a subtransaction, or of the transaction,
	 * releases the rest.  Allocates nothing.
	 */
	bool		(*survived) (Attempt *attempt);

	/*
	 * After an error: leave the queue, and release what was granted in session scope, whether it is
	 * among the held locks or not.  Other holds of the same lock stay.  Allocates nothing before
	 * the release.
	 */
	void		(*give_up) (Attempt *attempt);

	/* What the session waits for, in messages; name is how they show its name.  palloc'd. */
	char	   *(*describe) (const Attempt &attempt, const char *name);

	/* ---- Those that are null have nothing to do or to say, or say no ---- */

	/* Get ready, before anything is taken.  May ereport. */
	void		(*prepare) (HoldAttempt *attempt);

	/* Would a wait end at once, though it is not free, because this session comes first? */
	bool		(*comes_first) (const LockRequest &request);

	/*
	 * Add what was granted to the held locks, unless they contain it already, and count it in
	 * added.  May ereport (out of memory).
	 */
	void		(*add) (HoldAttempt *attempt);

	/* How to avoid the deadlock that ended the wait; null if there is nothing to say.  palloc'd. */
	char	   *(*deadlock_hint) (const Attempt &attempt);
};

/*
 * Wait for what is requested, as long as the timeout and lock_timeout allow, whichever is shorter.
 * The wait counts, and is shown, as one for the name of attempt->lacking.
 * Returns Outcome::granted, timeout or lock_timeout.  Other sessions see that this one waits.  An
 * error that ends the wait is raised again when nothing is left of the wait.
 */
Outcome		bounded_wait(Attempt *attempt, Timeout timeout);

/* WaitRoutine.give_up for locks and slots. */
void		give_up_holds(Attempt *attempt);

/* The error that lock_timeout raises in the server, for waits that are not the lock manager's. */
[[noreturn]] void raise_lock_timeout();

/*
 * After an error in a wait for a lock: end the wait, as an abort would.  The lock may have been
 * granted.  Call this before anything that allocates, because memory may have run out.
 */
void		clean_up_wait() noexcept;

/* Log a wait that was longer than log_wait.  end: how it ended.  May ereport. */
void		log_wait(const Attempt &attempt, const char *end);

/* Count it in the statistics of the name. */
void		count_event(const CachedName *name, Event event) noexcept;

}								/* namespace advisory */
