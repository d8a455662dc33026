/*
 * core/token.h
 *		Fencing tokens: numbers that grow with every holder of a lock.
 *
 * A token is an era and the position of a WAL record that is written and flushed while the lock
 * is held.  On one timeline positions grow; whatever begins a new line of WAL, a failover or a new
 * cluster, begins a new era.  The sequence advisory._era keeps the era through pg_upgrade, dump and restore.
 */
#pragma once

#include "base/lockname.h"

namespace advisory
{

/*
 * A new token for a lock or slot that this session holds in exclusive mode, greater than all given
 * before.  Raises 55000 if it does not hold it so, 25006 on a standby.  name is for messages;
 * slot is NO_SLOT for a lock.
 */
int64		token_next(const LockName &name, int slot);

/* The same for a session that is known to hold what it is for. */
int64		token_make();

/* The era of this server, and when it began here.  May write both down. */
struct Era
{
	int64		number;
	TimestampTz began_at;
};

Era			token_era();

/*
 * The same without writing: also on a standby, which sees the era that it has got.  One that is not written down yet begins
 * now.  False if it cannot be read without waiting.
 */
bool		token_era_seen(Era *era);

/* All tokens from now on are greater than this one.  Raises 22003 if there can be none, 25006 on a standby. */
void		token_raise_above(int64 token);

/* Write down the era of a new database.  Called when the extension is created. */
void		token_begin();

/*
 * True if the token is not smaller than any that was checked for this name before; else raises
 * 55000.  The name's row of advisory.fences stays locked until the transaction ends.
 */
bool		token_check(const LockName &name, int64 token);

}								/* namespace advisory */
