/*
 * views/locks.cpp
 *		The rows of advisory.locks and advisory.holders().
 *
 * advisory._locks is a foreign table of the server's own advisory locks.  A foreign table hands each row to the executor as soon as it is
 * made, and knows which columns the query uses.  With a set-returning function, counting 20,000 locks takes twice as long as on pg_locks;
 * with the foreign table, a third of that time.
 *
 * A role with USAGE on the foreign server can create foreign tables with other columns on it.  Writing the columns of this file into the
 * rows of such a table would overwrite memory.  So a scan is refused unless the table is the extension's own and still has the columns in
 * LOCK_COLUMNS.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/sqlfunction.h"
#include "server/backends.h"
#include "server/locallock.h"
#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/locks.h"
#include "views/visiblename.h"

namespace advisory
{

/*
 * The columns of advisory._locks, in the order in which LockRows fills them.  advisory.holders() and
 * holders_key() return the same columns without those that identify the key (WantedColumns::key).
 */
static constexpr Oid LOCK_COLUMNS[] = {
	INT4OID, TEXTOID, TEXTOID, TEXTOID, INETOID, TEXTOID,	/* pid to state */
	TEXTOID, TEXTOID, TEXTOID, INT4OID, INT8OID, INT4OID, INT4OID,	/* kind to key2 */
	TEXTOID, TEXTOID, BOOLOID, TIMESTAMPTZOID, INTERVALOID, TIMESTAMPTZOID, INTERVALOID, INT4ARRAYOID,	/* mode to blocked_by */
	TEXTOID, TEXTOID, OIDOID, INT4OID, INT4OID, INT4OID, TEXTOID, INT4OID	/* gid to slots */
};

static constexpr int LOCK_COLUMN_COUNT = lengthof(LOCK_COLUMNS);
static constexpr int HOLDERS_COLUMNS_1_0 = 16;

/* Whether to fill columns that a row may lack, or that take time and that a query may not use. */
struct WantedColumns
{
	bool		kind;			/* kind and slot, which holders() of version 1.0 of the extension does not have */
	bool		key;			/* the columns that identify the key: namespace to key2 except slot, and datid to slots */
	bool		name;			/* namespace and name */
	bool		text;			/* lock: the same in one text */
	bool		hold;			/* scope, acquired_at, held, slots */
};

/*
 * The session or prepared transaction that holds or waits: the values of its columns, 0 for null and for values that
 * the current user may not see.
 */
struct Owner
{
	int			pid;			/* 0 for a prepared transaction */
	TransactionId xid;
	Oid			database_oid;	/* of the lock; invalid: nothing is filled in */
	Datum		database;
	Datum		role;
	Datum		application;
	Datum		address;
	Datum		state;
	Datum		gid;
	Datum		query;
};

/* Makes rows from lock entries.  Uses the memory context in which it is created, which must outlive it. */
class LockRows
{
public:
	explicit LockRows(LockEntries entries)
		: entries(entries), now(GetCurrentTimestamp()),
		  owner_context(AllocSetContextCreate(CurrentMemoryContext, "advisory_ext owner", ALLOCSET_DEFAULT_SIZES))
	{
	}

	/*
	 * Fill a row.  It is valid until the next call, because rows share the values of their session.  Other values are in the
	 * current memory context.  May ereport.
	 */
	void		fill(Row &row, const LockEntry &entry, const WantedColumns &wanted);

	LockEntries entries;

private:
	void		find_owner(const LockEntry &entry);

	TimestampTz now;
	VisibleNames names;
	Backends	backends;
	MemoryContext owner_context;	/* what owner points to */
	Owner		owner = {};		/* of the last row: a session's rows mostly follow each other */
};

/* The state of a scan of advisory._locks. */
struct LockScan
{
	LockRows	rows;
	WantedColumns wanted;
	int			next;
};

void
LockRows::find_owner(const LockEntry &entry)
{
	MemoryContext old_context;
	VisibleSession session;

	if (owner.database_oid == entry.tag.locktag_field1 && owner.pid == entry.pid && owner.xid == entry.xid)
		return;

	MemoryContextReset(owner_context);
	old_context = MemoryContextSwitchTo(owner_context);
	session = backends.of(entry);
	owner = Owner{entry.pid, entry.xid};
	owner.database = text_datum(database_name(entry.tag.locktag_field1));
	owner.gid = text_datum(session.gid);
	owner.role = text_datum(session.role);
	owner.application = text_datum(session.application);
	owner.state = text_datum(session.state);
	owner.query = raw_text_datum(session.is_hidden ? HIDDEN : session.query);
	if (session.backend != nullptr)
		owner.address = client_address(*session.backend);
	owner.database_oid = entry.tag.locktag_field1;
	MemoryContextSwitchTo(old_context);
}

/* "session" or "transaction"; null if unknown.  hold is null if the holder publishes nothing. */
static const char *
scope_of(const LockEntry &entry, const KnownHold *hold)
{
	if (entry.is_waiting())
		return nullptr;
	if (entry.pid == 0)
		return scope_name(Scope::transaction);	/* PREPARE refuses session-level ones */
	if (entry.pid != MyProcPid)
		return hold != nullptr ? scope_name(hold->hold.scope) : nullptr;

	/* For this session's own locks the lock manager knows the scope. */
	for (Mode mode : ALL_MODES)
	{
		if (lockmode_of(mode) == entry.lockmode)
			return scope_name(lock_counts(entry.tag, mode).session > 0 ? Scope::session : Scope::transaction);
	}
	return nullptr;
}

void
LockRows::fill(Row &row, const LockEntry &entry, const WantedColumns &wanted)
{
	DecodedTag	tag = decode_tag(entry.tag);
	const KnownHold *hold = wanted.hold ? names.hold_of(entry) : nullptr;
	const char *scope = wanted.hold ? scope_of(entry, hold) : nullptr;
	TimestampTz acquired = hold != nullptr ? hold->hold.acquired_at : 0;
	int			slots = hold != nullptr ? hold->hold.slots : entry.slots;

	find_owner(entry);
	row.add(Int32GetDatum(entry.pid), entry.pid == 0);
	row.add_reference(owner.database);
	row.add_reference(owner.role);
	row.add_reference(owner.application);
	row.add_reference(owner.address);
	row.add_reference(owner.state);
	if (wanted.kind)
		row.add_text(kind_name(tag.kind));
	if (wanted.key)
		add_name_columns(row, tag, wanted.name ? names.of(entry) : VisibleName{});
	else if (wanted.kind)
		row.add(Int32GetDatum(tag.slot), tag.kind != Kind::semaphore);
	row.add_text(lockmode_name(entry.tag, entry.lockmode));
	row.add_text(scope);
	row.add_bool(!entry.is_waiting());
	row.add_time(entry.wait_start);
	row.add_age(entry.wait_start, now);
	row.add_time(acquired);
	row.add_age(acquired, now);
	if (!entry.is_waiting())
		row.add_null();
	else
	{
		auto	   *pids = static_cast<int *>(palloc(sizeof(int) * (entry.blocker_count + 1)));

		for (int i = 0; i < entry.blocker_count; i++)
			pids[i] = list_nth_int(entries.blockers, entry.first_blocker + i);
		row.add_int32_array(pids, entry.blocker_count);
	}
	row.add_reference(owner.gid);
	row.add_reference(owner.query);
	if (wanted.key)
	{
		row.add(ObjectIdGetDatum(tag.database));
		row.add_int32(tag.key1);
		row.add_int32(tag.key2);
		row.add_int32(tag.objsubid);
		row.add_text(wanted.text ? names.text_of(entry) : nullptr);
		/* The number that the session gave, if it is known. */
		row.add(Int32GetDatum(slots), slots == 0);
	}
}

void
show_holders(Key key, ReturnSetInfo *result)
{
	LockEntries entries = read_lock_and_slots(key);

	find_all_blockers(&entries);

	LockRows	rows(entries);

	show_each(entries.count, [&](int i) {
		Row			row;

		rows.fill(row, entries.entries[i], WantedColumns{result->setDesc->natts > HOLDERS_COLUMNS_1_0, false, false, false, true});
		row.put(result);
	});
}

/* ---- The foreign table ---- */

/* For the planner.  A guess, since counting the locks takes as long as reading them. */
static constexpr double EXPECTED_ROWS = 1000;

static void
estimate_size(PlannerInfo *, RelOptInfo *table, Oid relation)
{
	Oid			extension = get_extension_oid("advisory_ext", true);

	if (!OidIsValid(extension) || getExtensionOfObject(RelationRelationId, relation) != extension)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read foreign table \"%s\"", get_rel_name(relation)),
				 errdetail("The foreign-data wrapper of extension \"advisory_ext\" does not support foreign tables other than its own."),
				 errhint("Use the view advisory.locks.")));
	table->rows = EXPECTED_ROWS;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *table, Oid)
{
	Cost		cost = EXPECTED_ROWS * cpu_tuple_cost;

	add_path(table, reinterpret_cast<Path *>(compat::create_scan_path(root, table, table->rows, cost, cost)));
}

static ForeignScan *
make_plan(PlannerInfo *, RelOptInfo *table, Oid relation, ForeignPath *, List *target_list, List *clauses, Plan *outer_plan)
{
	Bitmapset  *columns = nullptr;
	List	   *wanted;
	auto		uses = [&](const char *name) {
		return bms_is_member(get_attnum(relation, name) - FirstLowInvalidHeapAttributeNumber, columns) ||
			bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns);	/* the whole row */
	};

	clauses = extract_actual_clauses(clauses, false);
	pull_varattnos(reinterpret_cast<Node *>(table->reltarget->exprs), table->relid, &columns);
	pull_varattnos(reinterpret_cast<Node *>(clauses), table->relid, &columns);
	wanted = list_make3_int(uses("namespace") || uses("name"), uses("lock"),
							uses("scope") || uses("acquired_at") || uses("held") || uses("slots"));
	return make_foreignscan(target_list, clauses, table->relid, nullptr, wanted, nullptr, nullptr, outer_plan);
}

/* Raise an error unless the table has the columns that LockRows fills.  An older version of the extension lacks the last ones. */
static void
begin_scan(ForeignScanState *scan, int)
{
	Relation	table = scan->ss.ss_currentRelation;
	TupleDesc	columns = RelationGetDescr(table);
	bool		fits = columns->natts <= LOCK_COLUMN_COUNT;

	for (int i = 0; fits && i < columns->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(columns, i);

		fits = !column->attisdropped && column->atttypid == LOCK_COLUMNS[i];
	}
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("foreign table \"%s\" does not have the columns that advisory_ext created",
						RelationGetRelationName(table)),
				 errhint(OTHER_VERSION_HINT)));
}

/* The first call reads every advisory lock and waiter on the server. */
static LockScan *
lock_scan(ForeignScanState *scan)
{
	if (scan->fdw_state == nullptr)
	{
		List	   *wanted = reinterpret_cast<ForeignScan *>(scan->ss.ps.plan)->fdw_private;
		MemoryContext old_context = MemoryContextSwitchTo(scan->ss.ps.state->es_query_cxt);
		LockEntries entries = read_all_locks();

		mark_slot_waits(&entries);
		find_all_blockers(&entries);
		scan->fdw_state = new (palloc(sizeof(LockScan)))
			LockScan{LockRows(entries), WantedColumns{true, true, linitial_int(wanted) != 0, lsecond_int(wanted) != 0, lthird_int(wanted) != 0}, 0};
		MemoryContextSwitchTo(old_context);
	}
	return static_cast<LockScan *>(scan->fdw_state);
}

static TupleTableSlot *
next_row(ForeignScanState *scan)
{
	TupleTableSlot *slot = scan->ss.ss_ScanTupleSlot;
	LockScan   *state = lock_scan(scan);

	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(slot);
	if (state->next < state->rows.entries.count)
	{
		Row			row;

		state->rows.fill(row, state->rows.entries.entries[state->next++], state->wanted);
		Assert(row.count == LOCK_COLUMN_COUNT);
		memcpy(slot->tts_values, row.values, sizeof(Datum) * slot->tts_tupleDescriptor->natts);
		memcpy(slot->tts_isnull, row.nulls, sizeof(bool) * slot->tts_tupleDescriptor->natts);
		ExecStoreVirtualTuple(slot);
	}
	return slot;
}

static Datum
locks_handler(FunctionCallInfo)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = estimate_size;
	routine->GetForeignPaths = add_paths;
	routine->GetForeignPlan = make_plan;
	routine->BeginForeignScan = begin_scan;
	routine->IterateForeignScan = next_row;
	routine->ReScanForeignScan = [](ForeignScanState *scan) {
		if (scan->fdw_state != nullptr)
			static_cast<LockScan *>(scan->fdw_state)->next = 0;
	};
	routine->EndForeignScan = [](ForeignScanState *) {};
	PG_RETURN_POINTER(routine);
}

ADVISORY_SQL_FUNCTION(advisory_locks_handler, locks_handler);

}								/* namespace advisory */
