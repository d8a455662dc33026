/*
 * lockview.h
 *		The rows of advisory.locks and advisory.holders().
 */
#ifndef ADVISORY_EXT_LOCKVIEW_H
#define ADVISORY_EXT_LOCKVIEW_H

#include "lockname.h"

namespace advisory
{

/* Add every advisory lock and waiter on the server.  May ereport. */
void		show_all_locks(ReturnSetInfo *result);

/* Add the holders of one lock of this database and its waiters.  May ereport. */
void		show_holders(const LockName &name, ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_LOCKVIEW_H */
