/*
 * views/visiblename.cpp
 *		The names of locks, as far as the current user may see them.
 */
#include "base/pg.h"

#include "core/namecache.h"
#include "server/backends.h"
#include "shmem/waiters.h"
#include "views/visiblename.h"

namespace advisory
{

VisibleNames::VisibleNames() : sees_all(may_see_all())
{
}

VisibleName
VisibleNames::of(const LockEntry &entry)
{
	DecodedTag	tag = decode_tag(entry.tag);
	const KnownName *known;
	PublishedWait wait;
	Oid			named_by = InvalidOid;
	VisibleName name = {};

	if (!has_key(tag.kind))
		return name;
	known = name_find(tag.database, tag.key);
	if (known != nullptr)
		name = VisibleName{known->ns, known->name};
	else if (tag.database == MyDatabaseId)
	{
		/* This session remembers names that found no room in the name table. */
		const CachedName *own = name_remembered(tag.key);

		if (own != nullptr && own->has_name)
			name = VisibleName{own->ns(), own->name()};
	}

	if (sees_all || name.name == nullptr)
		return name;
	if (!may_see_role(entry.role))
		return VisibleName{HIDDEN, HIDDEN};
	if (known == nullptr || may_see_name(known->roles))
		return name;
	if (const KnownHold *hold = hold_of(entry))
		named_by = hold->hold.role;
	else if (!entry.granted && read_wait(entry.proc_number, &wait) && wait.pid == entry.pid &&
			 same_tag(wait.tag, entry.tag))
		named_by = wait.role;
	if (OidIsValid(named_by) && may_see_role(named_by))
		return name;
	return VisibleName{HIDDEN, HIDDEN};
}

const KnownHold *
VisibleNames::hold_of(const LockEntry &entry)
{
	if (entry.granted && holds.find(entry.proc_number, entry.pid, entry.tag, entry.lockmode, &last_hold))
		return &last_hold;
	return nullptr;
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
