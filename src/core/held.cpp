/*
 * core/held.cpp
 *		The locks and slots that this session holds through this extension.
 *
 * An entry counts its session-level and its transaction-level holds; when the latter end, xactholds.h knows.
 *
 * Ends of transactions
 *
 * The callbacks below run at a time when an error would end the server.  So they allocate nothing, and take no lock except the short one on
 * this session's part of the session table.  heldlog.h describes the logging of long holds.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/guc.h"
#include "core/held.h"
#include "core/heldlog.h"
#include "core/idleholder.h"
#include "core/xactholds.h"
#include "shmem/sessiontable.h"
#include "shmem/slotstate.h"

namespace advisory
{

static constexpr int FIRST_HOLDS = 64;

/* An empty table that is larger than this is freed when the session asks for the next lock. */
static constexpr int KEPT_HOLDS = 16384;

/* All entries are compared with the lock manager when there are this many, and again whenever their number has doubled. */
static constexpr uint32 MIN_COMPARED_HOLDS = 64;

namespace
{

/* How a hold ended. */
enum class HoldEnd
{
	released,					/* now */
	lost,						/* without the extension, at an unknown time */
	prepared					/* not at all: a prepared transaction keeps it */
};

/* The table only points to the entries, which have their key and its hash. */
struct HeldPointer
{
	HeldLock   *held;
	uint32		hash;
	char		status;
};

#define SH_PREFIX helds
#define SH_ELEMENT_TYPE HeldPointer
#define SH_KEY_TYPE HeldLock *
#define SH_KEY held
#define SH_HASH_KEY(table, wanted) ((wanted)->hash)
#define SH_EQUAL(table, a, b) (same_tag((a)->tag, (b)->tag) && (a)->mode == (b)->mode)
#define SH_STORE_HASH
#define SH_GET_HASH(table, element) ((element)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

/* Created when the session first asks for a lock.  A table that has grown large is replaced when it is empty. */
static helds_hash *helds = nullptr;
static MemoryContext entry_context = nullptr;

static uint32 compare_at = MIN_COMPARED_HOLDS;

/* Memory for the next entry, allocated before the request for its lock, or left by an entry that has ended; or null. */
static HeldLock *spare_entry = nullptr;

/* Slots that have ended; their locks may not be released yet. */
static dlist_head ended_slots = DLIST_STATIC_INIT(ended_slots);

/* Entries with session-level holds: first slots, beginning with the newest, then locks, ending with the newest. */
static dlist_head session_holds = DLIST_STATIC_INIT(session_holds);

static HeldHooks hooks;

static void end_lost_holds(HoldEnd end) noexcept;
static void at_session_end(int code, Datum argument);

/* ---- Adding ---- */

void
held_prepare(const LOCKTAG &tag, Mode mode)
{
	static bool hears_about_end = false;

	if (!hears_about_end)
	{
		before_shmem_exit(at_session_end, Datum(0));
		/* At the time when the server itself logs the end of a session. */
		on_proc_exit([](int, Datum) { log_ended_holds(); }, Datum(0));
		hears_about_end = true;
	}
	log_ended_holds();
	idle_holder_check(session_holds);
	if (entry_context == nullptr)
		entry_context = SlabContextCreate(TopMemoryContext, "advisory_ext held locks", SLAB_DEFAULT_BLOCK_SIZE, sizeof(HeldLock));
	if (helds != nullptr && helds->members == 0 && helds->size > KEPT_HOLDS)
	{
		helds_destroy(helds);
		helds = nullptr;
	}
	if (helds == nullptr)
	{
		helds = helds_create(TopMemoryContext, FIRST_HOLDS, nullptr);
		compare_at = MIN_COMPARED_HOLDS;
	}
	if (helds->members >= compare_at)
	{
		/* Otherwise locks that pg_advisory_unlock() released one by one would keep their entries and pins for ever. */
		end_lost_holds(HoldEnd::lost);
		compare_at = Max(2 * helds->members, MIN_COMPARED_HOLDS);
	}
	if (!dlist_is_empty(&session_holds))
	{
		held_notice_lost();
		if (HeldLock *held = held_find(tag, mode))
			held_refresh(held);
	}
	if (spare_entry == nullptr)
		spare_entry = static_cast<HeldLock *>(MemoryContextAlloc(entry_context, sizeof(HeldLock)));
	publish_reserve();
}

/* Fill in a new entry, which has no holds yet, and publish it. */
static void
fill_entry(HeldLock *held, Scope scope, CachedName *name, int slots) noexcept
{
	PublishedHold published = {};

	held->name = name;
	held->since = GetCurrentTimestamp();
	held->session_count = 0;
	held->session_by_name = 0;
	held->semaphore = nullptr;
	held->slots = slots;
	held->xact_count = 0;
	held->has_acquirer = false;
	held->is_logged = false;
	name_use(name);

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

HeldLock *
held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name, int slots)
{
	bool		was_held;
	HeldLock   *held;

	set_held_key(spare_entry, tag, mode);
	held = compat::simplehash_insert(helds, helds_insert, spare_entry, &was_held)->held;
	if (!was_held)
	{
		spare_entry = nullptr;
		fill_entry(held, scope, name, slots);
	}
	else
	{
		if (by_name && !held->name->by_name())
		{
			/* A lock that was first taken by key has a name now. */
			name_use(name);
			name_release(held->name);
			held->name = name;
		}
		publish_name(held->place, held->name->used());
	}
	if (scope == Scope::transaction)
		xact_holds_add(held);
	else
	{
		held->session_by_name += by_name ? 1 : 0;
		if (held->session_count++ == 0)
		{
			held->has_acquirer = false;
			if (slots > 0)
				dlist_push_head(&session_holds, &held->list);
			else
				dlist_push_tail(&session_holds, &held->list);
			publish_scope(held->place, Scope::session);
		}
	}
	if (NameStats *stats = stats_of_name(name))
	{
		stats_count(stats, Event::acquired, 1);
		/* For a lock that is held already the start of the statement is exact enough, and cheaper. */
		stats_note_acquired(stats, was_held ? GetCurrentStatementStartTimestamp() : held->since);
	}
	return held;
}

HeldLock *
held_find(const LOCKTAG &tag, Mode mode) noexcept
{
	HeldLock	wanted;
	HeldPointer *found;

	set_held_key(&wanted, tag, mode);
	found = helds != nullptr ? helds_lookup(helds, &wanted) : nullptr;
	return found != nullptr ? found->held : nullptr;
}

/* ---- Removing ---- */

/* Hand an ended entry over to the log, or free it.  It no longer pins its name. */
static void
dispose_of(HeldLock *held) noexcept
{
	CachedName *name = held->name;

	if (held->wants_log)
		log_hold_later(held);
	else if (spare_entry == nullptr)
		spare_entry = held;
	else
		pfree(held);
	name_release(name);
}

/* Remove an entry without holds.  Do not use it after this. */
static void
end_entry(HeldLock *held, HoldEnd end, TimestampTz now) noexcept
{
	NameStats  *stats = stats_of_name(held->name);

	withdraw_hold(held->place);
	helds_delete(helds, held);
	if (end == HoldEnd::released && stats != nullptr)
		stats_add(&stats->hold, Max(held->since, stats_reset_at(stats)), now);
	held->wants_log = end == HoldEnd::released && !held->is_logged && is_long_hold(held, now);
	held->ended_at = now;
	if (held->semaphore == nullptr)
		return dispose_of(held);
	dlist_delete(&held->in_semaphore);
	if (end != HoldEnd::prepared)
		return dlist_push_tail(&ended_slots, &held->in_semaphore);
	hooks.slot_ended(held, true);
	dispose_of(held);
}

/* The locks of ended slots are released now. */
static void
free_ended_slots() noexcept
{
	while (!dlist_is_empty(&ended_slots))
	{
		HeldLock   *held = held_of(dlist_pop_head_node(&ended_slots), offsetof(HeldLock, in_semaphore));

		hooks.slot_ended(held, false);
		dispose_of(held);
	}
}

/* Remove all session-level holds.  Returns the entry, or null if no hold of the lock is left in this mode. */
static HeldLock *
end_session_holds(HeldLock *held, HoldEnd end) noexcept
{
	if (held->session_count > 0)
	{
		held->session_count = 0;
		held->session_by_name = 0;
		dlist_delete(&held->list);
		publish_scope(held->place, Scope::transaction);
	}
	if (held->is_held())
		return held;
	end_entry(held, end, GetCurrentTimestamp());
	return nullptr;
}

void
held_remove(HeldLock *held, int64 count, bool by_name) noexcept
{
	if (held == nullptr || held->session_count == 0)
		return;
	if (held->session_count > count)
	{
		held->session_count -= count;
		if (by_name)
			held->session_by_name = Max(held->session_by_name - count, 0);
		held->session_by_name = Min(held->session_by_name, held->session_count);
		return;
	}
	end_session_holds(held, HoldEnd::released);
	free_ended_slots();
}

static bool
is_lost(const HeldLock *held) noexcept
{
	return !is_held_by_me(held->tag, held->mode);
}

/* Compare all entries with session-level holds with the lock manager. */
static void
end_lost_holds(HoldEnd end) noexcept
{
	for (dlist_node *node = session_holds.head.next, *next; node != &session_holds.head; node = next)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, list));

		next = node->next;
		if (is_lost(held))
			end_session_holds(held, end);
	}
	free_ended_slots();
}

/*
 * pg_advisory_unlock_all() and DISCARD ALL release all session-level locks, including slots.  Two entries are enough to notice that.  If
 * the first one is lost and is a slot, which nothing else releases, or if the first and the last one are lost, all others are compared with
 * the lock manager, too.  Otherwise pg_advisory_unlock() has released the oldest or the newest lock.
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

	if (is_first_lost && (first->slots > 0 || is_last_lost))
		end_lost_holds(HoldEnd::released);
	else if (is_first_lost || is_last_lost)
		end_session_holds(is_first_lost ? first : last, HoldEnd::released);
}

HeldLock *
held_refresh(HeldLock *held)
{
	int64		real_count;

	if (held->session_count == 0)
		return held;
	real_count = lock_counts(held->tag, held->mode).session;
	held->session_count = Min(held->session_count, real_count);
	held->session_by_name = Min(held->session_by_name, real_count);
	if (real_count > 0)
		return held;
	held->session_count = 1;	/* so that end_session_holds() removes it from the list */
	held = end_session_holds(held, HoldEnd::lost);
	free_ended_slots();
	return held;
}

void
held_keep_for_transaction(HeldLock *held) noexcept
{
	xact_holds_add(held);
	/* The session-level hold continues as this one, so it does not count as one more. */
	held_remove(held, 1, held->session_by_name > 0);
}

/* ---- Looking at all ---- */

int
held_entry_count() noexcept
{
	return helds != nullptr ? static_cast<int>(helds->members) : 0;
}

int
held_count_locks()
{
	helds_iterator iterator;
	int			count = 0;

	if (helds == nullptr)
		return 0;
	helds_start_iterate(helds, &iterator);
	while (HeldPointer *found = helds_iterate(helds, &iterator))
	{
		const HeldLock *held = found->held;

		/* A lock that is held in both modes counts once. */
		count += is_held_by_me(held->tag, held->mode) &&
			(held->mode == Mode::exclusive || !is_held_by_me(held->tag, Mode::exclusive));
	}
	return count;
}

dlist_head *
held_session_holds() noexcept
{
	return &session_holds;
}

/* ---- Ends of transactions ---- */

/* The transaction-level holds of this nesting level, and of deeper ones, have ended. */
static void
end_xact_holds(int level, HoldEnd end) noexcept
{
	TimestampTz now;

	if (!xact_holds_any(level))
		return;
	now = GetCurrentTimestamp();
	while (HeldLock *held = xact_holds_remove_newest(level))
	{
		if (!held->is_held())
			end_entry(held, end, now);
	}
}

/* False if the entry has one already. */
static bool
set_acquirer(dlist_node *node, int acquirer) noexcept
{
	HeldLock   *held = held_of(node, offsetof(HeldLock, list));

	if (held->has_acquirer)
		return false;
	held->has_acquirer = true;
	publish_acquirer(held->place, acquirer);
	return true;
}

static bool calls_after_transaction = false;

/* Settings of the transaction have been undone by now, so the present role and application are those that took the locks. */
static void
after_transaction(void *is_abort)
{
	int			acquirer;

	calls_after_transaction = false;
	if (dlist_is_empty(&session_holds))
		return;
	idle_holder_start_timer(is_abort != nullptr);
	acquirer = publish_present_role();
	/* Locks that were taken in this transaction are at the end of the list, and slots at the beginning. */
	for (dlist_node *node = dlist_tail_node(&session_holds); node != &session_holds.head && set_acquirer(node, acquirer); node = node->prev)
		;
	for (dlist_node *node = dlist_head_node(&session_holds); node != &session_holds.head && set_acquirer(node, acquirer); node = node->next)
		;
}

static void
at_xact_end(XactEvent event, void *)
{
	static MemoryContextCallback callback;

	hooks.transaction_ends(event);
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			idle_holder_check(session_holds);
			log_ended_holds();
			if (setting::log_hold >= 0 && xact_holds_any(0))
				xact_holds_visit(log_hold_before_commit, GetCurrentTimestamp());
			break;
		case XACT_EVENT_PRE_PREPARE:
			log_ended_holds();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			name_end_asking();
			withdraw_wait();
			end_xact_holds(0, event == XACT_EVENT_PREPARE ? HoldEnd::prepared : HoldEnd::released);
			if (dlist_is_empty(&session_holds) || calls_after_transaction)
				break;
			calls_after_transaction = true;
			/* Call it when everything else of the transaction is over.  The registration allocates nothing. */
			callback.func = after_transaction;
			callback.arg = event == XACT_EVENT_ABORT ? &callback : nullptr;
			MemoryContextRegisterResetCallback(TopTransactionContext, &callback);
			break;
		default:
			break;
	}
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		name_end_asking_of_level(level);
		end_xact_holds(level, HoldEnd::released);
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		xact_holds_to_parent(level);
}

/* Called whenever a resource owner has released its locks: at the ends of statements, subtransactions and transactions. */
static void
at_resource_release(ResourceReleasePhase phase, bool, bool is_top_level, void *)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (is_top_level)
		hooks.transaction_released();
	free_ended_slots();
	held_notice_lost();
}

/* ---- The end of the session ---- */

/* All holds end now, while shared memory is still available. */
static void
at_session_end(int, Datum)
{
	helds_iterator iterator;

	/* The end of the transaction would do this, too, but it comes later. */
	LWLockReleaseAll();
	LockErrorCleanup();
	leave_queue();
	name_end_asking();
	withdraw_wait();
	end_xact_holds(0, HoldEnd::released);
	if (helds != nullptr)
	{
		/* Entries may be deleted while the iterator is in use. */
		helds_start_iterate(helds, &iterator);
		while (HeldPointer *found = helds_iterate(helds, &iterator))
		{
			HeldLock   *held = found->held;

			end_session_holds(held, is_held_by_me(held->tag, held->mode) ? HoldEnd::released : HoldEnd::lost);
		}
	}
	/* The server would release advisory locks a moment later, when this session could no longer wake waiters. */
	if (!dlist_is_empty(&ended_slots))
		LockReleaseAll(USER_LOCKMETHOD, true);
	free_ended_slots();
	hooks.session_ended();
	name_unpin_all();
}

void
held_init(const HeldHooks &others)
{
	hooks = others;
	RegisterXactCallback(at_xact_end, nullptr);
	RegisterSubXactCallback(at_subxact_end, nullptr);
	RegisterResourceReleaseCallback(at_resource_release, nullptr);
}

}								/* namespace advisory */
