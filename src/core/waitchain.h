/*
 * core/waitchain.h
 *		What a session waits for, and at whom a chain of such waits ends.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/* What a session waits for: a lock, or a slot of a semaphore. */
struct SessionWait
{
	LOCKTAG		tag;			/* of a semaphore: its queue's */
	int			slots;			/* of the semaphore, as the session says; 0: a lock */
	LOCKMODE	lockmode;		/* of a wait for a lock */
	TimestampTz since;
};

/*
 * What the process with this number waits for.  False if it waits for nothing, or says that it is
 * about to stop, or if that cannot be told.
 */
bool		read_session_wait(int proc_number, SessionWait *wait);

enum class ChainEnd
{
	root,						/* a session or prepared transaction that waits for nobody */
	me,							/* this session */
	cycle						/* a session that the chain has come through before */
};

struct WaitChain
{
	LockEntry	next;			/* the session that the first one waits for */
	LockEntry	last;			/* at which the chain ends; of both the tag and mode are those that block */
	ChainEnd	end;
};

/*
 * Follow the waits from a session on.  Of several that block one, the first holder is followed.
 * False if the session waits for nobody.  Reads one lock a step, so what comes back need not
 * have been true all at once.  May ereport.
 */
bool		follow_waits(const LockEntry &session, WaitChain *chain);

}								/* namespace advisory */
