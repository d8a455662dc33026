/*
 * views/locks.h
 *		The rows of advisory.locks and advisory.holders().
 */
#ifndef ADVISORY_EXT_VIEWS_LOCKS_H
#define ADVISORY_EXT_VIEWS_LOCKS_H

#include "base/lockname.h"

namespace advisory
{

/* Columns of advisory._locks that take time to fill: does the query use them? */
struct WantedColumns
{
	bool		name;			/* namespace and name */
	bool		hold;			/* scope, acquired_at, held */
};

/* The columns of advisory._locks, in the order in which next_lock_row() fills them. */
struct LockColumn
{
	std::string_view name;
	Oid			type;
};

constexpr LockColumn LOCK_COLUMNS[] = {
	{"pid", INT4OID},
	{"database", TEXTOID},
	{"role", TEXTOID},
	{"application_name", TEXTOID},
	{"client_addr", INETOID},
	{"state", TEXTOID},
	{"kind", TEXTOID},
	{"namespace", TEXTOID},
	{"name", TEXTOID},
	{"slot", INT4OID},
	{"key", INT8OID},
	{"key1", INT4OID},
	{"key2", INT4OID},
	{"mode", TEXTOID},
	{"scope", TEXTOID},
	{"granted", BOOLOID},
	{"wait_start", TIMESTAMPTZOID},
	{"waited", INTERVALOID},
	{"acquired_at", TIMESTAMPTZOID},
	{"held", INTERVALOID},
	{"blocked_by", INT4ARRAYOID},
	{"gid", TEXTOID},
	{"query", TEXTOID},
	{"datid", OIDOID},
	{"high", INT4OID},
	{"low", INT4OID},
	{"objsubid", INT4OID},
};

constexpr int LOCK_COLUMN_COUNT = lengthof(LOCK_COLUMNS);

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
 * Fill the LOCK_COLUMN_COUNT columns of the next row; false at the end.  What they
 * point to is in the current memory context, or lives as long as rows.  May ereport.
 */
bool		next_lock_row(LockRows *rows, Datum *values, bool *nulls);

/* Begin with the first again. */
void		restart_lock_rows(LockRows *rows) noexcept;

/* Add the holders of one lock of this database and its waiters.  May ereport. */
void		show_holders(const LockName &name, ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_LOCKS_H */
