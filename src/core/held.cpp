/*
 * core/held.cpp
 *		The locks and slots that this session holds through this extension.
 *
 * A hash table finds what is held, that is the holds in the states session and transaction.  Each
 * hold keeps the lock manager's own entry of its lock (locallock.h), so comparing the two reads a
 * few words, and cannot fail.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/held.h"
#include "core/longholds.h"
#include "shmem/sessiontable.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* The memory of more holds than this is freed when the session asks for the next lock. */
static constexpr int KEPT_HOLDS = 16384;

/*
 * All session-level holds are compared with the lock manager when there are this many holds, and
 * again whenever their number has doubled.
 */
static constexpr int MIN_COMPARED_HOLDS = 64;

namespace
{

/* The place of a hold in the hash table.  A key that is there is the first member of its hold. */
struct HoldPlace
{
	const HoldKey *key;
	uint32		hash;
	char		status;
};

inline uint32
hash_of_hold(const HoldKey &key) noexcept
{
	const LOCKTAG &tag = key.tag;
	uint32		kind = static_cast<uint32>(tag.locktag_field4) << 2 |
		static_cast<uint32>(index_of(key.mode) << 1 | index_of(key.scope));

	return hash_of_halves(tag.locktag_field2, tag.locktag_field3, kind);
}

inline bool
same_hold(const HoldKey &a, const HoldKey &b) noexcept
{
	return a.mode == b.mode && a.scope == b.scope && same_tag(a.tag, b.tag);
}

#define SH_PREFIX held
#define SH_ELEMENT_TYPE HoldPlace
#define SH_KEY_TYPE const HoldKey *
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_hold(*(wanted))
#define SH_EQUAL(table, a, b) same_hold(*(a), *(b))
#define SH_STORE_HASH
#define SH_GET_HASH(table, place) (place)->hash
#define SH_FILLFACTOR (0.7)		/* fewer steps for one that is new */
#define SH_GROW_MAX_DIB INT_MAX /* it grows in get_memory() only */
#define SH_GROW_MAX_MOVE INT_MAX
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

/*
 * What is held, and the memory of it and of all holds; both are null until the session first asks
 * for a lock, and again after it has held very many.
 */
static held_hash *held = nullptr;
static MemoryContext held_context = nullptr;
static Hold *spare = nullptr;	/* memory for the next hold; or null */
static int	most_holds = 0;		/* that there have been at once */
static int	compare_at = MIN_COMPARED_HOLDS;
static int	twin_count = 0;		/* pairs of holds of one lock and mode */

/* By state. */
static dlist_head lists[] = {
	DLIST_STATIC_INIT(lists[0]), DLIST_STATIC_INIT(lists[1]),
	DLIST_STATIC_INIT(lists[2]), DLIST_STATIC_INIT(lists[3])
};

HeldHooks	held_hooks;

/* ---- The lists ---- */

static dlist_head *
list_of(HoldState state) noexcept
{
	return &lists[index_of(state)];
}

static Hold *
hold_at(dlist_node *node) noexcept
{
	return reinterpret_cast<Hold *>(reinterpret_cast<char *>(node) - offsetof(Hold, node));
}

compat::ObjectsOnList<Hold, dlist_node>
holds_in(HoldState state, dlist_node *dlist_node::*link) noexcept
{
	return {&list_of(state)->head, offsetof(Hold, node), link};
}

/* Slots of session scope go to the head of their list, all else to the tail. */
static void
put_on_list(Hold *hold, HoldState state, bool at_head = false) noexcept
{
	hold->state = state;
	if (at_head)
		dlist_push_head(list_of(state), &hold->node);
	else
		dlist_push_tail(list_of(state), &hold->node);
}

compat::ObjectsOnList<Hold, dlist_node>
holds_from_level(int level) noexcept
{
	dlist_node *head = &list_of(HoldState::transaction)->head;
	dlist_node *first = head;

	while (first->prev != head && hold_at(first->prev)->level >= level)
		first = first->prev;
	return {head, offsetof(Hold, node), &dlist_node::next, first, first->next};
}

/* ---- The hash table ---- */

static Hold *
hold_of(const HoldKey *key) noexcept
{
	return reinterpret_cast<Hold *>(const_cast<HoldKey *>(key));
}

/* There is room, and no hold with this key yet. */
static void
add_to_table(const HoldKey *key) noexcept
{
	bool		found;

	held_insert(held, key, &found);
	Assert(!found);
}

/* ---- Preparing ---- */

static void
free_memory() noexcept
{
	MemoryContextDelete(held_context);
	held_context = nullptr;
	held = nullptr;
	spare = nullptr;
	most_holds = 0;
	compare_at = MIN_COMPARED_HOLDS;
}

/* For one more hold.  May ereport (out of memory). */
static void
get_more_memory()
{
	if (held_context == nullptr)
		held_context = AllocSetContextCreate(TopMemoryContext, "advisory_ext holds",
											 ALLOCSET_DEFAULT_SIZES);
	if (held == nullptr)
		held = held_create(held_context, MIN_COMPARED_HOLDS, nullptr);
	compat::simplehash_make_room(held, held_grow);
	if (spare == nullptr)
		spare = static_cast<Hold *>(MemoryContextAlloc(held_context, sizeof(Hold)));
}

static inline void
get_memory()
{
	/* A spare one is in the memory of the table. */
	if (spare == nullptr || held->members >= held->grow_threshold)
		get_more_memory();
}

static void
hear_about_end_of_session()
{
	static bool hears_about_it = false;

	if (hears_about_it)
		return;
	/* The last one is called first, and the other one even if it fails. */
	before_shmem_exit([](int, Datum) { end_all_holds(); }, Datum(0));
	before_shmem_exit([](int, Datum) { AbortOutOfAnyTransaction(); }, Datum(0));
	/* At the time when the server itself logs the end of a session. */
	on_proc_exit([](int, Datum) { log_ended_holds(); }, Datum(0));
	hears_about_it = true;
}

void
held_prepare()
{
	hear_about_end_of_session();
	log_ended_holds();
	idle_holder_check();
	if (held_count() == 0 && most_holds > KEPT_HOLDS && !held_has_any(HoldState::ended))
		free_memory();
	get_memory();
	most_holds = Max(most_holds, held_count());
	if (held_count() >= compare_at)
	{
		/*
		 * Otherwise locks that pg_advisory_unlock() released one by one would keep their holds and
		 * pins for ever.
		 */
		end_lost_holds(HoldEnd::lost);
		compare_at = Max(2 * held_count(), MIN_COMPARED_HOLDS);
	}
	held_notice_lost();
	publish_reserve();
	sweep_slot_states();
}

/* ---- Finding and adding ---- */

Hold *
held_find(const LOCKTAG &tag, Mode mode, Scope scope, const CachedName *name) noexcept
{
	HoldKey		key = {tag, mode, scope};
	HoldPlace  *place;

	if (name != nullptr && name->hold != nullptr && same_hold(name->hold->key, key))
		return name->hold;
	if (held_count() == 0)
		return nullptr;
	place = held_lookup(held, &key);
	return place != nullptr ? hold_of(place->key) : nullptr;
}

static void
publish(Hold *hold, int slots) noexcept
{
	PublishedHold published = {};

	published.key = hold->name->key.value;
	published.acquired_at = hold->since;
	published.objsubid = hold->key.tag.locktag_field4;
	published.slots = static_cast<uint16>(slots);
	published.lockmode = static_cast<uint8>(lockmode_of(hold->key.mode));
	published.scope = hold->key.scope;
	published.acquirer = NO_PLACE;
	published.used = hold->name->used();
	hold->place = publish_hold(published);
}

static Scope
other_scope(Scope scope) noexcept
{
	return scope == Scope::session ? Scope::transaction : Scope::session;
}

static HoldState
state_of(Scope scope) noexcept
{
	return scope == Scope::session ? HoldState::session : HoldState::transaction;
}

/*
 * Has the lock another hold in the other scope?  Then this one is its twin.  One that is lost would
 * tell others a wrong scope.
 */
static void
find_twin(Hold *hold) noexcept
{
	Scope		scope = other_scope(hold->key.scope);
	Hold	   *twin;

	if (!held_has_any(state_of(scope)))
		return;
	twin = held_find(hold->key.tag, hold->key.mode, scope);
	if (twin == nullptr)
		return;
	if (is_lost(twin))
	{
		end_hold(twin, HoldEnd::lost, hold->since);
		return free_ended_slots();
	}
	hold->twin = twin;
	twin->twin = hold;
	twin_count++;
}

/*
 * A hold with a twin ends.  The lock is held on, since the first of the two was granted, and under
 * the label that was last given.
 */
static void
leave_twin(Hold *hold) noexcept
{
	Hold	   *twin = hold->twin;

	twin->twin = nullptr;
	twin_count--;
	publish_name(twin->place, twin->name->used());
	if (hold->since >= twin->since)
		return;
	twin->since = hold->since;
	publish_since(twin->place, hold->since);
}

static bool
has_written() noexcept
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* The server counts the commands of a transaction that write. */
bool
has_written_since(const Hold *hold) noexcept
{
	return has_written() &&
		(hold->has_acquirer || hold->taken_after != GetCurrentCommandId(false));
}

/* It belongs to the present (sub)transaction. */
static void
begin_in_transaction(Hold *hold) noexcept
{
	hold->level = GetCurrentTransactionNestLevel();
	put_on_list(hold, HoldState::transaction);
}

static void
begin_in_session(Hold *hold, bool is_slot) noexcept
{
	hold->taken_after = has_written() ? GetCurrentCommandId(false) : InvalidCommandId;
	put_on_list(hold, HoldState::session, is_slot);
}

/* A new hold, without any count yet, which is published.  May ereport, and makes nothing then. */
static Hold *
make_hold(const HoldKey &key, CachedName *name, int slots)
{
	LOCALLOCK  *local = local_lock(key.tag, key.mode);
	Hold	   *hold;

	get_memory();
	hold = spare;
	spare = nullptr;
	*hold = Hold{key, HoldState::session, local, name, GetCurrentTimestamp()};
	add_to_table(&hold->key);
	name->uses++;
	if (key.scope == Scope::transaction)
		begin_in_transaction(hold);
	else
		begin_in_session(hold, slots > 0);
	find_twin(hold);
	publish(hold, slots);
	return hold;
}

/* The name no longer leads to the hold. */
static void
forget_at_name(Hold *hold) noexcept
{
	if (hold->name->hold == hold)
		hold->name->hold = nullptr;
}

/* What is held already was granted once more, under this name. */
static void
use_name(Hold *hold, CachedName *name, bool by_name) noexcept
{
	if (by_name && !hold->name->by_name())
	{
		/* A lock that was first taken by key has a name now. */
		name->uses++;
		forget_at_name(hold);
		name_release(hold->name);
		hold->name = name;
	}
	publish_name(hold->place, hold->name->used());
}

static Hold *keep_count(Hold *hold, int64 count, int64 by_name, HoldEnd end) noexcept;

Hold *
held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name, int slots)
{
	Hold	   *hold = held_find(tag, mode, scope, name);
	TimestampTz now;

	/*
	 * What was granted now is no longer lost; an earlier hold can be.  If it was a slot it is
	 * marked as free before the new one is marked as taken.
	 */
	if (hold != nullptr)
	{
		hold = keep_count(hold, Min(hold->count, count_of(hold) - 1), hold->count_by_name,
						  HoldEnd::lost);
		free_ended_slots();
	}
	if (hold != nullptr)
	{
		use_name(hold, name, by_name);
		/* The start of the statement is exact enough, and cheaper. */
		now = GetCurrentStatementStartTimestamp();
	}
	else
	{
		hold = make_hold(HoldKey{tag, mode, scope}, name, slots);
		now = hold->since;
	}
	hold->count++;
	hold->count_by_name += by_name;
	if (hold->name == name)
		name->hold = hold;
	if (NameStats *stats = stats_of_name(name))
	{
		stats_count(stats, Event::acquired, 1);
		raise_to(&stats->last_acquired_at, now);
	}
	return hold;
}

/* ---- Ending ---- */

static void
free_hold(Hold *hold) noexcept
{
	if (spare == nullptr)
		spare = hold;
	else
		pfree(hold);
}

/* The lock is released: hand the hold over to the log, or free it.  It no longer pins its name. */
static void
dispose_of(Hold *hold) noexcept
{
	CachedName *name = hold->name;

	if (hold->ended_at != 0)
	{
		name->to_log++;
		put_on_list(hold, HoldState::to_log);
	}
	else
		free_hold(hold);
	name_release(name);
}

static pg_noinline void
log_first_ended()
{
	Hold	   *hold = hold_at(dlist_pop_head_node(list_of(HoldState::to_log)));
	Hold		ended = *hold;

	ended.name->to_log--;
	free_hold(hold);
	log_hold(&ended, ended.ended_at);
}

void
log_ended_holds()
{
	while (held_has_any(HoldState::to_log))
		log_first_ended();
}

/* The session no longer has the lock: count that, and log it if the hold was long. */
static void
note_end(Hold *hold, TimestampTz now) noexcept
{
	if (NameStats *stats = stats_of_name(hold->name))
		stats_add(&stats->hold, Max(hold->since, stats_reset_at(stats)), now);
	if (!hold->is_logged && is_long_hold(hold, now))
		hold->ended_at = now;
}

void
end_hold(Hold *hold, HoldEnd end, TimestampTz now) noexcept
{
	dlist_delete(&hold->node);
	held_delete(held, &hold->key);
	forget_at_name(hold);
	withdraw_hold(hold->place);
	if (hold->twin != nullptr)
		leave_twin(hold);
	else if (end == HoldEnd::released)
		note_end(hold, now);
	if (hold->semaphore == nullptr)
		return dispose_of(hold);
	dlist_delete(&hold->in_semaphore);
	if (end != HoldEnd::prepared)
		return put_on_list(hold, HoldState::ended);
	held_hooks.slot_ended(hold, true);
	dispose_of(hold);
}

void
free_ended_slots() noexcept
{
	while (held_has_any(HoldState::ended))
	{
		Hold	   *hold = hold_at(dlist_pop_head_node(list_of(HoldState::ended)));

		held_hooks.slot_ended(hold, false);
		dispose_of(hold);
	}
}

/*
 * Keep this count of a hold; by_name: at most this many as taken by name.  Returns the hold, or
 * null if nothing of it is left.  free_ended_slots() must follow.
 */
static Hold *
keep_count(Hold *hold, int64 count, int64 by_name, HoldEnd end) noexcept
{
	if (count > 0)
	{
		hold->count = count;
		hold->count_by_name = Max(Min(by_name, count), 0);
		return hold;
	}
	end_hold(hold, end, GetCurrentTimestamp());
	return nullptr;
}

Hold *
held_compare(Hold *hold) noexcept
{
	hold = keep_count(hold, Min(hold->count, count_of(hold)), hold->count_by_name, HoldEnd::lost);
	free_ended_slots();
	return hold;
}

void
held_release(Hold *hold, const HoldKey &key, int64 count, bool by_name)
{
	for (int64 i = 0; i < count; i++)
		release_lock(key.tag, key.mode, key.scope);
	if (hold == nullptr)
		return;
	keep_count(hold, Min(hold->count - count, count_of(hold)),
			   hold->count_by_name - (by_name ? count : 0), HoldEnd::released);
	free_ended_slots();
}

void
lock_give_up(const LockRequest &request, int slot)
{
	HoldKey		key = {request.granted_tag(slot), request.mode, request.scope};

	if (is_held_by_me(key.tag, key.mode))
		held_release(held_find(key.tag, key.mode, key.scope), key, 1, request.name.by_name());
}

/* A session-level hold becomes one of the transaction, which has none of this lock and mode yet. */
static void
change_scope(Hold *hold) noexcept
{
	held_delete(held, &hold->key);
	hold->key.scope = Scope::transaction;
	add_to_table(&hold->key);
	dlist_delete(&hold->node);
	begin_in_transaction(hold);
	publish_scope(hold->place, Scope::transaction);
}

void
held_pass_to_transaction(const LOCKTAG &tag, Mode mode)
{
	Hold	   *hold = held_find(tag, mode, Scope::session);

	if (hold != nullptr)
		hold = held_compare(hold);
	if (lock_counts(tag, mode).session == 0)
		return;
	take_lock(tag, mode, Scope::transaction, true);
	/* One hold continues, so it does not count as one more in the statistics. */
	if (hold != nullptr && hold->twin == nullptr && hold->count == 1)
		change_scope(hold);
	else if (hold != nullptr)
	{
		Hold	   *other = hold->twin;

		if (other == nullptr)
			other = make_hold(HoldKey{tag, mode, Scope::transaction}, hold->name, 0);
		other->count++;
		keep_count(hold, hold->count - 1, hold->count_by_name - 1, HoldEnd::released);
	}
	release_lock(tag, mode, Scope::session);
}

/* ---- What was released without the extension ---- */

void
end_lost_holds(HoldEnd end) noexcept
{
	for (Hold *hold : holds_in(HoldState::session))
	{
		if (is_lost(hold))
			end_hold(hold, end, GetCurrentTimestamp());
	}
	free_ended_slots();
}

void
end_lost_twins() noexcept
{
	if (twin_count == 0)
		return;
	for (Hold *hold : holds_in(HoldState::transaction))
	{
		if (hold->twin != nullptr && is_lost(hold->twin))
			end_hold(hold->twin, HoldEnd::released, GetCurrentTimestamp());
	}
	free_ended_slots();
}

/*
 * pg_advisory_unlock_all() and DISCARD ALL release all session-level locks, including slots.  Two
 * holds are enough to notice that.  If the first one is lost and is a slot, which nothing else
 * releases, or if the first and the last one are lost, all others are compared with the lock
 * manager, too.  Otherwise pg_advisory_unlock() has released the oldest or the newest lock.
 */
void
held_notice_lost() noexcept
{
	dlist_head *list = list_of(HoldState::session);

	if (!held_has_any(HoldState::session))
		return;

	Hold	   *first = hold_at(dlist_head_node(list));
	Hold	   *last = hold_at(dlist_tail_node(list));
	bool		is_first_lost = is_lost(first);
	bool		is_last_lost = is_lost(last);

	if (is_first_lost && (first->semaphore != nullptr || is_last_lost))
		end_lost_holds(HoldEnd::released);
	else if (is_first_lost || is_last_lost)
	{
		end_hold(is_first_lost ? first : last, HoldEnd::released, GetCurrentTimestamp());
		free_ended_slots();
	}
}

/* ---- Looking at all ---- */

bool
held_has_any(HoldState state) noexcept
{
	return !dlist_is_empty(list_of(state));
}

int
held_count() noexcept
{
	return held != nullptr ? static_cast<int>(held->members) : 0;
}

int
held_count_locks() noexcept
{
	int			count = 0;

	for (HoldState state : {HoldState::session, HoldState::transaction})
	{
		/* A lock that is held in both scopes, or in both modes, counts once. */
		for (const Hold *hold : holds_in(state))
			count += !is_lost(hold) && (hold->twin == nullptr || state == HoldState::session ||
										is_lost(hold->twin)) &&
				(hold->key.mode == Mode::exclusive ||
				 !is_held_by_me(hold->key.tag, Mode::exclusive));
	}
	return count;
}

}								/* namespace advisory */
