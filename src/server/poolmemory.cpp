/*
 * server/poolmemory.cpp
 *		What the server's lock tables have taken of its spare shared memory.
 *
 * A chunk of a table is an array of entries that hash_search() hands out from its
 * end.  An entry that was ever used has its key for good: a lock's tag, which its hash
 * value must fit, or a holder's two pointers, one of them into the array of processes.
 * One that was never used points to the one before it.  So a chunk is told by its last entries from
 * the other table's and from anything else.  What is seen while it is just being made, or
 * written to, looks like neither, and is looked at once more.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/poolmemory.h"

namespace advisory
{

/* So many of a chunk's last entries must be right. */
static constexpr int TOLD_BY = 4;

/* After so many milliseconds a chunk is no longer just being made. */
static constexpr int MADE_AFTER_MS = 1000;

/* Registered pieces behind what the server itself needs, to be stepped over at once. */
static constexpr int MOST_PIECES = 64;

/* The last of what every server registers at its start, before libraries get their share. */
static const char *const LAST_OF_SERVER = "Shared Memory Stats";

namespace
{

struct Piece
{
	Size		start;
	Size		end;
};

/* Where things are, as offsets in the segment. */
struct Map
{
	PGShmemHeader *segment;		/* null if it is not known */
	Size		start;			/* of what the tables can have taken */
	Size		listed_free;	/* bytes that were left when the list was read */
	Piece		pieces[MOST_PIECES];
	int			piece_count;
};

/* How far the chunks were counted. */
struct Count
{
	Size		settled;		/* all before this is counted, or nothing of the tables' */
	Size		seen;			/* where the free part began when it was looked at last */
	int64		lock_chunks;
	int64		holder_chunks;
	TimestampTz doubtful_since; /* something was no chunk, as far as could be told then; or 0 */
};

/* A row of the server's list. */
struct ListedPiece
{
	char	   *name;			/* null: what is free */
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

/* ---- The server's list ---- */

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
 * Call the function behind pg_shmem_allocations, which not every role may call in SQL: what
 * we tell of it is nobody's secret.
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

/* The piece of this name, or what is free for a null; of size 0 if there is none. */
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

/* Where the segment begins, if it is as the list says. */
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
	for (int i = 0; i < list.count && map.piece_count < MOST_PIECES; i++)
	{
		const ListedPiece &piece = list.pieces[i];

		if (piece.name != nullptr && piece.offset > last.offset)
			map.pieces[map.piece_count++] = Piece{piece.offset, CACHELINEALIGN(piece.offset + piece.size)};
	}
	map.start = CACHELINEALIGN(last.offset + last.size);
	counted = Count{};
	counted.settled = map.start;
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

/* Is here a chunk of this kind, of whose entries is_used(entry) is true if they were ever used? */
template <typename IsUsed>
static bool
is_chunk(Size at, const PoolChunk &kind, Size end, IsUsed is_used)
{
	const char *chunk = reinterpret_cast<const char *>(map.segment) + at;

	if (at + kind.bytes > end)
		return false;
	for (int i = kind.entries - 1; i >= kind.entries - TOLD_BY; i--)
	{
		const HASHELEMENT *entry = entry_of(chunk, kind, i);

		if (entry->link != entry_of(chunk, kind, i - 1) && !is_used(entry))
			return false;
	}
	return true;
}

/* Where a registered piece ends that this is in, or the next place where something can begin. */
static Size
step_over(Size at) noexcept
{
	for (int i = 0; i < map.piece_count; i++)
	{
		if (map.pieces[i].start <= at && at < map.pieces[i].end)
			return map.pieces[i].end;
	}
	return at + PG_CACHE_LINE_SIZE;
}

/* Count on, up to what is new and cannot be told yet. */
static void
count_chunks(Size end)
{
	Size		seen = counted.seen;
	const PoolChunk locks = pool_lock_chunk();
	const PoolChunk holders = pool_holder_chunk();

	counted.seen = end;
	while (counted.settled < end)
	{
		if (is_chunk(counted.settled, locks, end, is_lock))
		{
			counted.lock_chunks++;
			counted.settled += locks.bytes;
		}
		else if (is_chunk(counted.settled, holders, end, is_holder))
		{
			counted.holder_chunks++;
			counted.settled += holders.bytes;
		}
		else if (counted.settled < seen)
			counted.settled = step_over(counted.settled);
		else
			return;
	}
}

/* Count what is new; and all of it once more when it can be told what could not be. */
static void
count_to(Size end)
{
	Size		seen = counted.seen;
	bool		is_recount = counted.doubtful_since != 0 &&
		TimestampDifferenceExceeds(counted.doubtful_since, GetCurrentTimestamp(), MADE_AFTER_MS);

	if (is_recount)
	{
		counted = Count{};
		counted.settled = map.start;
	}
	count_chunks(end);
	if (counted.settled >= end)
		return;
	/* What it stopped at can be told now; or it is being made by somebody who does not get on; or it is no chunk. */
	counted.doubtful_since = is_recount && end == seen ? 0 : GetCurrentTimestamp();
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
	if (counted.settled < end || counted.doubtful_since != 0)
		count_to(end);
	*growth = PoolGrowth{static_cast<int64>(map.segment->totalsize - end), counted.lock_chunks, counted.holder_chunks};
	return true;
}

}								/* namespace advisory */
