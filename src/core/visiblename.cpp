/*
 * core/visiblename.cpp
 *		What a lock is called, as far as the current user may know.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/encoding.h"
#include "core/held.h"
#include "core/visiblename.h"

namespace advisory
{

/* From here on it is cheaper to read the directory whole than name by name. */
static constexpr int MANY_LOOKUPS = 100;
static constexpr int FIRST_ITEMS = 128;

struct ItemKey
{
	int64		key;
	Oid			database;
};

/* One lock of the directory, or one that it does not know. */
struct Names::Item
{
	ItemKey		key;
	char		status;
	bool		is_visible;
	bool		has_texts;
	ShownName	name;			/* both null: not known */
	ShownTexts	texts;
};

using NamesItem = Names::Item;

#define SH_PREFIX items
#define SH_ELEMENT_TYPE NamesItem
#define SH_KEY_TYPE ItemKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, (wanted).database)
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

void
Names::fill(Item *item, const ShownName &name, const Oid *roles)
{
	item->is_visible = sees_all || may_see_name(roles);
	item->name = name;
	item->has_texts = false;
}

static NamesItem *
make_item(const char *text)
{
	auto	   *item = static_cast<NamesItem *>(palloc0(sizeof(NamesItem)));

	item->name = ShownName{text, text};
	return item;
}

Names::Names(int lookups)
	: context(CurrentMemoryContext), sees_all(may_see_all()), is_many(lookups >= MANY_LOOKUPS), has_read_whole(false),
	  items(items_create(CurrentMemoryContext, FIRST_ITEMS, nullptr)), unknown(make_item(nullptr)), hidden(make_item(HIDDEN)),
	  last_role(InvalidOid), last_answer(false)
{
}

KnownName
make_known(const NewName &name)
{
	KnownName	known = {};

	known.database = name.database;
	known.key = name.key;
	known.ns = from_utf8(name.ns);
	known.name = from_utf8(name.name);
	known.roles[0] = name.role;
	known.stats.since = name.since;
	return known;
}

/*
 * The name of a key, wherever it is: the directory, or what goes with a hold; null
 * if it is not known.  palloc'd.
 */
static const KnownName *
find_name(Oid database, Key key)
{
	const KnownName *known = directory_find(database, key);
	NewName    *names;
	int			count;

	if (known != nullptr)
		return known;
	names = read_new_names(database, &key, &count);
	if (count == 0)
		return directory_find(database, key);	/* where it may have gone in the meantime */

	auto	   *made = static_cast<KnownName *>(palloc(sizeof(KnownName)));

	*made = make_known(names[0]);
	return made;
}

void
Names::read_whole()
{
	int			new_count;
	NewName    *new_names = read_new_names(InvalidOid, nullptr, &new_count);
	int			count;
	KnownName  *names = directory_read(InvalidOid, &count);

	/* It is empty still; let it not grow step by step. */
	items_destroy(items);
	items = items_create(context, Max(count + new_count, FIRST_ITEMS), nullptr);
	for (int i = 0; i < count; i++)
		add(names[i]);
	for (int i = 0; i < new_count; i++)
	{
		if (items_lookup(items, ItemKey{new_names[i].key.value, new_names[i].database}) == nullptr)
			add(make_known(new_names[i]));
	}
	has_read_whole = true;
}

Names::Item *
Names::add(const KnownName &known)
{
	return add(ItemKey{known.key.value, known.database}, ShownName{known.ns, known.name}, known.roles);
}

Names::Item *
Names::add(const ItemKey &key, const ShownName &name, const Oid *roles)
{
	bool		found;
	Item	   *item = items_insert(items, key, &found);

	fill(item, name, roles);
	return item;
}

/* The lock's item; the unknown one where it has no name. */
Names::Item *
Names::item_for(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	ItemKey		key = {decoded.key.value, decoded.database};
	Oid			roles[ENTRY_ROLES] = {};
	ShownName	name;

	if (is_many && !has_read_whole)
		read_whole();
	if (Item *item = items_lookup(items, key))
		return item;
	if (!is_many)
	{
		if (const KnownName *known = find_name(decoded.database, decoded.key))
			return add(*known);
	}
	if (look_in_notebook(key, &name, &roles[0]))
		return add(key, name, roles);
	return unknown;
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
	const PublishedHold *hold = published(entry);
	PublishedWait wait = {};
	Oid			named_as;

	if (sees_all)
		return true;
	if (!may_see_role_again(entry.role))
		return false;
	if (item->is_visible)
		return true;
	if (entry.granted)
		named_as = hold != nullptr ? hold->role : InvalidOid;
	else
		named_as = read_wait(entry.proc_number, &wait) && wait.pid == entry.pid && same_tag(wait.tag, entry.tag)
			? wait.role : InvalidOid;
	return OidIsValid(named_as) && may_see_role(named_as);
}

Names::Item *
Names::item_to_show(const LockEntry &entry)
{
	MemoryContext old_context;
	Item	   *item;

	if (!has_key(decode_tag(entry.tag).kind))
		return unknown;
	old_context = MemoryContextSwitchTo(context);
	item = item_for(entry.tag);
	if (item != unknown && !may_see(entry, item))
		item = hidden;
	MemoryContextSwitchTo(old_context);
	return item;
}

ShownName
Names::of(const LockEntry &entry)
{
	return item_to_show(entry)->name;
}

const PublishedHold *
Names::published(const LockEntry &entry)
{
	if (!entry.granted)
		return nullptr;
	if (last_entry != &entry)
	{
		last_is_published = holds.find(entry.proc_number, entry.pid, entry.tag, entry.lockmode, &last_hold);
		last_entry = &entry;
	}
	return last_is_published ? &last_hold : nullptr;
}

/* Does the name go with the hold, and may the current user see it for that? */
bool
Names::may_see_all_of(const LockEntry &entry, const PublishedHold *hold)
{
	return hold != nullptr && !hold->name.empty() &&
		(sees_all || (may_see_role_again(entry.role) && may_see_role_again(hold->role)));
}

static NullableDatum
make_utf8_text(std::string_view utf8)
{
	if (GetDatabaseEncoding() == PG_UTF8)
		return NullableDatum{PointerGetDatum(cstring_to_text_with_len(utf8.data(), static_cast<int>(utf8.size()))), false};
	return make_text(from_utf8(utf8));
}

ShownTexts
Names::texts_of(const LockEntry &entry)
{
	const PublishedHold *hold = published(entry);

	/* The usual case, and the cheapest. */
	if (may_see_all_of(entry, hold))
		return ShownTexts{make_utf8_text(hold->ns), make_utf8_text(hold->name)};

	Item	   *item = item_to_show(entry);

	if (!item->has_texts)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		item->texts = ShownTexts{make_text(item->name.ns), make_text(item->name.name)};
		item->has_texts = true;
		MemoryContextSwitchTo(old_context);
	}
	return item->texts;
}

void
add_name_columns(Row &row, const DecodedTag &tag, const ShownTexts &name)
{
	row.add(name.ns);
	row.add(name.name);
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

	const KnownName *known = find_name(decoded.database, decoded.key);

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
