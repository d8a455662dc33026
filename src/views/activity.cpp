/*
 * views/activity.cpp
 *		The rows of advisory.activity: waiters, their blockers, and everything else that is held, on
 *		lines of 120 columns.
 *
 * Wording
 *		rank		1: a waiter; 2: what it waits for; 3: the rest
 *		crowd		the locks of a session, or the leases, that nobody waits for, if they are many:
 *					they have one line, which counts them
 *
 * A semaphore's slots and its queue are one lock here, and so are a lease and its queue.  Names are
 * looked up for what is shown, not for each of many locks.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/sqlfunction.h"
#include "core/leaserows.h"
#include "server/backends.h"
#include "server/standby.h"
#include "server/waitgraph.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"
#include "views/linewidth.h"
#include "views/unnamed.h"
#include "views/visiblename.h"

namespace advisory
{

static constexpr int LINE_COLUMNS = 120;
static constexpr int BORDER_COLUMNS = 26;	/* of psql, for nine columns */
static constexpr int MODE_COLUMNS = 9;
static constexpr int SHOWN_QUEUE = 10;	/* waiters of a lock */
static constexpr int CROWD = 20;	/* locks of a session, or leases, that have their own lines */

/* A length of time; all 0 if it is not known. */
struct Length
{
	bool		is_known;
	bool		has_days;		/* shown in days and hours, not only in hours */
	int64		microseconds;

	/* As an interval, without fractions of a second; 0 if it is not known. */
	Datum		seconds() const
	{
		Interval   *interval;

		if (!is_known)
			return Datum(0);
		interval = static_cast<Interval *>(palloc0(sizeof(Interval)));
		interval->time = microseconds - microseconds % USECS_PER_SEC;
		return has_days ? DirectFunctionCall1(interval_justify_hours, IntervalPGetDatum(interval))
			: IntervalPGetDatum(interval);
	}
};

/* A line.  Null, or 0, is what it does not have. */
struct ActivityLine
{
	/* What lines are sorted by, before lock, slot and pid. */
	int			rank;
	TimestampTz since;
	int			place;

	const char *lock;			/* or only what stands before the text of a lock without a name */
	const LOCKTAG *unnamed;		/* which SQL makes, by the known uses of its key */
	int			slot;
	const char *mode;
	int			pid;
	const char *who;
	const char *state;
	Length		waiting;
	Length		held;
	const char *blocked_by;

	void		insert(const char *text_of_unnamed)
	{
		lock = psprintf("%s%s", lock, text_of_unnamed);
	}
};

/* A session that waits for a lock; once, even if it waits for it twice. */
struct ActivityWait
{
	const LockEntry *entry;
	LOCKTAG		tag;			/* that of all entries of the lock */
	int			place;			/* among its waiters, the longest wait first, from 1 */
	int			behind;			/* waiters behind the first SHOWN_QUEUE, of the next one */
	List	   *held_by;		/* pids (int) of those in the way that hold the lock, ascending */
};

/* A session that is in the way of one of these, as far as they have lines. */
struct ActivityBlocker
{
	struct
	{
		LOCKTAG		tag;
		int			pid;		/* 0 is a prepared transaction */
	}			key;			/* hash key */
	TimestampTz since;			/* the first wait; 0 if no start of a wait is known */
	bool		is_holder;
};

/* The locks of a session that are in nobody's way. */
struct ActivityCrowd
{
	int			count;
	const LockEntry *first;
	TimestampTz oldest;			/* 0 if not known of any */
};

/* A session's use of a lease: it waits for it, or has locked it. */
struct UsedLease
{
	LOCKTAG		lease;			/* hash key: the whole lock */
	TimestampTz since;			/* the first wait; 0 if there is none */
	bool		is_awaited;
	bool		is_read;		/* is its row among those that were read? */
};

/* From this time, which may be unknown, to now. */
static Length
length_since(TimestampTz start, TimestampTz now, bool has_days = false) noexcept
{
	return {start != 0, has_days, start != 0 ? Max(now - start, 0) : 0};
}

/* Unknown times come last. */
static TimestampTz
or_last(TimestampTz time) noexcept
{
	return time != 0 ? time : DT_NOEND;
}

/* By the default collation, as ORDER BY does; null last. */
static int
compare_texts(const char *a, const char *b)
{
	if (a == nullptr || b == nullptr)
		return (a == nullptr) - (b == nullptr);
	return varstr_cmp(a, static_cast<int>(strlen(a)), b, static_cast<int>(strlen(b)),
					  DEFAULT_COLLATION_OID);
}

static int
compare_lines(const ListCell *a, const ListCell *b)
{
	const auto &line_a = *static_cast<ActivityLine *>(lfirst(a));
	const auto &line_b = *static_cast<ActivityLine *>(lfirst(b));
	auto		rank = [](const ActivityLine &line) {
		return std::make_tuple(line.rank, or_last(line.since),
							   line.place != 0 ? line.place : PG_INT32_MAX,
							   !line.held.is_known, -line.held.microseconds);
	};
	auto		rest = [](const ActivityLine &line) {
		return std::make_pair(line.slot != NO_SLOT ? line.slot : PG_INT32_MAX,
							  line.pid != 0 ? line.pid : PG_INT32_MAX);
	};
	int			order;

	CHECK_FOR_INTERRUPTS();
	if (rank(line_a) != rank(line_b))
		return rank(line_a) < rank(line_b) ? -1 : 1;
	order = compare_texts(line_a.lock, line_b.lock);
	if (order != 0 || rest(line_a) == rest(line_b))
		return order;
	return rest(line_a) < rest(line_b) ? -1 : 1;
}

/* ---- What is shown of sessions ---- */

/* role@application; role (prepared gid) */
static const char *
who_is(const VisibleSession &session)
{
	const char *role = session.role != nullptr ? session.role : "";

	if (session.gid != nullptr)
		return printable_text(psprintf("%s (prepared %s)", role, session.gid));
	if (session.application != nullptr && session.application[0] != '\0')
		return printable_text(psprintf("%s@%s", role, session.application));
	return printable_text(session.role);
}

static const char *
short_state(const char *state)
{
	if (state == nullptr)
		return nullptr;
	if (strcmp(state, "idle in transaction (aborted)") == 0)
		return "failed xact";
	if (strcmp(state, "idle in transaction") == 0)
		return "idle in xact";
	if (strcmp(state, "fastpath function call") == 0)
		return "fastpath";
	return state;
}

/* Does the holder wait for a lock or a lease, as those can see who may see its state? */
static bool
is_waiting_itself(const LockEntry &holder, const VisibleSession &session)
{
	const PGPROC *process = GetPGProcByNumber(holder.proc_number);
	uint32		wait = process->wait_event_info;
	const char *event;

	if (session.backend == nullptr || process->pid != holder.pid)
		return false;
	if ((wait & 0xFF000000) == PG_WAIT_LOCK)
		return true;
	event = pgstat_get_wait_event(wait);
	return event != nullptr && strcmp(event, "AdvisoryExtLease") == 0;
}

/* Up to three processes, or two if their numbers are long, and how many more there are. */
static const char *
blockers_text(const List *pids)
{
	StringInfoData text;
	int			shown = Min(list_length(pids), 3);

	initStringInfo(&text);
	for (int i = 0; i < shown; i++)
	{
		int			length = text.len;

		appendStringInfo(&text, "%s%d", i == 0 ? "" : ",", list_nth_int(pids, i));
		if (i == 2 && text.len > 17)
		{
			shown = i;
			text.data[text.len = length] = '\0';
		}
	}
	if (list_length(pids) > shown)
		appendStringInfo(&text, " +%d", list_length(pids) - shown);
	return text.len > 0 ? text.data : nullptr;
}

static ActivityLine *
add_line(List **lines, int rank, TimestampTz since, const char *lock)
{
	auto	   *line = static_cast<ActivityLine *>(palloc0(sizeof(ActivityLine)));

	line->rank = rank;
	line->since = since;
	line->lock = lock;
	*lines = lappend(*lines, line);
	return line;
}

/* ---- The walk ---- */

class Activity
{
public:
	/* Reads everything.  May ereport. */
	Activity();

	List	   *lines = NIL;	/* (ActivityLine *) in their order */

private:
	void		find_waits();
	void		find_blockers();
	void		find_holders();
	void		find_held_by();
	void		add_waiters();
	void		add_holders();
	void		add_leases();

	ActivityBlocker *blocker_of(const LOCKTAG &tag, int pid, HASHACTION action, bool *is_known);
	ActivityBlocker *find_blocker(const LockEntry &holder);
	ActivityLine *add_entry(int rank, TimestampTz since, const LockEntry &entry);
	void		name_lock(ActivityLine *line, const LockEntry &entry);
	void		read_leases(List **visible, List **hidden);

	TimestampTz now = GetCurrentTimestamp();
	LockEntries entries;
	VisibleNames names;
	Backends	backends;

	ActivityWait *waits;		/* by lock, then by place */
	int			wait_count = 0;
	HTAB	   *blockers;
	ActivityCrowd *crowds;		/* by process number */
};

/* Sort the waits by their locks, those for the same lock by rank(entry). */
template <typename Rank>
static void
sort_by_lock(ActivityWait *waits, int count, Rank rank)
{
	std::sort(waits, waits + count, [&](const ActivityWait &a, const ActivityWait &b) {
		int			order = memcmp(&a.tag, &b.tag, sizeof(LOCKTAG));

		return order != 0 ? order < 0 : rank(*a.entry) < rank(*b.entry);
	});
}

/* Sort the waits by lock and place, each session once. */
void
Activity::find_waits()
{
	waits = static_cast<ActivityWait *>(palloc_extended(
		sizeof(ActivityWait) * (entries.count + 1), MCXT_ALLOC_HUGE));
	for (int i = 0; i < entries.count; i++)
	{
		if (entries.entries[i].is_waiting())
			waits[wait_count++] = {&entries.entries[i], whole_lock(entries.entries[i].tag)};
	}
	/* The first in the queue of a lease may wait for the lease, too: what more block counts. */
	sort_by_lock(waits, wait_count, [](const LockEntry &entry) {
		return std::make_tuple(entry.pid, -entry.blocker_count, &entry);
	});
	wait_count = static_cast<int>(std::unique(
		waits, waits + wait_count, [](const ActivityWait &a, const ActivityWait &b) {
			return same_tag(a.tag, b.tag) && a.entry->pid == b.entry->pid;
		}) - waits);
	sort_by_lock(waits, wait_count, [](const LockEntry &entry) {
		return std::make_pair(or_last(entry.wait_start), entry.pid);
	});
	for (int i = 0; i < wait_count; i++)
	{
		bool		is_first = i == 0 || !same_tag(waits[i - 1].tag, waits[i].tag);

		waits[i].place = is_first ? 1 : waits[i - 1].place + 1;
		if (waits[i].place > SHOWN_QUEUE)
			waits[i + SHOWN_QUEUE + 1 - waits[i].place].behind++;
	}
}

ActivityBlocker *
Activity::blocker_of(const LOCKTAG &tag, int pid, HASHACTION action, bool *is_known)
{
	decltype(ActivityBlocker::key) key = {tag, pid};

	return static_cast<ActivityBlocker *>(hash_search(blockers, &key, action, is_known));
}

/* Whoever is in the way of a later waiter is also in the way of one of these. */
void
Activity::find_blockers()
{
	for (int i = 0; i < wait_count; i++)
	{
		const LockEntry &entry = *waits[i].entry;

		for (int j = 0; waits[i].place <= SHOWN_QUEUE + 1 && j < entry.blocker_count; j++)
		{
			bool		is_known;
			ActivityBlocker *blocker = blocker_of(
				waits[i].tag, list_nth_int(entries.blockers, entry.first_blocker + j), HASH_ENTER,
				&is_known);

			if (!is_known)
			{
				blocker->since = 0;
				blocker->is_holder = false;
			}
			if (entry.wait_start != 0 && or_last(blocker->since) > entry.wait_start)
				blocker->since = entry.wait_start;
		}
	}
}

/* Null if it is in nobody's way. */
ActivityBlocker *
Activity::find_blocker(const LockEntry &holder)
{
	return hash_get_num_entries(blockers) == 0 ? nullptr :
		blocker_of(whole_lock(holder.tag), holder.pid, HASH_FIND, nullptr);
}

/* Mark the blockers that hold a lock, and count the locks of each session that nobody awaits. */
void
Activity::find_holders()
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];

		if (entry.is_waiting())
			continue;
		if (ActivityBlocker *blocker = find_blocker(entry))
			blocker->is_holder = true;
		else if (crowds[entry.proc_number].count++ == 0)
			crowds[entry.proc_number].first = &entry;
	}
}

/* Which holders each waiter waits for.  They are known when the entries of all were seen. */
void
Activity::find_held_by()
{
	for (int i = 0; i < wait_count; i++)
	{
		const LockEntry &entry = *waits[i].entry;

		for (int j = 0; waits[i].place <= SHOWN_QUEUE + 1 && j < entry.blocker_count; j++)
		{
			int			pid = list_nth_int(entries.blockers, entry.first_blocker + j);

			/* Several prepared transactions have one number. */
			if (blocker_of(waits[i].tag, pid, HASH_FIND, nullptr)->is_holder &&
				!(pid == 0 && list_member_int(waits[i].held_by, pid)))
				waits[i].held_by = lappend_int(waits[i].held_by, pid);
		}
		list_sort(waits[i].held_by, list_int_cmp);
		/* If only waiters are in the way, it waits for the same holders as the one ahead of it. */
		if (waits[i].held_by == NIL && waits[i].place > 1)
			waits[i].held_by = waits[i - 1].held_by;
	}
}

/* The text of the lock, or what stands before it. */
void
Activity::name_lock(ActivityLine *line, const LockEntry &entry)
{
	const char *name = names.text_of(entry);
	Oid			database = entry.tag.locktag_field1;
	const char *of_database = "";

	if (database != MyDatabaseId)
	{
		const char *shown = database_name(database);

		of_database = psprintf("%s: ", shown != nullptr ? shown : "(dropped)");
	}
	line->unnamed = name == nullptr ? &entry.tag : nullptr;
	line->lock = printable_text(psprintf("%s%s%s", of_database,
										 decode_tag(entry.tag).kind == Kind::lease ? "lease " : "",
										 name != nullptr ? name : ""));
}

/* A line for a lock that a session holds or awaits. */
ActivityLine *
Activity::add_entry(int rank, TimestampTz since, const LockEntry &entry)
{
	VisibleSession session = backends.of(entry);
	DecodedTag	tag = decode_tag(entry.tag);
	ActivityLine *line = add_line(&lines, rank, since, nullptr);

	name_lock(line, entry);
	line->slot = tag.slot;
	line->mode = tag.kind == Kind::lease ? kind_name(tag.kind)
		: cut_text(lockmode_name(entry.tag, entry.lockmode), MODE_COLUMNS);
	line->pid = entry.pid;
	line->who = who_is(session);
	line->state = short_state(session.state);
	if (rank > 1 && is_waiting_itself(entry, session))
		line->state = "waiting";
	return line;
}

void
Activity::add_waiters()
{
	TimestampTz before = 0;

	for (int i = 0; i < wait_count; before = waits[i++].entry->wait_start)
	{
		const ActivityWait &wait = waits[i];
		const LockEntry &entry = *wait.entry;
		ActivityLine *line;

		if (wait.place > SHOWN_QUEUE + 1)
			continue;
		/* One stands for the others, of whom it has waited longest. */
		if (wait.place == SHOWN_QUEUE + 1)
			line = add_line(&lines, 1, before, psprintf("(%d more)", wait.behind));
		else
			line = add_entry(1, entry.wait_start, entry);
		line->place = wait.place;
		line->waiting = length_since(entry.wait_start, now);
		line->blocked_by = blockers_text(wait.held_by);
	}
}

void
Activity::add_holders()
{
	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];

		if (entry.is_waiting())
			continue;
		CHECK_FOR_INTERRUPTS();

		const ActivityBlocker *blocker = find_blocker(entry);
		ActivityCrowd *crowd = &crowds[entry.proc_number];
		TimestampTz acquired_at = names.holds.find(entry).hold.acquired_at;

		if (blocker == nullptr && crowd->count > CROWD)
		{
			if (acquired_at != 0 && acquired_at < or_last(crowd->oldest))
				crowd->oldest = acquired_at;
			continue;
		}

		ActivityLine *line = blocker != nullptr
			? add_entry(2, blocker->since, entry) : add_entry(3, 0, entry);

		line->held = length_since(acquired_at, now);
	}
	for (int i = 0; i < proc_count(); i++)
	{
		if (crowds[i].count <= CROWD)
			continue;

		VisibleSession session = backends.of(*crowds[i].first);
		ActivityLine *line = add_line(&lines, 3, 0, psprintf("(%d locks)", crowds[i].count));

		line->pid = crowds[i].first->pid;
		line->who = who_is(session);
		line->state = short_state(session.state);
		line->held = length_since(crowds[i].oldest, now);
	}
}

/* ---- Leases ---- */

/* The leases of this database that sessions wait for, or rely on. */
static HTAB *
find_used_leases(const LockEntries &entries)
{
	HTAB	   *used = make_hash_table<LOCKTAG, UsedLease>("advisory_ext used leases", 64);

	for (int i = 0; i < entries.count; i++)
	{
		const LockEntry &entry = entries.entries[i];
		bool		is_known;

		if (entry.tag.locktag_field1 != MyDatabaseId ||
			(!is_of_lease(entry.tag) && !is_of_lease_queue(entry.tag)))
			continue;

		LOCKTAG		whole = whole_lock(entry.tag);
		auto	   *lease = static_cast<UsedLease *>(
			hash_search(used, &whole, HASH_ENTER, &is_known));

		if (!is_known)
			*lease = {whole, 0, false, false};
		lease->is_awaited |= entry.is_waiting();
		if (entry.wait_start != 0 && or_last(lease->since) > entry.wait_start)
			lease->since = entry.wait_start;
	}
	return used;
}

/*
 * Add the line of a lease.  One that has expired matters while a session waits for it, or relies on
 * it.  The key of a name that can be guessed tells the name: of a hidden lease its use is not
 * shown.
 */
static void
add_lease(List **leases, const LeaseRow &row, bool is_visible, const UsedLease *used,
		  TimestampTz now)
{
	bool		is_used = used != nullptr && is_visible;
	ActivityLine *line;

	if (now >= row.ends_at && (!is_used || row.slot != NO_SLOT))
		return;
	line = add_line(leases, is_used && used->is_awaited ? 2 : 3, is_used ? used->since : 0,
					psprintf("lease %s", is_visible
							 ? printable_text(join_name(row.ns, row.name)) : HIDDEN));
	line->slot = row.slot;
	line->mode = "lease";
	line->who = is_visible ? printable_text(row.owner) : HIDDEN;
	line->state = row.state_at(now);
	line->held = length_since(row.acquired_at, now, true);
}

/* Lines of no more than 10,000 leases of each role, and of those that are used. */
void
Activity::read_leases(List **visible, List **hidden)
{
	HTAB	   *used = find_used_leases(entries);
	LeaseRows	rows = lease_rows_read_all();
	bool		sees_all = may_see_all();
	Oid			role = InvalidOid;	/* of the row before; nobody but those who see all sees that */
	bool		sees_role = sees_all;
	HASH_SEQ_STATUS scan;

	for (const LeaseRow &row : rows)
	{
		LOCKTAG		whole = lease_queue_tag(MyDatabaseId, row.key, row.slot != NO_SLOT);
		auto	   *lease = static_cast<UsedLease *>(hash_search(used, &whole, HASH_FIND, nullptr));

		CHECK_FOR_INTERRUPTS();
		if (!sees_all && row.role != role)
			sees_role = may_see_role(role = row.role);
		if (lease != nullptr)
			lease->is_read = true;
		add_lease(sees_role ? visible : hidden, row, sees_role, lease, now);
	}
	hash_seq_init(&scan, used);
	while (auto *lease = static_cast<UsedLease *>(hash_seq_search(&scan)))
	{
		if (lease->is_read)
			continue;
		rows = lease_rows_read_now(decode_tag(lease->lease).key,
								   is_of_lease_slot_queue(lease->lease));
		for (const LeaseRow &row : rows)
		{
			if (may_see_role(row.role))
				add_lease(visible, row, true, lease, now);
		}
	}
}

/* Those that the user may not see come last. */
void
Activity::add_leases()
{
	List	   *leases = NIL;
	List	   *hidden = NIL;
	ListCell   *cell;
	Length		longest = {};
	int			more;

	read_leases(&leases, &hidden);
	list_sort(leases, compare_lines);
	list_sort(hidden, compare_lines);
	leases = list_concat(leases, hidden);
	foreach(cell, leases)
	{
		auto	   *line = static_cast<ActivityLine *>(lfirst(cell));

		if (foreach_current_index(cell) < CROWD)
			lines = lappend(lines, line);
		else if (line->held.is_known && line->held.microseconds >= longest.microseconds)
			longest = line->held;
	}
	more = list_length(leases) - CROWD;
	if (more <= 0)
		return;

	ActivityLine *line = add_line(&lines, 3, 0, psprintf("(%d leases)", more));

	line->mode = "lease";
	line->held = longest;
}

Activity::Activity()
	: entries(read_all_locks()),
	  blockers(make_hash_table<decltype(ActivityBlocker::key), ActivityBlocker>(
		  "advisory_ext activity", 64)),
	  crowds(static_cast<ActivityCrowd *>(palloc0(sizeof(ActivityCrowd) * proc_count())))
{
	mark_slot_waits(&entries);
	find_all_blockers(&entries);
	find_waits();
	find_blockers();
	find_holders();
	find_held_by();
	add_waiters();
	add_holders();
	add_leases();
	complete_lines<ActivityLine>(lines);
	list_sort(lines, compare_lines);
}

/* ---- Rows ---- */

/* How many columns of a line the texts lock and who get. */
struct TextWidths
{
	int			lock;
	int			who;
};

static int
bytes_of(const char *text) noexcept
{
	return text != nullptr ? static_cast<int>(strlen(text)) : 0;
}

static int
digits_of(int number)
{
	return number != 0 ? bytes_of(psprintf("%d", number)) : 0;
}

static int
width_of(const Length &length)
{
	return !length.is_known ? 0 :
		bytes_of(DatumGetCString(DirectFunctionCall1(interval_out, length.seconds())));
}

/*
 * The lock matters more: if both do not fit, who gets 14 columns, or less on a crowded line.  No
 * text takes more columns than it has bytes.
 */
static TextWidths
widths_of(const List *lines)
{
	/* At least the widths of the columns' names. */
	int			slot = 4, mode = 4, pid = 3, state = 5, waiting = 7, held = 4, blocked_by = 10;
	int			lock = 4, who = 3;
	ListCell   *cell;

	foreach(cell, lines)
	{
		const auto &line = *static_cast<ActivityLine *>(lfirst(cell));

		slot = Max(slot, digits_of(line.slot));
		mode = Max(mode, line.mode != nullptr ? pg_mbstrlen(line.mode) : 0);
		pid = Max(pid, digits_of(line.pid));
		state = Max(state, bytes_of(line.state));
		waiting = Max(waiting, width_of(line.waiting));
		held = Max(held, width_of(line.held));
		blocked_by = Max(blocked_by, bytes_of(line.blocked_by));
		lock = Max(lock, bytes_of(line.lock));
		who = Max(who, bytes_of(line.who));
	}

	int			room = LINE_COLUMNS - BORDER_COLUMNS - slot - mode - pid - state - waiting - held -
		blocked_by;

	lock = Max(Min(lock, Max(room - who, Max(room - 14, room * 3 / 5))), 4);
	return TextWidths{lock, room - lock};
}

static const char *
fitted(const char *text, int columns)
{
	return bytes_of(text) > columns ? cut_text(text, columns) : text;
}

static void
show_activity(ReturnSetInfo *result)
{
	Activity	activity;
	TextWidths	widths = widths_of(activity.lines);

	tell_reader_of_standby();
	show_each(list_length(activity.lines), [&](int i) {
		const auto &line = *static_cast<ActivityLine *>(list_nth(activity.lines, i));
		Row			row;

		row.add_reference(raw_text_datum(fitted(line.lock, widths.lock)));
		row.add(Int32GetDatum(line.slot), line.slot == NO_SLOT);
		row.add_reference(raw_text_datum(line.mode));
		row.add(Int32GetDatum(line.pid), line.pid == 0);
		row.add_reference(raw_text_datum(fitted(line.who, widths.who)));
		row.add_reference(raw_text_datum(line.state));
		row.add_reference(line.waiting.seconds());
		row.add_reference(line.held.seconds());
		row.add_reference(raw_text_datum(line.blocked_by));
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_activity, rows_function<show_activity>);

}								/* namespace advisory */
