/*
 * test/faults/faults.cpp
 *		What make FAULTS=1 adds to the library: faults, late interrupts and stop points.
 *
 * Fault injection: the n-th request for memory that the extension makes fails.
 *
 * The Makefile has the linker lead every call of a function that is listed here, by FAULT, to its
 * __wrap_ form (-Wl,--wrap), so that the sources need not know.  Listed is what asks for memory,
 * for room in shared memory or in the lock table, or runs statements which do.  Requests that the
 * server makes for itself are not counted.
 *
 * Late interrupts: the lock manager looks at no interrupt while the extension waits for a lock, so
 * an interrupt that comes meanwhile is still pending when the lock is granted, as one that comes
 * after the lock manager's last look.
 *
 * Stop points: see base/stoppoint.h.
 */
#include "base/pg.h"

extern "C" {
#include "common/cryptohash.h"
#include "funcapi.h"
#include "lib/dshash.h"
#include "mb/pg_wchar.h"
#include "parser/parser.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
}

#define ADVISORY_EXT_FAULTS
#include "base/stoppoint.h"
#include "shmem/sessiontable.h"

/* Requests so far, and which of them fail: these, and those between them. */
static int	made = 0;
static int	first = 0;
static int	last = 0;

static bool interrupts_are_late = false;

/* The session stops when it has come to this point so many times; 0: it does not. */
static char stop_name[NAMEDATALEN];
static int	passes_until_stop = 0;

void
advisory::stop_point(const char *name) noexcept
{
	if (passes_until_stop > 0 && strcmp(name, stop_name) == 0 && --passes_until_stop == 0)
		raise(SIGSTOP);
}

static void
request(const char *name)
{
	made++;
	if (made >= first && made <= last)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Request %d, %s(), fails by injection.", made, name)));
}

/* The named function raises, before it does anything; where the condition holds. */
#define FAULT_IF(name, condition, result, parameters, arguments) \
	result		__real_##name parameters; \
	result		__wrap_##name parameters \
	{ \
		if (condition) \
			request(#name); \
		return __real_##name arguments; \
	}

/* It looks at no interrupts if they are to come late. */
#define FAULT_OR_LATE(name, result, parameters, arguments) \
	result		__real_##name parameters; \
	result		__wrap_##name parameters \
	{ \
		result		value; \
		request(#name); \
		/* An error ends this, too. */ \
		if (interrupts_are_late) \
			HOLD_INTERRUPTS(); \
		value = __real_##name arguments; \
		if (interrupts_are_late) \
			RESUME_INTERRUPTS(); \
		return value; \
	}

#define FAULT(name, result, parameters, arguments) \
	FAULT_IF(name, true, result, parameters, arguments)

#pragma GCC visibility push(default)
extern "C" {

/* The session's memory */
FAULT(palloc, void *, (Size size), (size))
FAULT(palloc0, void *, (Size size), (size))
FAULT(palloc_extended, void *, (Size size, int flags), (size, flags))
FAULT(repalloc, void *, (void *old, Size size), (old, size))
FAULT(repalloc_huge, void *, (void *old, Size size), (old, size))
FAULT(pstrdup, char *, (const char *text), (text))
FAULT(pnstrdup, char *, (const char *text, Size length), (text, length))
FAULT(MemoryContextAlloc, void *, (MemoryContext context, Size size), (context, size))
FAULT(MemoryContextAllocZero, void *, (MemoryContext context, Size size), (context, size))
#if PG_VERSION_NUM < 170000
FAULT(MemoryContextAllocZeroAligned, void *, (MemoryContext context, Size size), (context, size))
#endif
FAULT(MemoryContextAllocExtended, void *, (MemoryContext context, Size size, int flags),
	  (context, size, flags))
FAULT(MemoryContextStrdup, char *, (MemoryContext context, const char *text), (context, text))
FAULT(AllocSetContextCreateInternal, MemoryContext,
	  (MemoryContext parent, const char *name, Size least, Size initial, Size most),
	  (parent, name, least, initial, most))
FAULT(initStringInfo, void, (StringInfo text), (text))
FAULT(enlargeStringInfo, void, (StringInfo text, int needed), (text, needed))
FAULT(appendStringInfoString, void, (StringInfo text, const char *more), (text, more))
FAULT(appendStringInfoChar, void, (StringInfo text, char more), (text, more))
FAULT(appendBinaryStringInfo, void, (StringInfo text, const char *more, int length),
	  (text, more, length))
FAULT(CopyErrorData, ErrorData *, (void), ())

/* Values and results */
FAULT(cstring_to_text, text *, (const char *text), (text))
FAULT(cstring_to_text_with_len, text *, (const char *text, int length), (text, length))
FAULT(text_to_cstring, char *, (const text *value), (value))
FAULT(pg_server_to_any, char *, (const char *text, int length, int encoding),
	  (text, length, encoding))
FAULT(quote_literal_cstr, char *, (const char *text), (text))
FAULT(escape_json, void, (StringInfo text, const char *more), (text, more))
FAULT(pg_cryptohash_create, pg_cryptohash_ctx *, (pg_cryptohash_type type), (type))
FAULT(lappend, List *, (List *list, void *cell), (list, cell))
FAULT(lappend_int, List *, (List *list, int cell), (list, cell))
FAULT(heap_form_tuple, HeapTuple, (TupleDesc form, Datum *values, bool *nulls),
	  (form, values, nulls))
FAULT(tuplestore_putvalues, void,
	  (Tuplestorestate *store, TupleDesc form, Datum *values, bool *nulls),
	  (store, form, values, nulls))
FAULT(InitMaterializedSRF, void, (FunctionCallInfo call, uint32 flags), (call, flags))
FAULT(accumArrayResult, ArrayBuildState *,
	  (ArrayBuildState *state, Datum value, bool null, Oid type, MemoryContext context),
	  (state, value, null, type, context))
FAULT(makeArrayResult, Datum, (ArrayBuildState *state, MemoryContext context), (state, context))

/* Hash tables */
FAULT(hash_create, HTAB *, (const char *name, long entries, const HASHCTL *form, int flags),
	  (name, entries, form, flags))
FAULT_IF(hash_search, action == HASH_ENTER, void *,
		 (HTAB *table, const void *key, HASHACTION action, bool *found),
	  (table, key, action, found))

/* Shared memory */
FAULT(ShmemInitStruct, void *, (const char *name, Size size, bool *found), (name, size, found))
#if PG_VERSION_NUM < 170000
FAULT(dsa_create, dsa_area *, (int tranche), (tranche))
#else
FAULT(dsa_create_ext, dsa_area *, (int tranche, size_t first, size_t most), (tranche, first, most))
#endif
FAULT(dsa_attach, dsa_area *, (dsa_handle handle), (handle))
FAULT(dsa_allocate_extended, dsa_pointer, (dsa_area *area, size_t size, int flags),
	  (area, size, flags))
FAULT(dshash_create, dshash_table *,
	  (dsa_area *area, const dshash_parameters *form, void *argument),
	  (area, form, argument))
FAULT(dshash_attach, dshash_table *,
	  (dsa_area *area, const dshash_parameters *form, dshash_table_handle handle, void *argument),
	  (area, form, handle, argument))
#if PG_VERSION_NUM < 190000
FAULT(dshash_find_or_insert, void *, (dshash_table *table, const void *key, bool *found),
	  (table, key, found))
#else
FAULT(dshash_find_or_insert_extended, void *,
	  (dshash_table *table, const void *key, bool *found, int flags), (table, key, found, flags))
#endif

/* The lock table */
FAULT_OR_LATE(LockAcquire, LockAcquireResult,
	  (const LOCKTAG *tag, LOCKMODE mode, bool session, bool at_once),
	  (tag, mode, session, at_once))
#if PG_VERSION_NUM >= 180000
FAULT_OR_LATE(LockAcquireExtended, LockAcquireResult,
	  (const LOCKTAG *tag, LOCKMODE mode, bool session, bool at_once, bool report, LOCALLOCK **lock,
	   bool log),
	  (tag, mode, session, at_once, report, lock, log))
#else
FAULT_OR_LATE(LockAcquireExtended, LockAcquireResult,
	  (const LOCKTAG *tag, LOCKMODE mode, bool session, bool at_once, bool report,
	   LOCALLOCK **lock),
	  (tag, mode, session, at_once, report, lock))
#endif
FAULT(LockRelationOid, void, (Oid table, LOCKMODE mode), (table, mode))

/* Subtransactions, snapshots, statements */
FAULT(BeginInternalSubTransaction, void, (const char *name), (name))
FAULT(RegisterSnapshot, Snapshot, (Snapshot snapshot), (snapshot))
FAULT(PushActiveSnapshotWithLevel, void, (Snapshot snapshot, int level), (snapshot, level))
FAULT(EnsurePortalSnapshotExists, void, (void), ())
FAULT(SPI_connect, int, (void), ())
FAULT(SPI_connect_ext, int, (int options), (options))
FAULT(SPI_prepare, SPIPlanPtr, (const char *text, int count, Oid *types), (text, count, types))
FAULT(SPI_keepplan, int, (SPIPlanPtr plan), (plan))
FAULT(SPI_execute, int, (const char *text, bool reads, long rows), (text, reads, rows))
FAULT(SPI_execute_extended, int, (const char *text, const SPIExecuteOptions *options),
	  (text, options))
FAULT(SPI_execute_plan, int,
	  (SPIPlanPtr plan, Datum *values, const char *nulls, bool reads, long rows),
	  (plan, values, nulls, reads, rows))
FAULT(SPI_execute_snapshot, int,
	  (SPIPlanPtr plan, Datum *values, const char *nulls, Snapshot snapshot, Snapshot crosscheck,
	   bool reads, bool triggers, long rows),
	  (plan, values, nulls, snapshot, crosscheck, reads, triggers, rows))
FAULT(raw_parser, List *, (const char *text, RawParseMode mode), (text, mode))
FAULT(SPI_getvalue, char *, (HeapTuple row, TupleDesc form, int column), (row, form, column))
FAULT(SPI_palloc, void *, (Size size), (size))

/*
 * fail_at(n integer, forever boolean) → integer: the n-th request from now on fails, or all from
 * the n-th on; 0: none.  Returns the requests since it was called last.
 */
PG_FUNCTION_INFO_V1(advisory_fail_at);

Datum
advisory_fail_at(PG_FUNCTION_ARGS)
{
	int			before = made;

	made = 0;
	first = PG_GETARG_INT32(0);
	last = first > 0 && PG_GETARG_BOOL(1) ? PG_INT32_MAX : first;
	PG_RETURN_INT32(before);
}

/* interrupts_are_late(boolean): from now on, or no longer. */
PG_FUNCTION_INFO_V1(advisory_interrupts_are_late);

Datum
advisory_interrupts_are_late(PG_FUNCTION_ARGS)
{
	interrupts_are_late = PG_GETARG_BOOL(0);
	PG_RETURN_VOID();
}

/* stop_at(point text, pass integer): stop this session when it comes to the point that often. */
PG_FUNCTION_INFO_V1(advisory_stop_at);

Datum
advisory_stop_at(PG_FUNCTION_ARGS)
{
	text_to_cstring_buffer(PG_GETARG_TEXT_PP(0), stop_name, sizeof(stop_name));
	passes_until_stop = PG_GETARG_INT32(1);
	PG_RETURN_VOID();
}

/* publishes_wait() → boolean: does this session publish that it waits? */
PG_FUNCTION_INFO_V1(advisory_publishes_wait);

Datum
advisory_publishes_wait(PG_FUNCTION_ARGS)
{
	advisory::PublishedWait wait;

	PG_RETURN_BOOL(advisory::read_wait(advisory::my_process_number(), &wait));
}

}
#pragma GCC visibility pop
