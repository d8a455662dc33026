/*
 * sql/autocommit.cpp
 *		The WARNING about a transaction-level lock that ends with its statement.
 *
 * The plan of the running portal tells whether the statement is such a SELECT.  Most calls
 * come from elsewhere, for example from PL/pgSQL.  The test that recognizes these calls comes
 * first, and takes some nanoseconds.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "commands/prepare.h"
#include "executor/execdesc.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/portal.h"
#include "utils/syscache.h"
}

#include "sql/autocommit.h"
#include "base/guc.h"

namespace advisory
{

static constexpr char XACT[] = "xact_";
static constexpr char TRY_XACT[] = "try_xact_";

static bool
starts_with(const char *text, const char *start) noexcept
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Does this expression call a function of that schema that takes transaction-level locks, and returns a set or not? */
static bool
is_transaction_level_call(const Expr *expression, Oid schema, bool returns_set)
{
	if (!IsA(expression, FuncExpr))
		return false;

	auto	   *call = reinterpret_cast<const FuncExpr *>(expression);
	char	   *name;

	if (call->funcretset != returns_set || get_func_namespace(call->funcid) != schema)
		return false;
	name = get_func_name(call->funcid);
	return name != nullptr && (starts_with(name, XACT) || starts_with(name, TRY_XACT));
}

/* Is this the plan of a SELECT without FROM, WHERE and so on, whose list consists of such calls? */
static bool
is_bare(const PlannedStmt *statement, Oid schema)
{
	const Plan *plan = statement->planTree;
	bool		returns_set = IsA(plan, ProjectSet);
	int			functions = 0;
	ListCell   *cell;

	/* A set-returning function gets its row from a node of its own. */
	const Plan *row = returns_set ? outerPlan(plan) : plan;

	if (row == nullptr || !IsA(row, Result) || outerPlan(row) != nullptr ||
		reinterpret_cast<const Result *>(row)->resconstantqual != nullptr || statement->subplans != NIL)
		return false;

	/* A subquery or a view in FROM can leave no other trace in the plan than its range table entry. */
	foreach(cell, statement->rtable)
	{
		if (lfirst_node(RangeTblEntry, cell)->rtekind != RTE_RESULT)
			return false;
	}
	foreach(cell, plan->targetlist)
	{
		if (!is_transaction_level_call(lfirst_node(TargetEntry, cell)->expr, schema, returns_set))
			return false;
	}

	/*
	 * The planner lists each call of a function that is not built in, and each such function that it
	 * has inlined.  So a longer list means that a call comes from an SQL function, or that its arguments
	 * call one.
	 */
	foreach(cell, statement->invalItems)
		functions += lfirst_node(PlanInvalItem, cell)->cacheId == PROCOID;
	return functions == list_length(plan->targetlist);
}

/* Does this portal run the client's statement itself, or the prepared statement that the client executes? */
static bool
is_clients_statement(const PortalData *portal)
{
	/* Portals of cursors and of EXECUTE have a name.  So have portals that a client names, for use in transaction blocks. */
	if (portal->name[0] == '\0')
		return true;

	Portal		client = GetPortalByName("");

	if (client == nullptr || client->stmts == NIL)
		return false;

	auto	   *statement = linitial_node(PlannedStmt, client->stmts)->utilityStmt;

	if (statement == nullptr || !IsA(statement, ExecuteStmt))
		return false;

	PreparedStatement *executed = FetchPreparedStatement(reinterpret_cast<ExecuteStmt *>(statement)->name, false);

	return executed != nullptr && strcmp(executed->plansource->query_string, portal->sourceText) == 0;
}

void
warn_if_no_transaction(FunctionCallInfo fcinfo)
{
	Portal		portal = ActivePortal;

	/* A portal for a utility statement, such as CALL, has no query. */
	if (!setting::warn_no_transaction || portal == nullptr || portal->queryDesc == nullptr)
		return;

	const PlannedStmt *statement = portal->queryDesc->plannedstmt;
	List	   *targets = statement->planTree->targetlist;

	/*
	 * Does the portal's plan call, and not the plan of a function that runs under it?  And is this the first
	 * call in the list?  Only the first call warns.
	 */
	if (targets == NIL ||
		reinterpret_cast<Node *>(linitial_node(TargetEntry, targets)->expr) != fcinfo->flinfo->fn_expr)
		return;
	if (IsInTransactionBlock(true) || !is_bare(statement, get_func_namespace(fcinfo->flinfo->fn_oid)) ||
		!is_clients_statement(portal))
		return;

	char	   *function = get_func_name(fcinfo->flinfo->fn_oid);

	if (function == nullptr)
		return;

	bool		tries = starts_with(function, TRY_XACT);
	char	   *instead = psprintf("%s%s", tries ? "try_" : "", function + strlen(tries ? TRY_XACT : XACT));

	ereport(WARNING,
			(errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
			 errmsg("advisory.%s() has no lasting effect outside a transaction block", function),
			 errdetail("The locks that it takes are released at the end of the statement."),
			 setting::session_locks == SESSION_LOCKS_OFF
			 ? errhint("BEGIN a transaction first.")
			 : errhint("BEGIN a transaction first, or use the session-level function advisory.%s().", instead)));
}

}								/* namespace advisory */
