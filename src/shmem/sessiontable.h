/*
 * shmem/sessiontable.h
 *		The session table: for each process of the server, what it publishes about the
 *		locks that it holds, and about the one that it waits for.
 *
 * heldpublish writes the holds of this session, and heldread reads those of all sessions.  waiters
 * does both with the waits.
 *
 * Locking
 *
 * Each part has a lock of its own.  Its process changes it with the lock held exclusively.
 * Other processes read it with the lock held shared, and read no more than SESSION_READ_HOLDS
 * holds at a time, so that the process does not wait long.  A process reads its own part without
 * the lock.  It also adds a hold at the end of the list without the lock, and writes the hold before
 * hold_count.  And it changes the scope of a hold without the lock, since readers see
 * either the old or the new value, like is_leaving of its wait.  The link belongs to slotstate.cpp, which says
 * how it is protected.
 *
 * The list of holds belongs to the place of the process, not to the session.  The next session
 * in the same place uses it again, so the end of a session frees nothing.
 */
#pragma once

extern "C" {
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/dsa.h"
}

#include "base/locktag.h"
#include "shmem/nametable.h"

namespace advisory
{

/* Stands for no place in a list. */
constexpr int NO_PLACE = -1;

constexpr int SESSION_READ_HOLDS = 256;
constexpr int SESSION_ACQUIRERS = 8;

/* One lock or slot that a session holds, in one mode. */
struct PublishedHold
{
	int64		key;
	TimestampTz acquired_at;
	uint16		objsubid;		/* of the lock's tag; 0 for a place that is free */
	uint16		slots;			/* the number of slots that the session gave; 0 for a lock */
	uint8		mode;			/* Mode */
	uint8		scope;			/* Scope */
	int16		acquirer;		/* place in the list of acquirers; NO_PLACE if it is not known */
	uint32		transactions;	/* the session's when the acquirer became known */
	uint32		own_transactions;	/* the acquirer's then */
	UsedName	used;			/* the lock's name or label */
	int32		next_free;		/* of a free place */
};

/*
 * The role and application that took a session-level lock, which can change in a pooled
 * connection.  These are the values at the end of the transaction, when SET LOCAL and
 * SECURITY DEFINER no longer apply.
 */
struct Acquirer
{
	Oid			role;			/* the session's user, or that of SET ROLE */
	uint32		transactions;	/* how many began and ended as this role and application, with session-level holds */
	char		application[NAMEDATALEN];
};

/* A wait as a session publishes it. */
struct PublishedWait
{
	int			pid;
	LOCKTAG		tag;			/* of a semaphore its queue, or its only slot */
	int			slots;			/* of the semaphore; 0: a lock */
	TimestampTz since;
	UsedName	used;			/* its name or label */
	bool		is_leaving;		/* the session is about to give up, or may have got what it waits for */
};

/* A process in the queue of a semaphore; the lock of that semaphore's state protects it. */
struct QueueLink
{
	int			next;			/* process number, or NO_PROCESS */
	int			slots;			/* it waits for one of this many slots; 0 while it is not in a queue */
	uint64		position;
};

constexpr int NO_PROCESS = -1;

struct SharedSession
{
	LWLock		lock;
	int			pid;			/* 0 while no session that uses the extension is in this place */
	Oid			database;
	Oid			present_role;	/* at the end of the last transaction with session-level holds */
	uint32		transactions;	/* of all acquirers */
	volatile int hold_count;	/* including free places */
	int			hold_capacity;
	int			acquirer_count;
	dsa_pointer holds;
	Acquirer	acquirers[SESSION_ACQUIRERS + 1];	/* the last one stands for those that found no place */
	PublishedWait wait;			/* pid is 0 while the process waits for nothing */
	QueueLink	link;
};

/* How many processes the server has places for, and the number of this one. */
inline int
process_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount);
}

inline int
my_process_number() noexcept
{
	return static_cast<int>(MyProc - ProcGlobal->allProcs);
}

/* The parts of all processes, by process number; null without shared memory.  May ereport for a cancel. */
SharedSession *all_sessions();

}								/* namespace advisory */
