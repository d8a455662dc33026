/*
 * views/locks.h
 *		The rows of advisory.locks and advisory.holders().
 */
#ifndef ADVISORY_EXT_VIEWS_LOCKS_H
#define ADVISORY_EXT_VIEWS_LOCKS_H

#include "base/lockname.h"

namespace advisory
{

/* Columns of advisory.locks that cost something: are they asked for? */
struct WantedColumns
{
	bool		name;			/* namespace and name */
	bool		hold;			/* scope, acquired_at, held */
};

constexpr int FIRST_NAME_COLUMN = 8;	/* of two */
constexpr int SCOPE_COLUMN = 15;
constexpr int FIRST_HOLD_COLUMN = 19;	/* of two */

/*
 * The rows of advisory._locks, which are made one by one: there can be a hundred
 * thousand, and a set-returning function would first have to store them all.
 */
struct LockRows;

/*
 * Every advisory lock and waiter on the server, as of now.  In the current memory
 * context, which must outlive it.  May ereport.
 */
LockRows   *open_lock_rows(const WantedColumns &wanted);

/*
 * The next row's columns; false at the end.  What they point to is in the current
 * memory context, or as good as rows.  May ereport.
 */
bool		next_lock_row(LockRows *rows, Datum *values, bool *nulls);

/* Begin with the first again. */
void		restart_lock_rows(LockRows *rows) noexcept;

/* Add the holders of one lock of this database and its waiters.  May ereport. */
void		show_holders(const LockName &name, ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_LOCKS_H */
