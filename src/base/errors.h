/*
 * base/errors.h
 *		Raising a common error, and continuing after one.
 */
#pragma once

namespace advisory
{

/* The hint if the library of this session may be older than the objects in the database. */
constexpr char OTHER_VERSION_HINT[] =
	"If the extension was updated after this session began, reconnect.";

/* Raise 22023 with this message. */
[[noreturn]] inline void
raise_invalid(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s", message)));
}

/* Copy the current error into this memory context and clear the error state. */
inline ErrorData *
catch_error(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	return error;
}

/*
 * Run body() in an internal subtransaction, and return what it returns.  If that is false, the
 * subtransaction is rolled back, which releases its locks.  After an error, too: one for which
 * is_cleared() is true is cleared, and false returned; others are raised.  Restores the caller's
 * memory context and resource owner.
 */
template <typename Body, typename IsCleared>
inline bool
in_subtransaction_unless(Body body, IsCleared is_cleared)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool stays = false;

	BeginInternalSubTransaction(nullptr);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		stays = body();
		if (stays)
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (!is_cleared())
			PG_RE_THROW();
		FlushErrorState();
		return false;
	}
	PG_END_TRY();
	if (!stays)
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return stays;
}

/* No error has it. */
constexpr int NO_SQLSTATE = -1;

/* The same; errors with this SQLSTATE are cleared. */
template <typename Body>
inline bool
in_subtransaction(Body body, int cleared = NO_SQLSTATE)
{
	return in_subtransaction_unless(body, [=]() { return geterrcode() == cleared; });
}

/* Run body(), and add_context(), which calls errcontext(), for each error and message in it. */
template <typename AddContext, typename Body>
inline void
with_error_context(AddContext add_context, Body body)
{
	ErrorContextCallback context;

	context.callback = [](void *argument) { (*static_cast<AddContext *>(argument))(); };
	context.arg = &add_context;
	context.previous = error_context_stack;
	error_context_stack = &context;
	body();
	error_context_stack = context.previous;
}

/*
 * Run body(), which reads a catalog and may need a lock for that.  Returns false if the server's
 * lock table is full, because the views must work then, too.  Other errors are raised.  Do not use
 * this in the arguments of ereport(): clearing the error would also clear that report.
 */
template <typename Body>
inline bool
unless_lock_table_is_full(Body body)
{
	/* Up to 16 a subtransaction cannot be started in parallel mode. */
	if (IsInParallelMode())
	{
		body();
		return true;
	}

	return in_subtransaction([&]() {
		body();
		return true;
	}, ERRCODE_OUT_OF_MEMORY);
}

}								/* namespace advisory */
