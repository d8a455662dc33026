/*
 * job.cpp
 *		Running a command while holding a lock, or one of K slots.
 *
 * While the command runs the lock is session-level: the command may commit, and a
 * transaction-level one would be gone then.  When it has run, the lock becomes one of
 * the transaction that is open at that time.
 */
#include "pg.h"

#include "await.h"
#include "holders.h"
#include "job.h"
#include "lock.h"
#include "names.h"
#include "subtransaction.h"

namespace advisory
{

static char *
display_job(const Job &job)
{
	return psprintf(job.request.is_for_slot() ? "semaphore \"%s\"" : "advisory lock \"%s\"", display_lock(job.request.name));
}

static void
add_job_context(void *argument)
{
	errcontext("while running a command under %s", static_cast<const char *>(argument));
}

/* SPI says of these what they are, and no more. */
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

/* What it returns is nobody's. */
static void
execute(const Job &job)
{
	SPIExecuteOptions options = {};

	options.allow_nonatomic = job.may_commit;
	options.dest = CreateDestReceiver(DestNone);
	if (SPI_connect_ext(job.may_commit ? SPI_OPT_NONATOMIC : 0) != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	check_result(SPI_execute_extended(job.command, &options));
	SPI_finish();
}

static void
keep_or_warn(const Job &job, int slot)
{
	if (!lock_keep_for_transaction(job.request, slot))
		ereport(WARNING,
				(errmsg("%s was released by the command that ran under it", display_job(job)),
				 errdetail("Something else may have run at the same time.")));
}

/* VACUUM, CREATE INDEX CONCURRENTLY and the like need a transaction of their own. */
static void
add_hint(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_ACTIVE_SQL_TRANSACTION && error->hint == nullptr)
		error->hint = pstrdup("Such a command cannot run inside advisory.run(): take the lock by CALL advisory.await_lock() before it, "
							  "as a statement of its own, and release it by SELECT advisory.unlock() after it.");
}

/* An error ends the transaction, or what of it has not committed yet; the lock would outlive it. */
static void
run_command(const Job &job, int slot)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		execute(job);
		keep_or_warn(job, slot);
	}
	PG_CATCH();
	{
		ErrorData  *error = catch_error(context);

		/* As the end of the transaction will: releasing takes some of them. */
		LWLockReleaseAll();
		lock_give_up(job.request, slot);
		add_hint(error);
		ReThrowError(error);
	}
	PG_END_TRY();
}

static void
notify_skipped(const Job &job)
{
	bool		is_for_slot = job.request.is_for_slot();
	Blockers	blockers = is_for_slot
		? find_slot_blockers(job.request.name, job.request.slots) : find_blockers(job.request.name, job.request.mode);
	char	   *what = display_job(job);

	ereport(NOTICE,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("command not run, since %s is taken", what),
			 blockers.description != nullptr ? errdetail("%s", blockers.description) : 0,
			 set_lock_fields(job.request.name)));
}

bool
run_job(const Job &job)
{
	int			slot = NO_SLOT;
	Outcome		outcome = await_if_possible(job.request, job.timeout, &slot);
	ErrorContextCallback context;

	if (outcome != Outcome::granted)
	{
		if (!job.skips)
			lock_raise_not_available(job.request, outcome, job.timeout);
		lock_count_skipped(job.request.name);
		notify_skipped(job);
		return false;
	}

	context.callback = add_job_context;
	context.arg = display_job(job);
	context.previous = error_context_stack;
	error_context_stack = &context;
	run_command(job, slot);
	error_context_stack = context.previous;
	return true;
}

}								/* namespace advisory */
