/*
 * pool.cpp
 *		The server's shared lock table, and how full it is.
 */
#include "pg.h"

#include "compat.h"
#include "locktable.h"
#include "pool.h"
#include "shared.h"
#include "subtransaction.h"

namespace advisory
{

/* A quick look may be off by this part of the pool's holders. */
static constexpr int64 QUICK_PART = 100;

namespace
{

/* One of the server's two tables. */
struct ServerTable
{
	const char *name;
	Size		key_size;
	Size		entry_size;
	int			entries_per_lock;	/* of those that the server's formula gives */
	HTAB	   *table;			/* null until it is attached to */
};

ServerTable lock_table = {"LOCK hash", sizeof(LOCKTAG), sizeof(LOCK), 1, nullptr};
ServerTable holder_table = {"PROCLOCK hash", sizeof(PROCLOCKTAG), sizeof(PROCLOCK), 2, nullptr};

/* What the server says of its shared memory. */
struct SharedMemory
{
	Size		lock_table;		/* 0 where there is none of that name */
	Size		holder_table;
	int64		spare;			/* bytes that nothing uses */
};

/* What is known of the memory that the pool could grow by at the server's start. */
struct Spare
{
	int64		bytes;
	bool		is_late;
};

}								/* anonymous namespace */

static bool tables_are_unknown = false;
static bool looked = false;
static Spare my_spare;			/* where there is no shared memory to keep it in */

/* The estimate that was made last, and for what; it changes only with the number of holders. */
static PoolEnd known_end;
static int64 known_spare = -1;
static int64 known_luck;
static int64 known_more_holders;

static int64
guaranteed_locks() noexcept
{
	return static_cast<int64>(max_locks_per_xact) * (MaxBackends + max_prepared_xacts);
}

/* ---- What the server says ---- */

/* A row of pg_shmem_allocations: name (null: unused), offset, size, and the size rounded up. */
static void
read_allocation(TupleTableSlot *row, SharedMemory *memory)
{
	constexpr int NAME = 0;
	constexpr int SIZE = 2;
	Size		size;

	slot_getallattrs(row);
	size = static_cast<Size>(DatumGetInt64(row->tts_values[SIZE]));
	if (row->tts_isnull[NAME])
	{
		memory->spare = static_cast<int64>(size);
		return;
	}

	char	   *name = TextDatumGetCString(row->tts_values[NAME]);

	if (strcmp(name, lock_table.name) == 0)
		memory->lock_table = size;
	else if (strcmp(name, holder_table.name) == 0)
		memory->holder_table = size;
	pfree(name);
}

/*
 * Call the function behind pg_shmem_allocations, which not every role may call in SQL: what
 * we tell of it is two numbers that are nobody's secret.
 */
static SharedMemory
read_shared_memory()
{
	LOCAL_FCINFO(fcinfo, 0);
	FmgrInfo	function;
	ExprContext *context = CreateStandaloneExprContext();
	ReturnSetInfo rows = {};
	SharedMemory memory = {};
	TupleTableSlot *row;

	fmgr_info(F_PG_GET_SHMEM_ALLOCATIONS, &function);
	rows.type = T_ReturnSetInfo;
	rows.econtext = context;
	rows.allowedModes = SFRM_Materialize;
	InitFunctionCallInfoData(*fcinfo, &function, 0, InvalidOid, nullptr, reinterpret_cast<Node *>(&rows));
	FunctionCallInvoke(fcinfo);

	row = MakeSingleTupleTableSlot(rows.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rows.setResult, true, false, row))
		read_allocation(row, &memory);
	ExecDropSingleTupleTableSlot(row);
	tuplestore_end(rows.setResult);
	FreeExprContext(context, true);
	return memory;
}

/* ---- Attaching ---- */

static HASHCTL
control_of(const ServerTable &table) noexcept
{
	HASHCTL		control = {};

	control.keysize = table.key_size;
	control.entrysize = table.entry_size;
	control.num_partitions = NUM_LOCK_PARTITIONS;
	return control;
}

static bool
is_as_expected(const ServerTable &table, Size registered)
{
	HASHCTL		control = control_of(table);

	return registered == compat::shared_table_size(&control, guaranteed_locks() * table.entries_per_lock);
}

/* Only to count: keys are never looked up, so it does not matter how the server hashes them. */
static void
attach(ServerTable *table)
{
	HASHCTL		control = control_of(*table);

	table->table = compat::attach_shared_table(table->name, &control, guaranteed_locks() * table->entries_per_lock,
											   HASH_ELEM | HASH_BLOBS | HASH_PARTITION);
}

/* False if the tables are not what we take them for. */
static bool
has_tables()
{
	if (holder_table.table != nullptr)
		return true;
	if (tables_are_unknown)
		return false;

	SharedMemory memory = {};

	/* To call a function takes a look into the catalog; in bad times there is another time. */
	if (!unless_lock_table_is_full([&memory]() { memory = read_shared_memory(); }))
		return false;
	tables_are_unknown = !is_as_expected(lock_table, memory.lock_table) ||
		!is_as_expected(holder_table, memory.holder_table);
	if (tables_are_unknown)
		return false;
	attach(&lock_table);
	attach(&holder_table);
	return true;
}

static PoolUse
count_locks()
{
	PoolTypeUse types[POOL_TYPES];
	PoolSessionUse *sessions;
	int			session_count;
	PoolUse		use = {};

	read_pool_use(types, &sessions, &session_count);
	for (const PoolTypeUse &type : types)
	{
		use.locks += type.locks;
		use.holders += type.holders;
	}
	return use;
}

static PoolUse
read_use(bool by_counting)
{
	if (by_counting)
		return count_locks();
	return PoolUse{static_cast<int64>(hash_get_num_entries(lock_table.table)),
		static_cast<int64>(hash_get_num_entries(holder_table.table))};
}

/* ---- The memory to grow into ---- */

/*
 * As it must have been at the start, by what is left and by what the locks of this moment
 * need.  If that is less than the server sets aside for it there were more locks before.
 */
static Spare
find_spare()
{
	PoolSize	size = {guaranteed_locks(), 0, 0};
	int64		least = pool_least_spare(size.guaranteed);
	Spare		spare = {};

	spare.bytes = read_shared_memory().spare + pool_growth(size, read_use(!has_tables()));
	if (spare.bytes < least)
		spare = Spare{least, true};
	return spare;
}

static void
remember_spare(SharedRoot *root)
{
	Spare		spare = find_spare();

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (!root->pool_spare_is_known)
	{
		root->pool_spare = spare.bytes;
		root->pool_spare_is_late = spare.is_late;
		pg_write_barrier();
		root->pool_spare_is_known = true;
	}
	LWLockRelease(&root->lock);
}

static Spare
spare_of_pool()
{
	SharedRoot *root;

	if (!compat::lock_tables_grow)
		return Spare{};
	root = shared_root();
	if (root == nullptr)
	{
		if (my_spare.bytes == 0)
			my_spare = find_spare();
		return my_spare;
	}
	if (!root->pool_spare_is_known)
		remember_spare(root);
	pg_read_barrier();
	return Spare{root->pool_spare, root->pool_spare_is_late};
}

void
pool_first_look()
{
	SharedRoot *root;

	if (looked || !compat::lock_tables_grow)
		return;
	looked = true;
	root = shared_root();
	if (root != nullptr && !root->pool_spare_is_known)
		unless_lock_table_is_full([root]() { remember_spare(root); });
}

/* May be off by so many holders. */
static PoolEnd
end_of(PoolSize size, const PoolUse &use, int64 tolerance)
{
	int64		more_holders = Max(use.holders - use.locks, 0);
	int64		difference = Max(more_holders, known_more_holders) - Min(more_holders, known_more_holders);

	if (size.spare != known_spare)
		known_luck = pool_luck(size.guaranteed, size.spare);
	size.luck = known_luck;
	if (size.spare != known_spare || difference > tolerance)
	{
		known_end = pool_end(size, more_holders);
		known_spare = size.spare;
		known_more_holders = more_holders;
	}
	return known_end;
}

static PoolState
read_pool_within(bool by_counting, int64 tolerance)
{
	bool		counts = by_counting || !has_tables();
	Spare		spare = spare_of_pool();
	PoolState	state;

	state.size = PoolSize{guaranteed_locks(), spare.bytes, 0};
	state.use = read_use(counts);
	state.capacity = pool_capacity(end_of(state.size, state.use, tolerance), state.use);
	state.is_counted = counts;
	state.is_exact = !counts && !spare.is_late;
	return state;
}

PoolState
read_pool(bool by_counting)
{
	return read_pool_within(by_counting, 0);
}

PoolState
read_pool_quickly()
{
	return read_pool_within(false, guaranteed_locks() / QUICK_PART);
}

}								/* namespace advisory */
