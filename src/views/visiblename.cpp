/*
 * views/visiblename.cpp
 *		The names of locks, as far as the current user may see them.
 */
#include "base/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "port/pg_bitutils.h"
}

#include "core/namecache.h"
#include "server/backends.h"
#include "shmem/waiters.h"
#include "views/visiblename.h"

namespace advisory
{

/* From this many names on the name table is read as a whole, which costs less for each than to look it up. */
static constexpr int MANY_LOOKUPS = 100;

struct KnownKey
{
	int64		key;
	Oid			database;
};

struct KnownEntry
{
	KnownKey	key;
	const KnownName *name;
	char		status;
};

#define SH_PREFIX known
#define SH_ELEMENT_TYPE KnownEntry
#define SH_KEY_TYPE KnownKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, (wanted).database)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).database == (b).database)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

VisibleNames::VisibleNames() : context(CurrentMemoryContext), sees_all(may_see_all())
{
}

/* What the name table has for a key; null if nothing. */
const KnownName *
VisibleNames::known_name(Oid database, Key key)
{
	KnownEntry *found;

	if (lookups++ < MANY_LOOKUPS)
		return name_find(database, key);
	if (all_names == nullptr)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		int			count;
		KnownName  *names = name_read_all(InvalidOid, &count);
		bool		is_there;

		all_names = known_create(context, Max(count, MANY_LOOKUPS), nullptr);
		for (int i = 0; i < count; i++)
			known_insert(all_names, KnownKey{names[i].key.value, names[i].database}, &is_there)->name = &names[i];
		MemoryContextSwitchTo(old_context);
	}
	found = known_lookup(all_names, KnownKey{key.value, database});
	return found != nullptr ? found->name : nullptr;
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
	known = known_name(tag.database, tag.key);
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
