/*
 * lockview.h
 *		The rows of advisory.locks and advisory.holders().
 */
#ifndef ADVISORY_EXT_LOCKVIEW_H
#define ADVISORY_EXT_LOCKVIEW_H

#include "backends.h"
#include "lockname.h"

namespace advisory
{

/* Add every advisory lock and waiter on the server.  May ereport. */
void		show_all_locks(ReturnSetInfo *result);

/*
 * The queries of sessions, for the rows that show_all_locks made before this: they are
 * looked up only where they are asked for, since there can be many rows.
 */
class QueryColumn
{
public:
	/* In the current memory context, which must outlive it.  May ereport. */
	QueryColumn() : backends(Backends::AsBefore{})
	{
	}

	/* A text value; null for no session.  May ereport. */
	NullableDatum of(int pid);

private:
	Backends	backends;
};

/* Add the holders of one lock of this database and its waiters.  May ereport. */
void		show_holders(const LockName &name, ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_LOCKVIEW_H */
