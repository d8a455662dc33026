/*
 * shmem/sessiontable.cpp
 *		The session table: what each process publishes about the locks that it holds, and about
 *		the one that it waits for.
 */
#include "base/pg.h"

#include "shmem/root.h"
#include "shmem/sessiontable.h"

namespace advisory
{

static constexpr int FIRST_HOLDS = 64;

/*
 * An empty list that is larger than this is freed before the next hold is published; that of a
 * session that has ended, when another session publishes its first.
 */
static constexpr int KEPT_HOLDS = 1024;

/* This session's part, and its list of holds; null without shared memory. */
static SharedSession *my_session = nullptr;
static PublishedHold *my_holds = nullptr;
static int	live_count = 0;
static int	first_free = NO_PLACE;

SharedSession *
all_sessions()
{
	static SharedSession *sessions = nullptr;

	if (sessions == nullptr)
		sessions = static_cast<SharedSession *>(
			shared_part(&SharedRoot::sessions, sizeof(SharedSession) * process_count(),
						[](SharedRoot *root, void *place) {
				for (int i = 0; i < process_count(); i++)
				{
					LWLockInitialize(&static_cast<SharedSession *>(place)[i].lock,
									 root->sessions_tranche);
					static_cast<SharedSession *>(place)[i].holds = InvalidDsaPointer;
				}
			}));
	return sessions;
}

/* Move the holds into a new list of this size.  Allocates memory before it changes anything. */
static void
resize_list(SharedSession *session, int size)
{
	dsa_pointer place = dsa_allocate_extended(shared_area, sizeof(PublishedHold) * size,
											  DSA_ALLOC_HUGE);
	dsa_pointer old = session->holds;
	auto	   *holds = static_cast<PublishedHold *>(dsa_get_address(shared_area, place));

	if (session->hold_count > 0)
		memcpy(holds, my_holds, sizeof(PublishedHold) * session->hold_count);
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->holds = place;
	session->hold_capacity = size;
	LWLockRelease(&session->lock);
	my_holds = holds;
	if (old != InvalidDsaPointer)
		dsa_free(shared_area, old);
}

/* Free the long lists of sessions that have ended, because their ends must not. */
static void
free_old_lists(SharedSession *sessions)
{
	for (int i = 0; i < process_count(); i++)
	{
		SharedSession *session = &sessions[i];
		dsa_pointer old = InvalidDsaPointer;

		if (session->hold_capacity <= KEPT_HOLDS)
			continue;
		LWLockAcquire(&session->lock, LW_EXCLUSIVE);
		if (GetPGProcByNumber(i)->pid != session->pid)
		{
			old = session->holds;
			session->holds = InvalidDsaPointer;
			session->hold_count = session->hold_capacity = 0;
		}
		LWLockRelease(&session->lock);
		if (old != InvalidDsaPointer)
			dsa_free(shared_area, old);
	}
}

static void
take_place(SharedSession *session)
{
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->hold_count = 0;
	session->acquirer_count = 0;
	session->present_role = InvalidOid;
	session->pid = MyProcPid;
	LWLockRelease(&session->lock);
	if (session->holds == InvalidDsaPointer)
		resize_list(session, FIRST_HOLDS);
	my_holds = static_cast<PublishedHold *>(dsa_get_address(shared_area, session->holds));
	my_session = session;
}

void
publish_reserve()
{
	if (shared_is_short())
		return;
	if (my_session == nullptr)
	{
		SharedSession *sessions = all_sessions();

		if (sessions == nullptr ||
			!shared_attempt([sessions]() {
				take_place(&sessions[my_process_number()]);
				free_old_lists(sessions);
			}))
			return;
	}
	if (live_count == 0 && my_session->hold_capacity > KEPT_HOLDS)
		shared_attempt([]() { resize_list(my_session, FIRST_HOLDS); });
	else if (first_free == NO_PLACE && my_session->hold_count == my_session->hold_capacity)
		shared_attempt([]() { resize_list(my_session, 2 * my_session->hold_capacity); });
}

/* ---- At the ends of transactions, too: these neither allocate nor raise errors ---- */

int
publish_hold(const PublishedHold &hold) noexcept
{
	int			place = first_free;

	if (my_session == nullptr ||
		(place == NO_PLACE && my_session->hold_count == my_session->hold_capacity))
		return NO_PLACE;
	live_count++;
	if (place == NO_PLACE)
	{
		place = my_session->hold_count;
		my_holds[place] = hold;
		pg_write_barrier();
		my_session->hold_count = place + 1;
		return place;
	}
	PGSTAT_BEGIN_WRITE_ACTIVITY(my_session);
	first_free = my_holds[place].next_free;
	my_holds[place] = hold;
	PGSTAT_END_WRITE_ACTIVITY(my_session);
	return place;
}

void
publish_scope(int place, Scope scope) noexcept
{
	if (place != NO_PLACE)
		my_holds[place].scope = scope;
}

void
publish_since(int place, TimestampTz since) noexcept
{
	if (place == NO_PLACE)
		return;
	PGSTAT_BEGIN_WRITE_ACTIVITY(my_session);
	my_holds[place].acquired_at = since;
	PGSTAT_END_WRITE_ACTIVITY(my_session);
}

void
publish_name(int place, const UsedName &used) noexcept
{
	if (place == NO_PLACE || memcmp(&my_holds[place].used, &used, sizeof(used)) == 0)
		return;
	PGSTAT_BEGIN_WRITE_ACTIVITY(my_session);
	my_holds[place].used = used;
	PGSTAT_END_WRITE_ACTIVITY(my_session);
}

void
publish_acquirer(int place, int acquirer) noexcept
{
	if (place == NO_PLACE || acquirer == NO_PLACE)
		return;
	PGSTAT_BEGIN_WRITE_ACTIVITY(my_session);
	my_holds[place].acquirer = static_cast<int16>(acquirer);
	my_holds[place].transactions = my_session->transactions;
	my_holds[place].own_transactions = my_session->acquirers[acquirer].transactions;
	PGSTAT_END_WRITE_ACTIVITY(my_session);
}

void
withdraw_hold(int place) noexcept
{
	if (place == NO_PLACE)
		return;
	PGSTAT_BEGIN_WRITE_ACTIVITY(my_session);
	my_holds[place].objsubid = 0;
	my_holds[place].next_free = first_free;
	first_free = place;
	if (--live_count == 0)
	{
		first_free = NO_PLACE;
		my_session->hold_count = 0;
		my_session->acquirer_count = 0;
	}
	PGSTAT_END_WRITE_ACTIVITY(my_session);
}

int
publish_present_role() noexcept
{
	static int	last_place = NO_PLACE;
	Oid			role = GetOuterUserId();
	const char *application = application_name != nullptr ? application_name : "";
	int			place = 0;
	Acquirer   *acquirer;

	if (my_session == nullptr)
		return NO_PLACE;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_session->present_role = role;
	while (place < my_session->acquirer_count &&
		   (my_session->acquirers[place].role != role ||
			strcmp(my_session->acquirers[place].application, application) != 0))
		place++;
	acquirer = &my_session->acquirers[place];
	if (place == my_session->acquirer_count && place < SESSION_ACQUIRERS)
	{
		my_session->acquirer_count++;
		*acquirer = Acquirer{role};
		strlcpy(acquirer->application, application, NAMEDATALEN);
	}
	/* A transaction that has changed the role or the application was nobody's work. */
	my_session->transactions += place == last_place;
	acquirer->transactions += place == last_place;
	last_place = place;
	LWLockRelease(&my_session->lock);
	return place < SESSION_ACQUIRERS ? place : NO_PLACE;
}

/* ---- What all sessions hold ---- */

/*
 * A place in a copied list of holds.  The table's private data is the list, so that the entries are
 * small.  To look for a hold, write it into the place behind the others.
 */
struct HoldPlace
{
	int			place;
	char		status;
};

static inline PublishedHold &
hold_at(void *holds, int place) noexcept
{
	return static_cast<PublishedHold *>(holds)[place];
}

static inline uint32
hash_of_hold(const PublishedHold &hold) noexcept
{
	return hash_of_key(hold.key, (hold.objsubid << 8) ^ hold.lockmode);
}

/* Are these the same lock in the same mode? */
static inline bool
is_same_hold(const PublishedHold &a, const PublishedHold &b) noexcept
{
	return a.key == b.key && a.objsubid == b.objsubid && a.lockmode == b.lockmode;
}

#define SH_PREFIX holds
#define SH_ELEMENT_TYPE HoldPlace
#define SH_KEY_TYPE int
#define SH_KEY place
#define SH_HASH_KEY(table, place) hash_of_hold(hold_at((table)->private_data, place))
#define SH_EQUAL(table, a, b) \
	is_same_hold(hold_at((table)->private_data, a), hold_at((table)->private_data, b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A copy of what one session publishes; all zero without shared memory. */
struct HoldReader::Session
{
	SharedSession shared;
	PublishedHold *list;
	int			list_length;	/* of the copy; one more place is free */
	holds_hash *holds;
};

/* A lock that is held in both scopes is one, of session scope, since the first of the two. */
static void
add_hold(holds_hash *holds, int place)
{
	bool		found;
	HoldPlace  *entry = holds_insert(holds, place, &found);
	const PublishedHold &hold = hold_at(holds->private_data, place);
	PublishedHold *known = &hold_at(holds->private_data, entry->place);
	PublishedHold other = *known;

	if (!found)
		return;
	if (hold.scope == Scope::session)
		*known = hold;
	known->acquired_at = Min(hold.acquired_at, other.acquired_at);
	if (known->used.name.generation == 0)
		known->used = hold.scope == Scope::session ? other.used : hold.used;
}

/* Copy what a session publishes.  If it changes its list meanwhile, the copy may lack a hold. */
static void
copy_session(SharedSession *session, HoldReader::Session *copy)
{
	int			most = session->hold_count;
	int			count = SESSION_READ_HOLDS;
	int			before;
	int			after;

	copy->list = static_cast<PublishedHold *>(palloc_extended(sizeof(PublishedHold) * (most + 1),
															  MCXT_ALLOC_HUGE));
	copy->holds = holds_create(CurrentMemoryContext, most, copy->list);
	for (int first = 0; count == SESSION_READ_HOLDS; first += SESSION_READ_HOLDS)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&session->lock, LW_SHARED);
		do
		{
			pgstat_begin_read_activity(session, before);
			count = Max(0, Min(Min(session->hold_count, most) - first, SESSION_READ_HOLDS));
			pg_read_barrier();
			if (count > 0)
			{
				void	   *all = dsa_get_address(shared_area, session->holds);

				memcpy(copy->list + first, static_cast<PublishedHold *>(all) + first,
					   sizeof(PublishedHold) * count);
			}
			copy->shared = *session;
			pgstat_end_read_activity(session, after);
		} while (!pgstat_read_activity_complete(before, after));
		LWLockRelease(&session->lock);
		copy->list_length = first + count;
		for (int i = first; i < first + count; i++)
		{
			if (copy->list[i].objsubid != 0)
				add_hold(copy->holds, i);
		}
	}
}

HoldReader::HoldReader()
	: context(CurrentMemoryContext),
	  // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
	  sessions(static_cast<Session **>(palloc0(sizeof(Session *) * process_count())))
{
}

HoldReader::Session *
HoldReader::session_of(int proc_number)
{
	if (sessions[proc_number] == nullptr)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		auto	   *copy = static_cast<Session *>(palloc0(sizeof(Session)));

		if (SharedSession *all = all_sessions())
			copy_session(&all[proc_number], copy);
		sessions[proc_number] = copy;
		MemoryContextSwitchTo(old_context);
	}
	return sessions[proc_number];
}

KnownHold
HoldReader::find(const LockEntry &entry)
{
	KnownHold	found = {};

	/* A prepared transaction publishes nothing. */
	if (!entry.granted || entry.proc_number >= process_count())
		return found;

	const Session *session = session_of(entry.proc_number);
	const SharedSession &shared = session->shared;
	const HoldPlace *published = nullptr;

	if (shared.pid == entry.pid && session->holds != nullptr)
	{
		session->list[session->list_length] = PublishedHold{
			key_in(entry.tag).value, 0, entry.tag.locktag_field4, 0,
			static_cast<uint8>(entry.lockmode)};
		published = holds_lookup(session->holds, session->list_length);
	}
	if (published == nullptr)
		return found;
	found.hold = session->list[published->place];
	found.acquirer = found.hold.acquirer != NO_PLACE && found.hold.acquirer < shared.acquirer_count
		? &shared.acquirers[found.hold.acquirer] : nullptr;
	found.present_role = shared.present_role;
	found.transactions = shared.transactions - found.hold.transactions;
	if (found.acquirer != nullptr)
		found.by_others = found.transactions -
			(found.acquirer->transactions - found.hold.own_transactions);
	return found;
}

/* ---- What each session waits for ---- */

/* This session's part of the table while it publishes a wait, else null. */
static SharedSession *my_waiter = nullptr;

void
publish_wait(const LOCKTAG &tag, int slots, int wanted, const UsedName &used)
{
	SharedSession *sessions = all_sessions();

	if (sessions == nullptr)
		return;
	my_waiter = &sessions[my_process_number()];
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait =
		PublishedWait{MyProcPid, tag, slots, wanted, 0, GetCurrentTimestamp(), used, false};
	LWLockRelease(&my_waiter->lock);
}

void
publish_lacking(const LOCKTAG &queue, int slots, const UsedName &used) noexcept
{
	if (my_waiter == nullptr || same_tag(my_waiter->wait.tag, queue))
		return;
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait.tag = queue;
	my_waiter->wait.slots = slots;
	my_waiter->wait.used = used;
	LWLockRelease(&my_waiter->lock);
}

void
publish_leaving(bool is_leaving) noexcept
{
	if (my_waiter == nullptr)
		return;
	my_waiter->wait.tries += !is_leaving;
	my_waiter->wait.is_leaving = is_leaving;
	pg_memory_barrier();
}

void
withdraw_wait() noexcept
{
	if (my_waiter == nullptr)
		return;
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait = PublishedWait{};
	LWLockRelease(&my_waiter->lock);
	my_waiter = nullptr;
}

bool
read_wait(int proc_number, PublishedWait *wait)
{
	SharedSession *sessions = all_sessions();

	if (sessions == nullptr || proc_number >= process_count())
		return false;
	LWLockAcquire(&sessions[proc_number].lock, LW_SHARED);
	*wait = sessions[proc_number].wait;
	LWLockRelease(&sessions[proc_number].lock);
	return wait->pid != 0;
}

bool
read_wait_of(const LockEntry &entry, PublishedWait *wait)
{
	return read_wait(entry.proc_number, wait) && wait->pid == entry.pid;
}

}								/* namespace advisory */
