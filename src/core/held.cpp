/*
 * core/held.cpp
 *		What this session knows of locks: their names, and what it holds through this
 *		extension.
 *
 * The notes are found by key, and by namespace and name unless these are very
 * long.  What is held is published (published.h): a record for each lock, mode and
 * transaction, and one for each session-level lock and mode.  The transaction-level
 * records stand in the order they were made, with the nesting level of
 * the transaction that they belong to.  Levels never fall from one record to the
 * next, so the end of a subtransaction concerns only the end of the list.
 *
 * Notes of nothing that is held are kept until there are many.  Session-level holds
 * that were released behind our back leave stale counts; these are found out
 * when the note is used, or when notes are dropped.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/compat.h"
#include "base/encoding.h"
#include "base/guc.h"
#include "core/held.h"
#include "base/key.h"
#include "shmem/published.h"
#include "shmem/waiters.h"

namespace advisory
{

/* How many notes of nothing that is held are kept, at least and at most. */
static constexpr int MIN_KEPT_NOTES = 256;
static constexpr int MAX_KEPT_NOTES = 16384;

namespace
{

/* What a note goes by; in a Hold, or in the arguments of a call. */
struct NoteName
{
	std::string_view ns;
	std::string_view name;
};

struct NoteByKey
{
	int64		key;
	Hold	   *hold;
	char		status;
};

/* The key is in the note, too, but here the processor has it sooner. */
struct NoteByName
{
	Hold	   *hold;
	int64		key;
	uint32		hash;
	char		status;
};

uint32
hash_text(std::string_view text) noexcept
{
	return hash_bytes(reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));
}

/* Only for notes that are found by name, which are kept whole. */
NoteName
note_name(const Hold *hold) noexcept
{
	return NoteName{std::string_view(hold->text(), hold->ns_kept), std::string_view(hold->name(), hold->name_kept)};
}

uint32
hash_name(const NoteName &name) noexcept
{
	return hash_combine(hash_text(name.ns), hash_text(name.name));
}

/* While the table looks for a name that may not have a note: it, instead of a null note. */
const NoteName *wanted_name;

uint32
hash_note(const Hold *hold) noexcept
{
	return hash_name(hold != nullptr ? note_name(hold) : *wanted_name);
}

bool
same_note(const Hold *stored, const Hold *hold) noexcept
{
	NoteName	a = note_name(stored);
	NoteName	b = hold != nullptr ? note_name(hold) : *wanted_name;

	return a.name == b.name && a.ns == b.ns;
}

#define SH_PREFIX by_key
#define SH_ELEMENT_TYPE NoteByKey
#define SH_KEY_TYPE int64
#define SH_KEY key
#define SH_HASH_KEY(table, key) hash_of_key(key, 0)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define SH_PREFIX by_name
#define SH_ELEMENT_TYPE NoteByName
#define SH_KEY_TYPE Hold *
#define SH_KEY hold
#define SH_HASH_KEY(table, key) hash_note(key)
#define SH_EQUAL(table, a, b) same_note(a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(table, element) ((element)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

static MemoryContext notebook_context = nullptr;
static by_key_hash *notes_by_key = nullptr;
static by_name_hash *notes_by_name = nullptr;
static uint32 sweep_at = MIN_KEPT_NOTES;
static bool closes_at_exit = false;

/* Changes whenever notes are dropped. */
static uint32 notebook_epoch = 0;

/* A note that is not in use, as a list. */
struct FreeNote
{
	Hold	   *self;
	HoldRest   *rest;
	FreeNote   *next;
};

static constexpr int NOTES_PER_BLOCK = 64;

static FreeNote *free_notes = nullptr;

static void strike_xact_records(int from);
static void count_record(const HoldRecord *record) noexcept;
static void count_hold(Hold *hold, TimestampTz from, TimestampTz now) noexcept;

/* ---- Asking the lock manager ---- */

bool
is_held_by_me(const LOCKTAG &tag) noexcept
{
	for (Mode mode : ALL_MODES)
	{
		if (compat::lock_held_by_me(&tag, lockmode_of(mode)))
			return true;
	}
	return false;
}

LockCounts
lock_counts(const LOCKTAG &tag, Mode mode)
{
	LockCounts	counts = {};
	LOCKMODE	lockmode = lockmode_of(mode);
	LOCALLOCK  *local = nullptr;

	if (!compat::lock_held_by_me(&tag, lockmode))
		return counts;

	/*
	 * The session's local lock table is not open to extensions, but taking
	 * the lock once more hands out its entry.  A mode that is held already is
	 * only counted up, without looking at shared memory or waiting.
	 */
	compat::lock_acquire_extended(&tag, lockmode, true, true, true, &local);
	for (int i = 0; i < local->numLockOwners; i++)
	{
		if (local->lockOwners[i].owner == nullptr)
			counts.session += local->lockOwners[i].nLocks;
		else
			counts.transaction += local->lockOwners[i].nLocks;
	}
	counts.session--;
	LockRelease(&tag, lockmode, true);
	return counts;
}

/* ---- Notes ---- */

/* How often it is held by transactions, in this mode. */
static int64
xact_count(const Hold *hold, Mode mode) noexcept
{
	int64		count = 0;

	for (int i = hold->xact_record[index_of(mode)]; i != NO_RECORD; i = xact_record(i)->previous)
		count += xact_record(i)->count;
	return count;
}

int64
hold_count(const Hold *hold, Mode mode) noexcept
{
	return hold->rest->session_count[index_of(mode)] + xact_count(hold, mode);
}

static bool
is_held(const Hold *hold, Mode mode) noexcept
{
	return hold->session_record[index_of(mode)] != NO_RECORD || hold->xact_record[index_of(mode)] != NO_RECORD;
}

static bool
is_held(const Hold *hold) noexcept
{
	return is_held(hold, Mode::exclusive) || is_held(hold, Mode::shared);
}

/* Since when, of what is held in this mode: every record knows. */
static TimestampTz
held_since(const Hold *hold, Mode mode) noexcept
{
	int			place = hold->session_record[index_of(mode)];

	if (place != NO_RECORD)
		return session_record(place)->acquired_at;
	return xact_record(hold->xact_record[index_of(mode)])->acquired_at;
}

static void
clear_names(Hold *hold) noexcept
{
	if (hold->is_found_by_name)
		by_name_delete(notes_by_name, hold);
	if (hold->long_text != nullptr)
		pfree(hold->long_text);
	hold->long_text = nullptr;
	hold->has_name = false;
	hold->by_name = false;
	hold->is_found_by_name = false;
	hold->goes_with_holds = false;
	hold->gave_name = false;
	hold->wants_label = false;
	hold->entry = DirectoryReference{};
}

/* While it is held its name cannot make room; now it can. */
static void
mark_if_free(Hold *hold) noexcept
{
	if (!is_held(hold) && !hold->has_slots && directory_is_current(&hold->entry))
		directory_mark_free(hold->entry);
}

/* A lock is released without being counted as held for any time: who knows when that was. */
static void
forget_session_holds(Hold *hold, Mode mode) noexcept
{
	int			m = index_of(mode);

	hold->rest->session_count[m] = 0;
	hold->rest->session_by_name[m] = 0;
	if (hold->session_record[m] == NO_RECORD)
		return;

	HoldRecord	record = *session_record(hold->session_record[m]);

	withdraw_session_hold(hold->session_record[m]);
	hold->session_record[m] = NO_RECORD;
	count_record(&record);
}

static bool
has_xact_hold(const Hold *hold) noexcept
{
	for (int record : hold->xact_record)
	{
		if (record != NO_RECORD)
			return true;
	}
	return false;
}

static bool
is_noted_and_held(const Hold *hold) noexcept
{
	return has_xact_hold(hold) || hold->has_slots ||
		(is_held(hold) && is_held_by_me(lock_tag(MyDatabaseId, hold->key)));
}

static void
free_note(Hold *hold) noexcept
{
	auto	   *free = reinterpret_cast<FreeNote *>(hold);

	free->rest = hold->rest;
	free->self = hold;
	free->next = free_notes;
	free_notes = free;
}

static int
kept_notes() noexcept
{
	return Max(Min(max_names_setting(), MAX_KEPT_NOTES), MIN_KEPT_NOTES);
}

static void
drop_note(Hold *hold) noexcept
{
	for (Mode mode : ALL_MODES)
		forget_session_holds(hold, mode);
	mark_if_free(hold);
	if (hold->long_text != nullptr)
		pfree(hold->long_text);
	free_note(hold);
}

/* Put a note that was kept back where it is found; there is room for it. */
static void
find_again(Hold *hold) noexcept
{
	bool		found;

	by_key_insert(notes_by_key, hold->key.value, &found)->hold = hold;
	if (hold->is_found_by_name)
		by_name_insert(notes_by_name, hold, &found)->key = hold->key.value;
}

/*
 * Drop the notes of what is not held.  As a rule these are nearly all, so both
 * tables are emptied and what stays is put in again.
 */
static void
sweep_notebook() noexcept
{
	by_key_iterator iterator;
	Hold	   *kept = nullptr;

	notebook_epoch++;
	by_key_start_iterate(notes_by_key, &iterator);
	while (NoteByKey *note = by_key_iterate(notes_by_key, &iterator))
	{
		Hold	   *hold = note->hold;

		if (!is_noted_and_held(hold))
		{
			drop_note(hold);
			continue;
		}
		hold->rest->next_kept = kept;
		kept = hold;
	}
	by_key_reset(notes_by_key);
	by_name_reset(notes_by_name);
	for (; kept != nullptr; kept = kept->rest->next_kept)
		find_again(kept);
	sweep_at = Max(2 * notes_by_key->members, static_cast<uint32>(kept_notes()));
}

/* Count the session-level holds that end with the session. */
static void
count_session_holds() noexcept
{
	by_key_iterator iterator;
	TimestampTz now = GetCurrentTimestamp();

	by_key_start_iterate(notes_by_key, &iterator);
	while (NoteByKey *note = by_key_iterate(notes_by_key, &iterator))
	{
		Hold	   *hold = note->hold;
		bool		is_true = is_noted_and_held(hold);

		for (Mode mode : ALL_MODES)
		{
			bool		ends = is_true && is_held(hold, mode);
			TimestampTz since = ends ? held_since(hold, mode) : now;

			forget_session_holds(hold, mode);
			if (ends)
				count_hold(hold, since, now);
		}
	}
}

/* The session ends. */
static void
close_notebook(int, Datum)
{
	/* As the end of a transaction, which comes after this, would. */
	LWLockReleaseAll();
	strike_xact_records(0);
	if (notes_by_key != nullptr)
		count_session_holds();
	withdraw_wait();
	published_detach();
}

static void
open_notebook()
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "advisory_ext holds",
												  ALLOCSET_DEFAULT_SIZES);

	notes_by_name = by_name_create(context, MIN_KEPT_NOTES, nullptr);
	notes_by_key = by_key_create(context, MIN_KEPT_NOTES, nullptr);
	notebook_context = context;
	sweep_at = kept_notes();
	if (!closes_at_exit)
		before_shmem_exit(close_notebook, Datum(0));
	closes_at_exit = true;
}

static Hold *
find_note(Key key) noexcept
{
	if (notes_by_key == nullptr)
		return nullptr;

	NoteByKey  *note = by_key_lookup(notes_by_key, key.value);

	return note != nullptr ? note->hold : nullptr;
}

static_assert(sizeof(Hold) == PG_CACHE_LINE_SIZE, "a note is to be small");

/* Notes are had by the block, and used again. */
static void
add_block()
{
	Size		bytes = (sizeof(Hold) + sizeof(HoldRest)) * NOTES_PER_BLOCK + alignof(Hold);
	auto	   *block = static_cast<char *>(MemoryContextAllocHuge(notebook_context, bytes));
	auto	   *notes = reinterpret_cast<Hold *>(TYPEALIGN(alignof(Hold), block));
	auto	   *rests = reinterpret_cast<HoldRest *>(notes + NOTES_PER_BLOCK);

	/* In the order they will be used in, for the processor's sake. */
	for (int i = NOTES_PER_BLOCK - 1; i >= 0; i--)
	{
		notes[i].rest = &rests[i];
		free_note(&notes[i]);
	}
}

static Hold *
add_note(Key key)
{
	bool		found;

	if (notes_by_key == nullptr)
		open_notebook();
	if (notes_by_key->members >= sweep_at)
		sweep_notebook();

	if (free_notes == nullptr)
		add_block();

	Hold	   *hold = free_notes->self;
	HoldRest   *rest = free_notes->rest;

	by_key_insert(notes_by_key, key.value, &found)->hold = hold;
	free_notes = free_notes->next;
	memset(static_cast<void *>(hold), 0, sizeof(Hold));
	*rest = HoldRest{};
	hold->rest = rest;
	hold->key = key;
	for (Mode mode : ALL_MODES)
	{
		hold->session_record[index_of(mode)] = NO_RECORD;
		hold->xact_record[index_of(mode)] = NO_RECORD;
	}
	return hold;
}

/* ---- Names ---- */

static bool
is_kept_whole(const NoteName &name) noexcept
{
	return name.ns.size() <= STORED_NAME_BYTES && name.name.size() <= STORED_NAME_BYTES;
}

/* The note that goes by this name, or null; and the name's hash. */
static NoteByName *
find_note_by_name(const NoteName &name, uint32 *hash) noexcept
{
	if (notes_by_name == nullptr || !is_kept_whole(name))
		return nullptr;
	wanted_name = &name;
	*hash = hash_name(name);
	return by_name_lookup_hash(notes_by_name, nullptr, *hash);
}

LockName
named_lock(std::string_view ns, std::string_view name)
{
	LockName	lock = {};
	NoteByName *note = find_note_by_name(NoteName{ns, name}, &lock.hash);

	lock.ns = ns;
	lock.name = name;
	if (note != nullptr)
	{
		lock.key = Key{note->key};
		lock.known = note->hold;
		lock.epoch = notebook_epoch;
	}
	else
		lock.key = key_of(ns, name);
	return lock;
}

/* As much of it as is kept: whole characters, as the directory would. */
static std::string_view
kept_part(std::string_view text)
{
	if (text.size() <= STORED_NAME_BYTES)
		return text;
	return first_bytes(text, pg_mbcliplen(text.data(), static_cast<int>(text.size()), STORED_NAME_BYTES));
}

static bool
same_part(std::string_view kept, uint32 full_length, std::string_view text) noexcept
{
	return full_length == text.size() && kept == first_bytes(text, kept.size());
}

/* Is this what the note is called already? */
static bool
same_name(const Hold *hold, const LockName &name) noexcept
{
	return hold->has_name && hold->by_name == name.by_name() &&
		same_part(std::string_view(hold->name(), hold->name_kept), hold->rest->name_length, name.name) &&
		same_part(std::string_view(hold->text(), hold->ns_kept), hold->rest->ns_length, name.ns);
}

/* A name outranks a label, and a new label an old one. */
static bool
should_rename(const Hold *hold, const LockName &name) noexcept
{
	if (!name.has_name() || same_name(hold, name))
		return false;
	return name.by_name() || !hold->by_name;
}

static bool
is_utf8_as_it_is(std::string_view text)
{
	return to_utf8(text).data() == text.data();
}

static void
rename_note(Hold *hold, const LockName &name)
{
	std::string_view ns = kept_part(name.ns);
	std::string_view text = kept_part(name.name);
	int64		ns_key = ns.size() < name.ns.size() ? key_of(name.ns).value : 0;
	size_t		copy_length = ns.size() + text.size();
	size_t		bytes = copy_length + 2;
	auto	   *copy = bytes <= NOTE_TEXT_BYTES
		? nullptr : static_cast<char *>(MemoryContextAlloc(notebook_context, bytes));
	bool		found;

	clear_names(hold);
	hold->long_text = copy;
	if (copy == nullptr)
		copy = hold->short_text;
	if (!ns.empty())
		memcpy(copy, ns.data(), ns.size());
	copy[ns.size()] = '\0';
	memcpy(copy + ns.size() + 1, text.data(), text.size());
	copy[ns.size() + 1 + text.size()] = '\0';
	hold->has_name = true;
	hold->role = GetUserId();
	hold->by_name = name.by_name();
	hold->ns_kept = static_cast<uint16>(ns.size());
	hold->name_kept = static_cast<uint16>(text.size());
	hold->rest->ns_length = static_cast<uint32>(name.ns.size());
	hold->rest->name_length = static_cast<uint32>(name.name.size());
	hold->rest->ns_key = ns_key;
	if (!name.by_name() || !is_kept_whole(NoteName{name.ns, name.name}))
		return;
	by_name_insert_hash(notes_by_name, hold, name.hash != 0 ? name.hash : hash_note(hold), &found)->key =
		hold->key.value;
	hold->is_found_by_name = true;
	hold->goes_with_holds = copy_length <= RECORD_TEXT_BYTES && is_utf8_as_it_is(ns) && is_utf8_as_it_is(text);
}

/* The other name of a key that two names share, as far as the current user may know it. */
static const char *
display_other(const OtherName &other)
{
	if (!may_see_name(other.roles))
		return nullptr;
	if (!other.by_name)
		return from_utf8(other.name);
	return psprintf("%s/%s", from_utf8(other.ns), from_utf8(other.name));
}

static void
warn_of_clash(const LockName &name, const OtherName &other)
{
	const char *other_name = display_other(other);

	ereport(WARNING,
			(errmsg("the key of advisory lock \"%s\" also has another name", display_name(name)),
			 other_name != nullptr
			 ? errdetail("Key " INT64_FORMAT " is also that of \"%s\".", name.key.value, other_name)
			 : errdetail("Key " INT64_FORMAT " is also that of a name that you may not see.", name.key.value),
			 errhint("Locks with the same key exclude each other. Use another name or key for one of them.")));
}

static void
register_name(Hold *hold, const LockName &name, bool has_lock)
{
	RegisteredName registered = {name.key, {}, to_utf8(name.name)};
	bool		is_own_name = name.by_name() == hold->by_name;
	Registered	result;
	OtherName	other;
	bool		has_other;

	if (name.by_name())
		registered.ns = to_utf8(name.ns);
	hold->role = GetUserId();
	result = directory_register(registered, present_giver(has_lock), &hold->entry, &other);
	has_other = result == Registered::clash || result == Registered::replaced;
	hold->wants_label = result == Registered::clash && !name.by_name() && !has_lock;
	if (is_own_name)
		hold->gave_name = result == Registered::stored || result == Registered::replaced;
	if (!has_other || hold->clash_reported)
		return;
	hold->clash_reported = true;
	warn_of_clash(name, other);
}

/* Is this the label of a key that is known by another name? */
static bool
is_other_label(const Hold *hold, const LockName &name) noexcept
{
	return name.known == nullptr && name.has_name() && !name.by_name() && hold->by_name &&
		!hold->clash_reported;
}

/* Is it held by this role, and the name goes with the hold? */
static bool
is_published_with_name(const Hold *hold) noexcept
{
	return hold->goes_with_holds && hold->role == GetUserId() && has_xact_hold(hold);
}

/*
 * A name that the directory does not have can go with the hold, for as long as
 * there is one, and into the directory afterwards, which spares who takes the lock the
 * time for that.  If the directory has it, it is found here.
 */
static bool
may_register_later(Hold *hold, const LockName &name)
{
	RegisteredName wanted = {name.key, name.ns, name.name};

	if (!hold->goes_with_holds || !name.by_name() || !xact_holds_are_shared() || max_names_setting() <= 0)
		return false;
	if (hold->entry.entry == nullptr && is_published_with_name(hold))
		return true;
	if (directory_look(wanted, GetUserId(), &hold->entry) == Found::other)
		return false;
	hold->role = GetUserId();
	hold->gave_name = true;
	return true;
}

/* Have the directory know the name, unless it did the last time that this role used it. */
static void
register_once(Hold *hold, const LockName &name, Scope scope)
{
	if (hold->entry.entry != nullptr && hold->role == GetUserId() && !is_other_label(hold, name))
		return;
	if (!name.has_name() || track_setting() == Track::none)
		return;
	if (scope != Scope::transaction || !may_register_later(hold, name))
		register_name(hold, name, false);
}

/* The same where it may have been forgotten since. */
static void
ensure_registered(Hold *hold, const LockName &name, bool has_lock)
{
	if (directory_is_current(&hold->entry) && !(has_lock && hold->wants_label))
		return;
	if (name.has_name() && track_setting() != Track::none)
		register_name(hold, name, has_lock);
}

/* The note on a lock, under the name that it is now asked for by. */
static Hold *
note_for(const LockName &name)
{
	Hold	   *hold;

	if (name.known != nullptr && name.epoch == notebook_epoch)
		return name.known;
	hold = find_note(name.key);
	if (hold == nullptr)
		hold = add_note(name.key);
	if (should_rename(hold, name))
		rename_note(hold, name);
	return hold;
}

/* Strike out session-level holds in this mode that were released behind our back. */
static void
compare_session_count(Hold *hold, Mode mode)
{
	int			m = index_of(mode);
	int64		held = lock_counts(lock_tag(MyDatabaseId, hold->key), mode).session;

	if (held == 0)
	{
		forget_session_holds(hold, mode);
		mark_if_free(hold);
		return;
	}
	hold->rest->session_count[m] = Min(hold->rest->session_count[m], held);
	hold->rest->session_by_name[m] = Min(hold->rest->session_by_name[m], held);
}

static void
strike_released(Hold *hold)
{
	for (Mode mode : ALL_MODES)
	{
		if (hold->session_record[index_of(mode)] != NO_RECORD)
			compare_session_count(hold, mode);
	}
}

Hold *
hold_open(const LockName &name, Scope scope)
{
	Hold	   *hold = note_for(name);

	strike_released(hold);		/* which may give back room, so it comes before */
	published_reserve(scope);
	register_once(hold, name, scope);
	return hold;
}

/* ---- Statistics and log ---- */

static NameStats *
stats_of(Hold *hold) noexcept
{
	if (track_setting() != Track::all || !directory_is_current(&hold->entry))
		return nullptr;
	return directory_stats(hold->entry);
}

void
hold_count_event(Hold *hold, Event event) noexcept
{
	if (NameStats *stats = stats_of(hold))
		stats_count(stats, event, 1);
	mark_if_free(hold);
}

void
hold_not_free(Hold *hold, const LockName &name)
{
	if (hold->entry.entry != nullptr || hold->goes_with_holds)
		ensure_registered(hold, name, false);
}

void
hold_count_wait(Hold *hold, TimestampTz from, TimestampTz to) noexcept
{
	if (NameStats *stats = stats_of(hold))
		stats_add(&stats->wait, from, to);
}

/* What a record stood for is held no more: from now on the directory counts it. */
static void
count_record(const HoldRecord *record) noexcept
{
	NameStats  *stats = record->is_counted ? stats_of(record->hold) : nullptr;

	if (stats == nullptr || record->last_acquired_at < stats_reset_at(stats))
		return;
	if (record->is_new)
		stats_note_since(stats, Max(record->acquired_at, stats_reset_at(stats)));
	stats_count(stats, Event::acquired, record->count);
	stats_note_acquired(stats, record->last_acquired_at);
}

static const char *
mark_of_cut(uint32 kept, uint32 length) noexcept
{
	return kept < length ? "..." : "";
}

/* Allocates nothing, since it is called at the end of transactions. */
static void
log_hold(const Hold *hold, Mode mode, TimestampTz held)
{
	char		name[2 * (STORED_NAME_BYTES + sizeof("..."))];

	if (!hold->has_name)
		snprintf(name, sizeof(name), INT64_FORMAT, hold->key.value);
	else
		snprintf(name, sizeof(name), "%s%s%s%s%s",
				 hold->text(), mark_of_cut(hold->ns_kept, hold->rest->ns_length), hold->by_name ? "/" : "",
				 hold->name(), mark_of_cut(hold->name_kept, hold->rest->name_length));
	/* Not to the client, where sending it could fail. */
	ereport(LOG_SERVER_ONLY,
			(errmsg("session held advisory lock \"%s\" in %s mode for " INT64_FORMAT ".%03d ms",
					name, mode_name(mode), held / 1000, static_cast<int>(held % 1000))));
}

/* A lock that was held since then is held no more, in this mode. */
static void
count_hold(Hold *hold, TimestampTz from, TimestampTz now) noexcept
{
	if (NameStats *stats = stats_of(hold))
		stats_add(&stats->hold, Max(from, stats_reset_at(stats)), now);
	mark_if_free(hold);
}

/* The last that is done when a hold ends: it can fail. */
static void
log_long_hold(const Hold *hold, Mode mode, TimestampTz from, TimestampTz now)
{
	if (log_hold_setting() >= 0 && now - from >= log_hold_setting() * INT64CONST(1000))
		log_hold(hold, mode, now - from);
}

/* ---- Holds ---- */

/* Let the name go with the hold; it is the directory's name, or will be. */
static void
add_name(HoldRecord *record, const Hold *hold) noexcept
{
	record->ns_length = static_cast<uint8>(hold->ns_kept);
	record->name_length = static_cast<uint8>(hold->name_kept);
	memcpy(record->text, hold->text(), hold->ns_kept);
	memcpy(record->text + hold->ns_kept, hold->name(), hold->name_kept);
}

static void
fill_record(HoldRecord *record, Hold *hold, Mode mode, TimestampTz since, TimestampTz now) noexcept
{
	bool		is_known = hold->entry.entry != nullptr;

	record->key = hold->key.value;
	record->objsubid = OBJSUBID_KEY;
	record->mode = static_cast<uint8>(index_of(mode));
	record->slots = 0;
	record->has_name = hold_proves_name(hold);
	record->is_last = false;
	record->is_new = !is_known && record->has_name && hold->goes_with_holds && track_setting() != Track::none;
	record->is_counted = (is_known || record->is_new) && track_setting() == Track::all;
	record->is_superuser = record->is_new && superuser();
	record->nest_level = GetCurrentTransactionNestLevel();
	record->role = GetUserId();
	record->taker = NO_RECORD;
	record->acquired_at = since;
	record->last_acquired_at = now;
	record->count = 1;
	record->hold = hold;
	record->previous = hold->xact_record[index_of(mode)];
	record->next = NO_RECORD;
	record->ns_length = 0;
	record->name_length = 0;
	if (record->has_name && hold->goes_with_holds)
		add_name(record, hold);
}

static void
add_to_record(HoldRecord *record, TimestampTz now) noexcept
{
	record->count++;
	record->last_acquired_at = now;
}

static void
note_xact_hold(Hold *hold, Mode mode, TimestampTz since, TimestampTz now) noexcept
{
	int		   &newest = hold->xact_record[index_of(mode)];

	if (newest != NO_RECORD && xact_record(newest)->nest_level == GetCurrentTransactionNestLevel())
		add_to_record(xact_record(newest), now);
	else
	{
		fill_record(next_xact_record(), hold, mode, since, now);
		newest = publish_xact_hold();
	}
}

static void
note_session_hold(Hold *hold, const LockName &name, Mode mode, TimestampTz since, TimestampTz now) noexcept
{
	int		   &place = hold->session_record[index_of(mode)];

	hold->rest->session_count[index_of(mode)]++;
	if (name.by_name())
		hold->rest->session_by_name[index_of(mode)]++;
	if (place != NO_RECORD)
		add_to_record(session_record(place), now);
	else
	{
		HoldRecord	record;

		fill_record(&record, hold, mode, since, now);
		place = publish_session_hold(record);
	}
}

/* The name may have had to make room before it was ours to keep. */
static void
keep_registered(Hold *hold, const LockName &name, bool has_lock)
{
	if (hold->entry.entry != nullptr && (hold->wants_label || !directory_is_undisturbed(&hold->entry)))
		ensure_registered(hold, name, has_lock);
}

void
hold_note(Hold *hold, const LockName &name, Mode mode, Scope scope)
{
	bool		is_first = !is_held(hold, mode);
	/* For a lock that is held already the statement's time is near enough, and cheaper. */
	TimestampTz now = is_first ? GetCurrentTimestamp() : GetCurrentStatementStartTimestamp();
	TimestampTz since = is_first ? now : held_since(hold, mode);

	keep_registered(hold, name, mode == Mode::exclusive);
	if (scope == Scope::transaction)
		note_xact_hold(hold, mode, since, Max(now, since));
	else
		note_session_hold(hold, name, mode, since, Max(now, since));
}

void
hold_note_kept(Hold *hold, Mode mode)
{
	int			m = index_of(mode);

	note_xact_hold(hold, mode, held_since(hold, mode), GetCurrentTimestamp());
	if (hold->session_record[m] != NO_RECORD)
		session_record(hold->session_record[m])->count--;
}

static void
count_slots(Hold *hold, int change) noexcept
{
	hold->rest->slots += change;
	hold->has_slots = hold->rest->slots > 0;
}

/* A slot's record is its own; it hangs on no lock's list of records. */
static void
fill_slot_record(HoldRecord *record, Hold *hold, int slot, int slots, TimestampTz now) noexcept
{
	fill_record(record, hold, Mode::exclusive, now, now);
	record->objsubid = static_cast<uint16>(OBJSUBID_SLOT_BASE + slot);
	record->slots = static_cast<uint16>(slots);
	record->previous = NO_RECORD;
}

int
hold_note_slot(Hold *hold, const LockName &name, int slot, int slots, Scope scope)
{
	TimestampTz now = GetCurrentTimestamp();
	HoldRecord	record;
	int			place = NO_RECORD;

	keep_registered(hold, name, false);
	if (scope == Scope::transaction)
	{
		fill_slot_record(next_xact_record(), hold, slot, slots, now);
		publish_xact_hold();
	}
	else
	{
		fill_slot_record(&record, hold, slot, slots, now);
		place = publish_session_hold(record);
	}
	count_slots(hold, 1);
	return place;
}

void
hold_note_kept_slot(Hold *hold, int slot, int place)
{
	HoldRecord *kept = session_record(place);

	fill_slot_record(next_xact_record(), hold, slot, kept->slots, kept->acquired_at);
	publish_xact_hold();
	count_slots(hold, 1);
	kept->count--;
}

void
hold_strike_slot(int place, bool released)
{
	HoldRecord	record = *session_record(place);
	TimestampTz now;

	withdraw_session_hold(place);
	count_slots(record.hold, -1);
	count_record(&record);
	if (!released)
		return mark_if_free(record.hold);
	now = GetCurrentTimestamp();
	count_hold(record.hold, record.acquired_at, now);
	log_long_hold(record.hold, Mode::exclusive, record.acquired_at, now);
}

void
hold_strike(const LockName &name, Mode mode, int64 count)
{
	Hold	   *hold = find_note(name.key);
	int			m = index_of(mode);

	if (hold == nullptr || hold->session_record[m] == NO_RECORD)
		return;

	TimestampTz since = held_since(hold, mode);

	if (name.by_name())
		hold->rest->session_by_name[m] = Max(hold->rest->session_by_name[m] - count, 0);
	hold->rest->session_count[m] = Max(hold->rest->session_count[m] - count, 0);
	hold->rest->session_by_name[m] = Min(hold->rest->session_by_name[m], hold->rest->session_count[m]);
	if (hold->rest->session_count[m] > 0)
		return;
	forget_session_holds(hold, mode);
	if (is_held(hold, mode))
		return;

	TimestampTz now = GetCurrentTimestamp();

	count_hold(hold, since, now);
	log_long_hold(hold, mode, since, now);
}

const Hold *
hold_find(Key key)
{
	Hold	   *hold = find_note(key);

	if (hold == nullptr)
		return nullptr;
	strike_released(hold);
	return is_held(hold) ? hold : nullptr;
}

bool
hold_proves_name(const Hold *hold) noexcept
{
	return hold->gave_name && hold->by_name && hold->role == GetUserId();
}

const Hold *
hold_remembered(Key key) noexcept
{
	return find_note(key);
}

static bool
is_in_namespace(const Hold *hold, std::string_view ns, int64 ns_key) noexcept
{
	return hold->by_name && same_part(std::string_view(hold->text(), hold->ns_kept), hold->rest->ns_length, ns) &&
		hold->rest->ns_key == ns_key;
}

static int64
key_of_namespace(std::string_view ns)
{
	return ns.size() > STORED_NAME_BYTES ? key_of(ns).value : 0;
}

bool
hold_is_in_namespace(const Hold *hold, std::string_view ns)
{
	return is_in_namespace(hold, ns, key_of_namespace(ns));
}

static bool
has_session_hold(const Hold *hold) noexcept
{
	if (hold == nullptr)
		return false;
	for (int64 count : hold->rest->session_count)
	{
		if (count > 0)
			return true;
	}
	return false;
}

static LOCKTAG
tag_of(const HoldRecord &record) noexcept
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, Key{record.key});

	tag.locktag_field4 = record.objsubid;
	return tag;
}

int
hold_count_locks()
{
	int			records = session_record_count() + xact_record_count();
	auto	   *tags = static_cast<LOCKTAG *>(palloc_extended(sizeof(LOCKTAG) * (records + 1), MCXT_ALLOC_HUGE));
	int			count = 0;
	int			held = 0;

	for (int i = 0; i < session_record_count(); i++)
	{
		if (session_record(i)->objsubid != 0)
			tags[count++] = tag_of(*session_record(i));
	}
	for (int i = 0; i < xact_record_count(); i++)
		tags[count++] = tag_of(*xact_record(i));
	qsort(tags, count, sizeof(LOCKTAG), compare_locktags);
	count = static_cast<int>(qunique(tags, count, sizeof(LOCKTAG), compare_locktags));
	for (int i = 0; i < count; i++)
		held += is_held_by_me(tags[i]);
	pfree(tags);
	return held;
}

Key *
hold_session_keys(std::string_view ns, int *count)
{
	by_key_iterator iterator;
	int64		ns_key = key_of_namespace(ns);

	*count = 0;
	if (notes_by_key == nullptr)
		return nullptr;

	auto	   *keys = static_cast<Key *>(palloc_extended(sizeof(Key) * (notes_by_key->members + 1), MCXT_ALLOC_HUGE));

	by_key_start_iterate(notes_by_key, &iterator);
	while (NoteByKey *note = by_key_iterate(notes_by_key, &iterator))
	{
		if (has_session_hold(note->hold) && is_in_namespace(note->hold, ns, ns_key) &&
			has_session_hold(hold_find(note->hold->key)))
			keys[(*count)++] = note->hold->key;
	}
	return keys;
}

/* ---- Ends of transactions ---- */

/* Log the holds that ended with these records, which are withdrawn already. */
static void
log_ended_holds(int from, int count, TimestampTz now)
{
	if (log_hold_setting() < 0)
		return;
	for (int i = from; i < count; i++)
	{
		const HoldRecord *record = xact_record(i);

		if (record->is_last)
			log_long_hold(record->hold, static_cast<Mode>(record->mode), record->acquired_at, now);
	}
}

/*
 * The directory gets the names that it did not have yet.  There is no transaction any
 * more that catalogs could be looked at in, and nobody to be warned.
 */
static void
register_new_names(int from)
{
	for (int i = from; i < xact_record_count(); i++)
	{
		const HoldRecord *record = xact_record(i);
		Hold	   *hold = record->hold;
		RegisteredName name = {Key{record->key}, record->ns(), record->name()};
		OtherName	other;

		if (!record->is_new || (hold->entry.entry != nullptr && hold->role == record->role))
			continue;
		hold->role = record->role;
		/* If it has another name by now, who uses it next will be told. */
		if (directory_register(name, Giver{record->role, record->is_superuser, false, record->acquired_at},
							   &hold->entry, &other) != Registered::stored)
			hold->entry = DirectoryReference{};
	}
}

/*
 * What the records from this one on stand for is held no more.  First all is put
 * in order, then counted, then logged: that can fail.
 */
static void
strike_xact_records(int from)
{
	int			count = xact_record_count();
	TimestampTz now;

	if (count <= from)
		return;
	now = GetCurrentTimestamp();
	register_new_names(from);
	withdraw_xact_holds(from);
	for (int i = count - 1; i >= from; i--)
	{
		HoldRecord *record = xact_record(i);
		Hold	   *hold = record->hold;

		if (record->slots > 0)
			count_slots(hold, -1);
		else
			hold->xact_record[record->mode] = record->previous;
		record->is_last = record->slots > 0 || !is_held(hold, static_cast<Mode>(record->mode));
		count_record(record);
		if (record->is_last)
			count_hold(hold, record->acquired_at, now);
	}
	log_ended_holds(from, count, now);
}

/* The first record that belongs to a transaction of this level, or a deeper one. */
static int
first_record_of(int nest_level) noexcept
{
	int			first = xact_record_count();

	while (first > 0 && xact_record(first - 1)->nest_level >= nest_level)
		first--;
	return first;
}

/* Add a record to the lock's older one, which is then the newest. */
static void
join_records(const HoldRecord *record) noexcept
{
	HoldRecord *older = xact_record(record->previous);

	older->count += record->count;
	older->last_acquired_at = record->last_acquired_at;
	record->hold->xact_record[record->mode] = record->previous;
}

/*
 * A subtransaction has succeeded: its holds are now its parent's.  Where the
 * parent has the lock already the two become one, so that there is one record for
 * each lock, mode and transaction, however often subtransactions take it.
 */
static void
hand_records_to_parent(int nest_level) noexcept
{
	int			first = first_record_of(nest_level);
	int			count = xact_record_count();
	int			kept = first;

	if (first == count)
		return;
	{
		XactListChange change;

		for (int i = first; i < count; i++)
		{
			HoldRecord	record = *xact_record(i);

			record.nest_level = nest_level - 1;
			if (record.slots > 0)
			{
				*xact_record(kept++) = record;
				continue;
			}
			if (record.previous != NO_RECORD && xact_record(record.previous)->nest_level == nest_level - 1)
			{
				join_records(&record);
				continue;
			}
			record.hold->xact_record[record.mode] = kept;
			*xact_record(kept++) = record;
		}
	}
	withdraw_xact_holds(kept);
}

/* Give back what only many locks needed. */
static void
shrink() noexcept
{
	published_shrink();
	if (notes_by_key == nullptr || notes_by_key->members <= static_cast<uint32>(kept_notes()))
		return;
	sweep_notebook();
	if (notes_by_key->members > 0)
		return;
	MemoryContextDelete(notebook_context);
	notes_by_key = nullptr;
	notes_by_name = nullptr;
	free_notes = nullptr;
}

static bool calls_after_transaction = false;

/* What was set for the transaction only has been undone. */
static void
after_transaction(void *)
{
	calls_after_transaction = false;
	publish_taker();
}

/* Have after_transaction called, when all else of the transaction is over. */
static void
call_after_transaction() noexcept
{
	static MemoryContextCallback callback;

	if (calls_after_transaction)
		return;
	calls_after_transaction = true;
	callback.func = after_transaction;
	MemoryContextRegisterResetCallback(TopTransactionContext, &callback);
}

static void
at_xact_end(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			if (needs_taker())
				call_after_transaction();
			withdraw_wait();
			strike_xact_records(0);
			shrink();
			break;
		default:
			break;
	}
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		strike_xact_records(first_record_of(GetCurrentTransactionNestLevel()));
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		hand_records_to_parent(GetCurrentTransactionNestLevel());
}

void
holds_init()
{
	RegisterXactCallback(at_xact_end, nullptr);
	RegisterSubXactCallback(at_subxact_end, nullptr);
}

}								/* namespace advisory */
