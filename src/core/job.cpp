/*
 * core/job.cpp
 *		Running a command while holding a lock, or one of K slots.
 *
 * While the command runs, the lock is session-level, because the command may commit, which would
 * release a transaction-level lock.  After the command, the lock becomes a transaction-level lock
 * of the transaction that is open then.
 *
 * The claim of a window is committed before the command runs.  So no session runs the command again
 * for this window, even if the command fails.  That it has finished is recorded in the transaction
 * in which the command ends.
 */
#include "base/pg.h"

#include "core/await.h"
#include "core/boundedwait.h"
#include "core/claim.h"
#include "core/deadlocks.h"
#include "core/held.h"
#include "core/job.h"
#include "core/notavailable.h"
#include "server/locallock.h"
#include "server/wal.h"
#include "server/xact.h"
#include "base/errors.h"

namespace advisory
{

/* ---- The statements of a command ---- */

static bool
can_commit(const RawStmt *statement)
{
	return IsA(statement->stmt, CallStmt) || IsA(statement->stmt, DoStmt);
}

/*
 * The statements of a command: a list of RawStmt.  Raises 42601 for a syntax error anywhere in it.
 * The whole command is parsed at once, as the server does with a string of several statements.  A
 * SET in it does not change where the statements after it begin and end.
 */
static List *
parse_command(const char *command)
{
	List	   *statements = NIL;

	/* The position of a syntax error points into the command, as in EXECUTE, not into the CALL. */
	with_error_context([=]() {
		int			position = geterrposition();

		if (position <= 0)
			return;
		errposition(0);
		internalerrposition(position);
		internalerrquery(command);
	}, [&]() {
		statements = raw_parser(command, RAW_PARSE_DEFAULT);
	});
	return statements;
}

/* ---- Running them ---- */

/*
 * Run a statement and discard its result.  A CALL or DO that may commit runs with the snapshot of
 * the procedure call, which is renewed first.  Any other statement takes a snapshot of its own.
 * So each statement sees the effects of the statements before it, and all data that was committed
 * before the lock was granted.
 */
static void
execute(const char *command, const RawStmt *statement, bool may_commit)
{
	const char *text = command + statement->stmt_location;
	SPIExecuteOptions options = {};
	int			result;

	/* The last statement can have length 0: it reaches to the end of the command. */
	if (statement->stmt_len > 0)
		text = pnstrdup(text, statement->stmt_len);

	options.allow_nonatomic = may_commit;
	options.dest = CreateDestReceiver(DestNone);
	if (may_commit)
		refresh_snapshot();
	else
		EnsurePortalSnapshotExists();
	SPI_connect_ext(may_commit ? SPI_OPT_NONATOMIC : 0);
	/* SPI reports some errors only by its result. */
	result = SPI_execute_extended(text, &options);
	if (result == SPI_ERROR_TRANSACTION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("a command of advisory.run() cannot begin or end a transaction by itself"),
				 errhint("Call a procedure that executes COMMIT.")));
	if (result == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a command of advisory.run() cannot COPY to or from the client")));
	if (result < 0)
		elog(ERROR, "could not run the command: %s", SPI_result_code_string(result));
	SPI_finish();
}

/* The hint for an error of a statement that could run elsewhere; null for any other error. */
static const char *
hint_for_error(const Job &job, RawStmt *statement)
{
	/* VACUUM and others cannot run in a transaction block, 19's WAIT FOR in no other statement. */
	if ((geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION && !can_commit(statement) &&
		 !analyze_requires_snapshot(statement) && !IsA(statement->stmt, VariableSetStmt)) ||
		(geterrcode() == ERRCODE_FEATURE_NOT_SUPPORTED &&
		 strcmp(CreateCommandName(statement->stmt), "WAIT") == 0))
		return "This command cannot run inside advisory.run(). Take the lock with CALL "
			   "advisory.await_lock() as a separate statement before the command, and release it "
			   "with SELECT advisory.unlock() after the command.";
	if (geterrcode() == ERRCODE_INVALID_TRANSACTION_TERMINATION && can_commit(statement) &&
		!job.may_commit)
		return "A procedure can commit inside advisory.run() only if the CALL of advisory.run() is "
			   "sent as a separate statement outside a transaction block. Turn autocommit on, and "
			   "do not send other statements together with the CALL.";
	return nullptr;
}

/* Warn if the command has released its lock, or holds that the session had before. */
static void
check_still_held(const Job &job, int slot, int64 holds_before)
{
	LockCounts	now = lock_counts(job.request.granted_tag(slot), job.request.mode);

	if (now.session == 0)
		ereport(WARNING,
				(errmsg("%s was released by the command that ran under it",
						describe_request(job.request, slot)),
				 now.transaction > 0
				 ? errdetail("The transaction still holds it.")
				 : errdetail("Another session may have run its command at the same time.")));
	else if (now.session <= holds_before)
		ereport(WARNING,
				(errmsg("the command released %s, which this session held before",
						describe_request(job.request, slot)),
				 errdetail("The number of session-level holds was " INT64_FORMAT
						   " before the command and is " INT64_FORMAT " now.",
						   holds_before, now.session - 1)));
}

/*
 * Run the statements.  *current is the one that runs.  Then the lock belongs to the transaction,
 * and so does the record that the claim of a window is finished.
 */
static void
run_statements(const Job &job, const List *statements, int slot, const WindowClaim &claim,
			   RawStmt *volatile *current)
{
	LOCKTAG		tag = job.request.granted_tag(slot);
	int64		holds_before = lock_counts(tag, job.request.mode).session - 1;
	ListCell   *cell;

	foreach(cell, statements)
	{
		auto	   *statement = lfirst_node(RawStmt, cell);

		CHECK_FOR_INTERRUPTS();
		*current = statement;
		execute(job.command, statement, job.may_commit && can_commit(statement));
		*current = nullptr;
	}
	EnsurePortalSnapshotExists();
	if (job.is_once)
		claim_finish(job.request.name, claim);
	check_still_held(job, slot, holds_before);
	held_prepare();
	held_pass_to_transaction(tag, job.request.mode);
}

/* ---- Once per window ---- */

/*
 * Claim the job's window under its lock, and commit.  Returns false if it is already claimed.
 * Raises 57014 if the wait for a synchronous standby was canceled: the commit has succeeded
 * nevertheless, but a failover could lose the claim.
 */
static bool
begin_window(const Job &job, WindowClaim *claim)
{
	int			level;

	EnsurePortalSnapshotExists();
	if (!claim_window(job.request.name, claim, false))
		return false;
	level = commit_synchronously();
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit_and_chain();
	SPI_finish();
	if (!wal_commit_is_confirmed(level))
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("command was not run because no synchronous standby has confirmed the "
						"claim of window %s of \"%s\"",
						display_window(claim->window), display_name(job.request.name)),
				 errdetail("The window stays claimed on this server."),
				 set_lock_fields(job.request.name)));
	return true;
}

/* Raise 2D000 unless begin_window() can commit here. */
static void
check_can_begin_window(const Job &job)
{
	PreventCommandIfReadOnly("advisory.run()");
	if (!job.may_commit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("advisory.run() cannot commit the claim of a window here"),
				 errhint("Send the CALL as a separate statement outside a transaction block. Turn "
						 "autocommit on, and do not send other statements together with the CALL. "
						 "In a transaction, use advisory.claim().")));
}

/* ---- The job ---- */

/*
 * The error that is being handled, with the hint if it has none.  The lock is held until the abort
 * releases it, so that it is not free before others see that the rows are gone; if that fails, it
 * is free.
 */
static ErrorData *
keep_until_abort(const Job &job, int slot, MemoryContext context, const char *hint)
{
	ErrorData  *volatile error = nullptr;

	PG_TRY();
	{
		error = catch_error(context);
		if (error->hint == nullptr && hint != nullptr)
			error->hint = pstrdup(hint);
		CurrentResourceOwner = CurTransactionResourceOwner;
		held_pass_to_transaction(job.request.granted_tag(slot), job.request.mode);
	}
	PG_CATCH();
	{
		lock_give_up(job.request, slot);
		if (error == nullptr)
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	return error;
}

/*
 * Under the job's lock, claim its window, if it has one, and run the statements.  Returns false if
 * the window is already claimed; the lock is released then.  An error releases the lock.
 */
static bool
claim_and_run(const Job &job, const List *statements, int slot, const char *what)
{
	MemoryContext context = CurrentMemoryContext;
	RawStmt    *volatile current = nullptr;
	volatile bool is_mine = true;
	WindowClaim claim = job.claim;
	LOCKTAG		tag = job.request.granted_tag(slot);
	OwnLocks	own = {&tag, 1};

	PG_TRY();
	{
		under_own_locks(&own, [&]() {
			is_mine = !job.is_once || begin_window(job, &claim);
			if (is_mine)
				with_error_context([=]() {
					errcontext("while running a command under %s", what);
				}, [&]() {
					run_statements(job, statements, slot, claim, &current);
				});
		});
	}
	PG_CATCH();
	{
		const char *hint = current != nullptr ? hint_for_error(job, current) : nullptr;

		/* As the abort will do, because LWLocks must not be held when the lock is released. */
		LWLockReleaseAll();
		ReThrowError(keep_until_abort(job, slot, context, hint));
	}
	PG_END_TRY();
	if (!is_mine)
		lock_give_up(job.request, slot);
	return is_mine;
}

/* Give a NOTICE that the command was not run, and why, and count that.  Returns false. */
static bool
skip(const Job &job, int code, const char *why, const char *detail)
{
	NameHandle	asked = name_ask(job.request.name);

	count_event(asked, Event::skipped);
	name_end(asked);
	ereport(NOTICE,
			(errcode(code),
			 errmsg("command was not run because %s", why),
			 detail != nullptr ? errdetail("%s", detail) : 0,
			 set_lock_fields(job.request.name)));
	return false;
}

bool
run_job(const Job &job)
{
	/* Allocate all memory before taking the lock. */
	List	   *statements = parse_command(job.command);
	char	   *what = job.request.is_for_slot()
		? psprintf("semaphore \"%s\"", display_lock(job.request.name))
		: describe_request(job.request);
	int			slot = NO_SLOT;

	if (statements == NIL)
		raise_invalid("command must not be empty");
	if (job.is_once)
		check_can_begin_window(job);

	Outcome		outcome = await_if_possible(job.request, job.timeout, &slot);

	if (outcome != Outcome::granted)
	{
		EnsurePortalSnapshotExists();
		if (!job.skips)
			raise_not_available(job.request, outcome, job.timeout);
		what = psprintf("%s is taken", what);
		if (outcome == Outcome::mine_already)
			return skip(job, ERRCODE_OBJECT_IN_USE, what, "This session already holds it.");
		return skip(job, ERRCODE_LOCK_NOT_AVAILABLE, what, describe_blockers(job.request));
	}
	if (claim_and_run(job, statements, slot, what))
		return true;

	what = job.claim.every == nullptr
		? psprintf("the last claim of \"%s\" is not long enough ago",
				   display_name(job.request.name))
		: psprintf("window %s of \"%s\" or a later one is already claimed",
				   display_window(job.claim.window), display_name(job.request.name));

	const char *detail = describe_claim(job.request.name);

	if (job.skips)
		return skip(job, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, what, detail);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s", what),
			 detail != nullptr ? errdetail("%s", detail) : 0,
			 set_lock_fields(job.request.name)));
}

}								/* namespace advisory */
