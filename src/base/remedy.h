/*
 * base/remedy.h
 *		The statements that end what is in the way, ready to paste.
 *
 * Errors and views give the same statement for the same lock.  A statement ends what was looked at,
 * or nothing: it names the lock, by its key where a name is not exact, and the session ends only if
 * it still holds that lock.  All are palloc'd, and lack the semicolon.  They may ereport.
 */
#pragma once

#include "base/lockname.h"

namespace advisory
{

/*
 * The session with this pid holds a lock of this database, a slot or the lock of a lease.  The
 * statement has the key instead of the name for a lock by key; if the key is not that of the name,
 * which may be hidden or cut; and if the name is not printable, or too long for a line.
 */
char	   *terminate_holder_statement(const LockName &name, Kind kind, int pid);

/*
 * For all other locks, by a text that cannot be that of another lock: the session holds it; or
 * waits for it, and that wait is in the way.
 */
char	   *terminate_blocker_statement(int pid, const char *exact_lock);
char	   *cancel_waiter_statement(int pid, const char *exact_lock);

/* The prepared transaction with this identifier, which the caller knows exactly. */
char	   *rollback_statement(const char *gid);

/* The lease, as long as it has this token.  Null if the name is not exact. */
char	   *break_lease_statement(const LockName &name, int64 token);

/* Nobody is to be ended: shows who gives which number of slots for this key. */
char	   *show_slots_statement(Key key);

/*
 * The name as one text, billing/invoice:42, that cannot be the text of another lock, nor a part of
 * one.  Null if there is none; then name the lock by key_text().
 */
char	   *exact_name(const LockName &name);

/* The key, or both of a pair: 42; 7, -8; 7, -8 (objsubid 3). */
char	   *key_text(const DecodedTag &tag);

}								/* namespace advisory */
