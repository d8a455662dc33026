/*
 * core/token.h
 *		Fencing tokens: numbers that grow with every holder of a lock.
 *
 * A token is an era and the position of a WAL record that is written and flushed while the lock is
 * held.  On one timeline positions grow.  A failover or a new cluster begins a new line of WAL, and
 * so a new era.  The sequence advisory._era keeps the era through pg_upgrade, dump and restore.
 */
#pragma once

#include "base/lockname.h"

namespace advisory
{

/*
 * A new token for a lock or slot that this session holds in exclusive mode, greater than all
 * earlier tokens.  Raises 55000 if the session does not hold it in that mode, 25006 on a standby.
 * name is for messages; slot is NO_SLOT for a lock.
 */
int64		token_next(const LockName &name, int slot);

/* The same without that check, for a session that is known to hold the lock. */
int64		token_make();

/*
 * The era of this server.  The first session that asks after a failover records it, and when it
 * began here, which writes.  If it is not greater than above, a greater one begins.  May ereport
 * (2200H: no era is left).
 */
int64		token_era(int64 above = 0);

/*
 * The era, and when it began here, without writing, so without a transaction ID, and also on a
 * standby, which sees the era that it has received.  If the era is not recorded yet, it began when
 * this session first saw it.
 */
struct Era
{
	int64		number;
	TimestampTz began_at;
};

Era			token_era_seen();

/*
 * Make all later tokens greater than this one.  Raises 22003 if no greater token is possible, 25006
 * on a standby.
 */
void		token_raise_above(int64 token);

/*
 * Raise 22023 if no lock or lease of this database can have been given the token yet.  Must not be
 * called on a standby.
 */
void		token_check_given(int64 token);

/*
 * Raise 55000 if a greater token was checked for this name before.  The name's row of
 * advisory.fences stays locked until the transaction ends.  Raises 22023 as token_check_given()
 * does.
 */
void		token_check(const LockName &name, int64 token);

}								/* namespace advisory */
