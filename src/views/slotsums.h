/*
 * views/slotsums.h
 *		How many slots the sessions have, and which semaphores they use with different numbers.
 */
#pragma once

#include "shmem/sessiontable.h"

namespace advisory
{

/*
 * Sums over all entries of semaphores, made once, so that a view takes time linear in the slots
 * that it reads.  Uses the memory context in which it is created.  All functions may ereport.
 */
class SlotSums
{
public:
	/* The entries must outlive it. */
	explicit	SlotSums(const LockEntries &entries);

	/* How many slots a waiter wants, or the session of a slot has. */
	int			slots_of(const LockEntry &entry) const;

	/* Do those who use the semaphore of this slot or queue give different numbers of slots? */
	bool		disagree(const LOCKTAG &tag);

private:
	void		read_numbers();

	MemoryContext context;
	const LockEntries &entries;
	HTAB	   *held;			/* by semaphore and session */
	HTAB	   *numbers = nullptr;	/* by semaphore; read when it is first needed */
};

}								/* namespace advisory */
