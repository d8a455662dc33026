/*
 * core/job.cpp
 *		Running a command while holding a lock, or one of K slots.
 *
 * While the command runs, the lock is session-level, because the command may commit,
 * which would release a transaction-level lock.  After the command, the lock becomes a
 * transaction-level lock of the transaction that is open then.
 *
 * The claim of a window is committed before the command runs.  So no session runs the command
 * again for this window, even if the command fails.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "storage/lwlock.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
}

#include "core/await.h"
#include "core/blockers.h"
#include "core/claim.h"
#include "core/errors.h"
#include "core/job.h"
#include "core/release.h"
#include "server/locallock.h"
#include "server/wal.h"
#include "base/compat.h"
#include "base/errors.h"

namespace advisory
{

/* The job's lock, slot or semaphore, for messages.  slot may be NO_SLOT. */
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

/* ---- The statements of a command ---- */

/* A part of the command that ends at a semicolon, or at its end. */
struct Part
{
	const char *command;
	const char *start;			/* in the command */
	const char *end;			/* in the command: the semicolon, or the final null byte */
};

/* In characters, as error positions are. */
static int
length_up_to(const Part &part, const char *place)
{
	return pg_mbstrlen_with_len(part.command, static_cast<int>(place - part.command));
}

/* Let the position of an error in a part point into the command, as for an error in EXECUTE. */
static void
point_into_command(void *argument)
{
	auto	   *part = static_cast<const Part *>(argument);
	int			position = geterrposition();

	if (position <= 0)
		return;
	errposition(0);
	internalerrposition(length_up_to(*part, part->start) + position);
	internalerrquery(part->command);
}

/*
 * Parse a part.  Returns false if it is only the beginning of a statement with semicolons
 * inside, such as CREATE FUNCTION with BEGIN ATOMIC.  Raises any other error.  Needs no
 * subtransaction, because the parser changes nothing.
 */
static bool
parse_if_complete(const Part &part, List **statements)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool complete = false;

	PG_TRY();
	{
		*statements = raw_parser(pnstrdup(part.start, part.end - part.start), RAW_PARSE_DEFAULT);
		complete = true;
	}
	PG_CATCH();
	{
		/* Only an error at the end of the part, before the end of the command, means an incomplete statement. */
		if (*part.end == '\0' || getinternalerrposition() <= length_up_to(part, part.end))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return complete;
}

/* A statement of the command. */
struct Statement
{
	const RawStmt *raw;			/* null if there is none */
	Part		part;
};

/*
 * The first statement from here on; it may be empty.  Parses only that statement, because each
 * statement must be parsed under the settings that are in force when it runs, and earlier statements
 * may change these.
 */
static Statement
statement_at(const char *command, const char *start)
{
	Part		part = {command, start, start};
	List	   *statements;
	core_yy_extra_type extra;
	core_yyscan_t scanner;
	core_YYSTYPE value;
	YYLTYPE		location;
	ErrorContextCallback context;

	context.callback = point_into_command;
	context.arg = &part;
	context.previous = error_context_stack;
	error_context_stack = &context;
	scanner = compat::quiet_scanner(start, &extra);
	do
	{
		int			token;

		/* The scanner knows which semicolons are in literals and comments. */
		do
			token = core_yylex(&value, &location, scanner);
		while (token != ';' && token != 0);
		part.end = start + location;
	} while (!parse_if_complete(part, &statements));
	scanner_finish(scanner);
	error_context_stack = context.previous;
	return Statement{statements != NIL ? linitial_node(RawStmt, statements) : nullptr, part};
}

/* The first statement from here on that is not empty. */
static Statement
next_statement(const char *command, const char *start)
{
	Statement	statement;

	for (;; start = statement.part.end + 1)
	{
		start += strspn(start, " \t\n\r\f\v");
		statement = statement_at(command, start);
		if (statement.raw != nullptr || *statement.part.end == '\0')
			return statement;
	}
}

static bool
can_commit(const RawStmt *raw)
{
	return IsA(raw->stmt, CallStmt) || IsA(raw->stmt, DoStmt);
}

/* ---- Running them ---- */

/*
 * Run a statement and discard its result.  A CALL or DO that may commit runs with the
 * snapshot of the procedure call, which is renewed first.  Any other statement takes a
 * snapshot of its own.  So each statement sees the effects of the statements before it,
 * and all data that was committed before the lock was granted.
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
hint_for_error(const Job &job, const RawStmt *raw)
{
	/* VACUUM, CREATE INDEX CONCURRENTLY and others cannot run in a transaction block. */
	if (geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION && !can_commit(raw) &&
		!analyze_requires_snapshot(const_cast<RawStmt *>(raw)) && !IsA(raw->stmt, VariableSetStmt))
		return "This command cannot run inside advisory.run(). Take the lock with CALL advisory.await_lock() as a separate "
			"statement before the command, and release it with SELECT advisory.unlock() after the command.";
	if (geterrcode() == ERRCODE_INVALID_TRANSACTION_TERMINATION && can_commit(raw) && !job.may_commit)
		return "A procedure can commit inside advisory.run() only if the CALL of advisory.run() is sent as a separate statement "
			"outside a transaction block. Turn autocommit on, and do not send other statements together with the CALL.";
	return nullptr;
}

/* Warn if the command has released the lock that it ran under, or holds that the session had before. */
static void
check_still_held(const Job &job, int slot, int64 holds_before)
{
	LockCounts	now = lock_counts(job.request.granted_tag(slot), job.request.mode);

	if (now.session == 0)
		ereport(WARNING,
				(errmsg("%s was released by the command that ran under it", display_job(job, slot)),
				 now.transaction > 0
				 ? errdetail("The transaction still holds it.")
				 : errdetail("Another session may have run its command at the same time.")));
	else if (now.session <= holds_before)
		ereport(WARNING,
				(errmsg("the command released %s, which this session held before", display_job(job, slot)),
				 errdetail("The number of session-level holds was " INT64_FORMAT " before the command and is " INT64_FORMAT " now.",
						   holds_before, now.session - 1)));
}

/* A session-level lock survives an error. */
static void
release_after_error(const Job &job, int slot)
{
	/* The abort will do this, too.  Releasing the lock takes LWLocks, which must not be held already. */
	LWLockReleaseAll();
	lock_give_up(job.request, slot);
}

/*
 * Run the command, whose first statement this is.  holds_before is how many session-level holds
 * the session had before the job took the lock.  An error releases the lock.
 */
static void
run_command(const Job &job, Statement statement, int slot, int64 holds_before)
{
	MemoryContext context = CurrentMemoryContext;
	const RawStmt *volatile current = nullptr;
	PassingLock passing = {job.request.granted_tag(slot), passing_locks};

	passing_locks = &passing;
	PG_TRY();
	{
		while (statement.raw != nullptr)
		{
			const Part &part = statement.part;

			current = statement.raw;
			execute(pnstrdup(part.start, part.end - part.start), job.may_commit && can_commit(statement.raw));
			current = nullptr;
			if (*part.end == '\0')
				break;
			statement = next_statement(job.command, part.end + 1);
		}
		EnsurePortalSnapshotExists();
		check_still_held(job, slot, holds_before);
		lock_keep_for_transaction(job.request, slot);
	}
	PG_CATCH();
	{
		const char *hint = current != nullptr ? hint_for_error(job, current) : nullptr;

		passing_locks = passing.outer;
		release_after_error(job, slot);
		if (hint != nullptr)
		{
			ErrorData  *error = catch_error(context);

			if (error->hint == nullptr)
				error->hint = pstrdup(hint);
			ReThrowError(error);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	passing_locks = passing.outer;
}

/* ---- Once per window ---- */

/*
 * Raise 57014 if the wait for a synchronous standby was canceled.  The commit has succeeded nevertheless, but a
 * failover could lose the claim.
 */
static void
check_is_confirmed(const Job &job, int level)
{
	if (!wal_commit_is_confirmed(level))
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("command was not run because no synchronous standby has confirmed the claim of window %s of \"%s\"",
						display_window(job.window), display_name(job.request.name)),
				 errdetail("The window stays claimed on this server."),
				 set_lock_fields(job.request.name)));
}

/*
 * Claim the job's window under its lock, and commit.  Returns false if it is already claimed.  Releases the
 * lock unless it returns true.
 */
static bool
begin_window(const Job &job, int slot)
{
	volatile bool is_claimed = false;

	PG_TRY();
	{
		EnsurePortalSnapshotExists();
		is_claimed = claim_window(job.request.name, job.window);
		if (is_claimed)
		{
			int			level = synchronous_commit;

			SPI_connect_ext(SPI_OPT_NONATOMIC);
			SPI_commit_and_chain();
			SPI_finish();
			check_is_confirmed(job, level);
		}
	}
	PG_CATCH();
	{
		release_after_error(job, slot);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (!is_claimed)
		lock_give_up(job.request, slot);
	return is_claimed;
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
				 errhint("Send the CALL as a separate statement outside a transaction block. Turn autocommit on, and do not "
						 "send other statements together with the CALL. In a transaction, use advisory.claim().")));
}

/* Raise 55000, or give a NOTICE if the job skips. */
static void
report_claimed(const Job &job)
{
	char	   *window = display_window(job.window);
	char	   *name = display_name(job.request.name);

	if (job.skips)
		lock_count_skipped(job.request.name);
	ereport(job.skips ? NOTICE : ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 job.skips
			 ? errmsg("command was not run because window %s of \"%s\" or a later one is already claimed", window, name)
			 : errmsg("window %s of \"%s\" or a later one is already claimed", window, name),
			 set_lock_fields(job.request.name)));
}

/* ---- The job ---- */

bool
run_job(const Job &job)
{
	/* Allocate all memory before taking the lock. */
	Statement	first = next_statement(job.command, job.command);
	char	   *what = display_job(job, NO_SLOT);
	char	   *context = psprintf("while running a command under %s", what);
	int			slot = NO_SLOT;
	/* A slot is always one that the session does not hold. */
	int64		holds_before = job.request.is_for_slot() ? 0 : lock_counts(job.request.tag(), job.request.mode).session;

	if (first.raw == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("command must not be empty")));
	if (job.is_once)
		check_can_begin_window(job);

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
				 errmsg("command was not run because %s is taken", what),
				 blockers.description != nullptr ? errdetail("%s", blockers.description) : 0,
				 set_lock_fields(job.request.name)));
		return false;
	}

	if (job.is_once && !begin_window(job, slot))
	{
		report_claimed(job);
		return false;
	}

	with_error_context(context, [&]() {
		run_command(job, first, slot, holds_before);
	});
	return true;
}

}								/* namespace advisory */
