/*
 * shmem/heldread.cpp
 *		What the sessions of the server publish about the locks that they hold.
 */
#include "base/pg.h"

#include <initializer_list>

extern "C" {
#include "executor/executor.h"
#include "port/pg_bitutils.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/dsa.h"
}

#include "shmem/heldread.h"
#include "shmem/root.h"
#include "shmem/waiters.h"

namespace advisory
{

/* This many holds are searched before they are indexed: some more than the lock table has partitions. */
static constexpr int NEAR_HOLDS = 4 * NUM_LOCK_PARTITIONS;

namespace
{

struct HoldKey
{
	int64		key;
	uint16		objsubid;
	uint8		mode;
};

struct HoldIndex
{
	HoldKey		key;
	char		status;
	int			place;
};

#define SH_PREFIX holds
#define SH_ELEMENT_TYPE HoldIndex
#define SH_KEY_TYPE HoldKey
#define SH_KEY key
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, ((wanted).objsubid << 8) ^ (wanted).mode)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).objsubid == (b).objsubid && (a).mode == (b).mode)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

/* A copy of the published holds of one session. */
struct HoldReader::Session
{
	int			pid;
	PublishedHold *holds;
	int			count;
	int			next;			/* the place behind the one that was found last */
	holds_hash *index;			/* made when it is first needed */
	Acquirer		acquirers[SESSION_ACQUIRERS];
	int			acquirer_count;
};

static int
process_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount);
}

/*
 * Call visit(holds, count) for the holds of a session, piece by piece, with its lock held shared, until it
 * returns false.  Before each piece call begin(most) without the lock.  If the session changes its list between
 * two pieces, a hold may be visited twice or not at all.
 */
template <typename Begin, typename Visit>
static void
visit_holds(SharedSession *session, Begin begin, Visit visit)
{
	bool		going = true;

	for (int first = 0; going; first += SESSION_READ_HOLDS)
	{
		CHECK_FOR_INTERRUPTS();
		begin(SESSION_READ_HOLDS);
		LWLockAcquire(&session->lock, LW_SHARED);

		int			left = session->hold_count - first;
		int			count = Min(left, SESSION_READ_HOLDS);

		pg_read_barrier();
		going = count > 0 &&
			visit(static_cast<PublishedHold *>(dsa_get_address(shared_area(), session->holds)) + first, count) &&
			count == SESSION_READ_HOLDS;
		LWLockRelease(&session->lock);
	}
}

static void
copy_session(SharedSession *session, HoldReader::Session *copy)
{
	int			capacity = 0;

	copy->pid = session->pid;
	visit_holds(session, [&](int most) {
		if (copy->count + most <= capacity)
			return;
		capacity = Max(2 * capacity, copy->count + most);

		Size		bytes = sizeof(PublishedHold) * capacity;

		copy->holds = static_cast<PublishedHold *>(copy->holds == nullptr
												   ? palloc(bytes)
												   : repalloc_huge(copy->holds, bytes));
	}, [&](const PublishedHold *holds, int count) {
		memcpy(copy->holds + copy->count, holds, sizeof(PublishedHold) * count);
		copy->count += count;
		return true;
	});
	LWLockAcquire(&session->lock, LW_SHARED);
	copy->acquirer_count = session->acquirer_count;
	memcpy(copy->acquirers, session->acquirers, sizeof(copy->acquirers));
	LWLockRelease(&session->lock);
}

HoldReader::HoldReader()
	: context(CurrentMemoryContext),
	  // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
	  sessions(static_cast<Session **>(palloc0(sizeof(Session *) * process_count())))
{
}

HoldReader::Session *
HoldReader::session_of(int proc_number, int pid)
{
	if (proc_number >= process_count())
		return nullptr;			/* a prepared transaction */

	if (sessions[proc_number] == nullptr)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		auto	   *copy = static_cast<Session *>(palloc0(sizeof(Session)));

		if (SharedSession *all = all_sessions())
			copy_session(&all[proc_number], copy);
		sessions[proc_number] = copy;
		MemoryContextSwitchTo(old_context);
	}
	return sessions[proc_number]->pid == pid ? sessions[proc_number] : nullptr;
}

/*
 * The lock table lists a session's locks partition by partition, in the order in which they were taken.  The list of holds has
 * usually the same order, so the next hold is nearly always a few places further on, or near the beginning again.
 */
static int
find_place(HoldReader::Session *session, const HoldKey &key, MemoryContext context)
{
	for (int start : {session->next, 0})
	{
		for (int i = start; i < Min(start + NEAR_HOLDS, session->count); i++)
		{
			const PublishedHold &hold = session->holds[i];

			if (hold.key == key.key && hold.objsubid == key.objsubid && hold.mode == key.mode)
			{
				session->next = i + 1;
				return i;
			}
		}
	}
	if (session->index == nullptr)
	{
		bool		found;

		session->index = holds_create(context, session->count, nullptr);
		for (int i = 0; i < session->count; i++)
		{
			const PublishedHold &hold = session->holds[i];

			if (hold.objsubid != 0)
				holds_insert(session->index, HoldKey{hold.key, hold.objsubid, hold.mode}, &found)->place = i;
		}
	}

	HoldIndex  *found = holds_lookup(session->index, key);

	if (found == nullptr)
		return NO_PLACE;
	session->next = found->place + 1;
	return found->place;
}

bool
HoldReader::find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, KnownHold *found)
{
	Session    *session = session_of(proc_number, pid);

	if (session == nullptr)
		return false;
	for (Mode mode : ALL_MODES)
	{
		HoldKey		key = {decode_tag(tag).key.value, tag.locktag_field4, static_cast<uint8>(index_of(mode))};
		int			place = lockmode_of(mode) == lockmode ? find_place(session, key, context) : NO_PLACE;

		if (place == NO_PLACE)
			continue;
		found->hold = session->holds[place];
		found->acquirer = found->hold.acquirer != NO_PLACE && found->hold.acquirer < session->acquirer_count
			? &session->acquirers[found->hold.acquirer] : nullptr;
		return true;
	}
	return false;
}

int64
count_session_holds(int proc_number, int pid)
{
	SharedSession *all = all_sessions();
	int64		live = 0;

	if (all == nullptr || all[proc_number].pid != pid)
		return 0;
	visit_holds(&all[proc_number], [](int) {}, [&live](const PublishedHold *holds, int count) {
		for (int i = 0; i < count; i++)
			live += holds[i].objsubid != 0 && holds[i].scope == index_of(Scope::session);
		return true;
	});
	return live;
}

bool
find_other_slots(Key key, int slots, OtherSlots *other)
{
	SharedSession *all = all_sessions();
	int			wait_count;
	PublishedWait *waits = read_slot_waits(&wait_count);

	*other = OtherSlots{};
	for (int i = 0; all != nullptr && i < process_count() && other->slots == 0; i++)
	{
		if (all[i].pid == 0 || all[i].database != MyDatabaseId)
			continue;
		visit_holds(&all[i], [](int) {}, [&](const PublishedHold *holds, int count) {
			for (int j = 0; j < count && other->slots == 0; j++)
			{
				if (holds[j].objsubid > OBJSUBID_SLOT_BASE && holds[j].key == key.value && holds[j].slots != slots)
					*other = OtherSlots{all[i].pid, holds[j].slots};
			}
			return other->slots == 0;
		});
	}
	for (int i = 0; i < wait_count && other->slots == 0; i++)
	{
		DecodedTag	tag = decode_tag(waits[i].tag);

		if (tag.database == MyDatabaseId && tag.key == key && waits[i].slots != slots)
			*other = OtherSlots{waits[i].pid, waits[i].slots};
	}
	return other->slots != 0;
}

Oid
present_role(int proc_number, int pid)
{
	SharedSession *all = all_sessions();

	if (all == nullptr || proc_number >= process_count() || all[proc_number].pid != pid)
		return InvalidOid;
	return all[proc_number].present_role;
}

}								/* namespace advisory */
