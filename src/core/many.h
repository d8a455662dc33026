/*
 * core/many.h
 *		Taking several locks at once.
 */
#pragma once

#include "core/acquire.h"

namespace advisory
{

/*
 * Take all of these locks or none, each once and in the order of their keys, within
 * one timeout.  Otherwise as lock_try() and lock_must().
 */
bool		lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);
void		lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);

/*
 * Take up to wanted of the locks that are free, in the given order, looking at
 * each once; with slots, one slot of each semaphore instead.  Calls report(index in names, slot)
 * for each that it takes.  After an error in report() or elsewhere, releases what it took for the
 * session; the end of the transaction releases the others.
 */
void		lock_try_any(const LockNames &names, Mode mode, Scope scope, int slots, int wanted,
						 void (*report) (int index, int slot, void *argument), void *argument);

}								/* namespace advisory */
