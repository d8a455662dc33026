/*
 * shmem/published.h
 *		What each session tells the others about the locks that it holds: since
 *		when, in which scope, and by whom they were taken.
 *
 * The lock table says who holds what; this only adds to it.  What is said here of
 * a lock that the lock table does not know of is out of date, and to be ignored.
 *
 * A session has two lists.  Transaction-level holds stand in the order they were
 * taken in, so that the end of a (sub)transaction only shortens the list.
 * Session-level holds have a place each, which is used again.  Where shared memory
 * is not to be had the lists are the session's own, and nobody else sees them.
 */
#ifndef ADVISORY_EXT_SHMEM_PUBLISHED_H
#define ADVISORY_EXT_SHMEM_PUBLISHED_H

#include <string_view>

#include "base/locktag.h"

namespace advisory
{

struct Hold;

/* Where a place in a list is meant, and there is none. */
constexpr int NO_RECORD = -1;

/* A namespace and name of up to so many bytes together go with the hold. */
constexpr int RECORD_TEXT_BYTES = 60;

/* One hold, of one lock in one mode and scope. */
struct HoldRecord
{
	int64		key;
	uint16		objsubid;		/* of the lock's tag; 0 for a place that is free */
	uint8		mode;			/* Mode */
	bool		has_name:1;		/* its role took it by the namespace and name that the directory has */
	bool		is_last:1;		/* when it ends: nothing is left of the lock in this mode */
	bool		is_counted:1;	/* the statistics will have it when it has ended */
	bool		is_new:1;		/* the directory does not have the name yet */
	bool		is_superuser:1; /* its role is one */
	int			nest_level;		/* of the transaction that it belongs to */
	Oid			role;			/* that took it: the current user at the time */
	int			taker;			/* session-level: in the list of takers, once the transaction has ended */
	TimestampTz acquired_at;	/* since when the session has held the lock in this mode */
	TimestampTz last_acquired_at;
	int64		count;			/* how often it was taken since there is this record */
	Hold	   *hold;			/* only for the session itself */
	int			previous;		/* the lock's next older record in this mode, or NO_RECORD */
	int			next;			/* with previous: session-level holds that have no taker yet */
	uint16		slots;			/* how many its taker said that the semaphore has; 0 for a lock */
	uint8		ns_length;
	uint8		name_length;	/* 0: it carries no name */
	char		text[RECORD_TEXT_BYTES]; /* namespace and name in UTF-8, one behind the other */

	std::string_view ns() const noexcept
	{
		return std::string_view(text, ns_length);
	}
	std::string_view name() const noexcept
	{
		return std::string_view(text + ns_length, name_length);
	}
};

/* It is written with each lock that is taken: two lines of the processor's cache. */
static_assert(sizeof(HoldRecord) == 128, "a record is to be small");

/*
 * Who took a session-level lock, as far as that can change in a pooled connection:
 * as it was at the end of the transaction, when what was set for the transaction
 * only (SET LOCAL, SECURITY DEFINER) is over.
 */
struct Taker
{
	Oid			role;			/* the session's user, or that of SET ROLE */
	char		application[NAMEDATALEN];
};

/* ---- The session's own part ---- */

/* Make sure that one more record finds room.  May ereport (out of memory). */
void		published_reserve(Scope scope);

/* The list of transaction-level holds, oldest first. */
HoldRecord *xact_record(int index) noexcept;
int			xact_record_count() noexcept;

/* Where the next record goes, for which room was reserved: to be filled in. */
HoldRecord *next_xact_record() noexcept;

/* Append it, now that it is filled in; where it stands. */
int			publish_xact_hold() noexcept;

/* Can others see this session's transaction-level holds? */
bool		xact_holds_are_shared() noexcept;

/*
 * Forget all records from this one on.  They can still be read until the next
 * record is published, or published_shrink() called.
 */
void		withdraw_xact_holds(int from) noexcept;

/* Give back memory that only many records needed. */
void		published_shrink() noexcept;

/* While one exists, the list of transaction-level holds may be changed anywhere. */
class XactListChange
{
public:
	XactListChange() noexcept;
	~XactListChange() noexcept;
};

/* The same for session-level holds, which are withdrawn one by one. */
HoldRecord *session_record(int index) noexcept;
int			session_record_count() noexcept;	/* with free places, whose objsubid is 0 */
int			publish_session_hold(const HoldRecord &record) noexcept;
void		withdraw_session_hold(int index) noexcept;

/*
 * The transaction is over, with all that was set for it: say whom the session
 * acts for now, and that it is who took what was taken in the transaction.
 */
void		publish_taker() noexcept;

/*
 * How many locks and slots this session holds through this extension, a lock in both modes
 * counted twice, as far as it has noticed what was released behind its back.
 */
int			published_count() noexcept;

/* The same of any process's session-level holds, as it says; 0 if it says nothing.  May ereport. */
int64		published_session_count(int proc_number, int pid);

/* Are there session-level holds that it matters for? */
bool		needs_taker() noexcept;

/* The session ends: nothing of it is to be seen any more. */
void		published_detach() noexcept;

/* ---- What others see ---- */

/* What is known of one hold of another session (or this one). */
struct PublishedHold
{
	Scope		scope;
	TimestampTz acquired_at;
	Oid			role;			/* that took it by name; invalid if it was not by name */
	int			slots;			/* of a semaphore, as its holder says */
	std::string_view ns;		/* the name in UTF-8, if it goes with the hold; good as long as the reader */
	std::string_view name;
	const Taker *taker;			/* of a session-level hold; null where not known; good as long as the reader */
};

/*
 * What all sessions said when this was made.  In the current memory context,
 * which must outlive it.
 */
class PublishedHolds
{
public:
	/* May ereport. */
	PublishedHolds();

	/* A session's records, and how to find them. */
	struct Session;

	/* Of the lock that this process holds in this mode; false if it said nothing. */
	bool		find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, PublishedHold *found);

private:
	Session    *session_of(int proc_number, int pid);

	MemoryContext context;
	Session   **sessions;		/* by process number; read when first needed */
};

/* A session that has, or waits for, a slot, and how many it says there are. */
struct OtherSlots
{
	int			pid;
	int			slots;
};

/*
 * Is there a session that uses this semaphore of this database at present and says that
 * it has another number of slots?  The first such.  May ereport for a cancel.
 */
bool		find_other_slots(Key key, int slots, OtherSlots *other);

/* A name that goes with a hold, and that the directory does not have yet. */
struct NewName
{
	Oid			database;
	Key			key;
	Oid			role;			/* that gave it */
	TimestampTz since;
	const char *ns;				/* UTF-8, zero-terminated */
	const char *name;
};

/*
 * All such names of a database, or of all if it is InvalidOid; of one key, unless
 * key is null.  Some can be there more than once.  palloc'd.  May ereport.
 */
NewName    *read_new_names(Oid database, const Key *key, int *count);

/* What is held at the moment and not in the statistics yet, of one key of this database. */
struct PendingStats
{
	int64		acquired;
	TimestampTz last_acquired_at;
};

/* What all sessions of this database hold by name, key by key. */
class PendingHolds
{
public:
	/* In the current memory context, which must outlive it.  May ereport. */
	PendingHolds();

	/* Of this key; *is_first says whether it is asked for the first time.  May ereport (out of memory). */
	PendingStats take(Key key, bool *is_first);

private:
	struct pending_hash *keys;
};

/* The current user of a session at the end of its last transaction; InvalidOid if not known. */
Oid			present_role(int proc_number, int pid);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_PUBLISHED_H */
