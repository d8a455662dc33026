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

VisibleNames::VisibleNames() : context(CurrentMemoryContext), sees_all(may_see_all())
{
}

/* What the session of this entry publishes about the name of the lock. */
UsedName
VisibleNames::used_name(const LockEntry &entry)
{
	PublishedWait wait;

	if (const KnownHold *hold = hold_of(entry))
		return hold->hold.used;
	if (!entry.granted && read_wait(entry.proc_number, &wait) && wait.pid == entry.pid && same_tag(wait.tag, entry.tag))
		return wait.used;
	return UsedName{};
}

VisibleName
VisibleNames::of(const LockEntry &entry)
{
	DecodedTag	tag = decode_tag(entry.tag);
	Oid			prepared_owner = entry.pid == 0 ? entry.role : InvalidOid;
	bool		sees_session = sees_all || may_see_role(entry.role);
	const KnownName *known;
	const CachedName *own = nullptr;
	UsedName	used;

	if (!has_key(tag.kind))
		return VisibleName{};
	used = used_name(entry);
	known = name_find(tag.database, tag.key, used, prepared_owner);
	if (known != nullptr && sees_session && (sees_all || may_see_name(*known, used)))
		return VisibleName{known->ns, known->name};

	/* The name that this role gave in this session may have found no room in the name table. */
	if (tag.database == MyDatabaseId && sees_session)
		own = name_remembered(tag.key, entry.pid == MyProcPid);
	if (own != nullptr)
		return VisibleName{own->ns(), own->name()};
	return known != nullptr ? HIDDEN_NAME : VisibleName{};
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

/* The first known use of the key of an entry, with its text cut to a length that fits a line.  False if there is none. */
bool
VisibleNames::known_use(const LockEntry &entry, KnownUse *use)
{
	List	   *uses;
	int			length;

	if (known_keys == nullptr)
		known_keys = make_known_keys(context);
	uses = known_uses(known_keys, entry.tag);
	if (uses == NIL)
		return false;
	*use = *static_cast<KnownUse *>(linitial(uses));
	length = static_cast<int>(strlen(use->text));
	if (pg_mbstrlen_with_len(use->text, length) > SHOWN_USE_CHARACTERS)
		use->text = psprintf("%.*s...", pg_mbcharcliplen(use->text, length, SHOWN_USE_CHARACTERS - 3), use->text);
	return true;
}

char *
VisibleNames::text_of(const LockEntry &entry)
{
	VisibleName name = of(entry);
	DecodedTag	tag = decode_tag(entry.tag);
	KnownUse	use;
	bool		is_known;
	bool		is_small = has_key(tag.kind) && tag.key.value > -SMALL_KEY && tag.key.value < SMALL_KEY;
	char	   *keys;

	if (name.ns != nullptr && !name.is_hidden)
		return join_name(name.ns, name.name);
	if (name.name != nullptr && !name.is_hidden)
		return quoted(name.name);
	is_known = !name.is_hidden && known_use(entry, &use);
	if (is_known && (use.is_label || !is_small))
		return quoted(use.text);

	if (has_key(tag.kind))
		keys = psprintf(INT64_FORMAT, tag.key.value);
	else if (tag.kind == Kind::pair)
		keys = psprintf("%d, %d", tag.key1, tag.key2);
	else
		keys = psprintf("%d, %d (objsubid %d)", tag.key1, tag.key2, tag.objsubid);
	return is_known ? psprintf("%s %s", keys, quoted(use.text)) : keys;
}

void
add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name)
{
	bool		is_key = has_key(tag.kind);

	row.add_text(name.ns);
	row.add_text(name.name);
	row.add(Int32GetDatum(tag.slot), tag.kind != Kind::semaphore);
	row.add(Int64GetDatum(tag.key.value), !is_key);
	row.add(Int32GetDatum(tag.key1), is_key);
	row.add(Int32GetDatum(tag.key2), is_key);
}

}								/* namespace advisory */
