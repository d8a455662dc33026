/*
 * shmem/heldpublish.h
 *		What this session publishes about the locks that it holds: since when, in which
 *		scope, and which role and application took them.
 *
 * This only adds to the lock table, which has the holders of all locks.  core/held calls
 * these functions and keeps the places.  Without shared memory nothing is published.  The
 * place of a hold is then NO_PLACE, for which the functions do nothing.
 */
#pragma once

#include "shmem/sessiontable.h"

namespace advisory
{

/* Make room for one more hold, if that is possible.  May ereport for a cancel. */
void		publish_reserve();

/* Publish a hold, and return its place. */
int			publish_hold(const PublishedHold &hold) noexcept;

/* Change the scope of a hold, the name that the session used for it, or its acquirer. */
void		publish_scope(int place, Scope scope) noexcept;
void		publish_name(int place, const UsedName &used) noexcept;
void		publish_acquirer(int place, int acquirer) noexcept;

/* Remove a hold that has ended, and free its place. */
void		withdraw_hold(int place) noexcept;

/* Call these before and after withdrawing many holds, so that the lock is taken only once. */
void		begin_withdrawing() noexcept;
void		end_withdrawing() noexcept;

/*
 * Publish the present role of the session after a transaction, when settings of the transaction
 * no longer apply.  Returns the place of that role and application in the list of acquirers, or
 * NO_PLACE if the list is full.
 */
int			publish_present_role() noexcept;

/* At the end of the session: remove everything that it has published. */
void		publish_end() noexcept;

}								/* namespace advisory */
