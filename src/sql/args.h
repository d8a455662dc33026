/*
 * sql/args.h
 *		Reading and checking SQL arguments, and the scope of a call.
 *
 * All of these may ereport: 22004 for a null, 22023 for a value that is not allowed, 22008 for a
 * timeout that is out of range.  None changes anything before that.
 */
#pragma once

#include "core/claim.h"

namespace advisory
{

/* What a call does if it does not get its lock: raise 55P03, or return false or null. */
enum class OnFailure
{
	raise,
	say
};

/* How a function's SQL variants name their lock, in their first arguments. */
enum class By
{
	text,						/* (namespace text, name text) */
	bigint,						/* (namespace text, id bigint) */
	uuid,						/* (namespace text, id uuid) */
	key,						/* (key bigint) */
	labelled_key				/* (key bigint, timeout interval, label text) */
};

/* The number of the first argument after these. */
constexpr int
next_argument(By by) noexcept
{
	return by == By::key || by == By::labelled_key ? 1 : 2;
}

LockName	lock_argument(FunctionCallInfo fcinfo, By by);

/* Several locks, and the elements of the SQL array that named them. */
struct LockNames
{
	LockName   *locks;
	Datum	   *elements;		/* the array's own elements, in its order */
	int			count;
};

/*
 * How a function's SQL variants take their list of names, which follows the namespace: as a text[],
 * bigint[] or uuid[], or as text that is read as a text[] literal.  An untyped parameter resolves
 * to text.  A null list, or one with a null or an empty element, is an error.
 */
enum class ListForm
{
	array,
	literal
};

LockNames	list_argument(FunctionCallInfo fcinfo, ListForm form);

/* An argument that must not be null, and not empty if it is text.  what is its name in messages. */
std::string_view text_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/*
 * Raise 22001 if a text that a table keeps is longer than this; or the namespace or name of a lease
 * or claim.
 */
void		check_bytes(std::string_view text, const char *what, const char *of, int limit);
void		check_kept_name(const LockName &name, const char *of);

int32		integer_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* A token; called token in messages. */
int64		token_argument(FunctionCallInfo fcinfo, int arg);

/*
 * A length of time in microseconds: greater than zero unless that is allowed, at most 366 days, and
 * without months and years.  A day has 24 hours, so that the length does not depend on the
 * session's time zone.  The hint says what to do instead of months.
 */
int64		microseconds_argument(FunctionCallInfo fcinfo, int arg, const char *what,
								  bool may_be_zero = false,
								  const char *hint = "Use days or smaller units.");

/* A slot, or a number of slots. */
int			slot_number_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* The slots, or numbers of slots, (int) of an integer[] without nulls; what is one in messages. */
List	   *slots_argument(FunctionCallInfo fcinfo, int arg, const char *what = "slot");

/* An interval argument: null waits for ever. */
Timeout		timeout_argument(FunctionCallInfo fcinfo, int arg);

/*
 * The window at this time (window_at()), among windows of the length that this argument gives, in
 * the time zone that the next but one gives.  every and window are names of arguments in messages:
 * the hint of the error for months names the one that can give the window itself instead.
 */
TimestampTz window_at_argument(FunctionCallInfo fcinfo, int arg, const char *every,
							   const char *window, TimestampTz at);

/* A window, in whole milliseconds; must be finite.  window is the argument's name in messages. */
TimestampTz window_start_argument(FunctionCallInfo fcinfo, int arg, const char *window);

/*
 * The window of time that a call asks for: the argument after this one, or if that is null, the
 * window now (window_at_argument()).  Raises 22023 for a window that is later than one window from
 * now.
 */
WindowClaim window_argument(FunctionCallInfo fcinfo, int arg, const char *every,
							const char *window);

/*
 * Every function that takes a session-level or transaction-level lock calls this first.
 *
 * Session-level: raises 55000 if advisory_ext.session_locks is "off", and warns if it is "warn".
 *
 * Transaction-level: warns, or raises 25P01, if advisory_ext.warn_no_transaction is "on" or
 * "error", that the lock ends with the statement, where the client's statement is a SELECT of this
 * one call outside a transaction block.  Never does so in a function, or if the statement does
 * anything else.  It misses some statements that protect nothing: those that take several locks,
 * EXECUTE, and functions that return rows.
 */
void		check_scope(FunctionCallInfo fcinfo, Scope scope);

}								/* namespace advisory */
