/*
 * sql/scope.cpp
 *		Whether the scope of a lock suits the call that takes it.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "executor/execdesc.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
}

#include "sql/scope.h"
#include "base/guc.h"

namespace advisory
{

/*
 * Is this call all that the client's statement does?  The plan of the running portal tells.  Most calls come from elsewhere, for
 * example from PL/pgSQL; they fail the first tests, which take some nanoseconds.
 */
static bool
is_whole_statement(FunctionCallInfo fcinfo)
{
	Portal		portal = ActivePortal;

	/* Portals of cursors and of EXECUTE have a name.  A portal for a utility statement, such as CALL, has no query. */
	if (portal == nullptr || portal->name[0] != '\0' || portal->queryDesc == nullptr)
		return false;

	const PlannedStmt *statement = portal->queryDesc->plannedstmt;
	const Plan *plan = statement->planTree;

	/* Is the call in this plan, and not in the plan of a function that runs under it? */
	if (list_length(plan->targetlist) != 1 ||
		reinterpret_cast<Node *>(linitial_node(TargetEntry, plan->targetlist)->expr) != fcinfo->flinfo->fn_expr)
		return false;
	if (!IsA(plan, Result) || outerPlan(plan) != nullptr || statement->subplans != NIL ||
		reinterpret_cast<const Result *>(plan)->resconstantqual != nullptr)
		return false;

	/* FROM can leave no other trace than a range table entry with columns.  The planner's own entry has none. */
	if (list_length(statement->rtable) > 1 ||
		(statement->rtable != NIL && linitial_node(RangeTblEntry, statement->rtable)->eref->colnames != NIL))
		return false;

	/* The planner lists each function that is not built in, whether it is called in an argument or was inlined. */
	return list_length(statement->invalItems) == 1;
}

/* The function that takes the same lock in the other scope: try_lock and try_xact_lock; lock or await_lock, and xact_lock. */
static char *
function_of_other_scope(const char *function, Scope scope)
{
	static constexpr char TRY[] = "try_";
	static constexpr char AWAIT[] = "await_";
	static constexpr char XACT[] = "xact_";
	bool		tries = strncmp(function, TRY, strlen(TRY)) == 0;
	bool		awaits = strncmp(function, AWAIT, strlen(AWAIT)) == 0;
	const char *rest = function + (tries ? strlen(TRY) : awaits ? strlen(AWAIT) : 0);

	if (scope == Scope::session)
		return psprintf("%s%s%s", tries ? TRY : "", XACT, rest);
	return psprintf("%s%s", tries ? TRY : "", rest + strlen(XACT));
}

void
check_scope(FunctionCallInfo fcinfo, Scope scope)
{
	int			allowed = scope == Scope::session ? setting::session_locks : setting::warn_no_transaction;
	int			level = allowed == ALLOWED_OFF ? ERROR : WARNING;

	if (allowed == ALLOWED_ON || (scope == Scope::transaction && (!is_whole_statement(fcinfo) || IsInTransactionBlock(true))))
		return;

	const char *function = get_func_name(fcinfo->flinfo->fn_oid);

	if (function == nullptr)
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);

	const char *instead = function_of_other_scope(function, scope);

	if (scope == Scope::transaction)
		ereport(level,
				(errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
				 errmsg("advisory.%s() has no lasting effect outside a transaction block", function),
				 errdetail("The locks that it takes are released at the end of the statement."),
				 setting::session_locks == ALLOWED_OFF
				 ? errhint("BEGIN a transaction first.")
				 : errhint("BEGIN a transaction first, or use the session-level function advisory.%s().", instead)));
	else
		ereport(level,
				(errcode(allowed == ALLOWED_OFF ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : ERRCODE_WARNING),
				 allowed == ALLOWED_OFF
				 ? errmsg("session-level advisory locks are turned off by \"advisory_ext.session_locks\"")
				 : errmsg("session-level advisory lock taken with \"advisory_ext.session_locks\" set to \"warn\""),
				 errdetail("Behind a transaction pooler a session-level lock outlives the client that took it."),
				 errhint("Use advisory.%s() instead.", instead)));
}

}								/* namespace advisory */
