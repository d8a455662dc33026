/*
 * core/many.h
 *		Taking several locks at once.
 */
#pragma once

#include "core/acquire.h"

namespace advisory
{

/*
 * Take several locks or none, one after the other in the order of their keys
 * (each once), within one timeout.  As lock_try and lock_must for each.
 */
bool		lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);
void		lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);

/*
 * Take up to wanted of the locks that are free, in the given order, looking at
 * each once.  Calls report(index in names) for each that was taken; if that or
 * anything else ereports, those are released again that a transaction's end
 * would not release.
 */
void		lock_try_any(const LockNames &names, Mode mode, Scope scope, int wanted,
						 void (*report) (int index, void *argument), void *argument);

}								/* namespace advisory */
