/*
 * base/errors.h
 *		Going on after an error.
 */
#ifndef ADVISORY_EXT_BASE_ERRORS_H
#define ADVISORY_EXT_BASE_ERRORS_H

namespace advisory
{

/* The error in hand, in this memory context, with the error state cleared. */
inline ErrorData *
catch_error(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	return error;
}

/* An internal subtransaction, and what is the caller's again after it. */
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

	/* After an error: roll back, and return the error with its state cleared. */
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
 * Run body(), which may have to read a catalog that all databases share, and so
 * to lock it in the server's lock table.  False, with nothing else wrong, if there
 * is no room for that: our views are for bad times, too.  Other errors are raised.
 * Not to be called among the arguments of ereport(): clearing the error would
 * clear that report, too.
 */
template <typename Body>
inline bool
unless_lock_table_is_full(Body body)
{
	/* Up to 16 there can be no subtransaction beside parallel workers. */
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
