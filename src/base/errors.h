/*
 * base/errors.h
 *		Continuing after an error.
 */
#pragma once

namespace advisory
{

/* The hint if the objects in the database have another version than the library. */
constexpr char OTHER_VERSION_HINT[] = "Run ALTER EXTENSION advisory_ext UPDATE.";

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

/* An internal subtransaction that restores the caller's memory context and resource owner. */
class Subtransaction
{
public:
	Subtransaction() : context(CurrentMemoryContext), owner(CurrentResourceOwner)
	{
		BeginInternalSubTransaction(nullptr);
		MemoryContextSwitchTo(context);
	}

	void		release() const
	{
		ReleaseCurrentSubTransaction();
		restore();
	}

	void		roll_back() const
	{
		RollbackAndReleaseCurrentSubTransaction();
		restore();
	}

private:
	void		restore() const
	{
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}

	MemoryContext context;
	ResourceOwner owner;
};

/* Run body() in a subtransaction.  Unless body() returns true, the subtransaction is rolled back, which releases its locks. */
template <typename Body>
inline void
in_subtransaction(Body body)
{
	Subtransaction subtransaction;
	volatile bool stays = false;

	PG_TRY();
	{
		stays = body();
		if (stays)
			subtransaction.release();
	}
	PG_CATCH();
	{
		subtransaction.roll_back();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (!stays)
		subtransaction.roll_back();
}

/* Run body(), and add this text to the context of its errors. */
template <typename Body>
inline void
with_error_context(char *text, Body body)
{
	ErrorContextCallback context;

	context.callback = [](void *argument) {
		errcontext("%s", static_cast<const char *>(argument));
	};
	context.arg = text;
	context.previous = error_context_stack;
	error_context_stack = &context;
	body();
	error_context_stack = context.previous;
}

/*
 * Run body(), which reads a catalog and may need a lock for that.  Returns false if the server's lock table is full, because the views must
 * work then, too.  Other errors are raised.  Do not use this in the arguments of ereport(): clearing the error would also clear that
 * report.
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

	Subtransaction subtransaction;
	volatile bool succeeded = false;

	PG_TRY();
	{
		body();
		subtransaction.release();
		succeeded = true;
	}
	PG_CATCH();
	{
		subtransaction.roll_back();
		if (geterrcode() != ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	return succeeded;
}

}								/* namespace advisory */
