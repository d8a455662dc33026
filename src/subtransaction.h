/*
 * subtransaction.h
 *		Going on after an error.
 */
#ifndef ADVISORY_EXT_SUBTRANSACTION_H
#define ADVISORY_EXT_SUBTRANSACTION_H

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

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SUBTRANSACTION_H */
