/*
 * core/job.cpp
 *		Running a command while holding a lock, or one of K slots.
 *
 * While the command runs, the lock is session-level, because the command may commit,
 * which would release a transaction-level lock.  After the command, the lock becomes a
 * transaction-level lock of the transaction that is open then.
 */
#include "base/pg.h"

#include "core/await.h"
#include "core/blockers.h"
#include "core/errors.h"
#include "core/job.h"
#include "core/blockers.h"
#include "core/release.h"
#include "base/errors.h"

namespace advisory
{

/* What the job locks, for messages.  slot may be NO_SLOT. */
static char *
display_job(const Job &job, int slot)
{
	char	   *name = display_lock(job.request.name);

	if (!job.request.is_for_slot())
		return psprintf("advisory lock \"%s\"", name);
	if (slot == NO_SLOT)
		return psprintf("semaphore \"%s\"", name);
	return psprintf("slot %d of semaphore \"%s\"", slot, name);
}

static void
add_job_context(void *argument)
{
	errcontext("while running a command under %s", static_cast<const char *>(argument));
}

/* Raise an error for what SPI only reports by its result. */
static void
check_result(int result)
{
	if (result == SPI_ERROR_TRANSACTION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("a command of advisory.run() cannot begin or end a transaction by itself"),
				 errhint("Call a procedure, which may COMMIT.")));
	if (result == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a command of advisory.run() cannot COPY to or from the client")));
	if (result < 0)
		elog(ERROR, "could not run the command: %s", SPI_result_code_string(result));
}

namespace
{

/* One statement of a command. */
struct Statement
{
	const char *text;
	bool		may_commit;		/* a CALL or DO */
	bool		is_utility;		/* neither CALL, DO, SET nor a query */
};

struct Statements
{
	Statement  *statements;
	int			count;
};

}								/* anonymous namespace */

static Statement
make_statement(const char *command, const RawStmt *raw)
{
	const char *start = command + Max(raw->stmt_location, 0);
	Statement	statement = {};

	statement.text = raw->stmt_len > 0 ? pnstrdup(start, raw->stmt_len) : pstrdup(start);
	statement.may_commit = IsA(raw->stmt, CallStmt) || IsA(raw->stmt, DoStmt);
	statement.is_utility = !statement.may_commit && !analyze_requires_snapshot(const_cast<RawStmt *>(raw)) &&
		!IsA(raw->stmt, VariableSetStmt);
	return statement;
}

/* The statements of a command, palloc'd.  May ereport (42601 for a syntax error, 22023 if there is none). */
static Statements
split_command(const char *command)
{
	List	   *raw = raw_parser(command, RAW_PARSE_DEFAULT);
	Statements	split = {static_cast<Statement *>(palloc(sizeof(Statement) * (list_length(raw) + 1))), list_length(raw)};

	if (split.count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("command must not be empty")));
	for (int i = 0; i < split.count; i++)
		split.statements[i] = make_statement(command, static_cast<const RawStmt *>(list_nth(raw, i)));
	return split;
}

/*
 * Run a statement and discard its result.  A statement that may commit runs with the
 * snapshot of the procedure call, which is renewed before.  Any other statement takes a
 * snapshot of its own.  So each statement sees the effects of the statements before it,
 * and what was committed before the lock was granted.
 */
static void
execute(const Statement &statement, bool may_commit)
{
	SPIExecuteOptions options = {};

	options.allow_nonatomic = may_commit && statement.may_commit;
	options.dest = CreateDestReceiver(DestNone);
	if (options.allow_nonatomic)
		refresh_snapshot();
	else
		EnsurePortalSnapshotExists();
	if (SPI_connect_ext(options.allow_nonatomic ? SPI_OPT_NONATOMIC : 0) != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	check_result(SPI_execute_extended(statement.text, &options));
	SPI_finish();
}

static void
keep_or_warn(const Job &job, int slot)
{
	if (!lock_keep_for_transaction(job.request, slot))
		ereport(WARNING,
				(errmsg("%s was released by the command that ran under it", display_job(job, slot)),
				 errdetail("Something else may have run at the same time.")));
}

/* VACUUM, CREATE INDEX CONCURRENTLY and others cannot run in a transaction block. */
[[noreturn]] static void
rethrow_with_hint(MemoryContext context)
{
	ErrorData  *error = catch_error(context);

	if (error->hint == nullptr)
		error->hint = pstrdup("Such a command cannot run inside advisory.run(): take the lock by CALL advisory.await_lock() before it, "
							  "as a statement of its own, and release it by SELECT advisory.unlock() after it.");
	ReThrowError(error);
	pg_unreachable();
}

/* The lock is session-level here and would survive an error, so an error releases it. */
static void
run_command(const Job &job, const Statements &command, int slot)
{
	MemoryContext context = CurrentMemoryContext;
	volatile int current = 0;
	PassingLock passing;

	begin_passing(&passing, job.request.is_for_slot() ? slot_tag(MyDatabaseId, job.request.name.key, slot) : job.request.tag());
	PG_TRY();
	{
		for (; current < command.count; current = current + 1)
			execute(command.statements[current], job.may_commit);
		EnsurePortalSnapshotExists();
		keep_or_warn(job, slot);
	}
	PG_CATCH();
	{
		set_passing(passing.outer);
		/* As the abort will do.  Releasing the lock takes LWLocks, which must not be held already. */
		LWLockReleaseAll();
		lock_give_up(job.request, slot);
		if (current < command.count && command.statements[current].is_utility && geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION)
			rethrow_with_hint(context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	set_passing(passing.outer);
}

static void
notify_skipped(const Job &job)
{
	bool		is_for_slot = job.request.is_for_slot();
	Blockers	blockers = is_for_slot
		? find_slot_blockers(job.request.name, job.request.slots) : find_blockers(job.request.name, job.request.mode);
	char	   *what = display_job(job, NO_SLOT);

	ereport(NOTICE,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("command not run, since %s is taken", what),
			 blockers.description != nullptr ? errdetail("%s", blockers.description) : 0,
			 set_lock_fields(job.request.name)));
}

bool
run_job(const Job &job)
{
	/* Everything that allocates memory comes before the lock. */
	Statements	command = split_command(job.command);
	char	   *what = display_job(job, NO_SLOT);
	int			slot = NO_SLOT;
	Outcome		outcome = await_if_possible(job.request, job.timeout, &slot);
	ErrorContextCallback context;

	if (outcome != Outcome::granted)
	{
		EnsurePortalSnapshotExists();
		if (!job.skips)
			raise_not_available(job.request, outcome, job.timeout);
		lock_count_skipped(job.request.name);
		notify_skipped(job);
		return false;
	}

	context.callback = add_job_context;
	context.arg = what;
	context.previous = error_context_stack;
	error_context_stack = &context;
	run_command(job, command, slot);
	error_context_stack = context.previous;
	return true;
}

}								/* namespace advisory */
