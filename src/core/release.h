/*
 * core/release.h
 *		Releasing session-level locks and slots.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * Release one session-level hold.  False, with a WARNING that names the lock,
 * if this session has none in this mode.
 */
bool		lock_release(const LockName &name, Mode mode);

/*
 * Release one session-level slot, the one that was taken last if it is NO_SLOT.
 * False, with a WARNING, if this session has none, or not this one.
 */
bool		slot_release(const LockName &name, int slot);

/* Release every session-level hold in both modes, however taken; how many there were. */
int64		lock_release_all(const LockName &name);

/*
 * Release every session-level hold and slot that this session took by name in the
 * namespace through this extension; how many there were.
 */
int64		lock_release_namespace(std::string_view ns);

/*
 * Keep a session-level lock, or this slot, until the end of the transaction instead, without
 * releasing it in between.  False if this session has none.  An error (53200) changes nothing.
 */
bool		lock_keep_for_transaction(const LockRequest &request, int slot);

/*
 * Release the session-level lock, or the slot, of a request if this session has it.  Allocates
 * nothing before it has, since the caller may have run out of memory.
 */
void		lock_give_up(const LockRequest &request, int slot);

/* How often this session holds the lock through this extension, in both modes and scopes.  May ereport. */
int64		lock_my_count(Key key);

}								/* namespace advisory */
