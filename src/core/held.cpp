/*
 * core/held.cpp
 *		The locks and slots that this session holds through this extension.
 *
 * An entry counts its session-level and its transaction-level holds.  It also has the nesting level
 * of the (sub)transaction that the first of the latter belongs to; the later holds of deeper ones
 * end nothing.  After its last hold it stays in the table until its slot is marked as free, and
 * until it is logged.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/held.h"
#include "core/longholds.h"
#include "shmem/sessiontable.h"
#include "shmem/slotstate.h"

namespace advisory
{

/*
 * An empty table that has had more entries than this is freed when the session asks for the next
 * lock.
 */
static constexpr int KEPT_HOLDS = 16384;

/*
 * All entries are compared with the lock manager when there are this many, and again whenever their
 * number has doubled.
 */
static constexpr int MIN_COMPARED_HOLDS = 64;

namespace
{

/* An entry begins with it. */
struct HeldKey
{
	LOCKTAG		tag;
	Mode		mode;
};

}								/* anonymous namespace */

/*
 * Created when the session first asks for a lock.  A table that has grown large is replaced when it
 * is empty.
 */
static HTAB *helds = nullptr;
static int	most_entries = 0;		/* that it has had */
static int	compare_at = MIN_COMPARED_HOLDS;

/* Holds that have ended and must still be logged. */
static dlist_head holds_to_log = DLIST_STATIC_INIT(holds_to_log);

/* Slots that have ended; their locks may not be released yet. */
static dlist_head ended_slots = DLIST_STATIC_INIT(ended_slots);

/*
 * Entries with session-level holds: first slots, beginning with the newest, then locks, ending with
 * the newest.
 */
dlist_head	session_holds = DLIST_STATIC_INIT(session_holds);

/*
 * Entries with transaction-level holds, the newest last, so that those of the deepest
 * subtransactions are at the end.
 */
dlist_head	xact_holds = DLIST_STATIC_INIT(xact_holds);

bool		some_doubly_held = false;

HeldHooks	held_hooks;

static HeldLock *
look_up(const LOCKTAG &tag, Mode mode, HASHACTION action, bool *found)
{
	HeldKey		key = {tag, mode};

	return static_cast<HeldLock *>(hash_search(helds, &key, action, found));
}

/* ---- Adding ---- */

static HTAB *
make_table()
{
	HASHCTL		control = {};

	control.keysize = sizeof(HeldKey);
	control.entrysize = sizeof(HeldLock);
	control.hcxt = TopMemoryContext;
	control.hash = [](const void *key, Size) {
		const auto *held = static_cast<const HeldKey *>(key);
		const LOCKTAG &tag = held->tag;
		uint64		bits = (static_cast<uint64>(tag.locktag_field2) << 32) | tag.locktag_field3;

		return hash_of_key(static_cast<int64>(bits), tag.locktag_field4 * 2 + index_of(held->mode));
	};
	return hash_create("advisory_ext held locks", MIN_COMPARED_HOLDS, &control,
					   HASH_ELEM | HASH_FUNCTION | HASH_CONTEXT);
}

void
held_prepare(const LOCKTAG &tag, Mode mode)
{
	static bool hears_about_end = false;

	if (!hears_about_end)
	{
		/* The last one is called first, and the other one even if it fails. */
		before_shmem_exit([](int, Datum) { end_all_holds(); }, Datum(0));
		before_shmem_exit([](int, Datum) { AbortOutOfAnyTransaction(); }, Datum(0));
		/* At the time when the server itself logs the end of a session. */
		on_proc_exit([](int, Datum) { log_ended_holds(); }, Datum(0));
		hears_about_end = true;
	}
	log_ended_holds();
	idle_holder_check(session_holds);
	most_entries = Max(most_entries, held_entry_count());
	if (most_entries > KEPT_HOLDS && held_entry_count() == 0)
	{
		hash_destroy(helds);
		helds = nullptr;
		most_entries = 0;
		compare_at = MIN_COMPARED_HOLDS;
	}
	if (helds == nullptr)
		helds = make_table();
	if (held_entry_count() >= compare_at)
	{
		/*
		 * Otherwise locks that pg_advisory_unlock() released one by one would keep their entries
		 * and pins for ever.
		 */
		end_lost_holds(HoldEnd::lost);
		compare_at = Max(2 * held_entry_count(), MIN_COMPARED_HOLDS);
	}
	if (!dlist_is_empty(&session_holds))
	{
		held_notice_lost();
		if (HeldLock *held = held_find(tag, mode))
			held_refresh(held);
	}
	publish_reserve();
	sweep_slot_states();
}

/* Fill in a new entry, which has no holds yet, and publish it. */
static void
fill_entry(HeldLock *held, Scope scope, CachedName *name, int slots) noexcept
{
	PublishedHold published = {};

	*held = HeldLock{held->tag, held->mode, HoldState::held, name, GetCurrentTimestamp()};
	name->uses++;

	published.key = name->key.value;
	published.acquired_at = held->since;
	published.objsubid = held->tag.locktag_field4;
	published.slots = static_cast<uint16>(slots);
	published.lockmode = static_cast<uint8>(lockmode_of(held->mode));
	published.scope = scope;
	published.acquirer = NO_PLACE;
	published.used = name->used();
	held->place = publish_hold(published);
}

/*
 * The nesting level of what owns a lock that is taken now: of the cursor, which can be older than
 * the present subtransaction, or of that.
 */
static int
owner_level() noexcept
{
	const PortalData *portal = ActivePortal;

	if (portal != nullptr && portal->resowner == CurrentResourceOwner &&
		CurrentResourceOwner != CurTransactionResourceOwner)
		return portal->createLevel;
	return GetCurrentTransactionNestLevel();
}

/* Add a hold of the present (sub)transaction. */
static void
add_xact_hold(HeldLock *held) noexcept
{
	if (held->xact_count++ > 0)
		return;
	held->xact_level = GetCurrentTransactionNestLevel();
	held->owner_level = owner_level();
	dlist_push_tail(&xact_holds, &held->in_xact);
	some_doubly_held |= held->session_count > 0;
}

static bool
has_written() noexcept
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* The server counts the commands of a transaction that write. */
bool
has_written_since(const HeldLock *held) noexcept
{
	return has_written() &&
		(held->has_acquirer || held->taken_after != GetCurrentCommandId(false));
}

HeldLock *
held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name, int slots)
{
	bool		was_held;
	HeldLock   *held;

	/* The entry of an earlier hold of this lock may still wait for the log. */
	log_ended_holds();
	held = look_up(tag, mode, HASH_ENTER, &was_held);
	if (!was_held)
		fill_entry(held, scope, name, slots);
	else
	{
		if (by_name && !held->name->by_name())
		{
			/* A lock that was first taken by key has a name now. */
			name->uses++;
			name_release(held->name);
			held->name = name;
		}
		publish_name(held->place, held->name->used());
	}
	if (scope == Scope::transaction)
		add_xact_hold(held);
	else
	{
		held->session_by_name += by_name ? 1 : 0;
		if (held->session_count++ == 0)
		{
			held->has_acquirer = false;
			held->taken_after = has_written() ? GetCurrentCommandId(false) : InvalidCommandId;
			if (slots > 0)
				dlist_push_head(&session_holds, &held->list);
			else
				dlist_push_tail(&session_holds, &held->list);
			publish_scope(held->place, Scope::session);
			some_doubly_held |= held->xact_count > 0;
		}
	}
	if (NameStats *stats = stats_of_name(name))
	{
		stats_count(stats, Event::acquired, 1);
		/*
		 * For a lock that is held already the start of the statement is exact enough, and cheaper.
		 */
		raise_to(&stats->last_acquired_at,
				 was_held ? GetCurrentStatementStartTimestamp() : held->since);
	}
	return held;
}

HeldLock *
held_find(const LOCKTAG &tag, Mode mode) noexcept
{
	HeldLock   *held = helds != nullptr ? look_up(tag, mode, HASH_FIND, nullptr) : nullptr;

	return held != nullptr && held->is_held() ? held : nullptr;
}

/* ---- Removing ---- */

/* Hand an ended entry over to the log, or free it.  It no longer pins its name. */
static void
dispose_of(HeldLock *held) noexcept
{
	CachedName *name = held->name;

	if (held->ended_at != 0)
	{
		held->state = HoldState::to_log;
		name->to_log++;
		dlist_push_tail(&holds_to_log, &held->list);
	}
	else
		look_up(held->tag, held->mode, HASH_REMOVE, nullptr);
	name_release(name);
}

void
log_ended_holds()
{
	while (!dlist_is_empty(&holds_to_log))
	{
		HeldLock	ended = *held_of(dlist_pop_head_node(&holds_to_log), offsetof(HeldLock, list));

		ended.name->to_log--;
		look_up(ended.tag, ended.mode, HASH_REMOVE, nullptr);
		log_hold(&ended, ended.ended_at);
	}
}

void
end_entry(HeldLock *held, HoldEnd end, TimestampTz now) noexcept
{
	NameStats  *stats = stats_of_name(held->name);

	held->state = HoldState::ended;
	withdraw_hold(held->place);
	if (end == HoldEnd::released && stats != nullptr)
		stats_add(&stats->hold, Max(held->since, stats_reset_at(stats)), now);
	if (end == HoldEnd::released && !held->is_logged && is_long_hold(held, now))
		held->ended_at = now;
	if (held->semaphore == nullptr)
		return dispose_of(held);
	dlist_delete(&held->in_semaphore);
	if (end != HoldEnd::prepared)
		return dlist_push_tail(&ended_slots, &held->in_semaphore);
	held_hooks.slot_ended(held, true);
	dispose_of(held);
}

void
free_ended_slots() noexcept
{
	while (!dlist_is_empty(&ended_slots))
	{
		HeldLock   *held = held_of(dlist_pop_head_node(&ended_slots),
								   offsetof(HeldLock, in_semaphore));

		held_hooks.slot_ended(held, false);
		dispose_of(held);
	}
}

HeldLock *
keep_session_holds(HeldLock *held, int64 count, int64 by_name, HoldEnd end) noexcept
{
	held->session_count = Max(count, 0);
	held->session_by_name = Max(Min(by_name, count), 0);
	if (count > 0)
		return held;
	dlist_delete(&held->list);
	publish_scope(held->place, Scope::transaction);
	/* Beside session-level holds nobody noticed whether ROLLBACK TO has released the others. */
	if (held->xact_count > 0 && !is_lost(held))
		return held;
	if (held->xact_count > 0)
		dlist_delete(&held->in_xact);
	held->xact_count = 0;
	end_entry(held, end, GetCurrentTimestamp());
	return nullptr;
}

void
held_remove(HeldLock *held, int64 count, bool by_name) noexcept
{
	if (held == nullptr || held->session_count == 0)
		return;
	keep_session_holds(held, held->session_count - count,
					   held->session_by_name - (by_name ? count : 0), HoldEnd::released);
	free_ended_slots();
}

void
end_lost_holds(HoldEnd end) noexcept
{
	for (HeldLock *held : holds_on(session_holds, offsetof(HeldLock, list)))
	{
		if (is_lost(held))
			keep_session_holds(held, 0, 0, end);
	}
	free_ended_slots();
}

/*
 * pg_advisory_unlock_all() and DISCARD ALL release all session-level locks, including slots.  Two
 * entries are enough to notice that.  If the first one is lost and is a slot, which nothing else
 * releases, or if the first and the last one are lost, all others are compared with the lock
 * manager, too.  Otherwise pg_advisory_unlock() has released the oldest or the newest lock.
 */
void
held_notice_lost() noexcept
{
	HeldLock   *first;
	HeldLock   *last;

	if (dlist_is_empty(&session_holds))
		return;
	first = held_of(dlist_head_node(&session_holds), offsetof(HeldLock, list));
	last = held_of(dlist_tail_node(&session_holds), offsetof(HeldLock, list));

	bool		is_first_lost = is_lost(first);
	bool		is_last_lost = is_lost(last);

	if (is_first_lost && (first->semaphore != nullptr || is_last_lost))
		end_lost_holds(HoldEnd::released);
	else if (is_first_lost || is_last_lost)
		keep_session_holds(is_first_lost ? first : last, 0, 0, HoldEnd::released);
}

int64
held_release(const LOCKTAG &tag, Mode mode, int64 count, bool by_name)
{
	for (int64 i = 0; i < count; i++)
		release_session_lock(tag, mode);
	held_remove(held_find(tag, mode), count, by_name);
	return count;
}

void
lock_give_up(const LockRequest &request, int slot)
{
	LOCKTAG		tag = request.granted_tag(slot);

	if (is_held_by_me(tag, request.mode))
		held_release(tag, request.mode, 1, request.name.by_name());
}

HeldLock *
held_refresh(HeldLock *held)
{
	LockCounts	real;

	if (held->session_count == 0)
		return held;
	real = lock_counts(held->tag, held->mode);
	/* Beside session-level holds nobody noticed that ROLLBACK TO has released the others. */
	if (held->xact_count > 0 && real.transaction == 0)
	{
		dlist_delete(&held->in_xact);
		held->xact_count = 0;
	}
	held = keep_session_holds(held, Min(held->session_count, real.session), held->session_by_name,
							  HoldEnd::lost);
	free_ended_slots();
	return held;
}

void
held_keep_for_transaction(HeldLock *held) noexcept
{
	add_xact_hold(held);
	/* The session-level hold continues as this one, so it does not count as one more. */
	held_remove(held, 1, held->session_by_name > 0);
}

/* ---- Looking at all ---- */

int
held_entry_count() noexcept
{
	return helds != nullptr ? static_cast<int>(hash_get_num_entries(helds)) : 0;
}

int
held_count_locks()
{
	HASH_SEQ_STATUS scan;
	int			count = 0;

	if (helds == nullptr)
		return 0;
	hash_seq_init(&scan, helds);
	while (const auto *held = static_cast<const HeldLock *>(hash_seq_search(&scan)))
	{
		/* A lock that is held in both modes counts once. */
		count += held->is_held() && is_held_by_me(held->tag, held->mode) &&
			(held->mode == Mode::exclusive || !is_held_by_me(held->tag, Mode::exclusive));
	}
	return count;
}

}								/* namespace advisory */
