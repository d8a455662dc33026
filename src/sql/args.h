/*
 * sql/args.h
 *		Reading and checking SQL arguments.
 *
 * All of these may ereport: 22004 for a null, 22023 for a value that is not
 * allowed, 22008 for a timeout that does not fit.  None changes anything
 * before it does.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/* What a call does that does not get its lock: raise 55P03, or say so by its result. */
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

/* The number of the argument behind them. */
constexpr int
next_argument(By by) noexcept
{
	return by == By::key || by == By::labelled_key ? 1 : 2;
}

LockName	lock_argument(FunctionCallInfo fcinfo, By by);

/*
 * How a function's SQL variants take their list of names, which follows the namespace: as
 * a text[], bigint[] or uuid[], or as text that is read as a text[] literal, which is what
 * an untyped parameter becomes.  A null list, or one with a null or an empty element, is
 * an error.
 */
enum class ListForm
{
	array,
	literal
};

LockNames	list_argument(FunctionCallInfo fcinfo, ListForm form);

/* An argument that must not be null, nor empty if it is text; messages call it what. */
std::string_view text_argument(FunctionCallInfo fcinfo, int arg, const char *what);
int32		integer_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* A token; called token in messages. */
int64		token_argument(FunctionCallInfo fcinfo, int arg);

/*
 * A length of time in microseconds: finite, greater than zero unless that is allowed, and without months and years.  A day
 * has 24 hours.  The hint says what to do instead of months.
 */
int64		microseconds_argument(FunctionCallInfo fcinfo, int arg, const char *what, bool may_be_zero, const char *hint);

/* A slot, or how many of them. */
int			slot_number_argument(FunctionCallInfo fcinfo, int arg, const char *what);

/* An interval argument: null waits for ever. */
Timeout		timeout_argument(FunctionCallInfo fcinfo, int arg);

/* The same for the length of windows of time.  The hint names the argument that gives the window itself instead. */
int64		window_length_argument(FunctionCallInfo fcinfo, int arg, const char *every, const char *slot);

/*
 * The window of time that a call asks for: the argument behind this one, or where that is null the window that is
 * nearest to now, of windows of the length that this one gives.  Messages call them every and slot.
 */
TimestampTz window_argument(FunctionCallInfo fcinfo, int arg, const char *every, const char *slot);

/*
 * For a session-level lock, raise 55000 unless these are allowed to this session; with
 * "warn" only warn.  Names the transaction-level function to use instead of the one that
 * is being called.  For a transaction-level lock, warn if it ends with the statement.
 */
void		check_scope(FunctionCallInfo fcinfo, Scope scope);

}								/* namespace advisory */
