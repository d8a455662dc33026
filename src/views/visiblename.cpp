/*
 * views/visiblename.cpp
 *		The names of locks, as far as the current user may see them.
 */
#include "base/pg.h"

#include "core/namecache.h"
#include "server/backends.h"
#include "shmem/sessiontable.h"
#include "views/visiblename.h"

namespace advisory
{

/* How much of the known use of a key is shown. */
static constexpr int SHOWN_USE_CHARACTERS = 24;

/* Any program may use keys that are nearer to 0 than this. */
static constexpr int64 SMALL_KEY = 100000;

VisibleNames::VisibleNames() : sees_all(may_see_all()), known_keys(CurrentMemoryContext)
{
}

VisibleName
VisibleNames::of(const LockEntry &entry)
{
	DecodedTag	tag = decode_tag(entry.tag);
	bool		sees_session = sees_all || may_see_role(entry.role);
	const KnownName *known;
	const CachedName *own = nullptr;
	UsedName	used;
	PublishedWait wait;

	if (!has_key(tag.kind))
		return VisibleName{};
	used = hold_of(entry).hold.used;
	if (!entry.granted && read_wait_of(entry, &wait) && same_tag(wait.tag, entry.tag))
		used = wait.used;
	known = name_find(tag.database, tag.key, used, entry.pid == 0 ? entry.role : InvalidOid);
	if (known != nullptr && sees_session && (sees_all || may_see_name(*known, used)))
		return VisibleName{known->ns, known->name};

	/* The name that this role gave in this session may have found no room in the name table. */
	if (tag.database == MyDatabaseId && sees_session)
		own = name_remembered(tag.key, entry.pid == MyProcPid);
	if (own != nullptr)
		return VisibleName{own->ns(), own->name()};
	return known != nullptr ? VisibleName{HIDDEN, HIDDEN, true} : VisibleName{};
}

/* The known use of a key, cut to a length that fits a line. */
static const char *
shortened(const char *use)
{
	int			length = static_cast<int>(strlen(use));

	if (pg_mbstrlen_with_len(use, length) <= SHOWN_USE_CHARACTERS)
		return use;
	return psprintf("%.*s...", pg_mbcharcliplen(use, length, SHOWN_USE_CHARACTERS - 3), use);
}

/* In double quotes, like an identifier, so that it cannot be mistaken for a name. */
static char *
quoted(const char *text)
{
	StringInfoData out;

	initStringInfo(&out);
	appendStringInfoChar(&out, '"');
	for (; *text != '\0'; text++)
	{
		if (*text == '"')
			appendStringInfoChar(&out, '"');
		appendStringInfoChar(&out, *text);
	}
	appendStringInfoChar(&out, '"');
	return out.data;
}

char *
VisibleNames::text_of(const LockEntry &entry)
{
	VisibleName name = of(entry);
	DecodedTag	tag = decode_tag(entry.tag);
	bool		is_small = has_key(tag.kind) && tag.key.value > -SMALL_KEY && tag.key.value < SMALL_KEY;
	List	   *uses;
	char	   *use = nullptr;
	char	   *keys;

	if (name.name != nullptr && !name.is_hidden)
		return name.ns != nullptr ? join_name(name.ns, name.name) : quoted(name.name);
	uses = name.is_hidden ? NIL : known_keys.uses_of(entry.tag);
	if (uses != NIL)
	{
		auto	   *first = static_cast<KnownUse *>(linitial(uses));

		use = quoted(shortened(first->text));
		if (first->is_label || !is_small)
			return use;
	}

	if (has_key(tag.kind))
		keys = psprintf(INT64_FORMAT, tag.key.value);
	else if (tag.kind == Kind::pair)
		keys = psprintf("%d, %d", tag.key1, tag.key2);
	else
		keys = psprintf("%d, %d (objsubid %d)", tag.key1, tag.key2, tag.objsubid);
	return use != nullptr ? psprintf("%s %s", keys, use) : keys;
}

void
add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name)
{
	bool		is_key = has_key(tag.kind);

	row.add_text(kind_name(tag.kind));
	row.add_text(name.ns);
	row.add_text(name.name);
	row.add(Int32GetDatum(tag.slot), tag.kind != Kind::semaphore);
	row.add(Int64GetDatum(tag.key.value), !is_key);
	row.add(Int32GetDatum(tag.key1), is_key);
	row.add(Int32GetDatum(tag.key2), is_key);
}

}								/* namespace advisory */
