/*
 * core/semqueue.h
 *		Waiting in the queue of a semaphore.
 */
#ifndef ADVISORY_EXT_CORE_SEMQUEUE_H
#define ADVISORY_EXT_CORE_SEMQUEUE_H

#include "core/semaphore.h"

namespace advisory
{

/* Modes of the lock on a semaphore's queue (semqueue.cpp). */
constexpr LOCKMODE QUEUED_MODE = RowExclusiveLock;
constexpr LOCKMODE TRYING_MODE = ShareLock;
constexpr LOCKMODE HEAD_MODE = ExclusiveLock;

/* Wait for a slot, and take it; as semaphore_wait(). */
int			wait_in_queue(Semaphore *semaphore, int slots, Scope scope);

/* The wait is over: leave the queue, if this session is in one, and wake those that can be served now. */
void		stop_waiting_in_queue() noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_SEMQUEUE_H */
