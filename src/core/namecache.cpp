/*
 * core/namecache.cpp
 *		The name cache: the names that this session has used.
 *
 * Entries are found by key and role, and also by role, namespace and name unless these are
 * very long.  When there are many entries, all that are not in use are dropped at once.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
}

#include "base/compat.h"
#include "base/encoding.h"
#include "base/guc.h"
#include "base/key.h"
#include "core/namecache.h"

namespace advisory
{

/* At least and at most this many entries are kept while they are not in use. */
static constexpr int MIN_KEPT_NAMES = 256;
static constexpr int MAX_KEPT_NAMES = 16384;

namespace
{

struct KeyAndRole
{
	int64		key;
	Oid			role;
};

struct ByKey
{
	KeyAndRole	key;
	CachedName *name;
	char		status;
};

struct ByName
{
	uint64		hash;			/* of role, namespace and name; only the entry tells whether these are equal */
	CachedName *name;
	char		status;
};

uint64
hash_text(std::string_view text, uint64 seed) noexcept
{
	return hash_bytes_extended(reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()), seed);
}

uint64
hash_full_name(Oid role, std::string_view ns, std::string_view name) noexcept
{
	return hash_text(name, hash_text(ns, hash_seed ^ role));
}

#define SH_PREFIX by_key
#define SH_ELEMENT_TYPE ByKey
#define SH_KEY_TYPE KeyAndRole
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, (wanted).role)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).role == (b).role)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define SH_PREFIX by_name
#define SH_ELEMENT_TYPE ByName
#define SH_KEY_TYPE uint64
#define SH_KEY hash
#define SH_HASH_KEY(table, wanted) static_cast<uint32>(wanted)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

/* Either all are null, or none is. */
static MemoryContext cache_context = nullptr;
static by_key_hash *names_by_key = nullptr;
static by_name_hash *names_by_name = nullptr;

/* When there are this many entries, those that are not in use are dropped. */
static uint32 drop_at = MIN_KEPT_NAMES;

/* The entry that named_lock() found last, which is usually requested next; or null. */
static CachedName *last_named = nullptr;

/* The entry of the lock that this session is asking for, and the nesting level of the (sub)transaction; or null. */
static CachedName *asked = nullptr;
static int	asked_level = 0;

/* ---- Entries ---- */

static std::string_view
namespace_of(const CachedName *name) noexcept
{
	return std::string_view(name->text, name->ns_length);
}

static std::string_view
name_of(const CachedName *name) noexcept
{
	return std::string_view(name->name(), name->name_length);
}

static CachedName *
find_by_name(Oid role, std::string_view ns, std::string_view name) noexcept
{
	ByName	   *found = names_by_name != nullptr ? by_name_lookup(names_by_name, hash_full_name(role, ns, name)) : nullptr;

	if (found == nullptr || found->name->role != role || name_of(found->name) != name || namespace_of(found->name) != ns)
		return nullptr;
	return found->name;
}

static void
clear_text(CachedName *name) noexcept
{
	if (name->is_found_by_name)
		by_name_delete(names_by_name, name->hash);
	if (name->text != nullptr && name->text != name->inline_text)
		pfree(name->text);
	name->text = nullptr;
	name->has_name = false;
	name->by_name = false;
	name->is_found_by_name = false;
	name->is_registered = false;
	name->wants_label = false;
}

static void
drop_unused()
{
	by_key_iterator iterator;

	last_named = nullptr;
	by_key_start_iterate(names_by_key, &iterator);
	while (ByKey *found = by_key_iterate(names_by_key, &iterator))
	{
		CachedName *name = found->name;

		if (name->uses > 0 || name->to_log > 0)
			continue;
		clear_text(name);
		by_key_delete_item(names_by_key, found);
		pfree(name);
	}
	drop_at = Max(2 * names_by_key->members, static_cast<uint32>(Min(Max(setting::max_names, MIN_KEPT_NAMES), MAX_KEPT_NAMES)));
}

static CachedName *
find_by_key(Key key, Oid role) noexcept
{
	ByKey	   *found = names_by_key != nullptr ? by_key_lookup(names_by_key, KeyAndRole{key.value, role}) : nullptr;

	return found != nullptr ? found->name : nullptr;
}

static CachedName *
add_entry(Key key, Oid role)
{
	bool		found;

	if (names_by_key == nullptr)
	{
		MemoryContext context = AllocSetContextCreate(TopMemoryContext, "advisory_ext names", ALLOCSET_DEFAULT_SIZES);

		names_by_name = by_name_create(context, MIN_KEPT_NAMES, nullptr);
		names_by_key = by_key_create(context, MIN_KEPT_NAMES, nullptr);
		cache_context = context;
	}
	if (names_by_key->members >= drop_at)
		drop_unused();

	auto	   *name = static_cast<CachedName *>(MemoryContextAllocZero(cache_context, sizeof(CachedName)));

	name->key = key;
	name->role = role;
	compat::simplehash_insert(names_by_key, by_key_insert, KeyAndRole{key.value, role}, &found)->name = name;
	return name;
}

static bool
is_kept_whole(std::string_view part) noexcept
{
	return part.size() <= STORED_NAME_BYTES;
}

LockName
named_lock(std::string_view ns, std::string_view name)
{
	LockName	lock = {};

	last_named = is_kept_whole(ns) && is_kept_whole(name) ? find_by_name(GetUserId(), ns, name) : nullptr;
	lock.ns = ns;
	lock.name = name;
	lock.key = last_named != nullptr ? last_named->key : key_of(ns, name);
	return lock;
}

/* The part of a text that is kept: whole characters, as in the name table. */
static std::string_view
kept_part(std::string_view text)
{
	if (is_kept_whole(text))
		return text;
	return first_bytes(text, pg_mbcliplen(text.data(), static_cast<int>(text.size()), STORED_NAME_BYTES));
}

static bool
same_part(std::string_view kept, size_t full_length, std::string_view text) noexcept
{
	return full_length == text.size() && kept == first_bytes(text, kept.size());
}

/* A name replaces a label, and a label an older one. */
static bool
should_rename(const CachedName *entry, const LockName &name) noexcept
{
	if (!name.has_name())
		return false;
	if (!entry->has_name)
		return true;
	if (entry->by_name == name.by_name() && same_part(name_of(entry), entry->full_name_length, name.name) &&
		same_part(namespace_of(entry), entry->full_ns_length, name.ns))
		return false;
	return name.by_name() || !entry->by_name;
}

/* Copy the kept part of a text, with CUT_MARK if it was cut, and a zero byte.  Returns the place behind that. */
static char *
copy_part(char *copy, std::string_view kept, std::string_view full) noexcept
{
	if (!kept.empty())
		memcpy(copy, kept.data(), kept.size());
	copy += kept.size();
	strcpy(copy, kept.size() < full.size() ? CUT_MARK : "");
	return copy + strlen(copy) + 1;
}

static void
rename_entry(CachedName *entry, const LockName &name)
{
	std::string_view ns = kept_part(name.ns);
	std::string_view text = kept_part(name.name);
	int64		ns_key = name_namespace_key(name.ns);
	size_t		marks = (ns.size() < name.ns.size()) + (text.size() < name.name.size());
	size_t		bytes = ns.size() + text.size() + marks * CUT_MARK_BYTES + 2;
	auto	   *copy = bytes <= CACHED_INLINE_BYTES ? entry->inline_text : static_cast<char *>(MemoryContextAlloc(cache_context, bytes));
	bool		found;

	clear_text(entry);
	if (entry->is_pinned)
		name_unpin(entry->reference);
	entry->is_pinned = false;
	entry->reference = NameReference{};
	copy_part(copy_part(copy, ns, name.ns), text, name.name);
	entry->text = copy;
	entry->has_name = true;
	entry->by_name = name.by_name();
	entry->ns_length = static_cast<uint16>(ns.size());
	entry->name_length = static_cast<uint16>(text.size());
	entry->full_ns_length = static_cast<uint32>(name.ns.size());
	entry->full_name_length = static_cast<uint32>(name.name.size());
	entry->ns_key = ns_key;
	if (!name.by_name() || !is_kept_whole(name.ns) || !is_kept_whole(name.name))
		return;
	entry->hash = hash_full_name(entry->role, ns, text);
	compat::simplehash_insert(names_by_name, by_name_insert, entry->hash, &found)->name = entry;
	entry->is_found_by_name = true;
}

/* ---- The name table ---- */

/* Is it a label for that name: namespace and name as they are shown, or the name alone? */
static bool
label_fits(const LockName &label, const OtherName &other, bool sees_other)
{
	std::string_view text = to_utf8(label.name);
	std::string_view ns = other.ns;
	std::string_view name = other.name;

	if (label.by_name() || !other.by_name)
		return false;
	/* Do not compare with a part of a hidden name.  A caller that knows the whole name can compute its key anyway. */
	if (sees_other && text == name)
		return true;
	return text.size() == ns.size() + 1 + name.size() && first_bytes(text, ns.size()) == ns &&
		text[ns.size()] == '/' && std::string_view(text.data() + ns.size() + 1, name.size()) == name;
}

/*
 * The key has another name: raise a WARNING, once per session and name.  Not if the caller's label fits that name.
 * If the other name is a label that does not count, only a caller that may see it and uses the key by name is warned.
 */
static void
report_clash(CachedName *entry, const LockName &name, const OtherName &other)
{
	bool		sees_other = may_see_name(other.roles);
	char	   *other_name = nullptr;

	if (label_fits(name, other, sees_other) || (!other.counts && !(name.by_name() && sees_other)))
		return;
	name_count_clash();
	if (entry->clash_reported)
		return;
	entry->clash_reported = true;
	if (sees_other)
	{
		other_name = other.by_name ? psprintf("%s/%s", from_utf8(other.ns), from_utf8(other.name)) : from_utf8(other.name);
		make_printable(other_name);
	}
	ereport(WARNING,
			(errmsg("the key of advisory lock \"%s\" also has another name", display_name(name)),
			 other_name != nullptr
			 ? errdetail("Key " INT64_FORMAT " is also the key of \"%s\".", name.key.value, other_name)
			 : errdetail("Key " INT64_FORMAT " is also the key of a name that the current user may not see.", name.key.value),
			 errhint("Locks with the same key exclude each other. Use another name or key for one of them.")));
}

/* Register the name under which the lock is requested, and move the entry's pin to the key's entry in the name table. */
static void
register_entry(CachedName *entry, const LockName &name, bool has_lock, bool is_exclusive)
{
	GivenName	given = {name.key, {}, to_utf8(name.name)};
	NameReference reference;
	OtherName	other;
	Registered	result;

	if (name.by_name())
		given.ns = to_utf8(name.ns);
	result = name_register(given, NamingRole{entry->role, superuser(), has_lock, is_exclusive}, &reference, &other);
	if (entry->is_pinned)
		name_unpin(entry->reference);
	entry->reference = reference;
	entry->is_pinned = reference.entry != nullptr;
	entry->wants_label = result == Registered::clash && !name.by_name() && !other.by_name;
	if (name.by_name() == entry->by_name)
		entry->is_registered = result == Registered::stored || result == Registered::replaced;
	/* A session that has the lock has already got this WARNING when it asked for the lock. */
	if (!has_lock && (result == Registered::clash || result == Registered::replaced))
		report_clash(entry, name, other);
}

CachedName *
name_ask(const LockName &name)
{
	Oid			role = GetUserId();
	bool		is_last = last_named != nullptr && last_named->key == name.key && last_named->role == role;
	CachedName *entry = is_last ? last_named : find_by_key(name.key, role);

	name_end_asking();
	if (entry == nullptr)
		entry = add_entry(name.key, role);
	if (should_rename(entry, name))
		rename_entry(entry, name);
	asked = entry;
	asked_level = GetCurrentTransactionNestLevel();
	entry->uses++;
	if (!entry->is_pinned)
		entry->is_pinned = name_pin(entry->reference);

	/* A label for a key that this role also used by name: the name table must tell whether they clash. */
	bool		is_other_label = name.has_name() && !name.by_name() && entry->by_name && !entry->clash_reported;

	if ((!entry->is_pinned || is_other_label) && name.has_name() && setting::track != TRACK_NONE)
		register_entry(entry, name, false, false);
	return entry;
}

void
name_end_asking() noexcept
{
	CachedName *entry = asked;

	asked = nullptr;
	if (entry != nullptr)
		name_release(entry);
}

void
name_end_asking_of_level(int nest_level) noexcept
{
	if (asked_level >= nest_level)
		name_end_asking();
}

void
name_replace_label(CachedName *entry, const LockName &name, Mode mode)
{
	bool		is_label = name.has_name() && !name.by_name();

	if (is_label && entry->is_pinned && (entry->wants_label || !name_is_current(entry->reference)) && setting::track != TRACK_NONE)
		register_entry(entry, name, true, mode == Mode::exclusive);
}

void
name_use(CachedName *name) noexcept
{
	name->uses++;
}

void
name_release(CachedName *name) noexcept
{
	if (--name->uses > 0 || !name->is_pinned)
		return;
	name->is_pinned = false;
	name_unpin(name->reference);
}

void
name_unpin_all() noexcept
{
	by_key_iterator iterator;

	if (names_by_key == nullptr)
		return;
	by_key_start_iterate(names_by_key, &iterator);
	while (ByKey *found = by_key_iterate(names_by_key, &iterator))
	{
		if (found->name->is_pinned)
			name_unpin(found->name->reference);
		found->name->is_pinned = false;
	}
}

const CachedName *
name_remembered(Key key) noexcept
{
	return find_by_key(key, GetUserId());
}

bool
name_is_in_namespace(const CachedName *name, std::string_view ns, int64 ns_key) noexcept
{
	return name->by_name && name->ns_key == ns_key &&
		same_part(namespace_of(name), name->full_ns_length, ns);
}

int64
name_namespace_key(std::string_view ns)
{
	return is_kept_whole(ns) ? 0 : key_of(ns).value;
}

NameStats *
stats_of_name(const CachedName *name) noexcept
{
	return name->is_pinned && setting::track == TRACK_ALL ? name_stats(name->reference) : nullptr;
}

}								/* namespace advisory */
