/*
 * args.h
 *		Reading and checking SQL arguments.
 *
 * All of these may ereport: 22004 for a null, 22023 for a value that is not
 * allowed, 22008 for a timeout that does not fit.  None changes anything
 * before it does.
 */
#ifndef ADVISORY_EXT_ARGS_H
#define ADVISORY_EXT_ARGS_H

#include "lockname.h"

namespace advisory
{

/* How long to wait: for ever, not at all, or so many milliseconds. */
class Timeout
{
public:
	static constexpr Timeout forever() noexcept
	{
		return Timeout(-1);
	}
	static constexpr Timeout immediate() noexcept
	{
		return Timeout(0);
	}
	static constexpr Timeout of(int milliseconds) noexcept
	{
		return Timeout(milliseconds);
	}
	bool		is_forever() const noexcept
	{
		return ms < 0;
	}
	bool		is_immediate() const noexcept
	{
		return ms == 0;
	}
	/* Only for a timeout that is not for ever. */
	int			milliseconds() const noexcept
	{
		return ms;
	}

private:
	explicit constexpr Timeout(int milliseconds) noexcept : ms(milliseconds)
	{
	}
	int			ms;
};

/* A timeout that runs from the moment this is made; for waits in several steps. */
class Deadline
{
public:
	explicit Deadline(Timeout timeout) noexcept
		: timeout(timeout), start(GetCurrentTimestamp())
	{
	}
	/* What is left of it, in whole milliseconds rounded up. */
	Timeout		remaining() const noexcept;

private:
	Timeout		timeout;
	TimestampTz start;
};

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

/* The names in an array argument: what it held, and the locks they stand for. */
struct LockNames
{
	LockName   *locks;
	Datum	   *elements;		/* the array's own elements, in its order */
	int			count;
	Oid			element_type;
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

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_ARGS_H */
