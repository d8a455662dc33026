/*
 * shmem/sessiontable.h
 *		The session table: for each process of the server, what it publishes about the
 *		locks that it holds, and about the one that it waits for.
 *
 * This only adds to the lock table, which has the holders and waiters of all locks: names, roles,
 * numbers of slots, times.  Ignore what the lock table does not confirm, because it is out of date.
 *
 * Locking
 *
 * Each part has a lock of its own.  Its process changes it with the lock held exclusively, all but
 * its holds; another process does so only to free the list of a session that has ended.  Other
 * processes read it with the lock held shared, and read no more than SESSION_READ_HOLDS holds at a
 * time, so that the process does not wait long.  A process reads its own part without the lock.
 *
 * Holds come and go with each lock, so a process changes those on its list without the lock.  It
 * counts the change in st_changecount before and after, as the server does for pg_stat_activity
 * (utils/backend_status.h), and a reader looks again if the count has changed, or is odd.  It adds
 * a hold at the end of the list without that, and writes the hold before hold_count.  And it
 * changes the scope of a hold without that, since readers see either the old or the new value, like
 * is_leaving of its wait.  The links belong to slotstate.cpp, which says how they are protected.
 *
 * The list of holds belongs to the place of the process, not to the session.  The next session
 * in the same place uses it again, so the end of a session frees nothing.
 */
#pragma once

#include "server/locktable.h"
#include "shmem/nametable.h"

namespace advisory
{

/* How many processes the server has places for, without prepared transactions (proc_count()). */
inline int
process_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount);
}

/*
 * The parts of all processes, by process number; null without shared memory.  May ereport for a
 * cancel.
 */
SharedSession *all_sessions();

/* ---- What this session holds ---- */

/*
 * core/held calls these functions and keeps the places of the holds.  Without shared memory the
 * place is NO_PLACE, for which they do nothing.
 */

/* Make room for one more hold, if that is possible.  May ereport for a cancel. */
void		publish_reserve();

/* Publish a hold, and return its place. */
int			publish_hold(const PublishedHold &hold) noexcept;

/*
 * Change the scope of a hold, since when the lock is held, the name that the session used for it,
 * or its acquirer.
 */
void		publish_scope(int place, Scope scope) noexcept;
void		publish_since(int place, TimestampTz since) noexcept;
void		publish_name(int place, const UsedName &used) noexcept;
void		publish_acquirer(int place, int acquirer) noexcept;

/* Remove a hold that has ended, and free its place. */
void		withdraw_hold(int place) noexcept;

/*
 * Publish the present role of the session after a transaction, when settings of the transaction no
 * longer apply.  Returns the place of that role and application in the list of acquirers, or
 * NO_PLACE if the list is full.
 */
int			publish_present_role() noexcept;

/* ---- What all sessions hold ---- */

/* The published data about one hold. */
struct KnownHold
{
	PublishedHold hold;
	/* Of a session-level hold; null if unknown; valid as long as the reader. */
	const Acquirer *acquirer;
	/* For which its session acted at the end of its last transaction; InvalidOid if not known. */
	Oid			present_role;
	uint32		transactions;	/* of its session since then; if there is an acquirer */
	uint32		by_others;		/* those of them that were as another role or application */
};

/*
 * The number of slots that the holder or waiter of a semaphore gave, whose hold was looked for; 0
 * if it is not known.
 */
inline int
slots_given(const LockEntry &entry, const KnownHold &hold) noexcept
{
	return entry.granted ? hold.hold.slots : entry.slots;
}

/*
 * The published holds of all sessions, each copied when it is first asked for.  Uses the
 * current memory context, which must outlive the reader.
 */
class HoldReader
{
public:
	/* May ereport. */
	HoldReader();

	/* The published data of an entry that is granted; all 0 if there is none.  May ereport. */
	KnownHold	find(const LockEntry &entry);

	struct Session;

private:
	Session    *session_of(int proc_number);

	MemoryContext context;
	Session   **sessions;		/* by process number; each is read when it is first needed */
};

/* ---- What each session waits for ---- */

/*
 * A process waits for one thing at a time, so its place has one wait.  The place is also that of
 * the process in the queue of a semaphore (slotstate.h).
 */

/*
 * Publish that this session begins to wait for a lock, or for as many as wanted of this many slots.
 * used: its name or label.  Does nothing without shared memory.  May ereport for a cancel.
 */
void		publish_wait(const LOCKTAG &tag, int slots, int wanted, const UsedName &used);

/* With a published wait for slots of several semaphores: change the one that the session lacks. */
void		publish_lacking(const LOCKTAG &queue, int slots, const UsedName &used) noexcept;

/* Remove the published wait.  Does nothing if there is none. */
void		withdraw_wait() noexcept;

/* Run body() with a published wait. */
template <typename Body>
inline void
with_published_wait(const LOCKTAG &tag, const UsedName &used, Body body)
{
	publish_wait(tag, 0, 0, used);
	PG_TRY();
	body();
	PG_FINALLY();
	withdraw_wait();
	PG_END_TRY();
}

/*
 * Publish whether this session is about to give up, or about to get what it waits for.  Does
 * nothing without a published wait.
 */
void		publish_leaving(bool is_leaving) noexcept;

/*
 * The wait that the process with this number publishes; false if there is none.  May ereport for a
 * cancel.
 */
bool		read_wait(int proc_number, PublishedWait *wait);

/* The same for the process of this entry, and not for a later one in its place. */
bool		read_wait_of(const LockEntry &entry, PublishedWait *wait);

}								/* namespace advisory */
