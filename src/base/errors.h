/*
 * base/errors.h
 *		Continuing after an error.
 */
#ifndef ADVISORY_EXT_BASE_ERRORS_H
#define ADVISORY_EXT_BASE_ERRORS_H

namespace advisory
{

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

	/* In PG_CATCH: roll back, clear the error state and return the error. */
	ErrorData  *roll_back_error() const
	{
		ErrorData  *error = catch_error(context);

		roll_back();
		return error;
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

/*
 * Run body(), which may read a shared catalog and therefore need a lock in the
 * server's lock table.  Returns false, without an error, if the lock table is full:
 * our views have to work then, too.  Other errors are raised.  Do not call this in
 * the arguments of ereport(), because clearing the error would clear that report.
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
		ErrorData  *error = subtransaction.roll_back_error();

		if (error->sqlerrcode != ERRCODE_OUT_OF_MEMORY)
			ReThrowError(error);
	}
	PG_END_TRY();
	return succeeded;
}

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_ERRORS_H */
