/*
 * shmem/root.cpp
 *		The memory that sessions share, without preloading the library.
 *
 * The first session creates the root, under a lock of the server.  The parts of it
 * are created later, one by one, under the root's own lock.  So if a session runs out
 * of memory halfway, the next session can create the rest.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int RETRY_AFTER_MS = 1000;
static constexpr int FAILURE_BYTES = 256;

/* The names of the tranches in pg_stat_activity. */
static constexpr struct
{
	int			SharedRoot::*id;
	const char *name;
}			TRANCHES[] = {
	{&SharedRoot::memory_tranche, "AdvisoryExtMemory"},
	{&SharedRoot::names_tranche, "AdvisoryExtNames"},
	{&SharedRoot::sessions_tranche, "AdvisoryExtSessions"},
	{&SharedRoot::slots_tranche, "AdvisoryExtSlots"}};

/* Either both are null, or neither is. */
static SharedRoot *root = nullptr;
static dsa_area *area = nullptr;
static TimestampTz retry_at = 0;
static bool notified = false;
static char last_failure[FAILURE_BYTES] = "";

uint32		lease_wait_event = PG_WAIT_LOCK | LOCKTAG_ADVISORY;

const char *
shared_last_failure() noexcept
{
	return last_failure;
}

void
shared_swallow_error(MemoryContext context, ResourceOwner owner)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	error = CopyErrorData();
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		PG_RE_THROW();
	FlushErrorState();

	/* As the end of a transaction does.  No caller holds an LWLock of its own here. */
	LWLockReleaseAll();
	strlcpy(last_failure, error->message, sizeof(last_failure));
	FreeErrorData(error);
	retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_AFTER_MS);
}

bool
shared_is_short()
{
	return retry_at != 0 && GetCurrentTimestamp() < retry_at;
}

static void
make_root(void *place)
{
	auto	   *made = static_cast<SharedRoot *>(place);

	memset(static_cast<void *>(made), 0, sizeof(*made));
	for (const auto &tranche : TRANCHES)
		made->*tranche.id = compat::new_lwlock_tranche(tranche.name);
	LWLockInitialize(&made->lock, made->memory_tranche);
	if (!pg_strong_random(&made->seed, sizeof(made->seed)))
		made->seed = pg_prng_uint64(&pg_global_prng_state);
	made->area = DSM_HANDLE_INVALID;
	made->names = InvalidDsaPointer;
	made->sessions = InvalidDsaPointer;
	made->semaphores = InvalidDsaPointer;
	pg_atomic_init_u32(&made->semaphore_count, 0);
	pg_atomic_init_u32(&made->semaphore_limit, 0);
	LWLockInitialize(&made->deadlock, made->slots_tranche);
}

static dsa_area *
attach_area(SharedRoot *found)
{
	dsa_area   *attached;

	LWLockAcquire(&found->lock, LW_EXCLUSIVE);
	if (found->area == DSM_HANDLE_INVALID)
	{
		attached = dsa_create(found->memory_tranche);
		dsa_pin(attached);
		found->area = dsa_get_handle(attached);
	}
	else
		attached = dsa_attach(found->area);
	dsa_pin_mapping(attached);
	LWLockRelease(&found->lock);
	return attached;
}

static void
attach()
{
	auto	   *found = static_cast<SharedRoot *>(compat::shared_struct(ADVISORY_EXT_SHARED_NAME, sizeof(SharedRoot),
																		make_root));

	for (const auto &tranche : TRANCHES)
		compat::register_lwlock_tranche(found->*tranche.id, tranche.name);
	area = attach_area(found);
	root = found;
}

static void
notify()
{
	notified = true;
	ereport(NOTICE,
			(errmsg("names of advisory locks are not shared with other sessions for now"),
			 errdetail("The locks themselves are not affected. The server said: %s", last_failure),
			 compat::shared_struct_can_be_reserved
			 ? errhint("Add \"advisory_ext\" to shared_preload_libraries to reserve the memory.") : 0));
}

SharedRoot *
shared_root()
{
	if (root != nullptr)
		return root;
	if (shared_is_short())
		return nullptr;
	if (shared_attempt(attach))
		shared_attempt([]() { lease_wait_event = compat::new_wait_event("AdvisoryExtLease", lease_wait_event); });
	else if (!notified)
		notify();
	return root;
}

SharedRoot *
shared_root_if_attached() noexcept
{
	return root;
}

dsa_area *
shared_area() noexcept
{
	return area;
}

void *
shared_part(dsa_pointer SharedRoot::*part, size_t bytes, void (*make) (SharedRoot *root, void *place))
{
	void	   *volatile address = nullptr;

	if (shared_root() == nullptr || shared_is_short())
		return nullptr;
	shared_attempt([&]() {
		LWLockAcquire(&root->lock, LW_EXCLUSIVE);
		if (root->*part == InvalidDsaPointer)
		{
			dsa_pointer place = dsa_allocate_extended(area, bytes, DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);

			make(root, dsa_get_address(area, place));
			root->*part = place;
		}
		LWLockRelease(&root->lock);
		address = dsa_get_address(area, root->*part);
	});
	return address;
}

void
shared_init()
{
	compat::reserve_shared_struct(ADVISORY_EXT_SHARED_NAME, sizeof(SharedRoot), make_root);
}

}								/* namespace advisory */
