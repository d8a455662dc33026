/*
 * server/wal.cpp
 *		Positions in the write-ahead log.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/rmgr.h"
#include "catalog/pg_control.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
}

#include "server/wal.h"

namespace advisory
{

XLogRecPtr
wal_write_mark()
{
	char		nothing = 0;
	XLogRecPtr	end;

	XLogBeginInsert();
	XLogRegisterData(&nothing, sizeof(nothing));
	end = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
	XLogFlush(end);
	return end;
}

TimeLineID
wal_timeline()
{
	return GetWALInsertionTimeLine();
}

bool
wal_commit_is_confirmed(int level)
{
	int			wait_mode = level == SYNCHRONOUS_COMMIT_REMOTE_WRITE ? SYNC_REP_WAIT_WRITE
		: level == SYNCHRONOUS_COMMIT_REMOTE_APPLY ? SYNC_REP_WAIT_APPLY : SYNC_REP_WAIT_FLUSH;
	bool		is_confirmed;

	if (max_wal_senders == 0 || level <= SYNCHRONOUS_COMMIT_LOCAL_FLUSH ||
		SyncRepStandbyNames == nullptr || SyncRepStandbyNames[0] == '\0')
		return true;
	LWLockAcquire(SyncRepLock, LW_SHARED);
	is_confirmed = WalSndCtl->lsn[wait_mode] >= XactLastCommitEnd;
	LWLockRelease(SyncRepLock);
	return is_confirmed;
}

}								/* namespace advisory */
