/*
 * core/request.h
 *		What a caller asks for: a lock or slots, and for how long it waits.
 */
#pragma once

#include "base/lockname.h"
#include "server/locallock.h"
#include "server/locktable.h"

namespace advisory
{

/* How long to wait. */
struct Timeout
{
	int			milliseconds;	/* 0: not at all; -1: for ever */

	bool		is_forever() const noexcept
	{
		return milliseconds < 0;
	}
	bool		is_immediate() const noexcept
	{
		return milliseconds == 0;
	}
};

/*
 * A timeout that runs from the moment this is made; for waits in several steps.  Nobody can set its
 * clock.
 */
class Deadline
{
public:
	explicit Deadline(Timeout timeout) noexcept : timeout(timeout)
	{
		INSTR_TIME_SET_CURRENT(start);
	}
	/* The remaining time, in milliseconds rounded up. */
	Timeout		remaining() const noexcept
	{
		instr_time	passed;

		if (timeout.is_forever())
			return timeout;
		INSTR_TIME_SET_CURRENT(passed);
		INSTR_TIME_SUBTRACT(passed, start);
		return Timeout{static_cast<int>(
			Max(timeout.milliseconds - static_cast<int64>(INSTR_TIME_GET_MILLISEC(passed)), 0))};
	}

	bool		is_over() const noexcept
	{
		return remaining().is_immediate();
	}

	/* The remaining milliseconds, but not more than this many. */
	int			most(int milliseconds) const noexcept
	{
		Timeout		left = remaining();

		return left.is_forever() ? milliseconds : Min(left.milliseconds, milliseconds);
	}

private:
	Timeout		timeout;
	instr_time	start;
};

/* A request for a lock, or for slots of a semaphore. */
struct LockRequest
{
	LockName	name;
	Mode		mode;
	Scope		scope;
	int			slots = 0;		/* of the semaphore; 0 where the lock is meant */
	int			wanted = 1;		/* of them, all or none */

	bool		is_for_slot() const noexcept
	{
		return slots > 0;
	}
	/* The requested lock; for a semaphore, the lock to wait for. */
	LOCKTAG		tag() const noexcept
	{
		if (!is_for_slot())
			return lock_tag(MyDatabaseId, name.key);
		return slots == 1 ? slot_tag(MyDatabaseId, name.key, slots) :
			queue_tag(MyDatabaseId, name.key);
	}
	/* Does this session hold the lock in this mode?  A slot that it has is not enough. */
	bool		is_mine(Mode wanted) const noexcept
	{
		return !is_for_slot() && is_held_by_me(tag(), wanted);
	}
	/* What was granted: the lock, or this slot. */
	LOCKTAG		granted_tag(int slot) const noexcept
	{
		return is_for_slot() ? slot_tag(MyDatabaseId, name.key, slot) : tag();
	}
};

/* The result of asking for a lock. */
enum class Outcome
{
	granted,
	not_free,					/* and the caller did not want to wait */
	mine_already,				/* this session holds it, and advisory_ext.reentrant is "off" */
	timeout,					/* the caller's timeout ended the wait */
	lock_timeout				/* the setting lock_timeout did */
};

}								/* namespace advisory */
