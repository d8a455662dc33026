/*
 * core/owntables.h
 *		Tables and sequences of this extension that its functions write on behalf of every role.
 */
#pragma once

namespace advisory
{

/*
 * The OID of a table or sequence of this extension.  Raises 42P01 if it is not there, 42809 if it
 * is not of this relkind, or if it or its schema does not belong to the bootstrap superuser; but
 * with missing_ok returns InvalidOid.
 */
Oid			own_relation(const char *name, char relkind, bool missing_ok = false);

/*
 * The same, and lock it until the transaction ends.  So nobody can drop the extension, and put
 * something else in the place of what belongs to it.  With may_wait false, InvalidOid if it is not
 * there, or if the lock cannot be had at once.
 */
Oid			lock_own_relation(const char *name, char relkind, LOCKMODE mode, bool may_wait = true);

/*
 * Run run() as the bootstrap superuser, to whom everything in the extension belongs.  Restores the
 * user also after an error; the search_path is restored by the end of the (sub)transaction then.
 *
 * run() must not run anything that another role has made.  So it only uses what lock_own_relation()
 * has checked and locked, and the search_path has no schema of others.  Whoever was granted ALL on
 * a table can attach a trigger, though.  As in a session that applies replicated changes, such a
 * trigger does not fire; only the owner of a table can ENABLE ALWAYS a trigger.  In a
 * security-restricted operation that one leaves nothing for the end of the transaction, where it
 * would run as the caller.
 */
template <typename Run>
void
as_superuser(Run run)
{
	Oid			user;
	int			context;
	int			guc_level = NewGUCNestLevel();
	int			replication_role = SessionReplicationRole;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	PG_TRY();
	{
		/* To set the GUC would make all plans of the session invalid. */
		SessionReplicationRole = SESSION_REPLICATION_ROLE_REPLICA;
		run();
	}
	PG_FINALLY();
	{
		SessionReplicationRole = replication_role;
		SetUserIdAndSecContext(user, context);
	}
	PG_END_TRY();
	AtEOXact_GUC(false, guc_level);
}

/* A statement on a table of this extension, for as_superuser(). */
struct OwnStatement
{
	const char *table;
	const char *text;
	int			result;			/* what SPI returns for it */
	bool		sees_latest;	/* the latest committed data, in every isolation level? */
	SPIPlanPtr	plan = nullptr; /* kept for the session */
};

/* An argument of a statement. */
struct Argument
{
	Datum		value;
	Oid			type;
	bool		is_null = false;
};

constexpr int MOST_ARGUMENTS = 16;

inline Argument
argument(int64 value)
{
	return {Int64GetDatum(value), INT8OID};
}

inline Argument
argument(int32 value)
{
	return {Int32GetDatum(value), INT4OID};
}

inline Argument
time_argument(TimestampTz time)
{
	return {TimestampTzGetDatum(time), TIMESTAMPTZOID};
}

inline Argument
argument(const Interval *interval)
{
	return {IntervalPGetDatum(interval), INTERVALOID};
}

inline Argument
argument(std::string_view text)
{
	return {PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size()))),
			TEXTOID};
}

/*
 * A row that a statement returned, or of a table as it stands there.  Columns are counted from 1.
 * Each of these functions but is_null() raises 42804 if there is no such column of that type, or if
 * it is null, because the table is not as CREATE EXTENSION made it.
 */
struct OwnRow
{
	const char *table;
	TupleTableSlot *slot;

	bool		is_null(int column) const
	{
		return slot_attisnull(slot, column);
	}
	Datum		column(int column, Oid type) const
	{
		TupleDesc	columns = slot->tts_tupleDescriptor;
		bool		is_null = true;
		Datum		value = Datum(0);

		if (column <= columns->natts && TupleDescAttr(columns, column - 1)->atttypid == type)
			value = slot_getattr(slot, column, &is_null);
		if (is_null)
			raise_column_changed(column);
		return value;
	}
	[[noreturn]] void raise_column_changed(int column) const;
	int32		integer(int column) const
	{
		return DatumGetInt32(this->column(column, INT4OID));
	}
	int64		bigint(int column) const
	{
		return DatumGetInt64(this->column(column, INT8OID));
	}
	/* A text, cut to so many bytes; palloc'd. */
	char	   *text(int column, int most_bytes = MaxAllocSize) const;
};

/*
 * The rows of a table whose primary key is (bigint, integer), that have this bigint, and an integer
 * from the first to the last one, in their order.  They are the latest committed ones.  Reads a
 * hundred rows in less time than a statement takes to begin.  May ereport.
 */
class OwnScan
{
public:
	OwnScan(const char *table, const char *primary_key, int64 key, int32 first, int32 last);
	void		end();

	/* Is there a next row?  Then row is that. */
	bool		next();
	OwnRow		row;

private:
	Relation	relation;
	Relation	index;
	Snapshot	snapshot;
	SysScanDesc scan;
};

/* Run a statement within SPI_connect().  May ereport. */
void		execute_own_statement(OwnStatement *statement,
								  std::initializer_list<Argument> arguments);

/* Raise 42804: a statement that must write a row wrote none. */
[[noreturn]] void raise_row_prevented(const char *table);

/*
 * Run a statement as the bootstrap superuser, and call use(row) for each row that it returned, in
 * the caller's memory context; then the rows are freed.  Returns how many rows it returned or
 * changed.  May ereport.
 */
template <typename Use = void (*) (const OwnRow &)>
uint64
run_own_statement(OwnStatement *statement, std::initializer_list<Argument> arguments,
				  Use use = [](const OwnRow &) {})
{
	MemoryContext context = CurrentMemoryContext;
	uint64		count = 0;

	lock_own_relation(statement->table, RELKIND_RELATION,
					  statement->result == SPI_OK_SELECT ? AccessShareLock : RowExclusiveLock);
	as_superuser([&]() {
		SPI_connect();
		execute_own_statement(statement, arguments);
		count = SPI_processed;

		TupleTableSlot *slot = SPI_tuptable == nullptr
			? nullptr : MakeSingleTupleTableSlot(SPI_tuptable->tupdesc, &TTSOpsHeapTuple);

		MemoryContextSwitchTo(context);
		for (uint64 i = 0; slot != nullptr && i < count; i++)
			use(OwnRow{statement->table, ExecStoreHeapTuple(SPI_tuptable->vals[i], slot, false)});
		SPI_finish();
	});
	return count;
}

/* The most bytes of a namespace or name that a table keeps. */
constexpr int KEPT_NAME_BYTES = 1024;

}								/* namespace advisory */
