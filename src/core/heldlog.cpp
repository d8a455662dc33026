/*
 * core/heldlog.cpp
 *		The log of long holds: advisory_ext.log_hold.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/guc.h"
#include "core/heldlog.h"

namespace advisory
{

/* Holds that have ended and must still be logged. */
static dlist_head holds_to_log = DLIST_STATIC_INIT(holds_to_log);

bool
is_long_hold(const HeldLock *held, TimestampTz now) noexcept
{
	return setting::log_hold >= 0 && now - held->since >= setting::log_hold * INT64CONST(1000);
}

char *
display_held(const HeldLock *held)
{
	const CachedName *name = held->name;
	char	   *shown = name->has_text() ? join_name(name->ns(), name->name()) : psprintf(INT64_FORMAT, name->key.value);

	make_printable(shown);
	return shown;
}

/* Log a hold that ends now. */
static void
log_hold(const HeldLock *held, TimestampTz now)
{
	TimestampTz length = now - held->since;
	char	   *shown = display_held(held);

	/* Not to the client, where sending it could fail. */
	ereport(LOG_SERVER_ONLY,
			(errmsg("session held advisory lock \"%s\" in %s mode for " INT64_FORMAT ".%03d ms",
					shown, mode_name(held->mode), length / 1000, static_cast<int>(length % 1000))));
	pfree(shown);
}

void
log_hold_before_commit(HeldLock *held, TimestampTz now)
{
	if (held->session_count > 0 || held->is_logged || !is_long_hold(held, now))
		return;
	held->is_logged = true;
	log_hold(held, now);
}

void
log_hold_later(HeldLock *held) noexcept
{
	held->name->to_log++;
	dlist_push_tail(&holds_to_log, &held->list);
}

void
log_ended_holds()
{
	while (!dlist_is_empty(&holds_to_log))
	{
		HeldLock   *held = held_of(dlist_pop_head_node(&holds_to_log), offsetof(HeldLock, list));

		held->name->to_log--;
		log_hold(held, held->ended_at);
		pfree(held);
	}
}

}								/* namespace advisory */
