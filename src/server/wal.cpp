/*
 * server/wal.cpp
 *		Positions in the write-ahead log.
 */
#include "base/pg.h"

extern "C" {
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/rmgr.h"
#include "catalog/pg_control.h"
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

}								/* namespace advisory */
