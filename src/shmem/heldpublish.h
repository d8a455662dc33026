/*
 * shmem/heldpublish.h
 *		What this session tells the others about the locks that it holds: since
 *		when, in which scope, and by whom they were taken.
 *
 * The lock table says who holds what; this only adds to it.  core/held calls these
 * functions and keeps the places.  Where shared memory is not to be had, the list is in
 * this session's own memory, and nobody else sees it.
 */
#ifndef ADVISORY_EXT_SHMEM_HELDPUBLISH_H
#define ADVISORY_EXT_SHMEM_HELDPUBLISH_H

#include "shmem/sessiontable.h"

namespace advisory
{

/* Make sure that one more hold finds room, and one more taker.  May ereport (out of memory). */
void		publish_reserve();

/* Add a hold, for which room was reserved, and return its place. */
int			publish_hold(const PublishedHold &hold) noexcept;

/* The hold in this place.  Only to be read; this session alone changes it, by the functions here. */
const PublishedHold *published_hold(int place) noexcept;

/* The whole list, with free places, also where others cannot see it. */
const PublishedHold *my_published_holds(int *count) noexcept;

/* Change the scope of a hold, or the role that used its name. */
void		publish_scope(int place, Scope scope) noexcept;
void		publish_role(int place, Oid role) noexcept;

/* The hold has ended; its place is free. */
void		withdraw_hold(int place) noexcept;

/* Between these two many holds are withdrawn, for which the lock is taken only once. */
void		begin_withdrawing() noexcept;
void		end_withdrawing() noexcept;

/*
 * A transaction has ended, with all that was set for it: publish which role the session acts
 * for now.  Returns the place of that role and application in the list of takers, or
 * NO_PLACE if that is full.
 */
int			publish_taker() noexcept;
void		publish_taker_of(int place, int taker) noexcept;

/* How many holds are published. */
int			published_count() noexcept;

/* The session ends: nothing of it is to be seen any more. */
void		publish_end() noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_HELDPUBLISH_H */
