/*
 * server/sequence.cpp
 *		Sequences as cells of one number, which pg_dump dumps.
 */
#include "base/pg.h"

#include "server/sequence.h"
#include "server/xact.h"

namespace advisory
{

/*
 * This does not use the server's functions, because they keep a lock on the sequence until the
 * transaction ends, and the transaction may be waiting for a lease.  It reads under the lock of the
 * buffer, as they do, because the row is changed in place; on a standby the whole page is.
 */
int64
sequence_read(Oid sequence)
{
	Relation	relation = relation_open(sequence, NoLock);
	Buffer		buffer = ReadBuffer(relation, 0);
	HeapTupleData row = {};
	int64		value = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);

	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);

	row.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
	auto	   *data = reinterpret_cast<Form_pg_sequence_data>(GETSTRUCT(&row));

	if (data->is_called)
		value = data->last_value;
	UnlockReleaseBuffer(buffer);
	relation_close(relation, AccessShareLock);
	return value;
}

void
sequence_write(Oid sequence, int64 value)
{
	although_read_only([=]() {
		DirectFunctionCall2(setval_oid, ObjectIdGetDatum(sequence), Int64GetDatum(value));
	});
}

}								/* namespace advisory */
