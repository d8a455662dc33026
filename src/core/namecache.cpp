/*
 * core/namecache.cpp
 *		The name cache: the names that this session has used.
 *
 * A hash table finds entries by key and role, and those with a name also by role, namespace and
 * name, unless these are very long.  It consists of chains through the entries, so an entry that
 * there is memory for can be added without an error.  When there are many entries, all that are not
 * in use are dropped at once.  Their memory stays and is used for new ones, so that LockName.cached
 * always points to some entry.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/guc.h"
#include "core/namecache.h"

namespace advisory
{

/* At least and at most this many entries are kept while they are not in use. */
static constexpr int MIN_KEPT_NAMES = 256;
static constexpr int MAX_KEPT_NAMES = 16384;

static constexpr int FIRST_BUCKET_BITS = 8;

namespace
{

struct Request
{
	CachedName *name;
	int			nest_level;		/* of the (sub)transaction that it began in */
};

/* The first entries of two chains. */
struct Bucket
{
	CachedName *by_key;
	CachedName *by_text;
};

}								/* anonymous namespace */

static MemoryContext cache_context = nullptr;
static Bucket *buckets = nullptr;
static int	bucket_bits = 0;	/* their number is two to the power of this */

static CachedName *dropped = nullptr;
static int	entry_count = 0;
static uint32 last_version = 0;

/* When there are this many entries, those that are not in use are dropped. */
static int	drop_at = MIN_KEPT_NAMES;

/*
 * The requests that are under way, the oldest first: usually one.  More come from statements that
 * run while the session waits.  They are not in the frames of the callers, because an error unwinds
 * these before the (sub)transaction ends.
 */
static Request *requests = nullptr;
static int	request_count = 0;
static int	most_requests = 0;	/* that there is memory for */

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

static Bucket *
bucket_of(uint64 hash) noexcept
{
	return &buckets[hash >> (64 - bucket_bits)];
}

/* hash: of key and role. */
static CachedName **
key_chain(uint32 hash) noexcept
{
	return &bucket_of(static_cast<uint64>(hash) << 32)->by_key;
}

static CachedName **
text_chain(uint64 hash, Oid role) noexcept
{
	return &bucket_of(hash ^ static_cast<uint64>(murmurhash32(role)) << 32)->by_text;
}

template <CachedName *CachedName::*next>
static void
add_to_chain(CachedName **first, CachedName *name) noexcept
{
	name->*next = *first;
	*first = name;
}

/* The entries of names that can be found by their text are in a second chain. */
static void
add_to_chains(CachedName *name) noexcept
{
	add_to_chain<&CachedName::next_by_key>(key_chain(name->key_hash), name);
	if (name->hash != 0)
		add_to_chain<&CachedName::next_by_text>(text_chain(name->hash, name->role), name);
}

/* Give up the text of an entry that gets another one, or is dropped. */
static void
give_up_text(CachedName *name) noexcept
{
	name->version = ++last_version;
	if (name->has_pin())
		name_unpin(name->reference);
	if (name->hash != 0)
	{
		CachedName **link = text_chain(name->hash, name->role);

		while (*link != name)
			link = &(*link)->next_by_text;
		*link = name->next_by_text;
	}
	if (name->has_text())
		pfree(name->text);
}

static void
drop_unused() noexcept
{
	for (int i = 0; i < 1 << bucket_bits; i++)
	{
		for (CachedName **link = &buckets[i].by_key; *link != nullptr;)
		{
			CachedName *name = *link;

			if (name->uses > 0 || name->to_log > 0)
			{
				link = &name->next_by_key;
				continue;
			}
			*link = name->next_by_key;
			give_up_text(name);
			name->next_by_key = dropped;
			dropped = name;
			entry_count--;
		}
	}
	drop_at = Max(2 * entry_count, Min(Max(setting::max_names, MIN_KEPT_NAMES), MAX_KEPT_NAMES));
}

/* Twice as many buckets, or the first ones.  May ereport, and then nothing has changed. */
static void
add_buckets()
{
	Bucket	   *old = buckets;
	int			old_count = old != nullptr ? 1 << bucket_bits : 0;
	int			bits = old != nullptr ? bucket_bits + 1 : FIRST_BUCKET_BITS;

	buckets = static_cast<Bucket *>(MemoryContextAllocExtended(
		cache_context, sizeof(Bucket) << bits, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	bucket_bits = bits;
	for (int i = 0; i < old_count; i++)
	{
		CachedName *next;

		for (CachedName *name = old[i].by_key; name != nullptr; name = next)
		{
			next = name->next_by_key;
			add_to_chains(name);
		}
	}
	if (old != nullptr)
		pfree(old);
}

static CachedName *
find_by_key(Key key, Oid role, uint32 hash) noexcept
{
	CachedName *found = buckets != nullptr ? *key_chain(hash) : nullptr;

	while (found != nullptr && !(found->key == key && found->role == role))
		found = found->next_by_key;
	return found;
}

/* May ereport (out of memory). */
static CachedName *
add_entry(Key key, Oid role, uint32 hash)
{
	if (cache_context == nullptr)
		cache_context = AllocSetContextCreate(TopMemoryContext, "advisory_ext names",
											  ALLOCSET_DEFAULT_SIZES);
	if (entry_count >= drop_at)
		drop_unused();
	if (buckets == nullptr || entry_count >= 1 << bucket_bits)
		add_buckets();

	CachedName *name = dropped;

	if (name != nullptr)
		dropped = name->next_by_key;
	else
		name = static_cast<CachedName *>(MemoryContextAlloc(cache_context, sizeof(CachedName)));
	*name = CachedName{key, role};
	name->key_hash = hash;
	name->version = ++last_version;
	add_to_chains(name);
	entry_count++;
	return name;
}

static uint64
hash_of_text(const char *text, size_t length) noexcept
{
	return hash_bytes_extended(reinterpret_cast<const unsigned char *>(text),
							   static_cast<int>(length), hash_seed);
}

LockName
named_lock(std::string_view ns, std::string_view name)
{
	Oid			role = GetUserId();
	char		text[2 * NAME_BYTES + 1];	/* as in an entry */
	size_t		length = ns.size() + 1 + name.size();
	CachedName *found = nullptr;
	uint64		hash = 0;

	if (length <= sizeof(text))
	{
		join_with_zero(text, ns, name);
		hash = hash_of_text(text, length);
		if (buckets != nullptr)
			found = *text_chain(hash, role);
	}
	while (found != nullptr && !(found->hash == hash && found->role == role &&
								 found->text_length() == length &&
								 memcmp(found->text, text, length) == 0))
		found = found->next_by_text;
	if (found != nullptr)
		return LockName{found->key, ns, name, hash, found, found->version};
	return LockName{key_of(ns, name), ns, name, hash};
}

/* With it, two long namespaces that are cut to the same text can be told apart. */
static uint64
hash_of_namespace(std::string_view ns) noexcept
{
	return hash_of_text(ns.data(), ns.size());
}

/* A name replaces a label, and a label an older one. */
static bool
should_rename(const CachedName *entry, const LockName &name)
{
	if (!name.has_name() || (entry->by_name() && !name.by_name()))
		return false;
	return !entry->has_text() || name_of(entry) != shown_part(name.name) ||
		namespace_of(entry) != shown_part(name.ns);
}

static void
rename_entry(CachedName *entry, const LockName &name)
{
	std::string_view ns = shown_part(name.ns);
	std::string_view text = shown_part(name.name);
	auto	   *copy = static_cast<char *>(
		MemoryContextAlloc(cache_context, ns.size() + text.size() + 2));
	bool		is_ns_cut = ns.data() != name.ns.data();
	bool		is_cut = is_ns_cut || text.data() != name.name.data();

	give_up_text(entry);
	join_with_zero(copy, ns, text);
	copy[ns.size() + 1 + text.size()] = '\0';
	entry->text = copy;
	entry->ns_length = static_cast<uint16>(ns.size());
	entry->name_length = static_cast<uint16>(text.size());
	entry->ns_hash = is_ns_cut ? hash_of_namespace(name.ns) : 0;
	entry->state = NameState::unstored;
	entry->reference = NameReference{};
	entry->hash = is_cut ? 0 : name.hash;
	if (entry->hash != 0)
		add_to_chain<&CachedName::next_by_text>(text_chain(entry->hash, entry->role), entry);
}

/* ---- The name table ---- */

/*
 * The key has another name or label: raise a WARNING, once per session and name.  Not if the
 * caller's label fits that name.  If the other one is a label that does not count, only a caller
 * that may see it and uses the key by name is warned.
 */
static void
report_collision(CachedName *entry, const LockName &name, const KnownName &other)
{
	bool		sees_other = may_see_name(other, UsedName{});
	char	   *text = join_name(other.ns, other.name);

	/*
	 * Do not compare with a part of a hidden name.  A caller that knows the whole name can compute
	 * its key anyway.
	 */
	if (!name.by_name() && other.ns != nullptr &&
		((sees_other && name.name == other.name) || name.name == text))
		return;
	if (!other.counts && !(name.by_name() && sees_other))
		return;
	name_count_collision();
	if (entry->is_warned)
		return;
	entry->is_warned = true;
	make_printable(text);
	ereport(WARNING,
			(errmsg("the key of advisory lock \"%s\" also has another name", display_name(name)),
			 sees_other
			 ? errdetail("Key " INT64_FORMAT " is also the key of \"%s\".", name.key.value, text)
			 : errdetail("Key " INT64_FORMAT " is also the key of a name that the current user "
						 "may not see.", name.key.value),
			 errhint("Locks with the same key exclude each other. "
					 "Use another name or key for one of them.")));
}

/* Register the text of an entry, under which the lock is requested, and pin it. */
static void
register_entry(CachedName *entry, const LockName &name)
{
	GivenName	given = {entry->key, to_utf8(namespace_of(entry)), to_utf8(name_of(entry))};
	Registration result = name_register(given, entry->role);
	const KnownName *other;

	entry->reference = result.reference;
	if (result.reference.generation == 0)
		entry->state = NameState::unstored;
	else
		entry->state = result.is_outranked ? NameState::outranked : NameState::pinned;
	if (result.has_other && (other = name_find_other(given)) != nullptr)
		report_collision(entry, name, *other);
}

/* The entry is in use by one more request. */
static NameHandle
begin_request(CachedName *entry)
{
	if (request_count == most_requests)
	{
		int			most = Max(2 * most_requests, 4);
		size_t		bytes = sizeof(Request) * most;

		requests = static_cast<Request *>(requests == nullptr
			? MemoryContextAlloc(cache_context, bytes) : repalloc(requests, bytes));
		most_requests = most;
	}
	requests[request_count] = Request{entry, GetCurrentTransactionNestLevel()};
	entry->uses++;
	return NameHandle{entry, request_count++};
}

NameHandle
name_ask(const LockName &name)
{
	Oid			role = GetUserId();
	CachedName *entry = name.cached;

	if (entry == nullptr || entry->version != name.version || entry->role != role)
	{
		uint32		hash = hash_of_key(name.key.value, role);

		entry = find_by_key(name.key, role, hash);
		if (entry == nullptr)
			entry = add_entry(name.key, role, hash);
		if (should_rename(entry, name))
			rename_entry(entry, name);
	}

	NameHandle	request = begin_request(entry);

	/* A label is registered anew, because the key may have got another name or label meanwhile. */
	if (entry->state == NameState::stored && (entry->by_name() || !name.has_name()) &&
		name_pin(entry->reference))
		entry->state = NameState::pinned;

	if (!name.has_name() || setting::track == TRACK_NONE)
		return request;
	if (!entry->has_pin())
		register_entry(entry, name);
	/* The lock is requested with a label, but this role also used its key by name. */
	if (!name.by_name() && entry->by_name() && !entry->is_warned)
		report_collision(entry, name, KnownName{name.key, entry->ns(), entry->name(), true,
							 NameReference{}, {entry->role}});
	return request;
}

/* The newest request is over. */
static void
end_request() noexcept
{
	name_release(requests[--request_count].name);
}

void
name_end(const NameHandle &request) noexcept
{
	/* Those that began later ended with an error that was caught. */
	while (request_count > request.place)
		end_request();
}

void
name_end_all(int nest_level) noexcept
{
	while (request_count > 0 && requests[request_count - 1].nest_level >= nest_level)
		end_request();
}

void
name_release(CachedName *name) noexcept
{
	if (--name->uses > 0 || !name->has_pin())
		return;
	name_unpin(name->reference);
	name->state = name->state == NameState::pinned ? NameState::stored : NameState::unstored;
}

const CachedName *
name_remembered(Key key, bool has_label) noexcept
{
	Oid			role = GetUserId();
	const CachedName *found = find_by_key(key, role, hash_of_key(key.value, role));

	return found != nullptr && (found->by_name() || (has_label && found->has_text()))
		? found : nullptr;
}

bool
name_is_in_namespace(const CachedName *name, std::string_view ns)
{
	std::string_view shown = shown_part(ns);
	uint64		ns_hash = shown.data() != ns.data() ? hash_of_namespace(ns) : 0;

	return name->by_name() && name->ns_hash == ns_hash && namespace_of(name) == shown;
}

NameStats *
stats_of_name(const CachedName *name) noexcept
{
	return name->has_pin() && setting::track == TRACK_ALL ? name_stats(name->reference) : nullptr;
}

/* ---- Names in messages ---- */

char *
visible_name(const LOCKTAG &tag, bool for_log)
{
	DecodedTag	decoded = decode_tag(tag);
	char	   *text = nullptr;

	if (!has_key(decoded.kind))
		return nullptr;

	const KnownName *known = name_find({decoded.database, decoded.key});
	const CachedName *own = name_remembered(decoded.key, true);

	if (known != nullptr && (for_log || may_see_name(*known, UsedName{})))
		text = join_name(known->ns, known->name);
	else if (own != nullptr && decoded.database == MyDatabaseId)
		text = join_name(own->ns(), own->name());
	if (text != nullptr)
		make_printable(text);
	return text;
}

char *
display_lock(const LockName &name)
{
	char	   *known = name.has_name() ? nullptr : visible_name(lock_tag(MyDatabaseId, name.key));

	return known != nullptr ? known : display_name(name);
}

}								/* namespace advisory */
