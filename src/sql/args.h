/*
 * sql/args.h
 *		Reading and checking SQL arguments.
 *
 * All of these may ereport: 22004 for a null, 22023 for a value that is not
 * allowed, 22008 for a timeout that does not fit.  None changes anything
 * before it does.
 */
#ifndef ADVISORY_EXT_SQL_ARGS_H
#define ADVISORY_EXT_SQL_ARGS_H

#include "core/request.h"

namespace advisory
{

/* A text argument that must be there and must not be empty; what names it. */
std::string_view text_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* The same for an argument that must be there. */
int64		bigint_argument(FunctionCallInfo fcinfo, int arg, const char *what);
int32		integer_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* A slot, or how many of them, which must be there. */
int			slot_number_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* An id in the text form that stands for it as a name; palloc'd. */
std::string_view bigint_as_name(int64 id);
std::string_view uuid_as_name(Datum id);

/* An interval argument: null waits for ever. */
Timeout		timeout_argument(FunctionCallInfo fcinfo, int arg);

/*
 * How a function's SQL variants name their lock.  Each reads it from the
 * arguments at the front, and says where the next one stands.
 */
struct ByText
{
	static constexpr int next_arg = 2;
	static LockName read(FunctionCallInfo fcinfo);
};

struct ByBigint
{
	static constexpr int next_arg = 2;
	static LockName read(FunctionCallInfo fcinfo);
};

struct ByUuid
{
	static constexpr int next_arg = 2;
	static LockName read(FunctionCallInfo fcinfo);
};

/* (key bigint) */
struct ByKey
{
	static constexpr int next_arg = 1;
	static LockName read(FunctionCallInfo fcinfo);
};

/* (key bigint, timeout interval, label text) */
struct ByLabelledKey
{
	static constexpr int next_arg = 1;
	static LockName read(FunctionCallInfo fcinfo);
};

/*
 * How a function's SQL variants take their list, which stands behind the
 * namespace: as a text[], bigint[] or uuid[], or as text that is read as a
 * text[] literal, which is what an untyped parameter becomes.  A null list, or
 * one with a null or an empty element, is an error.
 */
struct FromArray
{
	static LockNames read(FunctionCallInfo fcinfo);
};

struct FromLiteral
{
	static LockNames read(FunctionCallInfo fcinfo);
};

/*
 * Raise 55000 unless session-level locks are allowed to this session; with
 * "warn" only warn.  Names the transaction-level function to use instead of the
 * one that is being called.
 */
void		check_session_locks(FunctionCallInfo fcinfo);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SQL_ARGS_H */
