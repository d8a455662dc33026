/*
 * core/semdeadlock.cpp
 *		Deadlocks over the slots of semaphores.
 *
 * The server's own detector does not see them, because a session in a semaphore's queue does not
 * wait for one particular lock.
 *
 * Wording
 *		live	can go on some day, as far as locks decide it
 *		dead	not live
 *
 * A session that waits for nothing is live, and so is a prepared transaction.  A session that waits
 * for a lock is live if all sessions that it waits for are live.  A session that waits for slots
 * is live if as many as it wants are free or have live holders.  But if a waiter ahead of it wants
 * several and is dead, all slots that this one can use stay set aside for it, so that only slots
 * beyond them count.
 *
 * A session that wants a slot of each of several semaphores is live if it is live in each of their
 * queues.  If it is dead, one slot stays set aside for it in each.  So a waiter behind such ones is
 * live if as many as it wants and they are, of the slots that it can use and of them, are live.
 * Only the first of them are followed, as many as it can use slots: those that are live leave the
 * queue, so a later search finds those that are dead among the first.
 *
 * The search begins with this session and reads only the locks that it waits for, directly or
 * through other sessions.  It reads the holders of slots up to the first that waits for nothing,
 * and follows the others only if there is none.  So most searches read one or two slots.
 *
 * A search locks only one partition of the lock table at a time, so the waits that it reads may
 * never have existed all at the same time. But what a session holds does not change while it waits.
 * So a session that seems to be in a cycle searches a second time.  In that search only sessions
 * can be dead that were dead the first time and are still in the same wait, and at the end it reads
 * all of these waits once more.  This proves that all of them waited, and held what the second
 * search read, throughout that search.
 *
 * The second search runs with the root's deadlock lock held, so that the next session that searches
 * sees that this one gives up.
 *
 * If in doubt, a session counts as live.  A parallel worker's wait is not followed.
 */
#include "base/pg.h"

#include "core/semaphore.h"
#include "server/waitgraph.h"
#include "shmem/root.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/*
 * How many waits, and how many blockers of one wait, an error message names; nobody would read
 * more.
 */
static constexpr int DESCRIBED = 20;

/* How many different numbers of slots of large waiters ahead are followed. */
static constexpr int FOLLOWED_NUMBERS = 8;

namespace
{

/*
 * A session and what it waits for.  Or what sessions wait for: a lock, with only tag and entries;
 * slots of a semaphore, which themselves wait for as many of the holders as are wanted; or as many
 * as are wanted of other nodes.
 */
struct Node
{
	LockEntry	wait;			/* only tag, slots, wanted, tries, lockmode and wait_start count */
	int			beyond;			/* of a semaphore: only the slots after this one */
	List	   *ahead;			/* (Node *) sessions that count as slots of it */
	int			pid;			/* of a session, else 0 */
	int			proc_number;	/* of the session's lock group's leader */
	bool		is_live;
	int			number;			/* in the order of the visits; 0 before the first */
	int			lowest;			/* of the numbers of dead nodes that it waits for, directly or
								 * through others, as far as they are seen */
	List	   *blockers;		/* (Node *) what it waits for: a session for all of them, another
								 * node for some; NIL until that is read */
	LockEntries entries;		/* of a lock */
};

bool
is_same_target(const LockEntry &a, const LockEntry &b) noexcept
{
	return a.slots == b.slots && a.wanted == b.wanted && same_tag(a.tag, b.tag);
}

/*
 * Is it the same wait, begun at the same time?  In a try between, the session may have held slots
 * for a moment.
 */
bool
is_same_wait(const Node &a, const Node &b) noexcept
{
	return a.pid == b.pid && is_same_target(a.wait, b.wait) &&
		a.wait.wait_start == b.wait.wait_start && a.wait.tries == b.wait.tries;
}

class Search
{
public:
	/*
	 * own: what this session waits for; it need not be published.  before: an earlier search, or
	 * null.
	 */
	Search(const Node &own, const Search *before)
		: before(before),
		  // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
		  by_process(static_cast<Node **>(palloc0(sizeof(Node *) * process_count()))),
		  nodes(static_cast<Node *>(
			  palloc_extended(sizeof(Node) * process_count(), MCXT_ALLOC_HUGE))),
		  waiters(static_cast<WaiterAhead *>(
			  palloc_extended(sizeof(WaiterAhead) * process_count(), MCXT_ALLOC_HUGE))),
		  me(add_node(own))
	{
		live.is_live = true;
	}

	/*
	 * Is this session dead, and would it help if it gave up: do all sessions that it waits for also
	 * wait for it?
	 */
	bool		am_i_in_cycle()
	{
		/*
		 * A pass can find out that a node is live after it has counted it as dead for another one.
		 */
		do
		{
			earlier_visits = visits;
			found_live = false;
			all_wait_for_me = true;
		} while (!visit(me) && found_live);
		return !me->is_live && all_wait_for_me;
	}

	/*
	 * After am_i_in_cycle() has returned true: the waits of the cycle, this session's first;
	 * palloc'd.  Null if not all sessions of the cycle are still in the same wait.
	 */
	char	   *describe_unless_changed() const
	{
		StringInfoData out;
		int			described = 0;

		initStringInfo(&out);
		for (int i = 0; i < count; i++)
		{
			Node		now = nodes[i];

			/* The last pass has visited only dead nodes. */
			if (now.number <= earlier_visits)
				continue;
			if (&nodes[i] != me &&
				(!read_session_wait(now.proc_number, &now.wait) || !is_same_wait(now, nodes[i])))
				return nullptr;
			if (described++ < DESCRIBED)
				describe_wait(&out, nodes[i]);
		}
		if (described > DESCRIBED)
			appendStringInfo(&out, "\n%d more of the cycle are not shown.", described - DESCRIBED);
		return out.data;
	}

private:
	Node	   *add_node(const Node &node) noexcept
	{
		nodes[count] = node;
		by_process[node.proc_number] = &nodes[count];
		return &nodes[count++];
	}

	/*
	 * The node of a session's lock group, or that of all sessions that are live at first sight.
	 * pid is 0 for a prepared transaction, which has no place in the array.
	 */
	Node	   *node_of_session(int proc_number, int pid)
	{
		Node		node = {};

		if (pid == 0)
			return &live;
		if (by_process[proc_number] != nullptr)
			return by_process[proc_number];
		node.pid = pid;
		node.proc_number = proc_number;
		if (!read_session_wait(node.proc_number, &node.wait) || node.wait.waits_for_lease)
			return &live;
		if (before != nullptr)
		{
			const Node *earlier = before->by_process[node.proc_number];

			/* Only a session that was dead in the earlier search, in the same wait, can be dead. */
			if (earlier == nullptr || earlier->is_live || !is_same_wait(*earlier, node))
				return &live;
		}
		return add_node(node);
	}

	/*
	 * The node of the lock or the slots that a session waits for; a lock is read once for all that
	 * wait for it.
	 */
	Node	   *target_of(const LockEntry &wait, int beyond = 0)
	{
		ListCell   *cell;
		Node	   *target;

		foreach(cell, targets)
		{
			target = static_cast<Node *>(lfirst(cell));
			if (is_same_target(target->wait, wait) && target->beyond == beyond)
				return target;
		}
		target = node_of(wait.wanted, NIL);
		target->wait.tag = wait.tag;
		target->wait.slots = wait.slots;
		target->beyond = beyond;
		if (wait.slots == 0)
			target->entries = read_locks({wait.tag});
		targets = lappend(targets, target);
		return target;
	}

	/* A node that is live if as many as are wanted of its blockers are. */
	static Node *node_of(int wanted, List *blockers)
	{
		auto	   *node = static_cast<Node *>(palloc0(sizeof(Node)));

		node->wait.wanted = wanted;
		node->blockers = blockers;
		return node;
	}

	/*
	 * Is a node live?  Visits it and what it waits for, once in each pass; until the visit ends it
	 * counts as dead.  In doubt, which is when the stack is full, it is live.  The numbers are
	 * those of Tarjan's algorithm for strongly connected components: if a dead node comes to no
	 * lower number than its own, it does not come to this session, which has the lowest.
	 */
	bool		visit(Node *node)
	{
		ListCell   *cell;
		int			missing;
		bool		has_dead = false;	/* if not, too few slots are beyond those set aside */

		if (node->is_live || node->number > earlier_visits)
			return node->is_live;
		if (stack_is_too_deep())
		{
			node->is_live = true;
			return true;
		}
		CHECK_FOR_INTERRUPTS();
		visits++;
		node->number = visits;
		node->lowest = visits;
		if (node->blockers == NIL)
			read_blockers(node);
		missing = node->pid == 0 ? node->wait.wanted : list_length(node->blockers);
		foreach(cell, node->blockers)
		{
			auto	   *blocker = static_cast<Node *>(lfirst(cell));

			if (missing > 0 && visit(blocker))
				missing--;
			else
			{
				node->lowest = Min(node->lowest, blocker->lowest);
				has_dead = true;
			}
		}
		node->is_live = missing == 0;
		found_live |= node->is_live;
		all_wait_for_me &= node->is_live || node == me || !has_dead || node->lowest < node->number;
		return node->is_live;
	}

	void		read_blockers(Node *node)
	{
		if (node->pid == 0)
			read_holders(node);
		else if (node->wait.slots > 0)
			read_all_queues(node);
		else
			read_lock_blockers(node);
	}

	void		read_all_queues(Node *session)
	{
		LockEntry	wait = session->wait;

		for (int i = 0; i < MAX_QUEUES; i++)
		{
			if (read_queue_of(session->proc_number, i, &wait.tag, &wait.slots))
				read_queue_blockers(session, wait);
		}
		if (session->blockers == NIL)
			read_queue_blockers(session, session->wait);
	}

	/*
	 * A waiter ahead of one that waits for this.  If it gave fewer slots, nothing beyond them is
	 * set aside for it: it is not in the way if there are enough.
	 */
	Node	   *node_ahead(const WaiterAhead &waiter, const LockEntry &wait)
	{
		Node	   *node = node_of_session(waiter.proc_number,
										   GetPGProcByNumber(waiter.proc_number)->pid);

		if (waiter.link.slots >= wait.slots)
			return node;
		return node_of(1, list_make2(node, target_of(wait, waiter.link.slots)));
	}

	/*
	 * The slots that a session waits for, and those of the waiters ahead that want one of several,
	 * too.
	 */
	Node	   *slots_behind(const LockEntry &wait, int waiter_count)
	{
		List	   *ahead = NIL;
		Node	   *slots;

		for (int i = 0; i < waiter_count && list_length(ahead) < wait.slots; i++)
		{
			if (waiters[i].link.is_one_of_several && waiters[i].link.slots <= wait.slots)
				ahead = lappend(ahead, node_ahead(waiters[i], wait));
		}
		if (ahead == NIL)
			return target_of(wait);
		slots = node_of(wait.wanted + list_length(ahead), NIL);
		slots->wait.tag = wait.tag;
		slots->wait.slots = wait.slots;
		slots->ahead = ahead;
		return slots;
	}

	/*
	 * A session in a queue waits for its slots, and for the large waiters ahead, or for slots that
	 * they cannot use.  Of those with the same number of slots the nearest waits for the others.
	 * None is followed if even the largest could get its slots among those that all can use: then
	 * all of them are live.
	 */
	void		read_queue_blockers(Node *session, const LockEntry &wait)
	{
		int			waiter_count = read_waiters_ahead(wait.tag, session->proc_number, waiters);
		/* For each number of slots, or the first of them, the place of the nearest. */
		int			nearest[FOLLOWED_NUMBERS];
		int			count = 0;
		List	   *large = NIL;
		LockEntry	hardest = wait;

		session->blockers = lappend(session->blockers, slots_behind(wait, waiter_count));
		hardest.slots = MAX_SLOTS;
		for (int i = 0; i < waiter_count; i++)
		{
			const QueueLink &link = waiters[i].link;
			int			place = 0;

			if (link.wanted == 1)
				continue;
			hardest.slots = Min(hardest.slots, link.slots);
			hardest.wanted = Max(hardest.wanted, link.wanted);
			while (place < count && waiters[nearest[place]].link.slots != link.slots)
				place++;
			if (place == FOLLOWED_NUMBERS)
				continue;
			nearest[place] = i;
			count = Max(count, place + 1);
		}
		if (count == 0)
			return;
		for (int i = 0; i < count; i++)
			large = lappend(large, node_ahead(waiters[nearest[i]], wait));
		session->blockers = lappend(session->blockers,
									node_of(1, list_make2(target_of(hardest),
														  node_of(count, large))));
	}

	/* The holders of a semaphore's slots.  Ends when there are enough that are live. */
	void		read_holders(Node *semaphore)
	{
		DecodedTag	tag = decode_tag(semaphore->wait.tag);
		int			missing = semaphore->wait.wanted;

		for (int slot = semaphore->beyond + 1; slot <= semaphore->wait.slots && missing > 0; slot++)
		{
			LockEntry	holder;
			Node	   *blocker = &live;	/* a slot that is free */

			CHECK_FOR_INTERRUPTS();
			if (is_held_by_anybody(slot_tag(tag.database, tag.key, slot), &holder))
				blocker = node_of_session(holder.leader_number, session_pid(holder));
			missing -= blocker->is_live;
			semaphore->blockers = lappend(semaphore->blockers, blocker);
		}
		semaphore->blockers = list_concat(semaphore->blockers, semaphore->ahead);
	}

	/*
	 * The sessions in the way of one that waits for a lock, but for live ones.  None if it does not
	 * wait any more.
	 */
	void		read_lock_blockers(Node *session)
	{
		const LOCKMASK *conflicts = GetLockTagsMethodTable(&session->wait.tag)->conflictTab;
		const LockEntries &entries = target_of(session->wait)->entries;
		const LockEntry *waiter = entries.entries;
		const LockEntry *end = waiter + entries.count;

		while (waiter < end && (waiter->granted || waiter->proc_number != session->proc_number))
			waiter++;
		if (waiter == end)
			return;
		auto		visit = [&](const LockEntry &other) {
			Node	   *blocker = node_of_session(other.leader_number, session_pid(other));

			/* What its own lock group holds is not in its way. */
			if (!is_in_the_way(other, *waiter))
				return true;
			if (!blocker->is_live)
				session->blockers = lappend(session->blockers, blocker);
			/*
			 * A waiter ahead whose mode has at least the same conflicts waits for the other waiters
			 * ahead, too.
			 */
			return other.granted || blocker->is_live ||
				(conflicts[waiter->lockmode] & ~conflicts[other.lockmode]) != 0;
		};
		visit_holders(entries, *waiter, visit);
		visit_ahead(entries, *waiter, visit);
	}

	/* Add the pids of what a session waits for, directly or by way of a semaphore. */
	static List *add_pids(List *pids, const List *blockers)
	{
		ListCell   *cell;

		foreach(cell, blockers)
		{
			const auto *blocker = static_cast<Node *>(lfirst(cell));

			if (blocker->pid != 0 && list_length(pids) <= DESCRIBED)
				pids = list_append_unique_int(pids, blocker->pid);
			else if (!blocker->is_live && blocker->pid == 0)
				pids = add_pids(pids, blocker->blockers);
		}
		return pids;
	}

	/* Add one line about a session's wait. */
	void		describe_wait(StringInfo out, const Node &session) const
	{
		const LockEntry &wait = session.wait;
		List	   *pids = add_pids(NIL, session.blockers);
		int			count = Min(list_length(pids), DESCRIBED);

		appendStringInfo(out, "%sProcess %d waits for ", out->len > 0 ? "\n" : "", session.pid);
		if (wait.slots > 1 && wait.wanted > 1)
			appendStringInfo(out, "%d of the %d slots of ", wait.wanted, wait.slots);
		else if (wait.slots > 0)
			appendStringInfo(out, wait.slots == 1 ? "the only slot of " : "one of the %d slots of ",
							 wait.slots);
		else
			appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, wait.lockmode));
		DescribeLockTag(out, &wait.tag);
		for (int i = 0; i < count; i++)
			appendStringInfo(out, "%s%d",
							 i > 0 ? ", " : count > 1
							 ? "; blocked by processes " : "; blocked by process ",
							 list_nth_int(pids, i));
		appendStringInfoString(out, list_length(pids) > count ? " and others." : ".");
	}

	const Search *before;
	Node	  **by_process;		/* a session's node, by its proc_number; null if it has none */
	Node	   *nodes;			/* of sessions */
	int			count = 0;
	WaiterAhead *waiters;		/* those that were read last */
	List	   *targets = NIL;	/* (Node *) locks and slots */
	Node	   *me;
	Node		live = {};		/* stands for all that is live at first sight */
	int			visits = 0;
	int			earlier_visits = 0; /* before this pass */
	bool		found_live = false;	/* in this pass */
	bool		all_wait_for_me = true; /* the dead sessions of this pass */
};

}								/* anonymous namespace */

/*
 * The DETAIL of a session in a cycle, which must give up.  The other sessions have then been told
 * that it leaves.  Null if it is not in a cycle, or if waits have changed between the two searches:
 * the next check will find out.
 */
static char *
find_deadlock(const Node &me)
{
	/* With the lock held no search may attach to anything. */
	SharedRoot *root = all_sessions() != nullptr ? attached_root : nullptr;
	char	   *detail = nullptr;
	Search		first(me, nullptr);

	if (!first.am_i_in_cycle())
		return nullptr;

	Search		second(me, &first);

	if (root != nullptr)
		LWLockAcquire(&root->deadlock, LW_EXCLUSIVE);
	if (second.am_i_in_cycle())
		detail = second.describe_unless_changed();
	if (detail != nullptr)
		publish_leaving(true);
	if (root != nullptr)
		LWLockRelease(&root->deadlock);
	return detail;
}

void
check_slot_deadlock(const LockRequest &request)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext deadlock",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	Node		me = {};
	char	   *detail;

	me.pid = MyProcPid;
	me.proc_number = my_process_number();
	me.wait.tag = queue_tag(MyDatabaseId, request.name.key);
	me.wait.slots = request.slots;
	me.wait.wanted = request.wanted;
	has_semaphores();			/* so that a search sees the queues; it does not attach */
	detail = find_deadlock(me);
	MemoryContextSwitchTo(old_context);
	if (detail != nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail_internal("%s", detail)));
	MemoryContextDelete(context);
}

}								/* namespace advisory */
