/*
 * core/deadlocks.cpp
 *		What the error says that ended a wait, above all that of a deadlock.
 */
#include "base/pg.h"

#include "core/deadlocks.h"
#include "core/namecache.h"
#include "server/locallock.h"
#include "server/locktable.h"

namespace advisory
{

/* ---- The locks that survive ---- */

/* It adds nothing to messages. */
void
own_locks_context(void *)
{
}

static bool
precedes(const LOCKTAG &a, const LOCKTAG &b) noexcept
{
	return order_of(a) < order_of(b);
}

/* How many functions release this lock, in exclusive mode, after the error? */
static int
count_owners(const LOCKTAG &tag) noexcept
{
	int			count = 0;

	for (const ErrorContextCallback *context = error_context_stack; context != nullptr;
		 context = context->previous)
	{
		const auto *own = static_cast<const OwnLocks *>(context->arg);

		count += context->callback == own_locks_context &&
			std::binary_search(own->tags, own->tags + own->count, tag, precedes);
	}
	return count;
}

/* Does this session hold the lock in session scope, and also after the error? */
static bool
outlives_error(const LOCKTAG &tag)
{
	return lock_counts(tag, Mode::exclusive).session > count_owners(tag) ||
		lock_counts(tag, Mode::shared).session > 0;
}

void
add_hint(ErrorData *error, char *hint)
{
	if (hint != nullptr)
		error->hint = error->hint == nullptr ? hint : psprintf("%s\n%s", error->hint, hint);
}

/* Say that the victim of a deadlock keeps its session-level locks, however it took them. */
static void
add_survivors_hint(ErrorData *error)
{
	LockEntries mine = read_my_locks();
	LOCKTAG		first = {};
	int			count = 0;

	for (int i = 0; i < mine.count; i++)
	{
		const LockEntry &entry = mine.entries[i];

		/* A lock that is held in several modes counts once, in the strongest of them. */
		if (entry.held_modes >= LOCKBIT_ON(entry.lockmode + 1) || !outlives_error(entry.tag))
			continue;
		if (count++ == 0 || order_of(entry.tag) < order_of(first))
			first = entry.tag;
	}
	if (count == 0)
		return;

	DecodedTag	decoded = decode_tag(first);
	char	   *name = visible_name(first);

	if (name == nullptr)
		name = has_key(decoded.kind) ? psprintf(INT64_FORMAT, decoded.key.value) :
			psprintf("%d, %d", decoded.key1, decoded.key2);
	else if (decoded.kind == Kind::semaphore)
		name = psprintf("%s, slot %d", name, decoded.slot);
	add_hint(error, count == 1
			 ? psprintf("This session still holds session-level advisory lock \"%s\", which an "
						"error does not release.", name)
			 : psprintf("This session still holds %d session-level advisory locks, such as "
						"\"%s\", which an error does not release.",
						count, name));
}

/* ---- The names of locks ---- */

/*
 * Add the names of advisory locks behind their tags: those that the current user may see, or all of
 * them for the server's log.  The deadlock detector prints a tag as [database,high,low,objsubid] in
 * any language.
 */
static char *
add_lock_names(const char *detail, bool for_log)
{
	StringInfoData out;

	initStringInfo(&out);
	while (*detail != '\0')
	{
		LOCKTAG		tag;
		int			length = 0;

		SET_LOCKTAG_ADVISORY(tag, 0, 0, 0, 0);
		if (*detail != '[' ||
			sscanf(detail, "[%u,%u,%u,%hu]%n", &tag.locktag_field1, &tag.locktag_field2,
				   &tag.locktag_field3, &tag.locktag_field4, &length) != 4 || length == 0)
		{
			appendStringInfoChar(&out, *detail++);
			continue;
		}
		appendBinaryStringInfo(&out, detail, length);
		if (char *name = visible_name(tag, for_log))
			appendStringInfo(&out, " \"%s\"", name);
		detail += length;
	}
	return out.data;
}

[[noreturn]] void
raise_wait_error(ErrorData *error, const LockName &name)
{
	/* A program finds the lock by these fields, as it does when a timeout ends the wait. */
	error->schema_name = field_namespace(name);
	error->constraint_name = field_name(name);
	if (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED && error->detail != nullptr)
	{
		error->detail_log =
			add_lock_names(error->detail_log != nullptr ? error->detail_log : error->detail, true);
		error->detail = add_lock_names(error->detail, false);
		add_survivors_hint(error);
	}
	ReThrowError(error);
}

}								/* namespace advisory */
