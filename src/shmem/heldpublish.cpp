/*
 * shmem/heldpublish.cpp
 *		What this session tells the others about the locks that it holds.
 */
#include "base/pg.h"

#include "shmem/heldpublish.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int FIRST_HOLDS = 64;
static constexpr int FIRST_TAKERS = 8;
static constexpr int MAX_TAKERS = 1024;

/* A list that is larger and empty is given back when the next hold is published. */
static constexpr int KEPT_HOLDS = 4096;

/* This session's part; null where there is no shared memory for it. */
static SharedSession *my_session = nullptr;
static bool has_ended = false;

/* The list of holds, in shared memory or in this session's own. */
static PublishedHold *my_holds = nullptr;
static bool is_shared = false;
static int	capacity = 0;
static int	hold_count = 0;		/* with free places */
static int	live_count = 0;
static int	first_free = NO_PLACE;
static Taker *my_takers = nullptr;
static int	withdrawing = 0;

SharedSession *
all_sessions()
{
	SharedRoot *root = shared_root();

	if (root == nullptr || root->sessions == InvalidDsaPointer)
		return nullptr;
	pg_read_barrier();
	return static_cast<SharedSession *>(dsa_get_address(shared_area(), root->sessions));
}

/* With the root's lock held. */
static void
make_sessions(SharedRoot *root)
{
	int			count = static_cast<int>(ProcGlobal->allProcCount);
	dsa_pointer place = dsa_allocate_extended(shared_area(), sizeof(SharedSession) * count,
											  DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);
	auto	   *sessions = static_cast<SharedSession *>(dsa_get_address(shared_area(), place));

	for (int i = 0; i < count; i++)
	{
		LWLockInitialize(&sessions[i].lock, root->tranche);
		sessions[i].holds = InvalidDsaPointer;
		sessions[i].takers = InvalidDsaPointer;
	}
	/* Other sessions read the pointer without the lock. */
	pg_write_barrier();
	root->sessions = place;
}

/* Replace the session's list of holds by one of this size; memory for it is had before anything changes. */
static void
replace_shared_holds(SharedSession *session, int size)
{
	dsa_pointer place = dsa_allocate_extended(shared_area(), sizeof(PublishedHold) * size, DSA_ALLOC_HUGE);
	dsa_pointer old = session->holds;
	auto	   *holds = static_cast<PublishedHold *>(dsa_get_address(shared_area(), place));

	if (hold_count > 0)
		memcpy(holds, my_holds, sizeof(PublishedHold) * hold_count);
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->holds = place;
	session->hold_capacity = size;
	session->hold_count = hold_count;
	LWLockRelease(&session->lock);
	my_holds = holds;
	capacity = size;
	if (old != InvalidDsaPointer)
		dsa_free(shared_area(), old);
}

static void
take_place(SharedRoot *root)
{
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->sessions == InvalidDsaPointer)
		make_sessions(root);
	LWLockRelease(&root->lock);

	SharedSession *session = &all_sessions()[MyProc - ProcGlobal->allProcs];

	if (session->holds == InvalidDsaPointer || session->hold_capacity > KEPT_HOLDS)
		replace_shared_holds(session, FIRST_HOLDS);
	if (session->takers == InvalidDsaPointer)
	{
		session->takers = dsa_allocate(shared_area(), sizeof(Taker) * FIRST_TAKERS);
		session->taker_capacity = FIRST_TAKERS;
	}
	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->hold_count = 0;
	session->taker_count = 0;
	session->present_role = InvalidOid;
	session->database = MyDatabaseId;
	session->pid = MyProcPid;
	LWLockRelease(&session->lock);
	my_session = session;
	my_takers = static_cast<Taker *>(dsa_get_address(shared_area(), session->takers));
}

/* The list is empty: move it to where others can see it, if that is possible now. */
static void
share_list()
{
	SharedRoot *root = shared_is_short() ? nullptr : shared_root();
	PublishedHold *own = my_holds;

	hold_count = 0;
	first_free = NO_PLACE;
	if (root == nullptr || !shared_attempt([root]() { take_place(root); }))
		return;
	is_shared = true;
	my_holds = static_cast<PublishedHold *>(dsa_get_address(shared_area(), my_session->holds));
	capacity = my_session->hold_capacity;
	if (own != nullptr)
		pfree(own);
}

static void
grow_own_list()
{
	int			size = Max(2 * capacity, FIRST_HOLDS);
	Size		bytes = sizeof(PublishedHold) * size;

	my_holds = static_cast<PublishedHold *>(my_holds == nullptr
											? MemoryContextAllocHuge(TopMemoryContext, bytes)
											: repalloc_huge(my_holds, bytes));
	capacity = size;
}

static void
grow_takers()
{
	int			size = 2 * my_session->taker_capacity;
	dsa_pointer place = dsa_allocate(shared_area(), sizeof(Taker) * size);
	dsa_pointer old = my_session->takers;
	auto	   *takers = static_cast<Taker *>(dsa_get_address(shared_area(), place));

	memcpy(takers, my_takers, sizeof(Taker) * my_session->taker_count);
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_session->takers = place;
	my_session->taker_capacity = size;
	LWLockRelease(&my_session->lock);
	my_takers = takers;
	dsa_free(shared_area(), old);
}

void
publish_reserve()
{
	if (!is_shared && live_count == 0 && !has_ended)
		share_list();
	if (is_shared && live_count == 0 && capacity > KEPT_HOLDS && !shared_is_short())
		shared_attempt([]() {
			hold_count = 0;
			first_free = NO_PLACE;
			replace_shared_holds(my_session, FIRST_HOLDS);
		});
	if (is_shared && my_session->taker_count == my_session->taker_capacity && my_session->taker_capacity < MAX_TAKERS &&
		!shared_is_short())
		shared_attempt(grow_takers);
	if (hold_count < capacity || live_count < hold_count)
		return;
	if (is_shared && (shared_is_short() || !shared_attempt([]() { replace_shared_holds(my_session, 2 * capacity); })))
	{
		/* No more shared memory: from now on nobody else sees what this session holds. */
		PublishedHold *shared = my_holds;

		my_holds = nullptr;
		grow_own_list();
		memcpy(my_holds, shared, sizeof(PublishedHold) * hold_count);
		LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
		my_session->hold_count = 0;
		LWLockRelease(&my_session->lock);
		is_shared = false;
	}
	else if (!is_shared)
		grow_own_list();
}

/* ---- What ends a transaction calls these: nothing here allocates or raises ---- */

static void
lock_list() noexcept
{
	if (is_shared && withdrawing == 0)
		LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
}

static void
unlock_list() noexcept
{
	if (is_shared && withdrawing == 0)
		LWLockRelease(&my_session->lock);
}

int
publish_hold(const PublishedHold &hold) noexcept
{
	int			place;

	lock_list();
	if (first_free != NO_PLACE)
	{
		place = first_free;
		first_free = my_holds[place].next_free;
	}
	else
		place = hold_count++;
	my_holds[place] = hold;
	live_count++;
	if (is_shared)
		my_session->hold_count = hold_count;
	unlock_list();
	return place;
}

const PublishedHold *
published_hold(int place) noexcept
{
	return &my_holds[place];
}

const PublishedHold *
my_published_holds(int *count) noexcept
{
	*count = hold_count;
	return my_holds;
}

void
publish_scope(int place, Scope scope) noexcept
{
	my_holds[place].scope = static_cast<uint8>(index_of(scope));
}

void
publish_role(int place, Oid role) noexcept
{
	my_holds[place].role = role;
}

void
publish_taker_of(int place, int taker) noexcept
{
	my_holds[place].taker = taker;
}

void
withdraw_hold(int place) noexcept
{
	lock_list();
	my_holds[place].objsubid = 0;
	my_holds[place].next_free = first_free;
	first_free = place;
	if (--live_count == 0)
	{
		hold_count = 0;
		first_free = NO_PLACE;
		if (my_session != nullptr)
			my_session->taker_count = 0;
	}
	if (is_shared)
		my_session->hold_count = hold_count;
	unlock_list();
}

void
begin_withdrawing() noexcept
{
	lock_list();
	withdrawing++;
}

void
end_withdrawing() noexcept
{
	withdrawing--;
	unlock_list();
}

int
published_count() noexcept
{
	return live_count;
}

int
publish_taker() noexcept
{
	Oid			role = GetOuterUserId();
	const char *application = application_name != nullptr ? application_name : "";
	int			count;

	if (my_session == nullptr)
		return NO_PLACE;
	my_session->present_role = role;
	count = my_session->taker_count;
	/* The last one first: it is nearly always the same. */
	for (int i = count - 1; i >= 0; i--)
	{
		if (my_takers[i].role == role && strcmp(my_takers[i].application, application) == 0)
			return i;
	}
	if (count == my_session->taker_capacity)
		return NO_PLACE;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_takers[count].role = role;
	strlcpy(my_takers[count].application, application, NAMEDATALEN);
	my_session->taker_count = count + 1;
	LWLockRelease(&my_session->lock);
	return count;
}

void
publish_end() noexcept
{
	has_ended = true;
	my_holds = nullptr;
	capacity = hold_count = live_count = 0;
	first_free = NO_PLACE;
	is_shared = false;
	if (my_session == nullptr)
		return;
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_session->pid = 0;
	my_session->hold_count = 0;
	my_session->taker_count = 0;
	my_session->present_role = InvalidOid;
	LWLockRelease(&my_session->lock);
	my_session = nullptr;
}

}								/* namespace advisory */
