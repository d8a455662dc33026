/*
 * server/lockhash.h
 *		The hash tables of the server's lock manager.
 *
 * There are two of them: one of locks, and one of holders, with an entry for each session
 * that holds or awaits a lock.  A backend can attach to them as to any table in shared
 * memory.  Counting their entries takes no lock.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
#include "utils/hsearch.h"
}

namespace advisory
{

struct LockTables
{
	HTAB	   *locks;
	HTAB	   *holders;		/* only to count its entries: its hash function is not ours */
};

/*
 * The tables; null if they are not what this version of the library expects.  Attaches to
 * them in the first call, which must not be made with an LWLock held.  Reads no catalog.
 */
const LockTables *lock_tables();

/*
 * The lock with this tag and hash value (LockTagHashCode), or null if nobody holds or
 * awaits it.  The partition of the hash value must be locked, and lock_tables() not null.
 */
LOCK	   *find_in_lock_table(const LOCKTAG &tag, uint32 hash) noexcept;

/* The number of locks that the server's formula gives the first table; the second has twice as many entries. */
int64		guaranteed_locks() noexcept;

}								/* namespace advisory */
