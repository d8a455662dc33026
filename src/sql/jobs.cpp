/*
 * sql/jobs.cpp
 *		SQL: running a command while holding a lock.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/job.h"
#include "base/errors.h"
#include "base/sqlfunction.h"

namespace advisory
{

/*
 * run(namespace, name, command, timeout, slots, if_busy, INOUT ran, once_per, once_window,
 * time_zone, apart)
 */
template <By by>
static Datum
run(FunctionCallInfo fcinfo)
{
	constexpr int command = next_argument(by);
	Job			job = {LockRequest{lock_argument(fcinfo, by), Mode::exclusive, Scope::session},
					   timeout_argument(fcinfo, command + 1)};
	auto	   *context = reinterpret_cast<CallContext *>(fcinfo->context);
	std::string_view if_busy;

	job.command = to_cstring(text_argument(fcinfo, command, "command"));
	if (!PG_ARGISNULL(command + 2))
		job.request.slots = slot_number_argument(fcinfo, command + 2, "slots");
	if_busy = text_argument(fcinfo, command + 3, "if_busy");
	if (if_busy != "skip" && if_busy != "error")
		raise_invalid("if_busy must be \"skip\" or \"error\"");
	job.skips = if_busy == "skip";
	job.may_commit = context != nullptr && IsA(context, CallContext) && !context->atomic;
	job.is_once = !PG_ARGISNULL(command + 5) || !PG_ARGISNULL(command + 8);
	if (job.is_once)
		check_kept_name(job.request.name, "claim");
	if (!PG_ARGISNULL(command + 5) && !PG_ARGISNULL(command + 8))
		raise_invalid("apart must not be given together with once_per");
	if (!PG_ARGISNULL(command + 5))
		job.claim = window_argument(fcinfo, command + 5, "once_per", "once_window");
	else if (!PG_ARGISNULL(command + 6))
		raise_invalid("once_window must not be given without once_per");
	else if (!PG_ARGISNULL(command + 7))
		raise_invalid("time_zone must not be given without once_per");
	else if (job.is_once)
		job.claim.distance = apart_argument(fcinfo, command + 8);
	return row_made_first<bool>(fcinfo, [&]() { return run_job(job); });
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_run, run);

}								/* namespace advisory */
