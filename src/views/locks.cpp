/*
 * views/locks.cpp
 *		The rows of advisory.locks and advisory.holders().
 *
 * Rows of one session stand together within a partition of the lock table, and
 * most servers have few databases, so what was last looked up about a session
 * or a database is kept for the next row.
 */
#include "base/pg.h"

#include <new>

#include "server/backends.h"
#include "base/lockname.h"
#include "server/locallock.h"
#include "server/waitgraph.h"
#include "views/locks.h"
#include "views/visiblename.h"
#include "shmem/slotlocks.h"
#include "base/srf.h"

namespace advisory
{

namespace
{

/*
 * Who holds or waits, ready to be shown: text values, and the address, made once
 * for all of a session's rows.
 */
struct Owner
{
	bool		known;			/* is this filled in? */
	int			pid;
	TransactionId xid;
	NullableDatum role;
	NullableDatum application;
	NullableDatum state;
	NullableDatum query;
	NullableDatum gid;
	NullableDatum address;
};

/* Text values of the few words that most rows are made of, made when first needed. */
class Words
{
public:
	Words() : context(CurrentMemoryContext)
	{
	}

	/* word must be a constant, since it is known by its address. */
	NullableDatum text_of(const char *word)
	{
		for (int i = 0; i < count; i++)
		{
			if (words[i] == word)
				return texts[i];
		}
		if (count == MAX_WORDS)
			return make_text(word);

		MemoryContext old_context = MemoryContextSwitchTo(context);

		texts[count] = make_text(word);
		words[count] = word;
		MemoryContextSwitchTo(old_context);
		return texts[count++];
	}

private:
	static constexpr int MAX_WORDS = 16;

	MemoryContext context;
	const char *words[MAX_WORDS];
	NullableDatum texts[MAX_WORDS];
	int			count = 0;
};

/* The object whose name was looked up last, and that. */
struct LastName
{
	Oid			object;
	NullableDatum name;
};

constexpr VisibleName NO_NAME = {nullptr, nullptr, {Datum(0), true}, {Datum(0), true}};

/* Makes rows out of entries.  In the memory context that it is made in. */
class View
{
public:
	explicit View(LockEntries entries)
		: entries(entries), now(GetCurrentTimestamp()), context(CurrentMemoryContext),
		  owner_context(AllocSetContextCreate(CurrentMemoryContext, "advisory_ext owner",
											  ALLOCSET_DEFAULT_SIZES)),
		  names(entries.count)
	{
		if (entries.has_prepared)
			prepared = prepared_xacts(&prepared_count);
	}

	int			count() const noexcept
	{
		return entries.count;
	}
	/* What a row needs on top is allocated in the caller's memory context. */
	void		fill_lock(Row &row, int index, const WantedColumns &wanted);
	void		fill_holder(Row &row, int index);

private:
	const Owner &owner_of(const LockEntry &entry);
	void		look_up_session(const LockEntry &entry);
	void		look_up_prepared(const LockEntry &entry);
	NullableDatum name_of(Oid object, LastName *last, char *(*look_up) (Oid));

	void		add_owner(Row &row, const LockEntry &entry);
	void		add_tag(Row &row, const LockEntry &entry, bool with_name);
	void		add_times(Row &row, const LockEntry &entry, bool with_hold);
	void		add_blockers(Row &row, const LockEntry &entry);

	LockEntries entries;
	TimestampTz now;
	MemoryContext context;
	MemoryContext owner_context;	/* what owner points to */
	VisibleNames names;
	Backends	backends;
	PreparedXact *prepared = nullptr;
	int			prepared_count = 0;
	Words		words;
	Owner		owner = {};
	LastName	last_role = {InvalidOid, make_text(nullptr)};
	LastName	last_database = {InvalidOid, make_text(nullptr)};
};

}								/* anonymous namespace */

void
View::look_up_session(const LockEntry &entry)
{
	const LocalPgBackendStatus *status = backends.find(entry.pid);
	Oid			role = status != nullptr ? status->backendStatus.st_userid : entry.role;

	owner.role = name_of(role, &last_role, role_name);
	if (status == nullptr)
		return;

	const PgBackendStatus &backend = status->backendStatus;

	owner.application = make_text(backend.st_appname);
	if (!may_see_role(role))
	{
		owner.query = make_text(HIDDEN);
		return;
	}
	owner.state = make_text(state_name(backend.st_state));
	owner.query = make_text(query_text(backend));
	owner.address.isnull = !client_address(backend, &owner.address.value);
}

void
View::look_up_prepared(const LockEntry &entry)
{
	const PreparedXact *xact = find_prepared(prepared, prepared_count, entry.xid);

	if (xact == nullptr)
		return;
	owner.role = name_of(xact->owner, &last_role, role_name);
	owner.gid = make_text(xact->gid);
}

const Owner &
View::owner_of(const LockEntry &entry)
{
	if (owner.known && owner.pid == entry.pid && owner.xid == entry.xid)
		return owner;

	MemoryContextReset(owner_context);

	MemoryContext old_context = MemoryContextSwitchTo(owner_context);

	owner = Owner{};
	for (NullableDatum *value : {&owner.role, &owner.application, &owner.state, &owner.query, &owner.gid, &owner.address})
		value->isnull = true;
	owner.known = true;
	owner.pid = entry.pid;
	owner.xid = entry.xid;
	if (entry.pid == 0)
		look_up_prepared(entry);
	else
		look_up_session(entry);
	MemoryContextSwitchTo(old_context);
	return owner;
}

/* The name of an object by its look_up, kept for the next row. */
NullableDatum
View::name_of(Oid object, LastName *last, char *(*look_up) (Oid))
{
	if (object != last->object)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		last->name = make_text(look_up(object));
		last->object = object;
		MemoryContextSwitchTo(old_context);
	}
	return last->name;
}

/* pid, database, role, application_name, client_addr, state */
void
View::add_owner(Row &row, const LockEntry &entry)
{
	const Owner &who = owner_of(entry);

	if (entry.pid != 0)
		row.add_int32(entry.pid);
	else
		row.add_null();
	row.add(name_of(entry.tag.locktag_field1, &last_database, database_name));
	row.add(who.role);
	row.add(who.application);
	row.add(who.address);
	row.add(who.state);
}

/* kind, namespace, name, slot, key, key1, key2 */
void
View::add_tag(Row &row, const LockEntry &entry, bool with_name)
{
	DecodedTag	tag = decode_tag(entry.tag);

	row.add(words.text_of(kind_name(tag.kind)));
	add_name_columns(row, tag, with_name ? names.of(entry) : NO_NAME);
}

/* The scope of this session's own lock, as the lock manager has it. */
static const char *
my_scope(const LockEntry &entry)
{
	for (Mode mode : ALL_MODES)
	{
		if (lockmode_of(mode) == entry.lockmode)
			return scope_name(lock_counts(entry.tag, mode).session > 0 ? Scope::session : Scope::transaction);
	}
	return nullptr;
}

static const char *
scope_of(const LockEntry &entry, const KnownHold *hold)
{
	if (!entry.granted)
		return nullptr;
	if (entry.pid == 0)
		return scope_name(Scope::transaction);	/* PREPARE refuses session-level ones */
	if (entry.pid == MyProcPid)
		return my_scope(entry);
	return hold != nullptr ? scope_name(hold->scope()) : nullptr;
}

/* mode, scope, granted, wait_start, waited, acquired_at, held */
void
View::add_times(Row &row, const LockEntry &entry, bool with_hold)
{
	const KnownHold *hold = with_hold ? names.hold_of(entry) : nullptr;
	TimestampTz acquired = hold != nullptr ? hold->hold.acquired_at : 0;

	row.add(words.text_of(lockmode_name(entry.lockmode)));
	row.add(with_hold ? words.text_of(scope_of(entry, hold)) : NullableDatum{Datum(0), true});
	row.add_bool(entry.granted);
	row.add_time(entry.wait_start);
	row.add_age(entry.wait_start, now);
	row.add_time(acquired);
	row.add_age(acquired, now);
}

void
View::add_blockers(Row &row, const LockEntry &entry)
{
	if (entry.granted)
		return row.add_null();

	auto	   *pids = static_cast<Datum *>(palloc(sizeof(Datum) * (entry.blocker_count + 1)));

	for (int i = 0; i < entry.blocker_count; i++)
		pids[i] = Int32GetDatum(list_nth_int(entries.blockers, entry.first_blocker + i));
	row.add(PointerGetDatum(construct_array(pids, entry.blocker_count, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
}

/* database, high and low half of the key, objsubid: the tag as the server has it */
static void
add_raw_tag(Row &row, const LOCKTAG &tag)
{
	row.add(ObjectIdGetDatum(tag.locktag_field1));
	row.add_int32(static_cast<int32>(tag.locktag_field2));
	row.add_int32(static_cast<int32>(tag.locktag_field3));
	row.add_int32(tag.locktag_field4);
}

void
View::fill_lock(Row &row, int index, const WantedColumns &wanted)
{
	const LockEntry &entry = entries.entries[index];

	add_owner(row, entry);
	add_tag(row, entry, wanted.name);
	add_times(row, entry, wanted.hold);
	add_blockers(row, entry);
	row.add(owner_of(entry).gid);
	row.add(owner_of(entry).query);
	add_raw_tag(row, entry.tag);
}

void
View::fill_holder(Row &row, int index)
{
	const LockEntry &entry = entries.entries[index];

	add_owner(row, entry);
	add_times(row, entry, true);
	add_blockers(row, entry);
	row.add(owner_of(entry).gid);
	row.add(owner_of(entry).query);
}

void
show_holders(const LockName &name, ReturnSetInfo *result)
{
	LockEntries entries = read_lock(lock_tag(MyDatabaseId, name.key));

	find_all_blockers(&entries);

	View		view(entries);

	show_each(view.count(), [&](int i) {
		Row			row;

		view.fill_holder(row, i);
		row.put(result);
	});
}

struct LockRows
{
	View		view;
	WantedColumns wanted;
	int			next;
};

LockRows *
open_lock_rows(const WantedColumns &wanted)
{
	LockEntries entries = read_all_locks();

	mark_slot_waits(&entries);
	find_all_blockers(&entries);
	return new (palloc(sizeof(LockRows))) LockRows{View(entries), wanted, 0};
}

bool
next_lock_row(LockRows *rows, Datum *values, bool *nulls)
{
	if (rows->next == rows->view.count())
		return false;

	Row			row(values, nulls);

	rows->view.fill_lock(row, rows->next++, rows->wanted);
	Assert(row.column_count() == LOCK_COLUMN_COUNT);
	return true;
}

void
restart_lock_rows(LockRows *rows) noexcept
{
	rows->next = 0;
}

}								/* namespace advisory */
