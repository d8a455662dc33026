/*
 * core/waitchain.h
 *		What a session waits for, and where a chain of such waits ends.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/* What a session waits for: a lock, or a slot of a semaphore. */
struct SessionWait
{
	LOCKTAG		tag;			/* for a semaphore: of its queue */
	int			slots;			/* number of slots that the session gave; 0: a lock */
	LOCKMODE	lockmode;		/* of a wait for a lock */
	TimestampTz since;
};

/*
 * What the process with this number waits for.  False if it waits for nothing, if it has announced
 * that it is about to stop waiting, or if that is unknown.
 */
bool		read_session_wait(int proc_number, SessionWait *wait);

enum class ChainEnd
{
	root,						/* a session or prepared transaction that does not wait */
	me,							/* this session */
	cycle						/* a session that the chain has come through before */
};

struct WaitChain
{
	LockEntry	next;			/* the session that the first one waits for */
	LockEntry	last;			/* the session at the end of the chain; tag and mode of both entries are those that block */
	ChainEnd	end;
};

/*
 * Follow the chain of waits that begins with a session.  If several sessions block one, follows the
 * first holder.  Returns false if the session does not wait.  Reads one lock per step, so the
 * waits of the chain need not all have existed at the same time.  May ereport.
 */
bool		follow_waits(const LockEntry &session, WaitChain *chain);

}								/* namespace advisory */
