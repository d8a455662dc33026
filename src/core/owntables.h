/*
 * core/owntables.h
 *		Tables and sequences of this extension that its functions write on behalf of every role.
 */
#pragma once

extern "C" {
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
}

namespace advisory
{

/* The OID of a table or sequence of this extension.  Raises 42P01 if it is not there. */
Oid			own_relation(const char *name);

/* The owner of a relation.  Raises 42P01 if the relation is not there. */
Oid			owner_of_relation(Oid relation);

/*
 * Run run() as the owner of a table or sequence of this extension, as a SECURITY DEFINER function
 * would.  The end of the (sub)transaction restores the user after an error.
 *
 * The owner may be an ordinary role, and may attach triggers to a table that a superuser's call writes.  So the
 * table's triggers run in a security-restricted operation.  It refuses deferred triggers, because up to 17 these
 * run at the end of the transaction as the session's user.  Settings that the triggers change are restored.
 */
template <typename Run>
void
as_owner_of(Oid relation, Run run)
{
	Oid			user;
	int			context;
	int			guc_level = NewGUCNestLevel();

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner_of_relation(relation), context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	run();
	AtEOXact_GUC(false, guc_level);
	SetUserIdAndSecContext(user, context);
}

/* A statement on a table of this extension.  It runs with the caller's search_path, so operators in it need a schema. */
struct OwnStatement
{
	const char *table;
	const char *text;
	int			result;			/* what SPI returns for it */
	bool		sees_latest;	/* does it see the latest committed data in every isolation level? */
	int			argument_count;
	Oid			types[10];
	SPIPlanPtr	plan;			/* kept for the session */
};

/* Run a statement within SPI_connect().  May ereport. */
void		execute_own_statement(OwnStatement *statement, const NullableDatum *arguments);

/* Run a statement as the table's owner, and call use(count), which may read the rows; they are freed then.  May ereport. */
template <typename Use>
void
run_own_statement(OwnStatement *statement, const NullableDatum *arguments, Use use)
{
	as_owner_of(own_relation(statement->table), [&]() {
		SPI_connect();
		execute_own_statement(statement, arguments);
		use(SPI_processed);
		SPI_finish();
	});
}

inline NullableDatum
datum(Datum value) noexcept
{
	return NullableDatum{value, false};
}

/* A column of the present result of SPI, counted from 1. */
inline Datum
result_column(int column, uint64 row = 0)
{
	bool		is_null;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &is_null);
}

/* The same as text, in the memory of SPI's caller; null for null. */
char	   *result_text(int column, uint64 row = 0);

}								/* namespace advisory */
