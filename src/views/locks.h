/*
 * views/locks.h
 *		The rows of advisory.holders().
 */
#pragma once

extern "C" {
#include "executor/executor.h"
}

#include "base/locktag.h"

namespace advisory
{

/* Add the holders of one lock of this database and its waiters, and those of the semaphore of that name.  May ereport. */
void		show_holders(Key key, ReturnSetInfo *result);

}								/* namespace advisory */
