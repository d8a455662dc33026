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

#include "base/compat.h"
#include "server/poolmemory.h"

namespace advisory
{

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
static constexpr Size MAX_SEARCHED_BYTES = 8 * 1024 * 1024;

/* The last structure that every server registers at its start.  Those of libraries follow. */
static const char *const LAST_OF_SERVER = "Shared Memory Stats";

namespace
{

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

struct List
{
	ListedPiece *pieces;
	int			count;
};

}								/* anonymous namespace */

static Map map;
static Count counted;

/* ---- pg_shmem_allocations ---- */

static ListedPiece
read_row(TupleTableSlot *row)
{
	constexpr int NAME = 0;
	constexpr int OFFSET = 1;
	constexpr int SIZE = 2;
	ListedPiece piece = {};

	slot_getallattrs(row);
	if (!row->tts_isnull[NAME])
		piece.name = TextDatumGetCString(row->tts_values[NAME]);
	if (!row->tts_isnull[OFFSET])
		piece.offset = static_cast<Size>(DatumGetInt64(row->tts_values[OFFSET]));
	piece.size = static_cast<Size>(DatumGetInt64(row->tts_values[SIZE]));
	return piece;
}

/*
 * Call the function behind pg_shmem_allocations.  Not every role may call it in SQL,
 * but what we show of its result is not secret.
 */
static List
read_list()
{
	LOCAL_FCINFO(fcinfo, 0);
	FmgrInfo	function;
	ExprContext *context = CreateStandaloneExprContext();
	ReturnSetInfo rows = {};
	TupleTableSlot *row;
	List		list = {};

	fmgr_info(F_PG_GET_SHMEM_ALLOCATIONS, &function);
	rows.type = T_ReturnSetInfo;
	rows.econtext = context;
	rows.allowedModes = SFRM_Materialize;
	InitFunctionCallInfoData(*fcinfo, &function, 0, InvalidOid, nullptr, reinterpret_cast<Node *>(&rows));
	FunctionCallInvoke(fcinfo);

	list.pieces = static_cast<ListedPiece *>(palloc(sizeof(ListedPiece) * tuplestore_tuple_count(rows.setResult)));
	row = MakeSingleTupleTableSlot(rows.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rows.setResult, true, false, row))
		list.pieces[list.count++] = read_row(row);
	ExecDropSingleTupleTableSlot(row);
	tuplestore_end(rows.setResult);
	FreeExprContext(context, true);
	return list;
}

/* The piece of this name, or the free memory if name is null.  Its size is 0 if there is none. */
static ListedPiece
find_piece(const List &list, const char *name)
{
	for (int i = 0; i < list.count; i++)
	{
		const ListedPiece &piece = list.pieces[i];

		if (name == nullptr ? piece.name == nullptr : piece.name != nullptr && strcmp(piece.name, name) == 0)
			return piece;
	}
	return ListedPiece{};
}

/* The start of the segment; null if the segment does not agree with the list. */
static PGShmemHeader *
find_segment(const List &list)
{
	ListedPiece processes = find_piece(list, "Proc Header");
	ListedPiece unused = find_piece(list, nullptr);

	if (processes.size == 0)
		return nullptr;

	auto	   *segment = reinterpret_cast<PGShmemHeader *>(reinterpret_cast<char *>(ProcGlobal) - processes.offset);

	if (!ShmemAddrIsValid(segment) || segment->magic != PGShmemMagic ||
		segment->totalsize != unused.offset + unused.size || compat::used_shared_memory(segment) < unused.offset)
		return nullptr;
	return segment;
}

static void
draw_map(const List &list)
{
	ListedPiece last = find_piece(list, LAST_OF_SERVER);

	map.segment = last.size > 0 ? find_segment(list) : nullptr;
	map.piece_count = 0;
	for (int i = 0; i < list.count && map.piece_count < MAX_PIECES; i++)
	{
		const ListedPiece &piece = list.pieces[i];

		if (piece.name != nullptr && piece.offset > last.offset)
			map.pieces[map.piece_count++] = Piece{piece.offset, CACHELINEALIGN(piece.offset + piece.size)};
	}
	map.start = CACHELINEALIGN(last.offset + last.size);
	counted = Count{};
}

void
read_shared_memory()
{
	List		list = read_list();

	if (map.segment == nullptr)
		draw_map(list);
	map.listed_free = find_piece(list, nullptr).size;
}

/* ---- Chunks ---- */

static const HASHELEMENT *
entry_of(const char *chunk, const PoolChunk &kind, int index) noexcept
{
	return reinterpret_cast<const HASHELEMENT *>(chunk + index * kind.entry_bytes);
}

template <typename Key>
static const Key *
key_of(const HASHELEMENT *entry) noexcept
{
	return reinterpret_cast<const Key *>(reinterpret_cast<const char *>(entry) + MAXALIGN(sizeof(HASHELEMENT)));
}

static bool
is_lock(const HASHELEMENT *entry) noexcept
{
	const auto *tag = key_of<LOCKTAG>(entry);

	return tag->locktag_type <= LOCKTAG_LAST_TYPE &&
		(tag->locktag_lockmethodid == DEFAULT_LOCKMETHOD || tag->locktag_lockmethodid == USER_LOCKMETHOD) &&
		entry->hashvalue == LockTagHashCode(tag);
}

static bool
is_holder(const HASHELEMENT *entry) noexcept
{
	const auto *key = key_of<PROCLOCKTAG>(entry);
	auto		distance = reinterpret_cast<const char *>(key->myProc) - reinterpret_cast<const char *>(ProcGlobal->allProcs);
	auto		count = static_cast<ptrdiff_t>(ProcGlobal->allProcCount + max_prepared_xacts);

	return distance >= 0 && distance % static_cast<ptrdiff_t>(sizeof(PGPROC)) == 0 &&
		distance / static_cast<ptrdiff_t>(sizeof(PGPROC)) < count && ShmemAddrIsValid(key->myLock);
}

/* Is there a chunk of this kind?  is_used(entry) says whether an entry can have been used once. */
template <typename IsUsed>
static bool
is_chunk(Size at, const PoolChunk &kind, Size end, IsUsed is_used)
{
	const char *chunk = reinterpret_cast<const char *>(map.segment) + at;

	if (at + kind.bytes > end)
		return false;
	for (int i = kind.entries - 1; i >= kind.entries - CHECKED_ENTRIES; i--)
	{
		const HASHELEMENT *entry = entry_of(chunk, kind, i);

		if (entry->link != entry_of(chunk, kind, i - 1) && !is_used(entry))
			return false;
	}
	return true;
}

static bool
is_lock_chunk(Size at, Size end)
{
	return is_chunk(at, pool_lock_chunk(), end, is_lock);
}

static bool
is_holder_chunk(Size at, Size end)
{
	return is_chunk(at, pool_holder_chunk(), end, is_holder);
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
	const Size	lock_bytes = pool_lock_chunk().bytes;
	const Size	holder_bytes = pool_holder_chunk().bytes;
	Size		at = end;
	Size		searched = 0;

	while (at > map.start && searched < MAX_SEARCHED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		if (at >= map.start + lock_bytes && is_lock_chunk(at - lock_bytes, end))
			at -= lock_bytes;
		else if (at >= map.start + holder_bytes && is_holder_chunk(at - holder_bytes, end))
			at -= holder_bytes;
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
	while (counted.settled < end)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_lock_chunk(counted.settled, end))
		{
			counted.lock_chunks++;
			counted.settled += pool_lock_chunk().bytes;
		}
		else if (is_holder_chunk(counted.settled, end))
		{
			counted.holder_chunks++;
			counted.settled += pool_holder_chunk().bytes;
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
