/*
 * lockrequest.h
 *		What somebody asks for.
 */
#ifndef ADVISORY_EXT_LOCKREQUEST_H
#define ADVISORY_EXT_LOCKREQUEST_H

#include "lockname.h"

namespace advisory
{

/* Which lock, and how; or a slot of which semaphore. */
struct LockRequest
{
	LockName	name;
	Mode		mode;
	Scope		scope;
	int			slots = 0;		/* of the semaphore; 0 where the lock is meant */

	bool		is_for_slot() const noexcept
	{
		return slots > 0;
	}
	/* The lock that is asked for; of a semaphore, the one to wait for. */
	LOCKTAG		tag() const noexcept
	{
		if (!is_for_slot())
			return lock_tag(MyDatabaseId, name.key);
		return slots == 1 ? slot_tag(MyDatabaseId, name.key, slots) : queue_tag(MyDatabaseId, name.key);
	}
};

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_LOCKREQUEST_H */
