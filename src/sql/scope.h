/*
 * sql/scope.h
 *		Whether the scope of a lock suits the call that takes it.
 */
#pragma once

extern "C" {
#include "fmgr.h"
}

#include "base/locktag.h"

namespace advisory
{

/*
 * Every function that takes a session-level or transaction-level lock calls this first.
 *
 * Session-level: raises 55000 if advisory_ext.session_locks is "off", and warns if it is "warn".
 *
 * Transaction-level: warns, or raises 25P01, if advisory_ext.warn_no_transaction is "on" or "error", that the lock ends with
 * the statement, where the client's statement is a SELECT of this one call outside a transaction block.  Never does so in a
 * function, or if the statement does anything else.  It misses some statements that protect nothing: those that take several
 * locks, EXECUTE, and functions that return rows.
 */
void		check_scope(FunctionCallInfo fcinfo, Scope scope);

}								/* namespace advisory */
