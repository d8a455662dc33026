/*
 * compat.h
 *		The only place that asks for the server's version.
 *
 * Each shim has the newest server's signature, and says what changed when.
 */
#ifndef ADVISORY_EXT_COMPAT_H
#define ADVISORY_EXT_COMPAT_H

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

/* 17 added orstronger, which makes no difference to the two modes we use. */
inline bool
lock_held_by_me(const LOCKTAG *tag, LOCKMODE lockmode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, lockmode, false);
#else
	return LockHeldByMe(tag, lockmode);
#endif
}

/* 18 added logLockFailure. */
inline LockAcquireResult
lock_acquire_extended(const LOCKTAG *tag, LOCKMODE lockmode, bool session_lock,
					  bool dont_wait, bool report_memory_error,
					  LOCALLOCK **locallock)
{
#if PG_VERSION_NUM >= 180000
	return LockAcquireExtended(tag, lockmode, session_lock, dont_wait,
							   report_memory_error, locallock, false);
#else
	return LockAcquireExtended(tag, lockmode, session_lock, dont_wait,
							   report_memory_error, locallock);
#endif
}

/* 16 renamed it, and counts from 1 as before. */
inline LocalPgBackendStatus *
local_beentry_by_index(int index)
{
#if PG_VERSION_NUM >= 160000
	return pgstat_get_local_beentry_by_index(index);
#else
	return pgstat_fetch_stat_local_beentry(index);
#endif
}

/* 16 has one function for all objects that are not relations. */
inline AclResult
schema_aclcheck(Oid schema, Oid role, AclMode mode)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(NamespaceRelationId, schema, role, mode);
#else
	return pg_namespace_aclcheck(schema, role, mode);
#endif
}

/* 18 added STATE_STARTING. */
inline bool
backend_is_starting(BackendState state)
{
#if PG_VERSION_NUM >= 180000
	return state == STATE_STARTING;
#else
	(void) state;
	return false;
#endif
}

/* 16 changed SHM_QUEUE to dlist; C++ cannot use either's macros for walking. */
#if PG_VERSION_NUM >= 160000
using ListHead = dlist_head;
using ListNode = dlist_node;
#else
using ListHead = SHM_QUEUE;
using ListNode = SHM_QUEUE;
#endif

/*
 * Call visit(object) for each object in the list until it returns false.
 * offset is that of the list's node in the object.  The lock that protects the
 * list must be held, and visit must not change it.
 */
template <typename Object, typename Visit>
inline void
walk_list(ListHead *list, size_t offset, Visit visit)
{
#if PG_VERSION_NUM >= 160000
	ListNode   *end = &list->head;
#else
	ListNode   *end = list;
#endif

	/* A dlist that was only zeroed has no head to come back to. */
	if (end->next == nullptr)
		return;
	for (ListNode *node = end->next; node != end; node = node->next)
	{
		if (!visit(reinterpret_cast<Object *>(reinterpret_cast<char *>(node) - offset)))
			return;
	}
}

/*
 * Call visit(proc) for each waiter of a lock in the queue's order, until it
 * returns false.  16 made the queue a dclist; 19 gave it a link of its own.
 */
template <typename Visit>
inline void
walk_waiters(LOCK *lock, Visit visit)
{
#if PG_VERSION_NUM >= 190000
	walk_list<PGPROC>(&lock->waitProcs.dlist, offsetof(PGPROC, waitLink), visit);
#elif PG_VERSION_NUM >= 160000
	walk_list<PGPROC>(&lock->waitProcs.dlist, offsetof(PGPROC, links), visit);
#else
	walk_list<PGPROC>(&lock->waitProcs.links, offsetof(PGPROC, links), visit);
#endif
}

}								/* namespace compat */
}								/* namespace advisory */

#endif							/* ADVISORY_EXT_COMPAT_H */
