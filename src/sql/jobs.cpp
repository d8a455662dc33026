/*
 * sql/jobs.cpp
 *		SQL: running a command while holding a lock.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/job.h"
#include "base/sqlfunction.h"

namespace advisory
{

static char *
command_argument(FunctionCallInfo fcinfo, int arg)
{
	return to_cstring(text_argument(fcinfo, arg, "command"));
}

/* if_busy: is it 'skip', and not 'error'? */
static bool
skips_argument(FunctionCallInfo fcinfo, int arg)
{
	std::string_view if_busy = text_argument(fcinfo, arg, "if_busy");

	if (if_busy == "skip")
		return true;
	if (if_busy != "error")
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("if_busy must be \"skip\" or \"error\"")));
	return false;
}

static bool
may_commit(FunctionCallInfo fcinfo) noexcept
{
	auto	   *context = reinterpret_cast<CallContext *>(fcinfo->context);

	return context != nullptr && IsA(context, CallContext) && !context->atomic;
}

/* run(namespace, name, command, timeout, slots, if_busy, INOUT ran) */
template <typename By>
static Datum
run(FunctionCallInfo fcinfo)
{
	constexpr int command = By::next_arg;
	Job			job = {LockRequest{By::read(fcinfo), Mode::exclusive, Scope::session}, timeout_argument(fcinfo, command + 1)};
	TupleDesc	description;
	Datum		ran;
	bool		is_null = false;

	job.command = command_argument(fcinfo, command);
	if (!PG_ARGISNULL(command + 2))
		job.request.slots = slot_number_argument(fcinfo, command + 2, "slots");
	job.skips = skips_argument(fcinfo, command + 3);
	job.may_commit = may_commit(fcinfo);
	if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	description = BlessTupleDesc(description);
	ran = BoolGetDatum(run_job(job));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(description, &ran, &is_null)));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_run, run);

}								/* namespace advisory */
