/*
 * names.cpp
 *		What a lock is called, as far as the current user may know.
 */
#include "pg.h"

#include "backends.h"
#include "holds.h"
#include "names.h"

namespace advisory
{

/* From here on it is cheaper to read the directory whole than name by name. */
static constexpr int MANY_LOOKUPS = 100;

namespace
{

struct ItemKey
{
	int64		key;
	Oid			database;
};

uint32
hash_item_key(const ItemKey &key) noexcept
{
	uint64		bits = static_cast<uint64>(key.key);

	return murmurhash32(static_cast<uint32>(bits) ^ murmurhash32(static_cast<uint32>(bits >> 32) ^ key.database));
}

}								/* anonymous namespace */

/* One lock of the directory, or one that it does not know. */
struct Names::Item
{
	ItemKey		key;
	char		status;
	bool		is_known;
	bool		is_visible;
	ShownName	name;
};

using NamesItem = Names::Item;

#define SH_PREFIX items
#define SH_ELEMENT_TYPE NamesItem
#define SH_KEY_TYPE ItemKey
#define SH_KEY key
#define SH_HASH_KEY(table, key) hash_item_key(key)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).database == (b).database)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* This session remembers names that the directory may have had to drop, or never had. */
static bool
look_in_notebook(const ItemKey &key, ShownName *name, Oid *role)
{
	const Hold *hold = key.database == MyDatabaseId ? hold_remembered(Key{key.key}) : nullptr;

	if (hold == nullptr || !hold->has_name)
		return false;
	*name = ShownName{hold->ns(), hold->name()};
	*role = hold->role;
	return true;
}

static void
fill_item(NamesItem *item, const KnownName &known)
{
	item->is_known = true;
	item->is_visible = may_see_name(known.roles);
	item->name = ShownName{known.ns, known.name};
}

Names::Names(int lookups)
	: context(CurrentMemoryContext), sees_all(may_see_all()), read_whole(lookups >= MANY_LOOKUPS),
	  items(items_create(CurrentMemoryContext, Max(lookups, 16), nullptr)), last_role(InvalidOid), last_answer(false)
{
	bool		found;
	int			count;
	KnownName  *names;

	if (!read_whole)
		return;
	names = directory_read(InvalidOid, &count);
	for (int i = 0; i < count; i++)
		fill_item(items_insert(items, ItemKey{names[i].key.value, names[i].database}, &found), names[i]);
}

Names::Item *
Names::item_for(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	ItemKey		key = {decoded.key.value, decoded.database};
	Item	   *item = items_lookup(items, key);
	bool		found;
	Oid			role;

	if (item != nullptr)
		return item;

	MemoryContext old_context = MemoryContextSwitchTo(context);
	const KnownName *known = read_whole ? nullptr : directory_find(decoded.database, decoded.key);

	item = items_insert(items, key, &found);
	item->is_known = false;
	if (known != nullptr)
		fill_item(item, *known);
	else if (look_in_notebook(key, &item->name, &role))
	{
		item->is_known = true;
		item->is_visible = may_see_role(role);
	}
	MemoryContextSwitchTo(old_context);
	return item;
}

bool
Names::may_see_role_again(Oid role)
{
	if (role != last_role)
	{
		last_answer = may_see_role(role);
		last_role = role;
	}
	return last_answer;
}

bool
Names::may_see(const LockEntry &entry, const Item *item)
{
	PublishedHold hold;
	Oid			named_as;

	if (sees_all)
		return true;
	if (!may_see_role_again(entry.role))
		return false;
	if (item->is_visible)
		return true;
	if (!entry.granted)
		named_as = holds.find_wait(entry.proc_number, entry.pid, entry.tag);
	else
		named_as = published(entry, &hold) ? hold.role : InvalidOid;
	return OidIsValid(named_as) && may_see_role(named_as);
}

ShownName
Names::of(const LockEntry &entry)
{
	const Item *item;

	if (!has_key(decode_tag(entry.tag).kind))
		return ShownName{};
	item = item_for(entry.tag);
	if (!item->is_known)
		return ShownName{};
	if (may_see(entry, item))
		return item->name;
	return ShownName{HIDDEN, HIDDEN};
}

void
add_name_columns(Row &row, const DecodedTag &tag, const ShownName &name)
{
	row.add_text(name.ns);
	row.add_text(name.name);
	if (tag.kind == Kind::semaphore)
		row.add_int32(tag.slot);
	else
		row.add_null();
	if (has_key(tag.kind))
	{
		row.add_int64(tag.key.value);
		row.add_null();
		row.add_null();
	}
	else
	{
		row.add_null();
		row.add_int32(tag.key1);
		row.add_int32(tag.key2);
	}
}

char *
visible_name(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	ShownName	name;
	Oid			role;

	if (!has_key(decoded.kind))
		return nullptr;

	const KnownName *known = directory_find(decoded.database, decoded.key);

	if (known != nullptr && may_see_name(known->roles))
		name = ShownName{known->ns, known->name};
	else if (!look_in_notebook(ItemKey{decoded.key.value, decoded.database}, &name, &role) || !may_see_role(role))
		return nullptr;
	return name.ns != nullptr ? psprintf("%s/%s", name.ns, name.name) : pstrdup(name.name);
}

char *
display_lock(const LockName &name)
{
	char	   *known = name.has_name() ? nullptr : visible_name(lock_tag(MyDatabaseId, name.key));

	return known != nullptr ? known : display_name(name);
}

}								/* namespace advisory */
