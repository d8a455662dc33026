/*
 * shmem/heldpublish.h
 *		What this session tells the others about the locks that it holds: since
 *		when, in which scope, and by whom they were taken.
 *
 * The lock table says who holds what; this only adds to it.  core/held calls these
 * functions and keeps the places.  Without shared memory nothing is published: the
 * place of a hold is NO_PLACE then, for which the functions do nothing.
 */
#pragma once

#include "shmem/sessiontable.h"

namespace advisory
{

/* Make room for one more hold, if that is possible.  May ereport for a cancel. */
void		publish_reserve();

/* Publish a hold, and return its place. */
int			publish_hold(const PublishedHold &hold) noexcept;

/* Change the scope of a hold, the role that used its name, or its acquirer. */
void		publish_scope(int place, Scope scope) noexcept;
void		publish_role(int place, Oid role) noexcept;
void		publish_acquirer(int place, int acquirer) noexcept;

/* The hold has ended; its place is free. */
void		withdraw_hold(int place) noexcept;

/* Between these two many holds are withdrawn, for which the lock is taken only once. */
void		begin_withdrawing() noexcept;
void		end_withdrawing() noexcept;

/*
 * A transaction has ended, with all that was set for it: publish which role the session acts
 * for now.  Returns the place of that role and application in the list of acquirers, or
 * NO_PLACE if that is full.
 */
int			publish_present_role() noexcept;

/* The session ends: nothing of it is to be seen any more. */
void		publish_end() noexcept;

}								/* namespace advisory */
