/*
 * base/compat.h
 *		The only place that depends on the server's version.
 *
 * Each shim has the signature of the newest server, and a comment that says what changed in which
 * version.  A new version can also change things that the compiler does not check:
 * src/server/pool.cpp follows dynahash.c and lock.c.
 */
#pragma once

#if PG_VERSION_NUM < 150000
#error "advisory_ext needs PostgreSQL 15 or later"
#endif

namespace advisory
{
namespace compat
{

/* 18 shows the module's name and version in pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define ADVISORY_EXT_MODULE_MAGIC(name_, version_) \
	PG_MODULE_MAGIC_EXT(.name = name_, .version = version_)
#else
#define ADVISORY_EXT_MODULE_MAGIC(name_, version_) PG_MODULE_MAGIC
#endif

/* 17 added orstronger, which makes no difference for the two modes of this extension. */
inline bool
lock_held_by_me(const LOCKTAG *tag, LOCKMODE lockmode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, lockmode, false);
#else
	return LockHeldByMe(tag, lockmode);
#endif
}

/*
 * Does this session hold locks on tables that are not in the lock table?  18 made the number of
 * places for them a setting.  Another session may move them to the lock table meanwhile, so check
 * this first and the lock table second.
 */
inline bool
has_fast_path_locks()
{
	bool		found = false;

	LWLockAcquire(&MyProc->fpInfoLock, LW_SHARED);
#if PG_VERSION_NUM >= 180000
	for (int group = 0; group < FastPathLockGroupsPerBackend; group++)
		found = found || MyProc->fpLockBits[group] != 0;
#else
	found = MyProc->fpLockBits != 0;
#endif
	LWLockRelease(&MyProc->fpInfoLock);
	return found;
}

/*
 * Is a request without waiting granted to a session that holds the lock in another mode, and need
 * not wait, though others wait for the lock?  17 has changed that.
 */
constexpr bool no_wait_passes_waiters = PG_VERSION_NUM >= 170000;

/* LockAcquire(), which returns the lock's local entry, too.  18 added logLockFailure. */
inline LockAcquireResult
lock_acquire_extended(const LOCKTAG *tag, LOCKMODE lockmode, bool session_lock, bool dont_wait,
					  LOCALLOCK **locallock)
{
#if PG_VERSION_NUM >= 180000
	return LockAcquireExtended(tag, lockmode, session_lock, dont_wait, true, locallock, false);
#else
	return LockAcquireExtended(tag, lockmode, session_lock, dont_wait, true, locallock);
#endif
}

/* May this role use the objects of a schema?  16 made one function for all kinds of objects. */
inline bool
may_use_schema(Oid schema, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(NamespaceRelationId, schema, role, ACL_USAGE) == ACLCHECK_OK;
#else
	return pg_namespace_aclcheck(schema, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

/* 16 renamed it.  It counts from 1 in all versions. */
inline LocalPgBackendStatus *
local_beentry_by_index(int index)
{
#if PG_VERSION_NUM >= 160000
	return pgstat_get_local_beentry_by_index(index);
#else
	return pgstat_fetch_stat_local_beentry(index);
#endif
}

/* 19 gives a tranche its name when it is created.  Before 19, each session registered the name. */
inline int
new_lwlock_tranche([[maybe_unused]] const char *name)
{
#if PG_VERSION_NUM >= 190000
	return LWLockNewTrancheId(name);
#else
	return LWLockNewTrancheId();
#endif
}

inline void
register_lwlock_tranche([[maybe_unused]] int tranche, [[maybe_unused]] const char *name)
{
#if PG_VERSION_NUM < 190000
	LWLockRegisterTranche(tranche, name);
#endif
}

/*
 * 17 added wait events with a name, which it keeps in shared memory.  May ereport (there are too
 * many).
 */
inline uint32
new_wait_event([[maybe_unused]] const char *name, [[maybe_unused]] uint32 before_17)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return before_17;
#endif
}

/* 17 added a registry of named shared memory.  Before 17, memory must be reserved, or left over. */
constexpr bool shared_struct_can_be_reserved = PG_VERSION_NUM < 170000;

/*
 * A piece of shared memory by name, which stays until the server restarts.  make(place)
 * initializes it in the session that asks first.  19 added an argument to the callback.
 */
inline void *
shared_struct(const char *name, size_t size, void (*make) (void *))
{
	bool		found;

#if PG_VERSION_NUM >= 190000
	return GetNamedDSMSegment(name, size,
							  [](void *place, void *argument) {
								  reinterpret_cast<void (*) (void *)>(argument)(place);
							  },
							  &found, reinterpret_cast<void *>(make));
#elif PG_VERSION_NUM >= 170000
	return GetNamedDSMSegment(name, size, make, &found);
#else
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	void	   *place = ShmemInitStruct(name, size, &found);

	if (!found)
		make(place);
	LWLockRelease(AddinShmemInitLock);
	return place;
#endif
}

/* When preloading: reserve the memory, and initialize it before it can be used up. */
inline void
reserve_shared_struct(const char *name, size_t size, void (*make) (void *))
{
#if PG_VERSION_NUM < 170000
	static struct
	{
		const char *name;
		size_t		size;
		void		(*make) (void *);
		shmem_request_hook_type previous_request;
		shmem_startup_hook_type previous_startup;
	}			reserved;

	if (!process_shared_preload_libraries_in_progress)
		return;

	reserved = {name, size, make, shmem_request_hook, shmem_startup_hook};
	shmem_request_hook = []() {
		if (reserved.previous_request != nullptr)
			reserved.previous_request();
		RequestAddinShmemSpace(CACHELINEALIGN(reserved.size));
	};
	shmem_startup_hook = []() {
		if (reserved.previous_startup != nullptr)
			reserved.previous_startup();
		shared_struct(reserved.name, reserved.size, reserved.make);
	};
#endif
}

/* Up to 18 the lock tables begin with half of their entries and grow into spare memory. */
constexpr bool lock_tables_grow = PG_VERSION_NUM < 190000;

/*
 * How much of shared memory is used.  19 keeps that elsewhere, but there the lock tables do not
 * grow.
 */
inline Size
used_shared_memory(const PGShmemHeader *segment) noexcept
{
#if PG_VERSION_NUM >= 190000
	return segment->totalsize;
#else
	return *static_cast<const volatile Size *>(&segment->freeoffset);
#endif
}

/*
 * Attach to an existing table in shared memory of exactly that size.  Otherwise the server would
 * create it, or raise an error.  19 has one number of entries instead of two.
 */
inline HTAB *
attach_shared_table(const char *name, HASHCTL *control, int64 entries, int flags)
{
#if PG_VERSION_NUM >= 190000
	return ShmemInitHash(name, entries, control, flags);
#else
	return ShmemInitHash(name, static_cast<long>(entries), static_cast<long>(entries), control,
						 flags);
#endif
}

/*
 * For hash tables in shared memory with keys that users choose: the argument of dshash_create()
 * and dshash_attach() must point to a random seed.  17 added the function that copies a key.
 */
inline dshash_parameters
hash_parameters(size_t key_size, size_t entry_size, int tranche)
{
	dshash_parameters parameters = {};

	parameters.key_size = key_size;
	parameters.entry_size = entry_size;
	parameters.compare_function = dshash_memcmp;
	parameters.hash_function = [](const void *key, size_t size, void *seed) {
		return static_cast<dshash_hash>(hash_bytes_extended(static_cast<const unsigned char *>(key),
															static_cast<int>(size),
															*static_cast<uint64 *>(seed)));
	};
#if PG_VERSION_NUM >= 170000
	parameters.copy_function = dshash_memcpy;
#endif
	parameters.tranche_id = tranche;
	return parameters;
}

/* 16 changed it from SHM_QUEUE to dlist_node.  C++ cannot use the macros for walking of either. */
using ListNode = decltype(PROCLOCK::lockLink);

/*
 * The objects on a list, for a range-based for.  The lock that protects the list must be held, and
 * the loop may remove no other object than the present one.  With &Node::prev from the last one to
 * the first.
 */
template <typename Object, typename Node = ListNode>
struct ObjectsOnList
{
	/* Every kind of list begins with the node behind its last object and before its first. */
	void	   *list;
	size_t		offset;			/* of the list's node in an object */
	Node	   *Node::*link = &Node::next;
	Node	   *node = static_cast<Node *>(list)->*link;
	Node	   *next = node != nullptr ? node->*link : nullptr;

	ObjectsOnList begin() const noexcept
	{
		return *this;
	}
	ObjectsOnList end() const noexcept
	{
		return *this;
	}
	Object	   *operator*() const noexcept
	{
		return reinterpret_cast<Object *>(reinterpret_cast<char *>(node) - offset);
	}
	void		operator++() noexcept
	{
		node = next;
		next = node->*link;
	}
	/* Is an object left?  A zeroed dlist that was not initialized is empty, too. */
	bool		operator!=(const ObjectsOnList &) const noexcept
	{
		return node != list && node != nullptr;
	}
};

/* The waiters of a lock, in the queue's order.  19 gave the queue a link of its own. */
inline ObjectsOnList<PGPROC>
waiters_of(LOCK *lock) noexcept
{
#if PG_VERSION_NUM >= 190000
	return {&lock->waitProcs, offsetof(PGPROC, waitLink)};
#else
	return {&lock->waitProcs, offsetof(PGPROC, links)};
#endif
}

/*
 * Grow a table of lib/simplehash.h, with its own function.  Before 17 an error left a table that
 * could not grow with its old memory and its new size.
 */
template <typename Table, typename Size>
pg_noinline void
simplehash_grow(Table *table, void (*grow)(Table *, Size))
{
#if PG_VERSION_NUM >= 170000
	grow(table, table->size * 2);
#else
	const Table before = *table;

	PG_TRY();
	{
		grow(table, table->size * 2);
	}
	PG_CATCH();
	{
		*table = before;
		PG_RE_THROW();
	}
	PG_END_TRY();
#endif
}

/*
 * Make room for one more element in a table that outlives the statement.  The next insert raises no
 * error then, if SH_GROW_MAX_DIB and SH_GROW_MAX_MOVE are infinite.  May ereport (out of memory),
 * and then the table stays as it was.
 */
template <typename Table, typename Size>
inline void
simplehash_make_room(Table *table, void (*grow)(Table *, Size))
{
	if (table->members >= table->grow_threshold)
		simplehash_grow(table, grow);
}

}								/* namespace compat */
}								/* namespace advisory */
