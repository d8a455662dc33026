/*
 * views/visiblename.cpp
 *		The names of many locks, as far as the current user may see them.
 */
#include "base/pg.h"

#include "core/namecache.h"
#include "server/backends.h"
#include "shmem/waiters.h"
#include "views/visiblename.h"

namespace advisory
{

/* From here on it is cheaper to read the name table as a whole than name by name. */
static constexpr int MANY_LOOKUPS = 100;
static constexpr int FIRST_ITEMS = 128;

struct ItemKey
{
	int64		key;
	Oid			database;
};

/* One lock that has a name, or that was looked up and has none. */
struct VisibleNames::Item
{
	ItemKey		key;
	char		status;
	bool		is_visible;		/* whoever holds the lock */
	bool		has_name;
	VisibleName name;
};

using VisibleItem = VisibleNames::Item;

#define SH_PREFIX items
#define SH_ELEMENT_TYPE VisibleItem
#define SH_KEY_TYPE ItemKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, (wanted).database)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).database == (b).database)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static constexpr VisibleName NO_NAME = {nullptr, nullptr, {Datum(0), true}, {Datum(0), true}};

static VisibleName
make_name(const char *ns, const char *name)
{
	return VisibleName{ns, name, make_text(ns), make_text(name)};
}

static const VisibleName &
hidden_name()
{
	static VisibleName hidden;

	if (hidden.name == nullptr)
	{
		MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);

		hidden = make_name(HIDDEN, HIDDEN);
		MemoryContextSwitchTo(old_context);
	}
	return hidden;
}

VisibleNames::VisibleNames(int lookups)
	: context(CurrentMemoryContext), sees_all(may_see_all()), is_many(lookups >= MANY_LOOKUPS),
	  items(items_create(CurrentMemoryContext, FIRST_ITEMS, nullptr))
{
}

VisibleNames::Item *
VisibleNames::add(Oid database, Key key, const char *ns, const char *name, bool is_visible)
{
	bool		found;
	Item	   *item = items_insert(items, ItemKey{key.value, database}, &found);

	item->is_visible = is_visible;
	item->has_name = name != nullptr;
	item->name = name != nullptr ? make_name(ns, name) : NO_NAME;
	return item;
}

void
VisibleNames::read_all()
{
	int			count;
	KnownName  *names = name_read_all(InvalidOid, &count);

	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		add(names[i].database, names[i].key, names[i].ns, names[i].name, sees_all || may_see_name(names[i].roles));
	}
	has_read_all = true;
}

/* In the memory context of this. */
VisibleNames::Item *
VisibleNames::item_of(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);

	if (is_many && !has_read_all)
		read_all();
	if (Item *item = items_lookup(items, ItemKey{decoded.key.value, decoded.database}))
		return item;
	if (!is_many)
	{
		if (const KnownName *known = name_find(decoded.database, decoded.key))
			return add(decoded.database, decoded.key, known->ns, known->name, sees_all || may_see_name(known->roles));
	}
	/* This session remembers names that found no room in the name table. */
	const CachedName *own = decoded.database == MyDatabaseId ? name_remembered(decoded.key) : nullptr;

	if (own != nullptr && own->has_name)
		return add(decoded.database, decoded.key, own->ns(), own->name(), true);
	return add(decoded.database, decoded.key, nullptr, nullptr, true);
}

bool
VisibleNames::may_see_role_again(Oid role)
{
	if (role != last_role)
	{
		last_answer = may_see_role(role);
		last_role = role;
	}
	return last_answer;
}

bool
VisibleNames::may_see(const LockEntry &entry, const Item *item)
{
	const KnownHold *hold;
	PublishedWait wait;
	Oid			named_by = InvalidOid;

	if (sees_all)
		return true;
	if (!may_see_role_again(entry.role))
		return false;
	if (item->is_visible)
		return true;
	hold = hold_of(entry);
	if (hold != nullptr)
		named_by = hold->hold.role;
	else if (!entry.granted && read_wait(entry.proc_number, &wait) && wait.pid == entry.pid && same_tag(wait.tag, entry.tag))
		named_by = wait.role;
	return OidIsValid(named_by) && may_see_role(named_by);
}

const VisibleName &
VisibleNames::of(const LockEntry &entry)
{
	MemoryContext old_context;
	const Item *item;
	bool		is_hidden;

	if (!has_key(decode_tag(entry.tag).kind))
		return NO_NAME;
	old_context = MemoryContextSwitchTo(context);
	item = item_of(entry.tag);
	is_hidden = item->has_name && !may_see(entry, item);
	MemoryContextSwitchTo(old_context);
	return is_hidden ? hidden_name() : item->name;
}

const KnownHold *
VisibleNames::hold_of(const LockEntry &entry)
{
	if (!entry.granted)
		return nullptr;
	if (last_entry != &entry)
	{
		last_is_known = holds.find(entry.proc_number, entry.pid, entry.tag, entry.lockmode, &last_hold);
		last_entry = &entry;
	}
	return last_is_known ? &last_hold : nullptr;
}

void
add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name)
{
	row.add(name.ns_text);
	row.add(name.name_text);
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

}								/* namespace advisory */
