/*
 * shmem/heldread.cpp
 *		What the sessions of the server publish about the locks that they hold.
 */
#include "base/pg.h"

#include "shmem/root.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* A published hold is its own key: of its members, key, objsubid and mode are compared. */
struct HoldEntry
{
	PublishedHold hold;
	char		status;
};

#define SH_PREFIX holds
#define SH_ELEMENT_TYPE HoldEntry
#define SH_KEY_TYPE PublishedHold
#define SH_KEY hold
#define SH_HASH_KEY(table, wanted) hash_of_key((wanted).key, ((wanted).objsubid << 8) ^ (wanted).mode)
#define SH_EQUAL(table, a, b) ((a).key == (b).key && (a).objsubid == (b).objsubid && (a).mode == (b).mode)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A copy of what one session publishes. */
struct HoldReader::Session
{
	int			pid;
	holds_hash *holds;			/* null without shared memory */
	Acquirer	acquirers[SESSION_ACQUIRERS + 1];
	int			acquirer_count;
	uint32		transactions;
};

/*
 * Call visit(hold) for each hold of a session, without the session's lock, until it returns false.  If the session
 * changes its list meanwhile, a hold may be visited twice or not at all.
 */
template <typename Visit>
static void
visit_holds(SharedSession *session, Visit visit)
{
	PublishedHold holds[SESSION_READ_HOLDS];
	int			count = SESSION_READ_HOLDS;

	for (int first = 0; count == SESSION_READ_HOLDS; first += SESSION_READ_HOLDS)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&session->lock, LW_SHARED);
		count = Max(0, Min(session->hold_count - first, SESSION_READ_HOLDS));
		pg_read_barrier();
		if (count > 0)
			memcpy(holds, static_cast<PublishedHold *>(dsa_get_address(shared_area(), session->holds)) + first,
				   sizeof(PublishedHold) * count);
		LWLockRelease(&session->lock);
		for (int i = 0; i < count; i++)
		{
			if (holds[i].objsubid != 0 && !visit(holds[i]))
				return;
		}
	}
}

static void
copy_session(SharedSession *session, HoldReader::Session *copy)
{
	copy->pid = session->pid;
	copy->holds = holds_create(CurrentMemoryContext, session->hold_count, nullptr);
	visit_holds(session, [copy](const PublishedHold &hold) {
		bool		found;

		holds_insert(copy->holds, hold, &found)->hold = hold;
		return true;
	});
	LWLockAcquire(&session->lock, LW_SHARED);
	copy->acquirer_count = session->acquirer_count;
	copy->transactions = session->transactions;
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

bool
HoldReader::find(int proc_number, int pid, const LOCKTAG &tag, LOCKMODE lockmode, KnownHold *found)
{
	Session    *session = session_of(proc_number, pid);

	if (session == nullptr || session->holds == nullptr)
		return false;
	for (Mode mode : ALL_MODES)
	{
		PublishedHold wanted = {decode_tag(tag).key.value, 0, tag.locktag_field4, 0, static_cast<uint8>(index_of(mode))};
		HoldEntry  *entry = lockmode_of(mode) == lockmode ? holds_lookup(session->holds, wanted) : nullptr;

		if (entry == nullptr)
			continue;
		found->hold = entry->hold;
		found->acquirer = found->hold.acquirer != NO_PLACE && found->hold.acquirer < session->acquirer_count
			? &session->acquirers[found->hold.acquirer] : nullptr;
		found->transactions = session->transactions - found->hold.transactions;
		if (found->acquirer != nullptr)
			found->by_others = found->transactions - (found->acquirer->transactions - found->hold.own_transactions);
		return true;
	}
	return false;
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
		visit_holds(&all[i], [&](const PublishedHold &hold) {
			if (hold.objsubid > OBJSUBID_SLOT_BASE && hold.key == key.value && hold.slots != slots)
				*other = OtherSlots{all[i].pid, hold.slots};
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
