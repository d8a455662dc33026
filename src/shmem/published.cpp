/*
 * shmem/published.cpp
 *		What each session tells the others about the locks that it holds.
 *
 * Locking
 *
 * Each session's part has a lock of its own.  The session appends records without
 * it: it fills in the record, then counts it.  For everything else (shortening a
 * list, using a place again, moving a list to where it has more room) it holds the
 * lock exclusively; readers hold it shared.  Nobody but the session itself writes.
 */
#include "base/pg.h"

#include <initializer_list>

#include "base/compat.h"
#include "shmem/published.h"
#include "shmem/root.h"
#include "shmem/waiters.h"

namespace advisory
{

static constexpr int FIRST_RECORDS = 64;
static constexpr int FIRST_TAKERS = 8;
static constexpr int MAX_TAKERS = 1024;

/* So many records are looked at before they are indexed: some more than there are partitions. */
static constexpr int NEAR_RECORDS = 4 * NUM_LOCK_PARTITIONS;

/* A list that grew beyond this is given back when it is empty. */
static constexpr int KEPT_RECORDS = 4096;

namespace
{

struct SharedList
{
	dsa_pointer records;
	pg_atomic_uint32 count;
};

struct SharedSession
{
	LWLock		lock;
	int			pid;			/* 0 while nobody has this place */
	Oid			database;
	SharedList	lists[SCOPES];
	dsa_pointer takers;
	int			taker_count;
	Oid			present_role;
};

/* Where the session itself has its records: in shared memory, or in its own. */
struct RecordList
{
	HoldRecord *records;
	int			count;
	int			capacity;
	int			live;			/* how many of them are not free places */
	int			first_free;
	dsa_pointer place;			/* invalid: in the session's own memory */
};

}								/* anonymous namespace */

static SharedSession *my_session = nullptr;
static bool detached = false;
static int	first_untaken = NO_RECORD;
static RecordList my_lists[SCOPES];
static Taker *my_takers = nullptr;
static int	my_taker_capacity = 0;

static RecordList *
my_list(Scope scope) noexcept
{
	return &my_lists[index_of(scope)];
}

static int
my_proc_number() noexcept
{
	return static_cast<int>(MyProc - ProcGlobal->allProcs);
}

/* ---- The session's own part ---- */

static void
make_sessions(SharedRoot *root)
{
	int			count = static_cast<int>(ProcGlobal->allProcCount);
	dsa_pointer place = dsa_allocate_extended(shared_area(), sizeof(SharedSession) * count,
											  DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);
	auto	   *sessions = static_cast<SharedSession *>(dsa_get_address(shared_area(), place));

	for (int i = 0; i < count; i++)
	{
		LWLockInitialize(&sessions[i].lock, root->tranche);
		for (SharedList &list : sessions[i].lists)
			pg_atomic_init_u32(&list.count, 0);
	}
	root->published = place;
}

/* All sessions' parts, or null if nobody has published anything yet. */
static SharedSession *
all_sessions()
{
	SharedRoot *root = shared_root();

	if (root == nullptr || root->published == InvalidDsaPointer)
		return nullptr;
	return static_cast<SharedSession *>(dsa_get_address(shared_area(), root->published));
}

static void
take_place(SharedRoot *root)
{
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->published == InvalidDsaPointer)
		make_sessions(root);
	LWLockRelease(&root->lock);

	SharedSession *session = &all_sessions()[my_proc_number()];

	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	for (SharedList &list : session->lists)
	{
		list.records = InvalidDsaPointer;
		pg_atomic_write_u32(&list.count, 0);
	}
	session->takers = InvalidDsaPointer;
	session->taker_count = 0;
	session->present_role = InvalidOid;
	session->database = MyDatabaseId;
	session->pid = MyProcPid;
	LWLockRelease(&session->lock);
	my_session = session;
}

/* Has this session its part in shared memory?  May ereport for a cancel. */
static bool
has_place()
{
	if (my_session != nullptr)
		return true;
	if (detached)
		return false;

	SharedRoot *root = shared_root();

	return root != nullptr && shared_attempt([root]() { take_place(root); });
}

static void
free_records(HoldRecord *records, dsa_pointer place)
{
	if (place != InvalidDsaPointer)
		dsa_free(shared_area(), place);
	else if (records != nullptr)
		pfree(records);
}

static dsa_pointer
allocate_shared(Size bytes)
{
	dsa_pointer place = InvalidDsaPointer;

	if (!shared_is_short() && has_place())
		shared_attempt([&]() { place = dsa_allocate_extended(shared_area(), bytes, DSA_ALLOC_HUGE); });
	return place;
}

/* Move a list to where there is room for so many, in shared memory if possible. */
static void
move_list(Scope scope, int capacity)
{
	RecordList *list = my_list(scope);
	HoldRecord *old_records = list->records;
	dsa_pointer old_place = list->place;
	Size		bytes = sizeof(HoldRecord) * capacity;
	dsa_pointer place = allocate_shared(bytes);
	void	   *records = place != InvalidDsaPointer
		? dsa_get_address(shared_area(), place)
		: MemoryContextAllocHuge(TopMemoryContext, bytes);

	if (list->count > 0 && old_records != nullptr)
		memcpy(records, old_records, sizeof(HoldRecord) * list->count);
	list->records = static_cast<HoldRecord *>(records);
	list->capacity = capacity;
	list->place = place;

	if (my_session != nullptr)
	{
		SharedList *shared = &my_session->lists[index_of(scope)];

		LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
		shared->records = place;
		pg_atomic_write_u32(&shared->count, place != InvalidDsaPointer ? list->count : 0);
		LWLockRelease(&my_session->lock);
	}
	free_records(old_records, old_place);
}

static void
grow_takers()
{
	int			capacity = Max(2 * my_taker_capacity, FIRST_TAKERS);
	dsa_pointer place = allocate_shared(sizeof(Taker) * capacity);

	if (place == InvalidDsaPointer)
		return;

	auto	   *takers = static_cast<Taker *>(dsa_get_address(shared_area(), place));
	dsa_pointer old = my_session->takers;

	if (my_session->taker_count > 0)
		memcpy(takers, my_takers, sizeof(Taker) * my_session->taker_count);
	LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	my_session->takers = place;
	LWLockRelease(&my_session->lock);
	if (old != InvalidDsaPointer)
		dsa_free(shared_area(), old);
	my_takers = takers;
	my_taker_capacity = capacity;
}

static bool
has_room(const RecordList *list) noexcept
{
	return list->count < list->capacity || list->live < list->count;
}

void
published_reserve(Scope scope)
{
	RecordList *list = my_list(scope);

	if (list->place == InvalidDsaPointer && list->live == 0)
	{
		/* A good moment to go where others can see it, if that has become possible. */
		list->count = 0;
		list->first_free = NO_RECORD;
		if (list->capacity == 0 || (!shared_is_short() && has_place()))
			move_list(scope, FIRST_RECORDS);
	}
	else if (!has_room(list))
		move_list(scope, 2 * list->capacity);

	if (scope == Scope::session && my_session != nullptr &&
		my_session->taker_count == my_taker_capacity && my_taker_capacity < MAX_TAKERS)
		grow_takers();
}

/* Let others see the whole list as it now is, or as much of it as they may. */
static void
publish_count(Scope scope) noexcept
{
	RecordList *list = my_list(scope);

	if (list->place == InvalidDsaPointer)
		return;
	pg_write_barrier();
	pg_atomic_write_u32(&my_session->lists[index_of(scope)].count, list->count);
}

/* Where the record stands that was just written behind the others. */
static int
append_record(Scope scope) noexcept
{
	RecordList *list = my_list(scope);
	int			index = list->count;

	list->count++;
	list->live++;
	publish_count(scope);
	return index;
}

HoldRecord *
xact_record(int index) noexcept
{
	return &my_list(Scope::transaction)->records[index];
}

int
xact_record_count() noexcept
{
	return my_list(Scope::transaction)->count;
}

HoldRecord *
next_xact_record() noexcept
{
	return &my_list(Scope::transaction)->records[my_list(Scope::transaction)->count];
}

int
publish_xact_hold() noexcept
{
	return append_record(Scope::transaction);
}

bool
xact_holds_are_shared() noexcept
{
	return my_list(Scope::transaction)->place != InvalidDsaPointer;
}

/* Run change(), which changes what others can see, so that they see it before or after. */
template <typename Change>
static void
change_published(const RecordList *list, Change change) noexcept
{
	bool		is_shared = list->place != InvalidDsaPointer;

	if (is_shared)
		LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
	change();
	if (is_shared)
		LWLockRelease(&my_session->lock);
}

static void
shrink(Scope scope) noexcept
{
	RecordList *list = my_list(scope);
	RecordList	old = *list;

	if (list->count > 0 || list->capacity <= KEPT_RECORDS)
		return;
	change_published(&old, [&]() {
		*list = RecordList{};
		list->first_free = NO_RECORD;
		if (old.place != InvalidDsaPointer)
			my_session->lists[index_of(scope)].records = InvalidDsaPointer;
	});
	free_records(old.records, old.place);
}

void
published_shrink() noexcept
{
	shrink(Scope::session);
	shrink(Scope::transaction);
}

void
withdraw_xact_holds(int from) noexcept
{
	RecordList *list = my_list(Scope::transaction);

	if (list->count == from)
		return;
	change_published(list, [&]() {
		list->count = from;
		list->live = from;
		publish_count(Scope::transaction);
	});
}

XactListChange::XactListChange() noexcept
{
	if (my_list(Scope::transaction)->place != InvalidDsaPointer)
		LWLockAcquire(&my_session->lock, LW_EXCLUSIVE);
}

XactListChange::~XactListChange() noexcept
{
	if (my_list(Scope::transaction)->place != InvalidDsaPointer)
		LWLockRelease(&my_session->lock);
}

HoldRecord *
session_record(int index) noexcept
{
	return &my_list(Scope::session)->records[index];
}

static bool
is_taker(const Taker &taker, Oid role, const char *application) noexcept
{
	return taker.role == role && strcmp(taker.application, application) == 0;
}

/* Who this session acts for at present, in the list of takers; NO_RECORD if that is full. */
static int
present_taker() noexcept
{
	Oid			role = GetOuterUserId();
	const char *application = application_name != nullptr ? application_name : "";

	/* The last one first: it is nearly always the same. */
	for (int i = my_session->taker_count - 1; i >= 0; i--)
	{
		if (is_taker(my_takers[i], role, application))
			return i;
	}
	if (my_session->taker_count == my_taker_capacity)
		return NO_RECORD;

	int			index = my_session->taker_count;

	my_takers[index].role = role;
	strlcpy(my_takers[index].application, application, NAMEDATALEN);
	pg_write_barrier();
	my_session->taker_count++;
	return index;
}

/* The holds that have no taker yet are a list in both directions. */
static void
add_to_untaken(int index) noexcept
{
	HoldRecord *record = session_record(index);

	record->taker = NO_RECORD;
	record->previous = NO_RECORD;
	record->next = first_untaken;
	if (first_untaken != NO_RECORD)
		session_record(first_untaken)->previous = index;
	first_untaken = index;
}

static void
remove_from_untaken(int index) noexcept
{
	HoldRecord *record = session_record(index);

	if (index == first_untaken)
		first_untaken = record->next;
	else if (record->previous != NO_RECORD)
		session_record(record->previous)->next = record->next;
	else
		return;					/* it has its taker */
	if (record->next != NO_RECORD)
		session_record(record->next)->previous = record->previous;
}

int
session_record_count() noexcept
{
	return my_list(Scope::session)->count;
}

int
publish_session_hold(const HoldRecord &record) noexcept
{
	RecordList *list = my_list(Scope::session);
	int			index = list->first_free;

	if (index == NO_RECORD)
	{
		list->records[list->count] = record;
		index = append_record(Scope::session);
	}
	else
		change_published(list, [&]() {
			list->first_free = list->records[index].previous;
			list->records[index] = record;
			list->live++;
		});
	add_to_untaken(index);
	return index;
}

void
withdraw_session_hold(int index) noexcept
{
	RecordList *list = my_list(Scope::session);

	remove_from_untaken(index);
	change_published(list, [&]() {
		list->records[index].objsubid = 0;
		list->records[index].previous = list->first_free;
		list->first_free = index;
		if (--list->live > 0)
			return;
		list->count = 0;
		list->first_free = NO_RECORD;
		publish_count(Scope::session);
		if (my_session != nullptr)
			my_session->taker_count = 0;
	});
}

int
published_count() noexcept
{
	return my_list(Scope::session)->live + my_list(Scope::transaction)->live;
}

bool
needs_taker() noexcept
{
	return my_session != nullptr && my_list(Scope::session)->live > 0;
}

void
publish_taker() noexcept
{
	int			taker;

	if (!needs_taker())
		return;
	my_session->present_role = GetOuterUserId();
	if (first_untaken == NO_RECORD)
		return;

	taker = present_taker();
	change_published(my_list(Scope::session), [&]() {
		while (first_untaken != NO_RECORD)
		{
			HoldRecord *record = session_record(first_untaken);

			first_untaken = record->next;
			record->taker = taker;
			record->previous = NO_RECORD;
			record->next = NO_RECORD;
		}
	});
}

void
published_detach() noexcept
{
	SharedSession *session = my_session;

	detached = true;
	my_session = nullptr;
	first_untaken = NO_RECORD;
	for (RecordList &list : my_lists)
	{
		dsa_pointer place = list.place;

		list = RecordList{};
		if (session == nullptr || place == InvalidDsaPointer)
			continue;
		LWLockAcquire(&session->lock, LW_EXCLUSIVE);
		session->pid = 0;
		session->lists[&list - my_lists].records = InvalidDsaPointer;
		pg_atomic_write_u32(&session->lists[&list - my_lists].count, 0);
		LWLockRelease(&session->lock);
		dsa_free(shared_area(), place);
	}
	if (session == nullptr)
		return;

	dsa_pointer takers = session->takers;

	LWLockAcquire(&session->lock, LW_EXCLUSIVE);
	session->pid = 0;
	session->takers = InvalidDsaPointer;
	session->taker_count = 0;
	session->present_role = InvalidOid;
	LWLockRelease(&session->lock);
	if (takers != InvalidDsaPointer)
		dsa_free(shared_area(), takers);
}

/* ---- What others see ---- */

namespace
{

struct RecordKey
{
	int64		key;
	uint16		objsubid;
	uint8		mode;
};

struct RecordIndex
{
	RecordKey	key;
	char		status;
	int			record;
};

bool
same_record_key(const RecordKey &a, const RecordKey &b) noexcept
{
	return a.key == b.key && a.objsubid == b.objsubid && a.mode == b.mode;
}

#define SH_PREFIX records
#define SH_ELEMENT_TYPE RecordIndex
#define SH_KEY_TYPE RecordKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, ((wanted).objsubid << 8) ^ (wanted).mode)
#define SH_EQUAL(table, a, b) same_record_key(a, b)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

struct PublishedHolds::Session
{
	int			pid;
	int			count;			/* of the records, session-level ones first */
	int			session_count;
	HoldRecord *records;
	int			next;			/* behind the record that was found last */
	records_hash *index;		/* made when first needed */
	Taker	   *takers;
	int			taker_count;
};

static HoldRecord *
shared_records(const SharedSession *session, Scope scope)
{
	dsa_pointer place = session->lists[index_of(scope)].records;

	if (place == InvalidDsaPointer)
		return nullptr;
	return static_cast<HoldRecord *>(dsa_get_address(shared_area(), place));
}

static int
shared_count(SharedSession *session, Scope scope) noexcept
{
	int			count = static_cast<int>(pg_atomic_read_u32(&session->lists[index_of(scope)].count));

	pg_read_barrier();
	return count;
}

static void
join_records(PublishedHolds::Session *copy, const HoldRecord *session_records, int session_count,
			 const HoldRecord *xact_records, int xact_count)
{
	copy->count = session_count + xact_count;
	copy->session_count = session_count;
	copy->records = static_cast<HoldRecord *>(palloc_extended(sizeof(HoldRecord) * (copy->count + 1), MCXT_ALLOC_HUGE));
	if (session_records != nullptr)
		memcpy(copy->records, session_records, sizeof(HoldRecord) * session_count);
	if (xact_records != nullptr)
		memcpy(copy->records + session_count, xact_records, sizeof(HoldRecord) * xact_count);
}

/* What another session says of itself. */
static void
copy_session(SharedSession *session, PublishedHolds::Session *copy)
{
	LWLockAcquire(&session->lock, LW_SHARED);
	copy->pid = session->pid;
	join_records(copy,
				 shared_records(session, Scope::session), shared_count(session, Scope::session),
				 shared_records(session, Scope::transaction), shared_count(session, Scope::transaction));
	copy->taker_count = session->taker_count;
	if (copy->taker_count > 0)
	{
		copy->takers = static_cast<Taker *>(palloc(sizeof(Taker) * copy->taker_count));
		memcpy(copy->takers, dsa_get_address(shared_area(), session->takers), sizeof(Taker) * copy->taker_count);
	}
	LWLockRelease(&session->lock);
}

int64
published_session_count(int proc_number, int pid)
{
	SharedSession *sessions = all_sessions();
	int64		live = 0;

	if (pid == MyProcPid)
		return my_list(Scope::session)->live;
	if (sessions == nullptr)
		return 0;

	SharedSession *session = &sessions[proc_number];

	LWLockAcquire(&session->lock, LW_SHARED);
	if (session->pid == pid)
	{
		const HoldRecord *records = shared_records(session, Scope::session);
		int			count = records != nullptr ? shared_count(session, Scope::session) : 0;

		for (int i = 0; i < count; i++)
			live += records[i].objsubid != 0;
	}
	LWLockRelease(&session->lock);
	return live;
}

/* What this session knows, whether or not others can see it. */
static void
copy_own(PublishedHolds::Session *copy)
{
	copy->pid = MyProcPid;
	join_records(copy, my_list(Scope::session)->records, my_list(Scope::session)->count,
				 my_list(Scope::transaction)->records, my_list(Scope::transaction)->count);
	if (my_session == nullptr || my_session->taker_count == 0)
		return;
	copy->taker_count = my_session->taker_count;
	copy->takers = static_cast<Taker *>(palloc(sizeof(Taker) * copy->taker_count));
	memcpy(copy->takers, my_takers, sizeof(Taker) * copy->taker_count);
}

static RecordKey
key_of(const HoldRecord &record) noexcept
{
	return RecordKey{record.key, record.objsubid, record.mode};
}

/* The oldest record of a lock stands for it; a session-level one rather than another. */
static void
index_records(PublishedHolds::Session *copy, MemoryContext context)
{
	bool		found;

	copy->index = records_create(context, copy->count, nullptr);
	for (int i = 0; i < copy->count; i++)
	{
		if (copy->records[i].objsubid == 0)
			continue;

		RecordIndex *place = records_insert(copy->index, key_of(copy->records[i]), &found);

		if (!found)
			place->record = i;
	}
}

/*
 * The server lists a session's locks in the order they were taken in, partition by
 * partition, and so do the records: the next one asked for is nearly always a few
 * places on, or near the beginning again.  NO_RECORD if it is not, or may not
 * be the one that stands for the lock.
 */
static int
find_near(const PublishedHolds::Session *session, const RecordKey &key) noexcept
{
	if (session->session_count > 0 && session->session_count < session->count)
		return NO_RECORD;		/* it may be in both lists */
	for (int start : {session->next, 0})
	{
		int			end = Min(start + NEAR_RECORDS, session->count);

		for (int i = start; i < end; i++)
		{
			const HoldRecord &record = session->records[i];

			if (same_record_key(key_of(record), key))
				return session->session_count > 0 || record.previous == NO_RECORD ? i : NO_RECORD;
		}
	}
	return NO_RECORD;
}

/* The record that stands for a lock in a mode, or NO_RECORD. */
static int
find_record(PublishedHolds::Session *session, const RecordKey &key, MemoryContext context)
{
	int			found = find_near(session, key);

	if (found == NO_RECORD && session->count > 0)
	{
		if (session->index == nullptr)
			index_records(session, context);

		RecordIndex *place = records_lookup(session->index, key);

		found = place != nullptr ? place->record : NO_RECORD;
	}
	if (found != NO_RECORD)
		session->next = found + 1;
	return found;
}

PublishedHolds::PublishedHolds()
	: context(CurrentMemoryContext),
	  sessions(static_cast<Session **>(palloc0(sizeof(Session *) * ProcGlobal->allProcCount)))
{
}

PublishedHolds::Session *
PublishedHolds::session_of(int proc_number, int pid)
{
	if (proc_number >= static_cast<int>(ProcGlobal->allProcCount))
		return nullptr;			/* a prepared transaction */

	if (sessions[proc_number] == nullptr)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		auto	   *copy = static_cast<Session *>(palloc0(sizeof(Session)));
		SharedSession *all = all_sessions();

		if (pid == MyProcPid)
			copy_own(copy);
		else if (all != nullptr)
			copy_session(&all[proc_number], copy);
		sessions[proc_number] = copy;
		MemoryContextSwitchTo(old_context);
	}
	return sessions[proc_number]->pid == pid ? sessions[proc_number] : nullptr;
}

static bool
find_mode(LOCKMODE lockmode, uint8 *mode) noexcept
{
	for (Mode each : ALL_MODES)
	{
		if (lockmode_of(each) != lockmode)
			continue;
		*mode = static_cast<uint8>(index_of(each));
		return true;
	}
	return false;
}

bool
PublishedHolds::find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, PublishedHold *found)
{
	Session    *session = session_of(proc_number, pid);
	RecordKey	key = {};

	if (session == nullptr || !find_mode(lockmode, &key.mode))
		return false;
	key.key = decode_tag(tag).key.value;
	key.objsubid = tag.locktag_field4;

	int			index = find_record(session, key, context);

	if (index == NO_RECORD)
		return false;

	const HoldRecord &record = session->records[index];

	*found = PublishedHold{};
	found->scope = index < session->session_count ? Scope::session : Scope::transaction;
	found->acquired_at = record.acquired_at;
	found->role = record.has_name ? record.role : InvalidOid;
	found->slots = record.slots;
	found->ns = record.ns();
	found->name = record.name();
	if (record.taker >= 0 && record.taker < session->taker_count)
		found->taker = &session->takers[record.taker];
	return true;
}

/* Call visit(session) for each session's part, with its lock held shared, until it returns false. */
template <typename Visit>
static void
visit_sessions(Visit visit)
{
	SharedSession *all = all_sessions();
	bool		going = true;

	for (int i = 0; all != nullptr && going && i < static_cast<int>(ProcGlobal->allProcCount); i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (all[i].pid == 0)
			continue;
		LWLockAcquire(&all[i].lock, LW_SHARED);
		if (all[i].pid != 0)
			going = visit(&all[i]);
		LWLockRelease(&all[i].lock);
	}
}

/* How many slots a session says that a semaphore has, if it has one and says not this many; or 0. */
static int
other_slots_of(SharedSession *session, Key key, int slots)
{
	for (Scope scope : {Scope::session, Scope::transaction})
	{
		const HoldRecord *records = shared_records(session, scope);
		int			count = shared_count(session, scope);

		for (int i = 0; i < count; i++)
		{
			if (records[i].objsubid > OBJSUBID_SLOT_BASE && records[i].key == key.value && records[i].slots != slots)
				return records[i].slots;
		}
	}
	return 0;
}

static bool
find_other_waiter(Key key, int slots, OtherSlots *other)
{
	int			count;
	PublishedWait *waits = read_slot_waits(&count);

	for (int i = 0; i < count; i++)
	{
		DecodedTag	tag = decode_tag(waits[i].tag);

		if (tag.database != MyDatabaseId || !(tag.key == key) || waits[i].slots == slots)
			continue;
		*other = OtherSlots{waits[i].pid, waits[i].slots};
		return true;
	}
	return false;
}

bool
find_other_slots(Key key, int slots, OtherSlots *other)
{
	*other = OtherSlots{};
	visit_sessions([&](SharedSession *session) {
		int			others = session->database == MyDatabaseId ? other_slots_of(session, key, slots) : 0;

		if (others > 0)
			*other = OtherSlots{session->pid, others};
		return others == 0;
	});
	return other->slots > 0 || find_other_waiter(key, slots, other);
}

struct PendingKey
{
	int64		key;
	bool		is_taken;
	PendingStats stats;
	char		status;
};

#define SH_PREFIX pending
#define SH_ELEMENT_TYPE PendingKey
#define SH_KEY_TYPE int64
#define SH_KEY key
#define SH_HASH_KEY(table, key) hash_of_key(key, 0)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static PendingKey *
pending_of(pending_hash *keys, int64 key)
{
	bool		found;
	PendingKey *pending = pending_insert(keys, key, &found);

	if (!found)
	{
		pending->is_taken = false;
		pending->stats = PendingStats{};
	}
	return pending;
}

static void
add_pending(pending_hash *keys, const HoldRecord *records, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (records[i].objsubid == 0 || !records[i].is_counted)
			continue;

		PendingStats *stats = &pending_of(keys, records[i].key)->stats;

		stats->acquired += records[i].count;
		stats->last_acquired_at = Max(stats->last_acquired_at, records[i].last_acquired_at);
	}
}

PendingHolds::PendingHolds() : keys(pending_create(CurrentMemoryContext, FIRST_RECORDS, nullptr))
{
	visit_sessions([&](SharedSession *session) {
		for (Scope scope : {Scope::session, Scope::transaction})
		{
			if (session->database == MyDatabaseId)
				add_pending(keys, shared_records(session, scope), shared_count(session, scope));
		}
		return true;
	});
}

namespace
{

/* Where new names are collected. */
struct NewNames
{
	NewName    *names;
	int			count;
	int			capacity;
};

}								/* anonymous namespace */

static char *
copy_part(std::string_view part)
{
	return pnstrdup(part.data(), part.size());
}

static int
count_new(const HoldRecord *records, int count, const Key *key) noexcept
{
	int			found = 0;

	for (int i = 0; i < count; i++)
		found += records[i].is_new && (key == nullptr || records[i].key == key->value);
	return found;
}

static void
add_new(NewNames *found, Oid database, const HoldRecord *records, int count, const Key *key)
{
	int			needed = found->count + count_new(records, count, key);

	if (needed > found->capacity)
	{
		found->capacity = Max(needed, 2 * found->capacity);
		found->names = static_cast<NewName *>(found->names == nullptr
											  ? MemoryContextAllocHuge(CurrentMemoryContext, sizeof(NewName) * found->capacity)
											  : repalloc_huge(found->names, sizeof(NewName) * found->capacity));
	}
	for (int i = 0; found->count < needed; i++)
	{
		const HoldRecord &record = records[i];

		if (!record.is_new || (key != nullptr && record.key != key->value))
			continue;
		found->names[found->count++] = NewName{database, Key{record.key}, record.role, record.acquired_at,
											   copy_part(record.ns()), copy_part(record.name())};
	}
}

NewName *
read_new_names(Oid database, const Key *key, int *count)
{
	NewNames	found = {};

	visit_sessions([&](SharedSession *session) {
		if (!OidIsValid(database) || session->database == database)
			add_new(&found, session->database, shared_records(session, Scope::transaction),
					shared_count(session, Scope::transaction), key);
		return true;
	});
	*count = found.count;
	return found.names;
}

PendingStats
PendingHolds::take(Key key, bool *is_first)
{
	PendingKey *pending = pending_of(keys, key.value);

	*is_first = !pending->is_taken;
	pending->is_taken = true;
	return pending->stats;
}

Oid
present_role(int proc_number, int pid)
{
	SharedSession *all = all_sessions();

	if (all == nullptr || proc_number >= static_cast<int>(ProcGlobal->allProcCount) || all[proc_number].pid != pid)
		return InvalidOid;
	return all[proc_number].present_role;
}

}								/* namespace advisory */
