/*
 * server/sequence.h
 *		Sequences as cells of one number, which pg_dump dumps.
 */
#pragma once

namespace advisory
{

/*
 * The value of a sequence on which this session has an AccessShareLock, which is released; 0 if it
 * has none yet.  May ereport.
 */
int64		sequence_read(Oid sequence);

/* Set its value, in a READ ONLY transaction, too: it is no data of the user.  May ereport. */
void		sequence_write(Oid sequence, int64 value);

}								/* namespace advisory */
