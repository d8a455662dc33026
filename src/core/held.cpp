/*
 * core/held.cpp
 *		The locks and slots that this session holds through this extension.
 *
 * An entry counts its session-level and its transaction-level holds.  It also has the nesting level
 * of the (sub)transaction that took the first of the latter; the later holds of deeper ones end
 * nothing.  After its last hold it stays in the table until its slot is marked as free, and until
 * it is logged.
 *
 * Ends of transactions
 *
 * The callbacks below run at a time when an error would end the server.  So they allocate nothing,
 * and take no lock except the short one on this session's part of the session table.  Logging can
 * fail, so a hold that ends with a commit is logged before the commit.  A hold that ends in another
 * way is logged by log_ended_holds(): when the release function returns, at the next request for a
 * lock, at the next commit or at the end of the session, whichever comes first.
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

/* How a hold ended. */
enum class HoldEnd
{
	released,					/* now */
	lost,						/* without the extension, at an unknown time */
	prepared					/* not at all: a prepared transaction keeps it */
};

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
static dlist_head session_holds = DLIST_STATIC_INIT(session_holds);

/*
 * Entries with transaction-level holds, the newest last, so that those of the deepest
 * subtransactions are at the end.
 */
static dlist_head xact_holds = DLIST_STATIC_INIT(xact_holds);

static HeldHooks hooks;

static void end_lost_holds(HoldEnd end) noexcept;
static void at_session_end(int code, Datum argument);

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
		const LOCKTAG &tag = static_cast<const HeldKey *>(key)->tag;

		return hash_of_key(static_cast<int64>((static_cast<uint64>(tag.locktag_field2) << 32) | tag.locktag_field3),
						   tag.locktag_field4 * 2 + index_of(static_cast<const HeldKey *>(key)->mode));
	};
	return hash_create("advisory_ext held locks", MIN_COMPARED_HOLDS, &control, HASH_ELEM | HASH_FUNCTION | HASH_CONTEXT);
}

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
}

/* Fill in a new entry, which has no holds yet, and publish it. */
static void
fill_entry(HeldLock *held, Scope scope, CachedName *name, int slots) noexcept
{
	PublishedHold published = {};

	*held = HeldLock{held->tag, held->mode, name, GetCurrentTimestamp()};
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

/* Add a hold of the present (sub)transaction. */
static void
add_xact_hold(HeldLock *held) noexcept
{
	if (held->xact_count++ > 0)
		return;
	held->xact_level = GetCurrentTransactionNestLevel();
	dlist_push_tail(&xact_holds, &held->in_xact);
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
		/*
		 * For a lock that is held already the start of the statement is exact enough, and cheaper.
		 */
		stats_note_acquired(stats, was_held ? GetCurrentStatementStartTimestamp() : held->since);
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

/* Remove an entry without holds.  Do not use it after this. */
static void
end_entry(HeldLock *held, HoldEnd end, TimestampTz now) noexcept
{
	NameStats  *stats = stats_of_name(held->name);

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

static bool
is_lost(const HeldLock *held) noexcept
{
	return !is_held_by_me(held->tag, held->mode);
}

/*
 * Keep this many session-level holds of an entry that has some; by_name: at most this many as taken
 * by name.  Returns the entry, or null if no hold of the lock is left in this mode.
 * free_ended_slots() must follow.
 */
static HeldLock *
keep_session_holds(HeldLock *held, int64 count, int64 by_name, HoldEnd end) noexcept
{
	held->session_count = Max(count, 0);
	held->session_by_name = Max(Min(by_name, count), 0);
	if (count > 0)
		return held;
	dlist_delete(&held->list);
	publish_scope(held->place, Scope::transaction);
	/* The end of a savepoint may have released transaction-level holds unnoticed beside the others. */
	if (held->xact_count > 0 && is_lost(held))
	{
		dlist_delete(&held->in_xact);
		held->xact_count = 0;
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
	keep_session_holds(held, held->session_count - count, held->session_by_name - (by_name ? count : 0), HoldEnd::released);
	free_ended_slots();
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

HeldLock *
held_refresh(HeldLock *held)
{
	int64		real_count;

	if (held->session_count == 0)
		return held;
	real_count = lock_counts(held->tag, held->mode).session;
	held = keep_session_holds(held, Min(held->session_count, real_count), held->session_by_name, HoldEnd::lost);
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

dlist_head *
held_session_holds() noexcept
{
	return &session_holds;
}

/* ---- Ends of transactions ---- */

/* All transaction-level holds have ended. */
static void
end_xact_holds(HoldEnd end) noexcept
{
	TimestampTz now = dlist_is_empty(&xact_holds) ? 0 : GetCurrentTimestamp();

	while (!dlist_is_empty(&xact_holds))
	{
		HeldLock   *held = held_of(dlist_pop_head_node(&xact_holds), offsetof(HeldLock, in_xact));

		held->xact_count = 0;
		if (!held->is_held())
			end_entry(held, end, now);
	}
}

/* The nesting level of a subtransaction that aborts and whose locks are not released yet; else 0. */
static int	aborted_level = 0;

/*
 * A subtransaction has aborted, and its locks are released.  A cursor that is older keeps the locks
 * that it took in the subtransaction: they belong to the parent now.
 */
static void
end_aborted_holds() noexcept
{
	TimestampTz now = GetCurrentTimestamp();

	for (dlist_node *node = xact_holds.head.prev, *before; node != &xact_holds.head; node = before)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, in_xact));

		before = node->prev;
		if (held->xact_level < aborted_level)
			break;
		held->xact_level = aborted_level - 1;
		if (!is_lost(held))
			continue;
		dlist_delete(node);
		held->xact_count = 0;
		if (!held->is_held())
			end_entry(held, HoldEnd::released, now);
	}
	aborted_level = 0;
}

/* A subtransaction of this nesting level has succeeded: its parent takes over its holds. */
static void
pass_xact_holds_to_parent(int level) noexcept
{
	for (dlist_node *node = xact_holds.head.prev; node != &xact_holds.head; node = node->prev)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, in_xact));

		if (held->xact_level < level)
			break;
		held->xact_level = level - 1;
	}
}

/* Log the long holds that will end with the commit.  May ereport. */
static void
log_before_commit()
{
	TimestampTz now = GetCurrentTimestamp();

	for (dlist_node *node = xact_holds.head.next; node != &xact_holds.head; node = node->next)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, in_xact));

		if (held->session_count > 0 || held->is_logged || !is_long_hold(held, now))
			continue;
		held->is_logged = true;
		log_hold(held, now);
	}
}

/* The session-level holds at one end of the list that have no acquirer yet have this one. */
static void
set_acquirer(int acquirer, dlist_node *dlist_node::*next) noexcept
{
	for (dlist_node *node = session_holds.head.*next; node != &session_holds.head; node = node->*next)
	{
		HeldLock   *held = held_of(node, offsetof(HeldLock, list));

		if (held->has_acquirer)
			break;
		held->has_acquirer = true;
		publish_acquirer(held->place, acquirer);
	}
}

static bool calls_after_transaction = false;

/*
 * Settings of the transaction have been undone by now, so the present role and application are
 * those that took the locks.
 */
static void
after_transaction(void *is_abort)
{
	int			acquirer;

	calls_after_transaction = false;
	if (dlist_is_empty(&session_holds))
		return;
	idle_holder_start_timer(is_abort != nullptr);
	acquirer = publish_present_role();
	/*
	 * Locks that were taken in this transaction are at the end of the list, and slots at the
	 * beginning.
	 */
	set_acquirer(acquirer, &dlist_node::prev);
	set_acquirer(acquirer, &dlist_node::next);
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
			if (setting::log_hold >= 0 && !dlist_is_empty(&xact_holds))
				log_before_commit();
			break;
		case XACT_EVENT_PRE_PREPARE:
			log_ended_holds();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			name_end_asking();
			withdraw_wait();
			end_xact_holds(event == XACT_EVENT_PREPARE ? HoldEnd::prepared : HoldEnd::released);
			if (dlist_is_empty(&session_holds) || calls_after_transaction)
				break;
			calls_after_transaction = true;
			/*
			 * Call it when everything else of the transaction is over.  The registration allocates
			 * nothing.
			 */
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
		name_end_asking(level);
		aborted_level = level;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		pass_xact_holds_to_parent(level);
}

/*
 * Called whenever a resource owner has released its locks: at the ends of statements,
 * subtransactions and transactions.
 */
static void
at_resource_release(ResourceReleasePhase phase, bool, bool is_top_level, void *)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (is_top_level)
		hooks.transaction_released();
	if (aborted_level > 0)
		end_aborted_holds();
	free_ended_slots();
	held_notice_lost();
}

/* ---- The end of the session ---- */

/*
 * Called while shared memory is still available.  The transaction ends first, as in the server's
 * ShutdownPostgres(), which is called later: no lock is free while its rows are still locked, and
 * nothing is marked as free, and nobody woken, before the locks are released.
 */
static void
at_session_end(int, Datum)
{
	AbortOutOfAnyTransaction();
	end_lost_holds(HoldEnd::lost);
	LockReleaseAll(USER_LOCKMETHOD, true);
	leave_queue();
	while (!dlist_is_empty(&session_holds))
		keep_session_holds(held_of(dlist_head_node(&session_holds), offsetof(HeldLock, list)), 0, 0,
						   HoldEnd::released);
	free_ended_slots();
	hooks.session_ended();
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
