/*
 * server/wal.h
 *		Positions in the write-ahead log.
 */
#pragma once

extern "C" {
#include "access/xlogdefs.h"
}

namespace advisory
{

/*
 * Write a WAL record that does nothing, and flush it.  Returns the position behind it, which is
 * greater than that of every earlier record of this timeline, even after a crash.  Must not be
 * called during recovery.  May ereport.
 */
XLogRecPtr	wal_write_mark();

/* The timeline that this server writes.  Must not be called during recovery. */
TimeLineID	wal_timeline();

/*
 * Have the synchronous standbys confirmed this session's last commit?  False if the wait for them was canceled.  level
 * is the value of synchronous_commit at the commit.
 */
bool		wal_commit_is_confirmed(int level);

}								/* namespace advisory */
