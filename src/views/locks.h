/*
 * views/locks.h
 *		The rows of advisory.holders().
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * Add the holders and waiters of the lock of this key in this database, and of its semaphore.  May
 * ereport.
 */
void		show_holders(Key key, ReturnSetInfo *result);

}								/* namespace advisory */
