/*
 * core/errors.cpp
 *		The errors of locks that were not obtained, with the names of locks in them.
 */
#include "base/pg.h"

#include "core/errors.h"
#include "core/blockers.h"
#include "core/namecache.h"
#include "server/locallock.h"
#include "server/locktable.h"

namespace advisory
{

/* ---- Names in messages ---- */

/* As messages show a name; palloc'd. */
static char *
join_name(const char *ns, const char *name)
{
	return ns != nullptr ? psprintf("%s/%s", ns, name) : pstrdup(name);
}

char *
visible_name(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	const CachedName *own;

	if (!has_key(decoded.kind))
		return nullptr;

	const KnownName *known = name_find(decoded.database, decoded.key);

	if (known != nullptr && may_see_name(known->roles))
		return join_name(known->ns, known->name);
	own = decoded.database == MyDatabaseId ? name_remembered(decoded.key) : nullptr;
	return own != nullptr && own->has_name ? join_name(own->ns(), own->name()) : nullptr;
}

char *
display_lock(const LockName &name)
{
	char	   *known = name.has_name() ? nullptr : visible_name(lock_tag(MyDatabaseId, name.key));

	return known != nullptr ? known : display_name(name);
}

/* ---- Deadlocks ---- */

static const PassingLock *passing_locks = nullptr;

/* What this session calls a lock that it holds. */
static char *
display_my_lock(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	char	   *name = visible_name(tag);

	if (name != nullptr)
		return decoded.kind == Kind::semaphore ? psprintf("%s, slot %d", name, decoded.slot) : name;
	if (!has_key(decoded.kind))
		return psprintf("%d, %d", decoded.key1, decoded.key2);
	return psprintf(INT64_FORMAT, decoded.key.value);
}

/* How many of a lock's session-level holds are given up after an error. */
static int64
passing_count(const LOCKTAG &tag) noexcept
{
	int64		count = 0;

	for (const PassingLock *passing = passing_locks; passing != nullptr; passing = passing->outer)
		count += compare_locktags(&passing->tag, &tag) == 0 ? 1 : 0;
	return count;
}

/* Is it held so that it outlives an error? */
static bool
outlives_error(const LockEntry &entry)
{
	for (Mode mode : ALL_MODES)
	{
		if (entry.lockmode == lockmode_of(mode))
			return lock_counts(entry.tag, mode).session > passing_count(entry.tag);
	}
	return false;
}

/* The tags of this session's locks that outlive an error, in order, each once; palloc'd. */
static LOCKTAG *
find_survivors(int *count)
{
	LockEntries mine = read_my_locks();
	auto	   *tags = static_cast<LOCKTAG *>(palloc_extended(sizeof(LOCKTAG) * (mine.count + 1), MCXT_ALLOC_HUGE));

	*count = 0;
	for (int i = 0; i < mine.count; i++)
	{
		if (outlives_error(mine.entries[i]))
			tags[(*count)++] = mine.entries[i].tag;
	}
	qsort(tags, *count, sizeof(LOCKTAG), compare_locktags);
	*count = static_cast<int>(qunique(tags, *count, sizeof(LOCKTAG), compare_locktags));
	return tags;
}

/* A deadlock's victim keeps its session-level locks, however taken; say so. */
static void
add_survivors_hint(ErrorData *error)
{
	int			count;
	LOCKTAG    *survivors = find_survivors(&count);
	char	   *hint;

	if (count == 0)
		return;
	if (count == 1)
		hint = psprintf("This session still holds session-level advisory lock \"%s\", which an error does not release.",
						display_my_lock(survivors[0]));
	else
		hint = psprintf("This session still holds %d session-level advisory locks, such as \"%s\", which an error does not release.",
						count, display_my_lock(survivors[0]));
	error->hint = error->hint == nullptr ? hint : psprintf("%s\n%s", error->hint, hint);
}

/*
 * Read an advisory lock's tag as the deadlock detector prints it, in any language:
 * [database,high,low,objsubid].  The character behind it, or null if it is none.
 */
static const char *
read_printed_tag(const char *text, LOCKTAG *tag) noexcept
{
	unsigned int database;
	unsigned int high;
	unsigned int low;
	unsigned int objsubid;
	int			length = 0;

	if (sscanf(text, "[%u,%u,%u,%u]%n", &database, &high, &low, &objsubid, &length) != 4 || length == 0)
		return nullptr;
	SET_LOCKTAG_ADVISORY(*tag, database, high, low, static_cast<uint16>(objsubid));
	return text + length;
}

/* Put the names of advisory locks, as far as they may be seen, behind their numbers. */
static char *
add_lock_names(const char *detail)
{
	StringInfoData out;

	if (detail == nullptr)
		return nullptr;
	initStringInfo(&out);
	while (*detail != '\0')
	{
		LOCKTAG		tag;
		const char *end = *detail == '[' ? read_printed_tag(detail, &tag) : nullptr;

		if (end == nullptr)
		{
			appendStringInfoChar(&out, *detail++);
			continue;
		}
		appendBinaryStringInfo(&out, detail, static_cast<int>(end - detail));
		if (char *name = visible_name(tag))
			appendStringInfo(&out, " \"%s\"", name);
		detail = end;
	}
	return out.data;
}

[[noreturn]] void
raise_wait_error(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
	{
		error->detail = add_lock_names(error->detail);
		add_survivors_hint(error);
	}
	ReThrowError(error);
	pg_unreachable();
}

void
begin_passing(PassingLock *passing, const LOCKTAG &tag) noexcept
{
	*passing = {tag, passing_locks};
	passing_locks = passing;
}

void
set_passing(const PassingLock *passing) noexcept
{
	passing_locks = passing;
}

/* ---- Not available ---- */

/* "within 250 ms", "within 5 s" */
static char *
format_limit(int milliseconds)
{
	if (milliseconds % 1000 == 0)
		return psprintf("%d s", milliseconds / 1000);
	return psprintf("%d ms", milliseconds);
}

/* What to run to look, and to act. */
static int
set_hint(const LockName &name, const Blockers &blockers)
{
	char	   *arguments = call_arguments(name);

	if (arguments == nullptr)
		return errhint("To see who holds it: SELECT * FROM advisory.locks WHERE key = " INT64_FORMAT ".",
					   name.key.value);
	if (blockers.holder_gid != nullptr)
		return errhint("To end the prepared transaction that holds it: COMMIT PREPARED %s or ROLLBACK PREPARED %s.",
					   quote_literal_cstr(blockers.holder_gid), quote_literal_cstr(blockers.holder_gid));
	if (!name.by_name())
		return errhint("To see who holds it: SELECT * FROM advisory.holders_key(%s).", arguments);
	if (blockers.holder_pid == 0)
		return errhint("To see who holds it: SELECT * FROM advisory.holders(%s).", arguments);
	return errhint("To see who holds it: SELECT * FROM advisory.holders(%s). "
				   "To end that session: SELECT advisory.terminate_holder(%s, %d).",
				   arguments, arguments, blockers.holder_pid);
}

static int
set_detail(const Blockers &blockers)
{
	return blockers.description != nullptr ? errdetail("%s", blockers.description) : 0;
}

/* How long it was waited for, as a part of the sentence. */
static char *
describe_limit(Outcome outcome, Timeout limit)
{
	if (outcome == Outcome::lock_timeout)
		return psprintf("within lock_timeout of %s", format_limit(LockTimeout));
	if (limit.is_forever() || limit.is_immediate())
		return pstrdup("without waiting");
	return psprintf("within %s", format_limit(limit.milliseconds()));
}

[[noreturn]] void
raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit)
{
	bool		is_for_slot = request.is_for_slot();
	Blockers	blockers = is_for_slot
		? find_slot_blockers(request.name, request.slots) : find_blockers(request.name, request.mode);
	char	   *name = display_lock(request.name);

	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 is_for_slot
			 ? errmsg("could not obtain a slot of semaphore \"%s\" %s", name, describe_limit(outcome, limit))
			 : errmsg("could not obtain advisory lock \"%s\" %s", name, describe_limit(outcome, limit)),
			 set_detail(blockers),
			 is_for_slot
			 ? errhint("To see who has its slots: SELECT * FROM advisory.locks WHERE key = " INT64_FORMAT ".",
					   request.name.key.value)
			 : set_hint(request.name, blockers),
			 set_lock_fields(request.name)));
	pg_unreachable();
}

}								/* namespace advisory */
