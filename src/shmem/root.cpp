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
#include "base/errors.h"
#include "base/stoppoint.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int RETRY_AFTER_MS = 1000;

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
SharedRoot *attached_root = nullptr;
dsa_area   *shared_area = nullptr;

static TimestampTz retry_at = 0;
static bool notified = false;

uint32		lease_wait_event = PG_WAIT_LOCK | LOCKTAG_ADVISORY;

bool
shared_attempt(void (*body) (void *argument), void *argument)
{
	uint32		holdoff = InterruptHoldoffCount;
	auto		run = [=]() {
		MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);
		ResourceOwner owner = CurrentResourceOwner;

		/* Memory that is mapped here belongs to the session, not to the transaction. */
		CurrentResourceOwner = nullptr;
		body(argument);
		CurrentResourceOwner = owner;
		MemoryContextSwitchTo(context);
		return true;
	};

	if (!IsTransactionState())
		return false;
	if (IsInParallelMode())
		return run();
	return in_subtransaction_unless(run, [=]() {
		if (ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_OPERATOR_INTERVENTION)
			return false;

		ErrorData  *error = CopyErrorData();

		/* The error has set it to 0, but the caller may hold interrupts off. */
		InterruptHoldoffCount = holdoff;
		strlcpy(shared_last_failure, error->message, sizeof(shared_last_failure));
		FreeErrorData(error);
		retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_AFTER_MS);
		return true;
	});
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
	made->seed = hash_seed;
	pg_atomic_init_u32(&made->semaphore_count, 0);
	pg_atomic_init_u32(&made->unused_semaphores, 0);
	pg_atomic_init_u32(&made->semaphore_bytes, 0);
	pg_atomic_init_u32(&made->unknown_slots, 0);
	pg_atomic_init_u64(&made->next_ticket, 0);
	LWLockInitialize(&made->deadlock, made->slots_tranche);
}

static void
attach()
{
	auto	   *root = static_cast<SharedRoot *>(
		compat::shared_struct(ADVISORY_EXT_SHARED_NAME, sizeof(SharedRoot), make_root));
	dsa_area   *area;

	for (const auto &tranche : TRANCHES)
		compat::register_lwlock_tranche(root->*tranche.id, tranche.name);
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->area == DSM_HANDLE_INVALID)
	{
		area = dsa_create(root->memory_tranche);
		dsa_pin(area);
		root->area = dsa_get_handle(area);
	}
	else
		area = dsa_attach(root->area);
	dsa_pin_mapping(area);
	LWLockRelease(&root->lock);
	shared_area = area;
	attached_root = root;
}

static void
notify()
{
	notified = true;
	ereport(NOTICE,
			(errmsg("names of advisory locks are not shared with other sessions for now"),
			 errdetail("The locks themselves are not affected. The server said: %s",
					   shared_last_failure),
			 compat::shared_struct_can_be_reserved
			 ? errhint("Add \"advisory_ext\" to shared_preload_libraries to reserve the memory.")
			 : 0));
}

/*
 * Attach to the shared memory, if that is necessary.  True if this session can use it now, also to
 * get more of it.
 */
static bool
is_available()
{
	if (shared_is_short())
		return false;
	if (attached_root == nullptr && shared_attempt(attach))
		shared_attempt([]() {
			lease_wait_event = compat::new_wait_event("AdvisoryExtLease", lease_wait_event);
		});
	if (attached_root == nullptr && !notified)
		notify();
	return attached_root != nullptr;
}

/* shared_attempt() with the root's lock held, if this session can use the shared memory now. */
template <typename Body>
static void
attempt_with_root(Body body)
{
	if (!is_available())
		return;
	shared_attempt([&]() {
		LWLockAcquire(&attached_root->lock, LW_EXCLUSIVE);
		STOP_POINT("root is locked");
		body(attached_root);
		LWLockRelease(&attached_root->lock);
	});
}

void *
shared_part(dsa_pointer SharedRoot::*part, size_t bytes,
			void (*make) (SharedRoot *root, void *place))
{
	void	   *address = nullptr;

	attempt_with_root([&](SharedRoot *root) {
		if (root->*part == InvalidDsaPointer)
		{
			dsa_pointer place = dsa_allocate_extended(shared_area, bytes,
													  DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);

			make(root, dsa_get_address(shared_area, place));
			root->*part = place;
		}
		address = dsa_get_address(shared_area, root->*part);
	});
	return address;
}

dshash_table *
shared_hash(dshash_table_handle SharedRoot::*handle, size_t entry_bytes, int SharedRoot::*tranche)
{
	dshash_table *table = nullptr;

	attempt_with_root([&](SharedRoot *root) {
		dshash_parameters parameters = compat::hash_parameters(sizeof(SharedKey), entry_bytes,
															   root->*tranche);

		if (root->*handle != InvalidDsaPointer)
			table = dshash_attach(shared_area, &parameters, root->*handle, &root->seed);
		else
		{
			table = dshash_create(shared_area, &parameters, &root->seed);
			root->*handle = dshash_get_hash_table_handle(table);
		}
	});
	return table;
}

void
shared_init()
{
	compat::reserve_shared_struct(ADVISORY_EXT_SHARED_NAME, sizeof(SharedRoot), make_root);
}

}								/* namespace advisory */
