/*
 * server/poolmemory.cpp
 *		What the server's lock tables have taken of its spare shared memory.
 *
 * A table grows by a chunk of memory, which is an array of entries.  hash_search()
 * hands them out from the end of the chunk.  An entry that was used once keeps its
 * key when it is free again: the tag of a lock, which has to match the entry's hash
 * value, or the two pointers of a holder, one of which points into the array of
 * processes.  An entry that was never used points to the entry before it.  So the
 * last entries of a chunk tell it from a chunk of the other table and from any
 * other memory.
 *
 * A chunk that another session is just making or using cannot be recognized for a
 * moment.  Unrecognized memory is therefore looked at again after a second.
 */
#include "base/pg.h"

extern "C" {
#include "access/twophase.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "storage/lock.h"
#include "storage/pg_shmem.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

#include "base/compat.h"
#include "server/poolmemory.h"

namespace advisory
{

/* As in dynahash.c, for partitioned tables. */
static constexpr int MIN_CHUNK_BYTES = 256;
static constexpr int MIN_CHUNK_ENTRIES = 32;

/* How many of its last entries are checked to recognize a chunk. */
static constexpr int CHECKED_ENTRIES = 4;

/* Making a chunk takes less than this. */
static constexpr int CHUNK_MADE_MS = 1000;

/* How many registered pieces of shared memory are skipped at once; further pieces are searched. */
static constexpr int MAX_PIECES = 64;

/*
 * The search for chunks stops at this much memory that is neither a chunk nor
 * registered.  That much is a table of another library, made at the server's start:
 * the lock tables grow into memory behind it.
 */
static constexpr Size MAX_SEARCHED_BYTES = Size{8} * 1024 * 1024;

/* The last structure that every server registers at its start.  Those of libraries follow. */
static const char *const LAST_OF_SERVER = "Shared Memory Stats";

struct Piece
{
	Size		start;
	Size		end;
};

/* Places in shared memory, as offsets in the segment. */
struct Map
{
	PGShmemHeader *segment;		/* null if unknown */
	Size		start;			/* the lock tables have grown behind this only */
	Size		listed_free;	/* bytes that were free when the list was read */
	Piece		pieces[MAX_PIECES];
	int			piece_count;
};

/* How far the chunks have been counted. */
struct Count
{
	Size		settled;		/* everything before this is counted; 0: nothing yet */
	Size		seen;			/* end of the used memory when it was counted last */
	int64		lock_chunks;
	int64		holder_chunks;
	TimestampTz unverified_since;	/* when unrecognized memory was skipped, or 0 */
};

/* A row of pg_shmem_allocations. */
struct ListedPiece
{
	char	   *name;			/* null: free memory */
	Size		offset;			/* 0: memory without a name */
	Size		size;
};

static Map map;
static Count counted;

/* ---- pg_shmem_allocations ---- */

void
read_shared_memory()
{
	LOCAL_FCINFO(fcinfo, 0);
	FmgrInfo	function;
	ExprContext *context = CreateStandaloneExprContext();
	ReturnSetInfo rows = {};
	TupleTableSlot *row;
	ListedPiece *pieces;
	int			count = 0;
	ListedPiece unused = {};
	ListedPiece processes = {};
	ListedPiece last = {};

	/*
	 * Call the function behind pg_shmem_allocations.  Not every role may call it in SQL,
	 * but what we show of its result is not secret.
	 */
	fmgr_info(F_PG_GET_SHMEM_ALLOCATIONS, &function);
	rows.type = T_ReturnSetInfo;
	rows.econtext = context;
	rows.allowedModes = SFRM_Materialize;
	InitFunctionCallInfoData(*fcinfo, &function, 0, InvalidOid, nullptr, reinterpret_cast<Node *>(&rows));
	FunctionCallInvoke(fcinfo);

	pieces = static_cast<ListedPiece *>(palloc(sizeof(ListedPiece) * tuplestore_tuple_count(rows.setResult)));
	row = MakeSingleTupleTableSlot(rows.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rows.setResult, true, false, row))
	{
		ListedPiece piece;

		slot_getallattrs(row);
		piece.name = row->tts_isnull[0] ? nullptr : TextDatumGetCString(row->tts_values[0]);
		piece.offset = row->tts_isnull[1] ? 0 : static_cast<Size>(DatumGetInt64(row->tts_values[1]));
		piece.size = static_cast<Size>(DatumGetInt64(row->tts_values[2]));
		if (piece.name == nullptr)
			unused = piece;
		else if (strcmp(piece.name, "Proc Header") == 0)
			processes = piece;
		else if (strcmp(piece.name, LAST_OF_SERVER) == 0)
			last = piece;
		pieces[count++] = piece;
	}
	ExecDropSingleTupleTableSlot(row);
	tuplestore_end(rows.setResult);
	FreeExprContext(context, true);

	map.listed_free = unused.size;
	if (map.segment != nullptr || last.size == 0 || processes.size == 0)
		return;

	auto	   *segment = reinterpret_cast<PGShmemHeader *>(reinterpret_cast<char *>(ProcGlobal) - processes.offset);

	/* Does the segment agree with the list? */
	if (!ShmemAddrIsValid(segment) || segment->magic != PGShmemMagic ||
		segment->totalsize != unused.offset + unused.size || compat::used_shared_memory(segment) < unused.offset)
		return;

	map.segment = segment;
	map.start = CACHELINEALIGN(last.offset + last.size);
	for (int i = 0; i < count && map.piece_count < MAX_PIECES; i++)
	{
		const ListedPiece &piece = pieces[i];

		if (piece.name != nullptr && piece.offset > last.offset)
			map.pieces[map.piece_count++] = Piece{piece.offset, CACHELINEALIGN(piece.offset + piece.size)};
	}
}

/* ---- Chunks ---- */

/* A chunk has the smallest power of two of bytes that holds MIN_CHUNK_ENTRIES (choose_nelem_alloc). */
PoolChunk
pool_chunk(Size entry_size) noexcept
{
	Size		element = MAXALIGN(sizeof(HASHELEMENT)) + MAXALIGN(entry_size);
	Size		bytes = MIN_CHUNK_BYTES;

	while (bytes / element < MIN_CHUNK_ENTRIES)
		bytes *= 2;

	int			entries = static_cast<int>(bytes / element);

	return PoolChunk{entries, element, CACHELINEALIGN(entries * element)};
}

/* Can this be an entry of the first table that was used once? */
static bool
is_lock(const HASHELEMENT *entry, const void *key) noexcept
{
	auto	   *tag = static_cast<const LOCKTAG *>(key);

	return tag->locktag_type <= LOCKTAG_LAST_TYPE &&
		(tag->locktag_lockmethodid == DEFAULT_LOCKMETHOD || tag->locktag_lockmethodid == USER_LOCKMETHOD) &&
		entry->hashvalue == LockTagHashCode(tag);
}

/* The same of the second table. */
static bool
is_holder(const HASHELEMENT *entry, const void *key) noexcept
{
	auto	   *tag = static_cast<const PROCLOCKTAG *>(key);
	auto		distance = reinterpret_cast<const char *>(tag->myProc) - reinterpret_cast<const char *>(ProcGlobal->allProcs);
	auto		size = static_cast<ptrdiff_t>(sizeof(PGPROC));

	return distance >= 0 && distance % size == 0 && ShmemAddrIsValid(tag->myLock) &&
		distance / size < static_cast<ptrdiff_t>(ProcGlobal->allProcCount) + max_prepared_xacts;
}

/* Is there a chunk, of this form and with entries that can have been used? */
static bool
is_chunk(Size at, Size end, const PoolChunk &form, bool (*is_used) (const HASHELEMENT *entry, const void *key))
{
	const char *chunk = reinterpret_cast<const char *>(map.segment) + at;

	if (at < map.start || at + form.bytes > end)
		return false;
	for (int i = form.entries - 1; i >= form.entries - CHECKED_ENTRIES; i--)
	{
		const char *place = chunk + i * form.entry_bytes;
		auto	   *entry = reinterpret_cast<const HASHELEMENT *>(place);

		if (entry->link != reinterpret_cast<const HASHELEMENT *>(place - form.entry_bytes) &&
			!is_used(entry, place + MAXALIGN(sizeof(HASHELEMENT))))
			return false;
	}
	return true;
}

/* The registered piece that contains this place, or the cache line there. */
static Piece
piece_at(Size at) noexcept
{
	for (int i = 0; i < map.piece_count; i++)
	{
		if (map.pieces[i].start <= at && at < map.pieces[i].end)
			return map.pieces[i];
	}
	return Piece{at, at + PG_CACHE_LINE_SIZE};
}

/*
 * Search backwards from the end of the used memory for the place from which to
 * count: all chunks are behind it.
 */
static Size
find_start(Size end)
{
	const PoolChunk lock_chunk = pool_chunk(sizeof(LOCK));
	const PoolChunk holder_chunk = pool_chunk(sizeof(PROCLOCK));
	Size		at = end;
	Size		searched = 0;

	while (at > map.start && searched < MAX_SEARCHED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		if (at > lock_chunk.bytes && is_chunk(at - lock_chunk.bytes, end, lock_chunk, is_lock))
			at -= lock_chunk.bytes;
		else if (at > holder_chunk.bytes && is_chunk(at - holder_chunk.bytes, end, holder_chunk, is_holder))
			at -= holder_chunk.bytes;
		else
		{
			Piece		piece = piece_at(at - PG_CACHE_LINE_SIZE);

			if (at - piece.start == PG_CACHE_LINE_SIZE)
				searched += PG_CACHE_LINE_SIZE;
			at = piece.start;
		}
	}
	return Max(at, map.start);
}

/* Continue the count.  Stops at new memory that is not recognized. */
static void
count_chunks(Size end)
{
	const PoolChunk lock_chunk = pool_chunk(sizeof(LOCK));
	const PoolChunk holder_chunk = pool_chunk(sizeof(PROCLOCK));

	while (counted.settled < end)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_chunk(counted.settled, end, lock_chunk, is_lock))
		{
			counted.lock_chunks++;
			counted.settled += lock_chunk.bytes;
		}
		else if (is_chunk(counted.settled, end, holder_chunk, is_holder))
		{
			counted.holder_chunks++;
			counted.settled += holder_chunk.bytes;
		}
		else if (counted.settled < counted.seen)
			counted.settled = piece_at(counted.settled).end;
		else
			break;
	}
	counted.seen = end;
}

/* Count new memory.  If some was not recognized a second ago, count everything again. */
static void
count_to(Size end)
{
	Size		seen = counted.seen;
	bool		is_recount = counted.unverified_since != 0 &&
		TimestampDifferenceExceeds(counted.unverified_since, GetCurrentTimestamp(), CHUNK_MADE_MS);

	if (is_recount)
	{
		counted = Count{};
		counted.settled = map.start;
	}
	count_chunks(end);
	if (counted.settled >= end)
		return;
	/* Memory that a recount does not recognize either, and that was not new, is no chunk. */
	counted.unverified_since = is_recount && end == seen ? 0 : GetCurrentTimestamp();
	count_chunks(end);
}

bool
read_pool_growth(PoolGrowth *growth)
{
	Size		end;

	growth->spare = static_cast<int64>(map.listed_free);
	if (map.segment == nullptr)
		return false;

	end = compat::used_shared_memory(map.segment);
	if (counted.settled == 0)
		counted.settled = map.start = find_start(end);
	if (counted.settled < end || counted.unverified_since != 0)
		count_to(end);
	*growth = PoolGrowth{static_cast<int64>(map.segment->totalsize - end), counted.lock_chunks, counted.holder_chunks};
	return true;
}

}								/* namespace advisory */
