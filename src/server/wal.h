/*
 * server/wal.h
 *		Positions in the write-ahead log.
 */
#pragma once

namespace advisory
{

/*
 * Write a WAL record that does nothing, and flush it.  Returns the position behind it, which is
 * greater than that of every earlier record of this timeline, even after a crash.  Must not be
 * called during recovery.  May ereport.
 */
inline XLogRecPtr
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

/*
 * Have the synchronous standbys confirmed this session's last commit?  False if the wait for them
 * was canceled.  level is the value of synchronous_commit at the commit.
 */
inline bool
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
