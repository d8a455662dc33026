/*
 * server/resowner.h
 *		Locks that are kept only if what they were taken for has succeeded.
 */
#pragma once

namespace advisory
{

/*
 * Run body().  If it returns true, the locks that it has taken are kept, else they are released, as
 * after a subtransaction, but at a tenth of its cost.  Returns what it returned.  May ereport, if
 * body() may.
 */
template <typename Body>
bool
keeping_locks_if(Body body)
{
	ResourceOwner owner = CurrentResourceOwner;
	ResourceOwner own = ResourceOwnerCreate(owner, "advisory_ext locks");
	bool		are_kept;

	/* After an error the abort restores the owner, and releases what its children have. */
	CurrentResourceOwner = own;
	are_kept = body();
	CurrentResourceOwner = owner;
	ResourceOwnerRelease(own, RESOURCE_RELEASE_BEFORE_LOCKS, are_kept, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_LOCKS, are_kept, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_AFTER_LOCKS, are_kept, false);
	ResourceOwnerDelete(own);
	return are_kept;
}

}								/* namespace advisory */
