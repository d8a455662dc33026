/*
 * shmem/heldread.h
 *		What the sessions of the server say of the locks that they hold.
 *
 * What is said of a lock that the lock table does not know of is out of date, and is
 * to be ignored.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "shmem/sessiontable.h"

namespace advisory
{

/* What is known of one hold. */
struct KnownHold
{
	PublishedHold hold;
	const Acquirer *acquirer;	/* of a session-level hold; null where it is not known; good as long as the reader */

	Scope		scope() const noexcept
	{
		return static_cast<Scope>(hold.scope);
	}
};

/*
 * What all sessions say, each as it was when it was first asked about.  In the current
 * memory context, which must outlive it.
 */
class HoldReader
{
public:
	/* May ereport. */
	HoldReader();

	/* Of the lock that this process holds in this mode; false if it says nothing.  May ereport. */
	bool		find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, KnownHold *found);

	struct Session;

private:
	Session    *session_of(int proc_number, int pid);

	MemoryContext context;
	Session   **sessions;		/* by process number; each is read when it is first needed */
};

/* How many session-level holds a process says it has; 0 if it says nothing.  May ereport for a cancel. */
int64		count_session_holds(int proc_number, int pid);

/* A session that has a slot of a semaphore, or waits for one, and how many slots it says there are. */
struct OtherSlots
{
	int			pid;
	int			slots;
};

/*
 * Is there a session that uses this semaphore of this database at present and says that
 * it has another number of slots?  The first such.  May ereport.
 */
bool		find_other_slots(Key key, int slots, OtherSlots *other);

/* The role that a session acted for at the end of its last transaction; InvalidOid if not known. */
Oid			present_role(int proc_number, int pid);

}								/* namespace advisory */
