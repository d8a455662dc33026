/*
 * shmem/heldpublish.cpp
 *		What this session publishes about the locks that it holds.
 */
#include "base/pg.h"

#include "shmem/root.h"
#include "shmem/sessiontable.h"

namespace advisory
{

static constexpr int FIRST_HOLDS = 64;

/* An empty list that is larger than this is freed before the next hold is published. */
static constexpr int KEPT_HOLDS = 16384;

/* This session's part, and its list of holds; null without shared memory. */
static SharedSession *my_session = nullptr;
static PublishedHold *my_holds = nullptr;
static int	live_count = 0;
static int	first_free = NO_PLACE;
static bool has_ended = false;

SharedSession *
all_sessions()
{
	static SharedSession *sessions = nullptr;

	if (sessions == nullptr)
		sessions = static_cast<SharedSession *>(
			shared_part(&SharedRoot::sessions, sizeof(SharedSession) * process_count(), [](SharedRoot *root, void *place) {
				for (int i = 0; i < process_count(); i++)
				{
					LWLockInitialize(&static_cast<SharedSession *>(place)[i].lock, root->sessions_tranche);
					static_cast<SharedSession *>(place)[i].holds = InvalidDsaPointer;
				}
			}));
	return sessions;
}

/* Move the holds into a new list of this size.  Allocates memory before it changes anything. */
static void
resize_list(SharedSession *session, int size)
{
	dsa_pointer place = dsa_allocate_extended(shared_area(), sizeof(PublishedHold) * size, DSA_ALLOC_HUGE);
	dsa_pointer old = session->holds;
	auto	   *holds = static_cast<PublishedHold *>(dsa_get_address(shared_area(), place));

	if (session->hold_count > 0)
		memcpy(holds, my_holds, sizeof(PublishedHold) * session->hold_count);
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->holds = place;
	session->hold_capacity = size;
	LWLockRelease(&session->lock);
	my_holds = holds;
	if (old != InvalidDsaPointer)
		dsa_free(shared_area(), old);
}

static void
take_place(SharedSession *session)
{
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->hold_count = 0;
	session->acquirer_count = 0;
	session->present_role = InvalidOid;
	session->database = MyDatabaseId;
	session->pid = MyProcPid;
	LWLockRelease(&session->lock);
	if (session->holds == InvalidDsaPointer)
		resize_list(session, FIRST_HOLDS);
	my_holds = static_cast<PublishedHold *>(dsa_get_address(shared_area(), session->holds));
	my_session = session;
}

void
publish_reserve()
{
	if (has_ended || shared_is_short())
		return;
	if (my_session == nullptr)
	{
		SharedSession *sessions = all_sessions();

		if (sessions == nullptr || !shared_attempt([sessions]() { take_place(&sessions[my_process_number()]); }))
			return;
	}
	if (live_count == 0 && my_session->hold_capacity > KEPT_HOLDS)
		shared_attempt([]() { resize_list(my_session, FIRST_HOLDS); });
	else if (first_free == NO_PLACE && my_session->hold_count == my_session->hold_capacity)
		shared_attempt([]() { resize_list(my_session, 2 * my_session->hold_capacity); });
}

/* ---- Callbacks at the ends of transactions call these, so they neither allocate nor raise errors ---- */

int
publish_hold(const PublishedHold &hold) noexcept
{
	int			place = first_free;

	if (my_session == nullptr || (place == NO_PLACE && my_session->hold_count == my_session->hold_capacity))
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
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	first_free = my_holds[place].next_free;
	my_holds[place] = hold;
	LWLockRelease(&my_session->lock);
	return place;
}

void
publish_scope(int place, Scope scope) noexcept
{
	if (place != NO_PLACE)
		my_holds[place].scope = static_cast<uint8>(index_of(scope));
}

void
publish_name(int place, const UsedName &used) noexcept
{
	if (place == NO_PLACE || memcmp(&my_holds[place].used, &used, sizeof(used)) == 0)
		return;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_holds[place].used = used;
	LWLockRelease(&my_session->lock);
}

void
publish_acquirer(int place, int acquirer) noexcept
{
	if (place == NO_PLACE || acquirer == NO_PLACE)
		return;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_holds[place].acquirer = static_cast<int16>(acquirer);
	my_holds[place].transactions = my_session->transactions;
	my_holds[place].own_transactions = my_session->acquirers[acquirer].transactions;
	LWLockRelease(&my_session->lock);
}

void
withdraw_hold(int place) noexcept
{
	if (place == NO_PLACE)
		return;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_holds[place].objsubid = 0;
	my_holds[place].next_free = first_free;
	first_free = place;
	if (--live_count == 0)
	{
		first_free = NO_PLACE;
		my_session->hold_count = 0;
		my_session->acquirer_count = 0;
	}
	LWLockRelease(&my_session->lock);
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
		   (my_session->acquirers[place].role != role || strcmp(my_session->acquirers[place].application, application) != 0))
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

void
publish_end() noexcept
{
	has_ended = true;
	if (my_session == nullptr)
		return;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_session->pid = 0;
	my_session->hold_count = 0;
	my_session->acquirer_count = 0;
	my_session->present_role = InvalidOid;
	LWLockRelease(&my_session->lock);
	my_session = nullptr;
}

}								/* namespace advisory */
