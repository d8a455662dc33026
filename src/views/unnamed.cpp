/*
 * views/unnamed.cpp
 *		The texts of locks without a name.
 *
 * What a key is known for is a matter of SQL (45-known-keys.sql): labels in a table, and lists.  To
 * plan a query on that takes milliseconds, so the plan is kept for the session.  The view is found
 * by its name, with the rights of the current user, so it is in a schema that everybody may use.
 * But nobody may put something else in its place.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/errors.h"
#include "base/remedy.h"
#include "base/sqlfunction.h"
#include "core/owntables.h"
#include "views/unnamed.h"

namespace advisory
{

/* The locks (LOCKTAG *) that advisory._unnamed_texts is asked for. */
static const List *asked_locks = NIL;

/* The rows for that view. */
static void
show_unnamed_locks(ReturnSetInfo *result)
{
	show_each(list_length(asked_locks), [&](int i) {
		DecodedTag	tag = decode_tag(*static_cast<LOCKTAG *>(list_nth(asked_locks, i)));
		Row			row;

		row.add(ObjectIdGetDatum(tag.database));
		row.add_int32(tag.objsubid);
		row.add_int32(tag.key1);
		row.add_int32(tag.key2);
		row.put(result);
	});
}

/*
 * Lock the view, so that its name means the same until the transaction ends.  False if it cannot be
 * locked at once, is not the extension's, or if the current user may not read it.
 */
static bool
lock_view()
{
	Oid			view = lock_own_relation("_unnamed_texts", RELKIND_VIEW, AccessShareLock, false);

	return OidIsValid(view) && pg_class_aclcheck(view, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		compat::may_use_schema(get_rel_namespace(view), GetUserId());
}

/*
 * Read the view; the texts (char *) are in the current memory context.  NIL if it cannot be read.
 */
static List *
read_unnamed_texts()
{
	static SPIPlanPtr plan = nullptr;
	MemoryContext context = CurrentMemoryContext;
	List	   *texts = NIL;

	if (!lock_view())
		return NIL;
	SPI_connect();
	if (plan == nullptr)
	{
		SPIPlanPtr	prepared =
			SPI_prepare("SELECT text FROM advisory._unnamed_texts ORDER BY number", 0, nullptr);

		if (prepared == nullptr || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare a query on _unnamed_texts");
		plan = prepared;
	}
	if (SPI_execute_plan(plan, nullptr, nullptr, true, 0) != SPI_OK_SELECT ||
		SPI_processed != static_cast<uint64>(list_length(asked_locks)))
		elog(ERROR, "could not read _unnamed_texts");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *text = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		MemoryContext old_context = MemoryContextSwitchTo(context);

		if (text == nullptr)
			elog(ERROR, "null value in _unnamed_texts");
		texts = lappend(texts, pstrdup(text));
		MemoryContextSwitchTo(old_context);
	}
	SPI_finish();
	return texts;
}

List *
texts_of_unnamed(const List *tags)
{
	List	   *texts = NIL;
	ListCell   *cell;

	if (tags == NIL)
		return NIL;
	asked_locks = tags;
	PG_TRY();
	{
		unless_lock_table_is_full([&]() { texts = read_unnamed_texts(); });
	}
	PG_FINALLY();
	{
		asked_locks = NIL;
	}
	PG_END_TRY();
	if (texts != NIL)
		return texts;
	foreach(cell, tags)
		texts = lappend(texts, key_text(decode_tag(*static_cast<LOCKTAG *>(lfirst(cell)))));
	return texts;
}

ADVISORY_SQL_FUNCTION(advisory_unnamed_locks, rows_function<show_unnamed_locks>);

}								/* namespace advisory */
