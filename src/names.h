/*
 * names.h
 *		What a lock is called, as far as the current user may know.
 */
#ifndef ADVISORY_EXT_NAMES_H
#define ADVISORY_EXT_NAMES_H

#include "locktable.h"

namespace advisory
{

/* What stands in the place of what the current user may not see. */
constexpr char HIDDEN[] = "<insufficient privilege>";

/*
 * Zero-terminated, in the database's encoding; null where never seen.  A lock by
 * key has no namespace, and its label for a name.
 */
struct ShownName
{
	const char *ns;
	const char *name;
};

/*
 * The name of the lock that an entry holds or waits for; good until the next
 * call.  May ereport (out of memory).
 */
ShownName	shown_name(const LockEntry &entry);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_NAMES_H */
