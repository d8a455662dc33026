/*
 * views/locks.cpp
 *		The rows of advisory.locks, advisory.holders() and advisory.leaks.
 *
 * advisory._locks is a foreign table of the server's own advisory locks.  A foreign table hands
 * each row to the executor as soon as it is made, and knows which columns the query uses.  With a
 * set-returning function, counting 20,000 locks takes twice as long as on pg_locks; with the
 * foreign table, a third of that time.
 *
 * A role with USAGE on the foreign server can create foreign tables with other columns on it.
 * Writing the columns of this file into the rows of such a table would overwrite memory.  So a scan
 * is refused unless the table is the extension's own and still has the columns in LOCK_COLUMNS.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "server/backends.h"
#include "server/locallock.h"
#include "server/standby.h"
#include "server/waitgraph.h"
#include "shmem/slotlocks.h"
#include "views/locks.h"
#include "views/visiblename.h"

namespace advisory
{

/* The columns of advisory._locks. */
static constexpr Oid LOCK_COLUMNS[] = {
	INT4OID, TEXTOID, TEXTOID, TEXTOID, INETOID, TEXTOID,	/* pid to state: LockRows::begin() */
	/* kind to key2: add_name_columns() */
	TEXTOID, TEXTOID, TEXTOID, INT4OID, INT8OID, INT4OID, INT4OID,
	/* mode to blocked_by: finish() */
	TEXTOID, TEXTOID, BOOLOID, TIMESTAMPTZOID, INTERVALOID, TIMESTAMPTZOID, INTERVALOID,
	INT4ARRAYOID,
	/* gid to wanted: finish() */
	TEXTOID, TEXTOID, INT4OID, OIDOID, INT4OID, INT4OID, INT4OID, INT4OID
};

static constexpr int LOCK_COLUMN_COUNT = lengthof(LOCK_COLUMNS);

/* Whether to fill columns that take time and that a query may not use. */
struct WantedColumns
{
	bool		name;			/* namespace and name */
	bool		hold;			/* scope, acquired_at, held, slots */
};

/*
 * Makes rows from lock entries.  Uses the memory context in which it is created, which must outlive
 * it.  All functions may ereport.
 */
class LockRows
{
public:
	LockRows(const LockEntries &entries, const WantedColumns &wanted)
		: entries(entries), wanted(wanted),
		  session_context(AllocSetContextCreate(CurrentMemoryContext, "advisory_ext session",
												ALLOCSET_DEFAULT_SIZES)),
		  ahead_context(AllocSetContextCreate(CurrentMemoryContext, "advisory_ext rows ahead",
											  ALLOCSET_DEFAULT_SIZES))
	{
	}

	/*
	 * Begin a row with the columns of the session or prepared transaction, pid to state.  The row
	 * is valid until the next call, because rows share the values of their session.  Other values
	 * are in the current memory context.
	 */
	Row			begin(const LockEntry &entry);

	/*
	 * Add the columns mode to wanted, for the entry for which begin() was called last.
	 * advisory.holders() has those up to slots.
	 */
	void		finish(Row *row, const LockEntry &entry, const DecodedTag &tag,
					   const KnownHold &hold);

	/* What is published of an entry's hold; all 0 if no column needs it. */
	KnownHold	hold_of(const LockEntry &entry)
	{
		return wanted.name || wanted.hold ? names.holds.find(entry) : KnownHold{};
	}

	/* The next row of advisory._locks.  Entries are left.  Its values are as those of begin(). */
	Row			next_row();

	/* The Datum of one of the texts of the program, which is made once. */
	Datum		word(const char *text);

	LockEntries entries;
	WantedColumns wanted;
	int			next = 0;		/* of the entries, in a scan of advisory._locks */
	TimestampTz now = GetCurrentTimestamp();
	VisibleNames names;
	Backends	backends;

private:
	void		look_ahead();

	MemoryContext session_context;	/* what the next three point to */
	Row			session_columns;	/* of the last row: a session's rows mostly follow each other */
	Datum		gid = Datum(0);
	Datum		query = Datum(0);
	const LockEntry *last = nullptr;

	static constexpr int AHEAD = 16;
	static constexpr int MAX_WORDS = 16;

	MemoryContext context = CurrentMemoryContext;
	const char *words[MAX_WORDS];
	Datum		word_datums[MAX_WORDS];
	int			word_count = 0;

	/* What the next rows need, of the entries from a multiple of AHEAD on. */
	MemoryContext ahead_context;	/* the names */
	DecodedTag	tags[AHEAD];
	KnownHold	holds[AHEAD];
	NameQuery	queries[AHEAD];
	const KnownName *known[AHEAD];
};

/*
 * Find the holds and names of several entries at once, so that the processor waits for memory once
 * and not for each row.
 */
void
LockRows::look_ahead()
{
	int			count = Min(entries.count - next, AHEAD);
	MemoryContext old_context;

	for (int i = 0; i < count; i++)
	{
		const LockEntry &entry = entries.entries[next + i];

		tags[i] = decode_tag(entry.tag);
		new (&holds[i]) KnownHold(hold_of(entry));	/* without a copy */
		if (wanted.name)
			new (&queries[i]) NameQuery(names.query_for(entry, tags[i], holds[i].hold));
	}
	if (!wanted.name)
		return;
	MemoryContextReset(ahead_context);
	old_context = MemoryContextSwitchTo(ahead_context);
	name_find_all(queries, count, known);
	MemoryContextSwitchTo(old_context);
}

Row
LockRows::next_row()
{
	int			place = next % AHEAD;

	if (place == 0)
		look_ahead();

	const LockEntry &entry = entries.entries[next++];
	VisibleName name = wanted.name
		? names.of(entry, tags[place], queries[place], known[place]) : VisibleName{};
	Row			row = begin(entry);

	add_name_columns(row, tags[place], name, word(kind_name(tags[place].kind)));
	finish(&row, entry, tags[place], holds[place]);
	return row;
}

Datum
LockRows::word(const char *text)
{
	MemoryContext old_context;

	if (text == nullptr)
		return Datum(0);
	for (int i = 0; i < word_count; i++)
	{
		if (words[i] == text)
			return word_datums[i];
	}
	if (word_count == MAX_WORDS)
		return raw_text_datum(text);
	old_context = MemoryContextSwitchTo(context);
	words[word_count] = text;
	word_datums[word_count++] = raw_text_datum(text);
	MemoryContextSwitchTo(old_context);
	return word_datums[word_count - 1];
}

Row
LockRows::begin(const LockEntry &entry)
{
	MemoryContext old_context;
	VisibleSession session;
	Oid			database = entry.tag.locktag_field1;

	if (last != nullptr && last->tag.locktag_field1 == database && last->pid == entry.pid &&
		last->xid == entry.xid)
		return session_columns;

	last = nullptr;
	MemoryContextReset(session_context);
	old_context = MemoryContextSwitchTo(session_context);
	session = backends.of(entry);
	session_columns = Row();
	session_columns.add(Int32GetDatum(entry.pid), entry.pid == 0);
	session_columns.add_text(database_name(database));
	session_columns.add_text(session.role);
	session_columns.add_text(session.application);
	session_columns.add_reference(session.backend != nullptr
								  ? client_address(*session.backend) : Datum(0));
	session_columns.add_text(session.state);
	gid = text_datum(session.gid);
	query = raw_text_datum(session.is_hidden ? HIDDEN : session.query);
	last = &entry;
	MemoryContextSwitchTo(old_context);
	return session_columns;
}

/* "session" or "transaction"; null if unknown.  hold is all 0 if the holder publishes nothing. */
static const char *
scope_of(const LockEntry &entry, const KnownHold &hold)
{
	if (entry.is_waiting())
		return nullptr;
	if (entry.pid == 0)
		return scope_name(Scope::transaction);	/* PREPARE refuses session-level ones */

	/* For this session's own locks the lock manager knows the scope. */
	for (Mode mode : ALL_MODES)
	{
		if (entry.pid == MyProcPid && lockmode_of(mode) == entry.lockmode)
			return scope_name(lock_counts(entry.tag, mode).session > 0
							  ? Scope::session : Scope::transaction);
	}
	return hold.hold.objsubid != 0 ? scope_name(hold.hold.scope) : nullptr;
}

void
LockRows::finish(Row *row, const LockEntry &entry, const DecodedTag &tag, const KnownHold &hold)
{
	int			slots = slots_given(entry, hold);

	row->add_reference(word(lockmode_name(entry.tag, entry.lockmode)));
	row->add_reference(wanted.hold ? word(scope_of(entry, hold)) : Datum(0));
	row->add_bool(!entry.is_waiting());
	row->add_time(entry.wait_start);
	row->add_age(entry.wait_start, now);
	row->add_time(hold.hold.acquired_at);
	row->add_age(hold.hold.acquired_at, now);
	if (!entry.is_waiting())
		row->add_reference(Datum(0));
	else
	{
		auto	   *pids = static_cast<Datum *>(palloc(sizeof(Datum) * (entry.blocker_count + 1)));

		for (int i = 0; i < entry.blocker_count; i++)
			pids[i] = Int32GetDatum(list_nth_int(entries.blockers, entry.first_blocker + i));
		row->add_int32_array(pids, entry.blocker_count);
	}
	row->add_reference(gid);
	row->add_reference(query);
	/* The number that the session gave, if it is known. */
	row->add(Int32GetDatum(slots), slots == 0);
	add_tag_columns(*row, tag);
	row->add(Int32GetDatum(entry.wanted), entry.wanted == 0);
}

void
show_holders(Key key, ReturnSetInfo *result)
{
	LockEntries entries = read_lock_and_slots(key);

	find_all_blockers(&entries);
	tell_reader_of_standby();

	LockRows	rows(entries, WantedColumns{false, true});

	show_each(entries.count, [&](int i) {
		const LockEntry &entry = entries.entries[i];
		DecodedTag	tag = decode_tag(entry.tag);
		Row			row = rows.begin(entry);

		row.add_text(kind_name(tag.kind));
		row.add(Int32GetDatum(tag.slot), tag.slot == NO_SLOT);
		rows.finish(&row, entry, tag, rows.hold_of(entry));
		row.put(result);
	});
}

/* ---- The foreign table ---- */

static bool
is_readable_now(Oid relation)
{
	bool		is_locked = ConditionalLockRelationOid(relation, AccessShareLock);

	if (is_locked)
		UnlockRelationOid(relation, AccessShareLock);
	return is_locked;
}

/*
 * The planner's guess of 1,000 rows stays, since counting the locks takes as long as reading them.
 */
static void
estimate_size(PlannerInfo *, RelOptInfo *, Oid relation)
{
	Oid			extension;

	/* Views must not wait.  begin_scan() looks at the columns in any case. */
	for (Oid catalog : {ExtensionRelationId, ExtensionNameIndexId, DependRelationId,
						DependDependerIndexId})
		if (!is_readable_now(catalog))
			return;
	extension = get_extension_oid("advisory_ext", true);
	if (!OidIsValid(extension) || getExtensionOfObject(RelationRelationId, relation) != extension)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read foreign table \"%s\"", get_rel_name(relation)),
				 errdetail("The foreign-data wrapper of extension \"advisory_ext\" does not "
						   "support foreign tables other than its own."),
				 errhint("Use the view advisory.locks.")));
}

/*
 * As create_foreignscan_path() for a scan that is not parameterized; its arguments differ from
 * release to release.
 */
static void
add_paths(PlannerInfo *, RelOptInfo *table, Oid)
{
	ForeignPath *scan = makeNode(ForeignPath);

	scan->path.pathtype = T_ForeignScan;
	scan->path.parent = table;
	scan->path.pathtarget = table->reltarget;
	scan->path.rows = table->rows;
	scan->path.startup_cost = scan->path.total_cost = table->rows * cpu_tuple_cost;
	add_path(table, &scan->path);
}

static ForeignScan *
make_plan(PlannerInfo *, RelOptInfo *table, Oid relation, ForeignPath *, List *target_list,
		  List *clauses, Plan *outer_plan)
{
	Bitmapset  *columns = nullptr;
	List	   *wanted;
	auto		uses = [&](const char *name) {
		return bms_is_member(get_attnum(relation, name) - FirstLowInvalidHeapAttributeNumber,
							 columns) ||
			bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns);	/* the whole row */
	};

	clauses = extract_actual_clauses(clauses, false);
	pull_varattnos(reinterpret_cast<Node *>(table->reltarget->exprs), table->relid, &columns);
	pull_varattnos(reinterpret_cast<Node *>(clauses), table->relid, &columns);
	wanted = list_make2_int(uses("namespace") || uses("name"),
							uses("scope") || uses("acquired_at") || uses("held") || uses("slots"));
	return make_foreignscan(target_list, clauses, table->relid, nullptr, wanted, nullptr, nullptr,
							outer_plan);
}

/*
 * Raise an error unless the table has the columns that LockRows fills.  That of a newer version may
 * have others.
 */
static void
begin_scan(ForeignScanState *scan, int)
{
	Relation	table = scan->ss.ss_currentRelation;
	TupleDesc	columns = RelationGetDescr(table);
	bool		fits = columns->natts == LOCK_COLUMN_COUNT;

	for (int i = 0; fits && i < columns->natts; i++)
		/* Invalid for a dropped column. */
		fits = TupleDescAttr(columns, i)->atttypid == LOCK_COLUMNS[i];
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("foreign table \"%s\" does not have the columns that advisory_ext created",
						RelationGetRelationName(table)),
				 errhint(OTHER_VERSION_HINT)));
}

/* Read every advisory lock and waiter on the server. */
static LockRows *
read_rows(ForeignScanState *scan)
{
	List	   *wanted = reinterpret_cast<ForeignScan *>(scan->ss.ps.plan)->fdw_private;
	MemoryContext old_context = MemoryContextSwitchTo(scan->ss.ps.state->es_query_cxt);
	LockEntries entries = read_all_locks();
	LockRows   *rows;

	mark_slot_waits(&entries);
	find_all_blockers(&entries);
	tell_reader_of_standby();
	rows = new (palloc(sizeof(LockRows)))
		LockRows(entries,
				 WantedColumns{linitial_int(wanted) != 0, lsecond_int(wanted) != 0});
	MemoryContextSwitchTo(old_context);
	return rows;
}

static TupleTableSlot *
next_row(ForeignScanState *scan)
{
	TupleTableSlot *slot = scan->ss.ss_ScanTupleSlot;
	LockRows   *rows;

	if (scan->fdw_state == nullptr)
		scan->fdw_state = read_rows(scan);
	rows = static_cast<LockRows *>(scan->fdw_state);
	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(slot);
	if (rows->next < rows->entries.count)
	{
		Row			row = rows->next_row();

		Assert(row.count == LOCK_COLUMN_COUNT);
		memcpy(slot->tts_values, row.values, sizeof(Datum) * LOCK_COLUMN_COUNT);
		memcpy(slot->tts_isnull, row.nulls, sizeof(bool) * LOCK_COLUMN_COUNT);
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
			static_cast<LockRows *>(scan->fdw_state)->next = 0;
	};
	routine->EndForeignScan = [](ForeignScanState *) {};
	PG_RETURN_POINTER(routine);
}

/*
 * ---- Locks that look forgotten ----
 *
 * A lock looks forgotten for one of two reasons.  Its session has been idle for long, in a
 * transaction or outside; outside, all locks that it holds are session-level.  Or its session is a
 * pooled connection that has changed its user or its application since it took the lock, or worked
 * for others and has changed back.
 */

/* The name of a role, or its OID if it has been dropped. */
static const char *
name_or_oid(Oid role)
{
	const char *name = role_name(role);

	return name != nullptr ? name : psprintf("%u", role);
}

/* Why the lock looks forgotten; null if it does not. */
static const char *
reason_of(const LockEntry &entry, const PgBackendStatus &backend, const KnownHold &hold,
		  TimestampTz now)
{
	const Acquirer *acquirer = hold.acquirer;
	static constexpr char SEPARATOR[] = "; ";
	int64		idle = now - backend.st_state_start_timestamp;
	bool		is_idle_inside = backend.st_state == STATE_IDLEINTRANSACTION ||
		backend.st_state == STATE_IDLEINTRANSACTION_ABORTED;
	StringInfoData reasons;

	initStringInfo(&reasons);
	if ((backend.st_state == STATE_IDLE || is_idle_inside) &&
		backend.st_state_start_timestamp != 0 && idle >= setting::leak_after * USECS_PER_SEC)
		appendStringInfo(&reasons, "%sidle %s a transaction for " INT64_FORMAT " s", SEPARATOR,
						 is_idle_inside ? "in" : "outside", idle / USECS_PER_SEC);
	if (acquirer != nullptr)
	{
		if (OidIsValid(hold.present_role) && hold.present_role != acquirer->role)
			appendStringInfo(&reasons, "%staken as user \"%s\", now acts as \"%s\"",
							 SEPARATOR, name_or_oid(acquirer->role),
							 name_or_oid(hold.present_role));
		if (strcmp(acquirer->application, backend.st_appname) != 0)
			appendStringInfo(&reasons, "%staken by application \"%s\", now serves \"%s\"",
							 SEPARATOR, acquirer->application, backend.st_appname);
		if (hold.by_others > 0)
			appendStringInfo(&reasons, "%sheld through %u transaction%s of others' work",
							 SEPARATOR, hold.by_others, hold.by_others == 1 ? "" : "s");
	}
	return reasons.len > 0 ? reasons.data + strlen(SEPARATOR) : nullptr;
}

/* Add the forgotten locks of the sessions that the current user may see. */
static void
show_leaks(ReturnSetInfo *result)
{
	LockEntries entries = read_all_locks();
	LockRows	rows(entries, WantedColumns{});

	tell_reader_of_standby();
	show_each(entries.count, [&](int i) {
		const LockEntry &entry = entries.entries[i];
		const PgBackendStatus *backend = entry.granted ? rows.backends.find(entry.pid) : nullptr;

		if (backend == nullptr || !may_see_role(backend->st_userid))
			return;

		KnownHold	hold = rows.names.holds.find(entry);
		const char *reason = reason_of(entry, *backend, hold, rows.now);

		if (reason == nullptr)
			return;

		DecodedTag	tag = decode_tag(entry.tag);
		Row			row = rows.begin(entry);

		VisibleName name = rows.names.of(entry, tag, hold.hold);

		add_name_columns(row, tag, name, rows.word(kind_name(tag.kind)));
		row.add_text(lockmode_name(entry.tag, entry.lockmode));
		row.add_time(hold.hold.acquired_at);
		row.add_age(hold.hold.acquired_at, rows.now);
		row.add_text(hold.acquirer != nullptr ? role_name(hold.acquirer->role) : nullptr);
		row.add_text(hold.acquirer != nullptr ? hold.acquirer->application : nullptr);
		row.add_text(reason);
		add_tag_columns(row, tag);
		row.add(Int64GetDatum(hold.transactions), hold.acquirer == nullptr);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_locks_handler, locks_handler);
ADVISORY_SQL_FUNCTION(advisory_leaks, rows_function<show_leaks>);

}								/* namespace advisory */
