/*
 * core/job.cpp
 *		Running a command while holding a lock, or one of K slots.
 *
 * While the command runs, the lock is session-level, because the command may commit,
 * which would release a transaction-level lock.  After the command, the lock becomes a
 * transaction-level lock of the transaction that is open then.
 */
#include "base/pg.h"

extern "C" {
#include "executor/spi.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "storage/lwlock.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
}

#include "core/await.h"
#include "core/blockers.h"
#include "core/errors.h"
#include "core/job.h"
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

static bool
can_commit(const RawStmt *raw)
{
	return IsA(raw->stmt, CallStmt) || IsA(raw->stmt, DoStmt);
}

/*
 * Run a statement and discard its result.  A CALL or DO that may commit runs with the
 * snapshot of the procedure call, which is renewed before.  Any other statement takes a
 * snapshot of its own.  So each statement sees the effects of the statements before it,
 * and what was committed before the lock was granted.
 */
static void
execute(const char *text, bool may_commit)
{
	SPIExecuteOptions options = {};
	int			result;

	options.allow_nonatomic = may_commit;
	options.dest = CreateDestReceiver(DestNone);
	if (may_commit)
		refresh_snapshot();
	else
		EnsurePortalSnapshotExists();
	if (SPI_connect_ext(may_commit ? SPI_OPT_NONATOMIC : 0) != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");

	/* Some errors SPI reports only by its result. */
	result = SPI_execute_extended(text, &options);
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
	SPI_finish();
}

/* Run the statements, a list of RawStmt.  An error releases the lock, since a session-level one would survive it. */
static void
run_command(const Job &job, List *statements, int slot)
{
	MemoryContext context = CurrentMemoryContext;
	RawStmt    *volatile current = nullptr;
	PassingLock passing = {job.request.granted_tag(slot), passing_locks};

	passing_locks = &passing;
	PG_TRY();
	{
		for (int i = 0; i < list_length(statements); i++)
		{
			auto	   *raw = static_cast<RawStmt *>(list_nth(statements, i));
			const char *start = job.command + Max(raw->stmt_location, 0);

			current = raw;
			execute(raw->stmt_len > 0 ? pnstrdup(start, raw->stmt_len) : start,
					job.may_commit && can_commit(raw));
		}
		current = nullptr;
		EnsurePortalSnapshotExists();
		if (!lock_keep_for_transaction(job.request, slot))
			ereport(WARNING,
					(errmsg("%s was released by the command that ran under it", display_job(job, slot)),
					 errdetail("Something else may have run at the same time.")));
	}
	PG_CATCH();
	{
		passing_locks = passing.outer;
		/* As the abort will do.  Releasing the lock takes LWLocks, which must not be held already. */
		LWLockReleaseAll();
		lock_give_up(job.request, slot);
		/* VACUUM, CREATE INDEX CONCURRENTLY and others cannot run in a transaction block. */
		if (current != nullptr && geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION && !can_commit(current) &&
			!analyze_requires_snapshot(current) && !IsA(current->stmt, VariableSetStmt))
		{
			ErrorData  *error = catch_error(context);

			if (error->hint == nullptr)
				error->hint = pstrdup("Such a command cannot run inside advisory.run(): take the lock by CALL advisory.await_lock() before it, "
									  "as a statement of its own, and release it by SELECT advisory.unlock() after it.");
			ReThrowError(error);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	passing_locks = passing.outer;
}

bool
run_job(const Job &job)
{
	/* Everything that allocates memory comes before the lock. */
	List	   *statements = raw_parser(job.command, RAW_PARSE_DEFAULT);
	char	   *what = display_job(job, NO_SLOT);
	int			slot = NO_SLOT;
	ErrorContextCallback context;

	if (statements == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("command must not be empty")));

	Outcome		outcome = await_if_possible(job.request, job.timeout, &slot);

	if (outcome != Outcome::granted)
	{
		EnsurePortalSnapshotExists();
		if (!job.skips)
			raise_not_available(job.request, outcome, job.timeout);
		lock_count_skipped(job.request.name);

		Blockers	blockers = find_blockers(job.request);

		ereport(NOTICE,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("command not run, since %s is taken", what),
				 blockers.description != nullptr ? errdetail("%s", blockers.description) : 0,
				 set_lock_fields(job.request.name)));
		return false;
	}

	context.callback = [](void *argument) {
		errcontext("while running a command under %s", static_cast<const char *>(argument));
	};
	context.arg = what;
	context.previous = error_context_stack;
	error_context_stack = &context;
	run_command(job, statements, slot);
	error_context_stack = context.previous;
	return true;
}

}								/* namespace advisory */
