/*
 * holds.cpp
 *		What this session holds through this extension, and under which names.
 *
 * Two structures:
 *
 * - notebook: a hash table, key -> Hold.
 *
 * - xact_holds: the transaction-level holds in the order they were noted, each
 *	 with the nesting level of the transaction that it belongs to.  Levels never
 *	 fall from one entry to the next, so the end of a subtransaction concerns
 *	 only the top of the stack.
 *
 * A note is dropped when its counts reach zero.  Session-level holds that were
 * released behind our back leave stale notes; these are swept out whenever the
 * notebook has doubled since the last sweep, so that a pooled connection which
 * lives on DISCARD ALL does not grow.
 */
#include "pg.h"

#include "compat.h"
#include "holds.h"

namespace advisory
{

struct XactHold
{
	Key			key;
	Mode		mode;
	int			nest_level;
};

static constexpr int FIRST_SWEEP_AT = 256;
static constexpr int FIRST_XACT_HOLDS = 64;
static constexpr int KEPT_XACT_HOLDS = 4096;

static MemoryContext notebook_context = nullptr;
static HTAB *notebook = nullptr;
static int64 sweep_at = FIRST_SWEEP_AT;

static XactHold *xact_holds = nullptr;
static int	xact_hold_count = 0;
static int	xact_hold_capacity = 0;

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

static int64
total_count(const Hold *hold) noexcept
{
	int64		total = 0;

	for (const auto &scope : hold->counts)
	{
		for (int64 count : scope)
			total += count;
	}
	return total;
}

static void
clear_names(Hold *hold) noexcept
{
	if (hold->ns != nullptr)
		pfree(hold->ns);
	if (hold->name != nullptr)
		pfree(hold->name);
	hold->ns = nullptr;
	hold->name = nullptr;
}

static void
drop_note(Hold *hold) noexcept
{
	int64		key = hold->key;

	clear_names(hold);
	hash_search(notebook, &key, HASH_REMOVE, nullptr);
}

static void
sweep_notebook()
{
	HASH_SEQ_STATUS status;

	hash_seq_init(&status, notebook);
	while (auto *hold = static_cast<Hold *>(hash_seq_search(&status)))
	{
		if (!is_held_by_me(lock_tag(MyDatabaseId, Key{hold->key})))
			drop_note(hold);
	}
	sweep_at = Max(2 * hash_get_num_entries(notebook), FIRST_SWEEP_AT);
}

static void
open_notebook()
{
	HASHCTL		control = {};

	if (notebook_context == nullptr)
		notebook_context = AllocSetContextCreate(TopMemoryContext, "advisory_ext holds",
												 ALLOCSET_DEFAULT_SIZES);
	control.keysize = sizeof(int64);
	control.entrysize = sizeof(Hold);
	control.hcxt = notebook_context;
	notebook = hash_create("advisory_ext holds", FIRST_SWEEP_AT, &control,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
reserve_xact_hold()
{
	if (xact_hold_count < xact_hold_capacity)
		return;

	int			capacity = Max(2 * xact_hold_capacity, FIRST_XACT_HOLDS);
	Size		bytes = sizeof(XactHold) * capacity;
	void	   *grown = xact_holds == nullptr
		? MemoryContextAlloc(notebook_context, bytes)
		: repalloc_huge(xact_holds, bytes);

	xact_holds = static_cast<XactHold *>(grown);
	xact_hold_capacity = capacity;
}

static char *
copy_into_notebook(std::string_view text)
{
	auto	   *copy = static_cast<char *>(MemoryContextAlloc(notebook_context, text.size() + 1));

	memcpy(copy, text.data(), text.size());
	copy[text.size()] = '\0';
	return copy;
}

static bool
same_text(const char *stored, std::string_view text) noexcept
{
	return stored != nullptr && text == std::string_view(stored);
}

/* A name outranks a label, and a new label an old one. */
static bool
should_rename(const Hold *hold, const LockName &name) noexcept
{
	if (!name.has_name())
		return false;
	if (name.by_name())
		return !same_text(hold->ns, name.ns) || !same_text(hold->name, name.name);
	return hold->ns == nullptr && !same_text(hold->name, name.name);
}

static void
rename_note(Hold *hold, const LockName &name)
{
	char	   *new_ns = name.by_name() ? copy_into_notebook(name.ns) : nullptr;
	char	   *new_name = copy_into_notebook(name.name);

	clear_names(hold);
	hold->ns = new_ns;
	hold->name = new_name;
}

/* The note on a lock; a new one if there was none. */
static Hold *
open_note(const LockName &name)
{
	bool		found;

	if (notebook == nullptr)
		open_notebook();
	if (hash_get_num_entries(notebook) >= sweep_at)
		sweep_notebook();

	auto	   *hold = static_cast<Hold *>(hash_search(notebook, &name.key.value, HASH_ENTER, &found));

	if (!found)
	{
		*hold = Hold{};
		hold->key = name.key.value;
	}
	return hold;
}

static void
set_session_count(Hold *hold, Mode mode, int64 count) noexcept
{
	int			m = index_of(mode);

	hold->counts[index_of(Scope::session)][m] = count;
	hold->session_by_name[m] = Min(hold->session_by_name[m], count);
}

/* Strike out session-level holds that were released behind our back. */
static void
strike_released(Hold *hold, Mode mode, int64 just_granted)
{
	int64		noted = hold->counts[index_of(Scope::session)][index_of(mode)];

	if (noted == 0)
		return;

	LockCounts	held = lock_counts(lock_tag(MyDatabaseId, Key{hold->key}), mode);

	set_session_count(hold, mode, Min(noted, held.session - just_granted));
}

void
hold_note(const LockName &name, Mode mode, Scope scope)
{
	int			m = index_of(mode);
	Hold	   *hold = open_note(name);

	if (scope == Scope::transaction)
		reserve_xact_hold();
	for (Mode each : ALL_MODES)
		strike_released(hold, each, each == mode && scope == Scope::session ? 1 : 0);
	if (total_count(hold) == 0)
		clear_names(hold);		/* of an earlier life */
	if (should_rename(hold, name))
		rename_note(hold, name);

	if (hold_count(hold, mode) == 0)
		hold->acquired_at[m] = GetCurrentTimestamp();
	hold->counts[index_of(scope)][m]++;
	if (scope == Scope::transaction)
		xact_holds[xact_hold_count++] = XactHold{name.key, mode, GetCurrentTransactionNestLevel()};
	else if (name.by_name())
		hold->session_by_name[m]++;
}

static Hold *
find_note(Key key) noexcept
{
	if (notebook == nullptr)
		return nullptr;
	return static_cast<Hold *>(hash_search(notebook, &key.value, HASH_FIND, nullptr));
}

static void
drop_if_empty(Hold *hold) noexcept
{
	if (total_count(hold) == 0)
		drop_note(hold);
}

void
hold_strike(const LockName &name, Mode mode, int64 count) noexcept
{
	Hold	   *hold = find_note(name.key);

	if (hold == nullptr)
		return;

	int			m = index_of(mode);

	if (name.by_name())
		hold->session_by_name[m] = Max(hold->session_by_name[m] - count, 0);
	set_session_count(hold, mode, Max(hold->counts[index_of(Scope::session)][m] - count, 0));
	drop_if_empty(hold);
}

static void
strike_xact_hold(const XactHold &held) noexcept
{
	Hold	   *hold = find_note(held.key);

	if (hold == nullptr)
		return;

	int64	   &noted = hold->counts[index_of(Scope::transaction)][index_of(held.mode)];

	noted = Max(noted - 1, 0);
	drop_if_empty(hold);
}

const Hold *
hold_find(Key key)
{
	Hold	   *hold = find_note(key);

	if (hold == nullptr)
		return nullptr;
	for (Mode mode : ALL_MODES)
		strike_released(hold, mode, 0);
	if (total_count(hold) > 0)
		return hold;
	drop_note(hold);
	return nullptr;
}

int64
hold_count(const Hold *hold, Mode mode) noexcept
{
	return hold->counts[index_of(Scope::session)][index_of(mode)] +
		hold->counts[index_of(Scope::transaction)][index_of(mode)];
}

static bool
has_session_hold(const Hold *hold) noexcept
{
	if (hold == nullptr)
		return false;
	for (int64 count : hold->counts[index_of(Scope::session)])
	{
		if (count > 0)
			return true;
	}
	return false;
}

Key *
hold_session_keys(std::string_view ns, int *count)
{
	HASH_SEQ_STATUS status;

	*count = 0;
	if (notebook == nullptr)
		return nullptr;

	auto	   *keys = static_cast<Key *>(palloc_extended(sizeof(Key) * (hash_get_num_entries(notebook) + 1),
														  MCXT_ALLOC_HUGE));

	/* An error must not leave the scan open, so hold_find is for afterwards. */
	hash_seq_init(&status, notebook);
	while (auto *hold = static_cast<Hold *>(hash_seq_search(&status)))
	{
		if (same_text(hold->ns, ns))
			keys[(*count)++] = Key{hold->key};
	}

	int			kept = 0;

	for (int i = 0; i < *count; i++)
	{
		if (has_session_hold(hold_find(keys[i])))
			keys[kept++] = keys[i];
	}
	*count = kept;
	return keys;
}

LockName
hold_name(const Hold *hold) noexcept
{
	LockName	name = {};

	name.key = Key{hold->key};
	if (hold->ns != nullptr)
		name.ns = hold->ns;
	if (hold->name != nullptr)
		name.name = hold->name;
	return name;
}

/* A transaction has ended for good or failed: what was taken in it or below it is gone. */
static void
forget_xact_holds(int nest_level) noexcept
{
	while (xact_hold_count > 0 && xact_holds[xact_hold_count - 1].nest_level >= nest_level)
		strike_xact_hold(xact_holds[--xact_hold_count]);
}

/* Give back what only a large transaction needed. */
static void
shrink() noexcept
{
	if (xact_hold_capacity <= KEPT_XACT_HOLDS)
		return;
	pfree(xact_holds);
	xact_holds = nullptr;
	xact_hold_capacity = 0;
	if (hash_get_num_entries(notebook) == 0)
	{
		MemoryContextDelete(notebook_context);
		notebook_context = nullptr;
		notebook = nullptr;
		sweep_at = FIRST_SWEEP_AT;
	}
}

/* A subtransaction has succeeded: its holds are now its parent's. */
static void
hand_xact_holds_to_parent(int nest_level) noexcept
{
	for (int i = xact_hold_count - 1; i >= 0 && xact_holds[i].nest_level >= nest_level; i--)
		xact_holds[i].nest_level = nest_level - 1;
}

static void
at_xact_end(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			forget_xact_holds(0);
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
		forget_xact_holds(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		hand_xact_holds_to_parent(GetCurrentTransactionNestLevel());
}

void
holds_init()
{
	RegisterXactCallback(at_xact_end, nullptr);
	RegisterSubXactCallback(at_subxact_end, nullptr);
}

}								/* namespace advisory */
