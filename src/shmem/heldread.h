/*
 * shmem/heldread.h
 *		What the sessions of the server publish about the locks that they hold.
 *
 * Ignore published data about a lock that is not in the lock table, because it is out of
 * date.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "shmem/sessiontable.h"

namespace advisory
{

/* The published data about one hold. */
struct KnownHold
{
	PublishedHold hold;
	const Acquirer *acquirer;	/* of a session-level hold; null if unknown; valid as long as the reader */
	uint32		transactions;	/* of its session since then; if there is an acquirer */
	uint32		by_others;		/* those of them that were as another role or application */

	Scope		scope() const noexcept
	{
		return static_cast<Scope>(hold.scope);
	}
};

/*
 * The published holds of all sessions, each copied when it is first asked for.  Uses the
 * current memory context, which must outlive the reader.
 */
class HoldReader
{
public:
	/* May ereport. */
	HoldReader();

	/* Find the hold of this lock by this process in this mode; false if it is not published.  May ereport. */
	bool		find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, KnownHold *found);

	struct Session;

private:
	Session    *session_of(int proc_number, int pid);

	MemoryContext context;
	Session   **sessions;		/* by process number; each is read when it is first needed */
};

/* How many session-level holds a process publishes.  May ereport for a cancel. */
int64		count_session_holds(int proc_number, int pid);

/* A session that has a slot of a semaphore, or waits for one, and the number of slots that it gave. */
struct OtherSlots
{
	int			pid;
	int			slots;
};

/*
 * Does a session use this semaphore of this database at present with another number of
 * slots?  *other is the first such session.  May ereport.
 */
bool		find_other_slots(Key key, int slots, OtherSlots *other);

/* The role that a session acted for at the end of its last transaction; InvalidOid if not known. */
Oid			present_role(int proc_number, int pid);

}								/* namespace advisory */
