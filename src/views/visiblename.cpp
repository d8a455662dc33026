/*
 * views/visiblename.cpp
 *		The names of locks, as far as the current user may see them.
 */
#include "base/pg.h"

#include "base/remedy.h"
#include "core/namecache.h"
#include "views/visiblename.h"

namespace advisory
{

NameQuery
VisibleNames::query_for(const LockEntry &entry, const DecodedTag &tag, const PublishedHold &hold)
{
	NameQuery	query = {has_key(tag.kind) ? tag.database : InvalidOid, tag.key, hold.used,
						 entry.pid == 0 ? entry.role : InvalidOid};
	PublishedWait wait;

	if (!entry.granted && read_wait_of(entry, &wait) && same_tag(wait.tag, entry.tag))
		query.used = wait.used;
	return query;
}

VisibleName
VisibleNames::of(const LockEntry &entry, const DecodedTag &tag, const NameQuery &query,
				 const KnownName *known)
{
	bool		sees_session = sees_all || may_see_role(entry.role);
	const CachedName *own = nullptr;

	if (known != nullptr && sees_session && (sees_all || may_see_name(*known, query.used)))
		return VisibleName{known->ns, known->name};

	/* The name that this role gave in this session may have found no room in the name table. */
	if (query.database == MyDatabaseId && sees_session)
		own = name_remembered(tag.key, entry.pid == MyProcPid);
	if (own != nullptr)
		return VisibleName{own->ns(), own->name()};
	return known != nullptr ? VisibleName{HIDDEN, HIDDEN, true} : VisibleName{};
}

/* In double quotes, like an identifier, so that it cannot be mistaken for a name. */
static char *
quoted(const char *label)
{
	Datum		inside = DirectFunctionCall3Coll(replace_text, C_COLLATION_OID,
												 CStringGetTextDatum(label),
												 CStringGetTextDatum("\""),
												 CStringGetTextDatum("\"\""));

	return psprintf("\"%s\"", TextDatumGetCString(inside));
}

char *
VisibleNames::text_of(const LockEntry &entry, char **exact)
{
	VisibleName name = of(entry);
	DecodedTag	tag = decode_tag(entry.tag);

	if (exact != nullptr)
	{
		*exact = name.ns != nullptr ? exact_name(name.with_key(tag.key)) : nullptr;
		if (*exact == nullptr)
			*exact = key_text(tag);
	}
	if (name.is_hidden)
		return key_text(tag);
	if (name.name == nullptr)
		return nullptr;
	return name.ns != nullptr ? join_name(name.ns, name.name) : quoted(name.name);
}

void
add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name, Datum kind)
{
	bool		is_key = has_key(tag.kind);

	row.add_reference(kind);
	row.add_text(name.ns);
	row.add_text(name.name);
	row.add(Int32GetDatum(tag.slot), tag.slot == NO_SLOT);
	row.add(Int64GetDatum(tag.key.value), !is_key);
	row.add(Int32GetDatum(tag.key1), is_key);
	row.add(Int32GetDatum(tag.key2), is_key);
}

void
add_tag_columns(Row &row, const DecodedTag &tag)
{
	row.add(ObjectIdGetDatum(tag.database));
	row.add_int32(tag.key1);
	row.add_int32(tag.key2);
	row.add_int32(tag.objsubid);
}

}								/* namespace advisory */
