/*
 * core/semdeadlock.cpp
 *		Deadlocks over the slots of semaphores.
 *
 * The search begins with this session and reads only the locks that it waits for, directly or through
 * other sessions.  It follows the first holder of a slot as far as it can before it looks at the next
 * holder, and ends as soon as this session is known to be live.  So most searches read one or two slots.
 *
 * A search locks only one partition of the lock table at a time, so the waits that it reads may never have existed all at the same time.
 * But what a session holds does not change while it waits.  So a session that seems to be in a cycle searches a second time.  In that
 * search only sessions can be dead that were dead the first time and are still in the same wait, and at the end it reads all of these waits
 * once more.  This proves that all of them waited, and held what the second search read, throughout that search.
 *
 * The second search runs with the root's deadlock lock held, so that the next session that searches sees
 * that this one gives up.  Only sessions in a cycle search a second time, and they search only that cycle.
 *
 * If in doubt, a session counts as live.  A parallel worker's wait is not followed.
 */
#include "base/pg.h"

#include "core/semdeadlock.h"
#include "server/waitgraph.h"
#include "shmem/root.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* How many waits, and how many blockers of one wait, an error message names; nobody would read more. */
static constexpr int DESCRIBED = 20;

/* How often the searches are repeated if waits change meanwhile; the next check would be a second later. */
static constexpr int ATTEMPTS = 3;

/* Stands for a session that is live at first sight, instead of a node's number. */
static constexpr int LIVE = -1;

static constexpr int ME = 0;

namespace
{

/*
 * A session and what it waits for.  Or a semaphore with a number of slots, with its own tag and
 * slots; all sessions that wait for it with that number of slots share the node.
 */
struct Node
{
	LockEntry	wait;			/* only tag, slots, lockmode and wait_start count; a semaphore has tag and slots */
	int			pid;			/* of a session; 0: a semaphore */
	int			proc_number;	/* of the session's lock group's leader */
	bool		is_live;
	int			missing;		/* how many more live nodes it needs to be live itself */
	List	   *blockers;		/* the nodes that it waits for (int); NIL as long as it is not expanded */
	List	   *waiters;		/* the nodes that wait for it */
	LockEntries entries;		/* of the lock that it waits for, in the first node that looked there */
};

}								/* anonymous namespace */

static bool
is_same_target(const Node &a, const Node &b) noexcept
{
	return a.wait.slots == b.wait.slots && same_tag(a.wait.tag, b.wait.tag);
}

/* Is it the same wait, begun at the same time? */
static bool
is_same_wait(const Node &a, const Node &b) noexcept
{
	return a.pid == b.pid && is_same_target(a, b) && a.wait.wait_start == b.wait.wait_start;
}

namespace
{

class Search
{
public:
	/* me: what this session waits for; it need not be published.  before: an earlier search, or null. */
	Search(const Node &me, const Search *before)
		: before(before),
		  by_process(static_cast<int *>(palloc0(sizeof(int) * ProcGlobal->allProcCount))),
		  nodes(static_cast<Node *>(palloc_extended(sizeof(Node) * 2 * ProcGlobal->allProcCount, MCXT_ALLOC_HUGE)))
	{
		add_node(me);
	}

	/* Is this session dead, and would it help if it gave up: do all sessions that it waits for also wait for it? */
	bool		am_i_in_cycle()
	{
		List	   *pending = list_make1_int(ME);	/* the last is looked at first */

		while (pending != NIL && !nodes[ME].is_live)
		{
			int			node = llast_int(pending);

			CHECK_FOR_INTERRUPTS();
			pending = list_delete_last(pending);
			if (nodes[node].blockers != NIL || nodes[node].is_live || !is_needed(node))
				continue;
			expand(node);
			for (int i = list_length(nodes[node].blockers) - 1; i >= 0; i--)
				pending = lappend_int(pending, list_nth_int(nodes[node].blockers, i));
		}
		if (nodes[ME].is_live)
			return false;
		blockers = reachable_dead(&Node::blockers);
		return bms_is_subset(blockers, reachable_dead(&Node::waiters));
	}

	/* After am_i_in_cycle() has returned true: are all sessions of the cycle still in the same wait? */
	bool		is_unchanged() const
	{
		for (int i = bms_next_member(blockers, ME); i >= 0; i = bms_next_member(blockers, i))
		{
			Node		now = nodes[i];

			if (now.pid != 0 && (!read_session_wait(now.proc_number, &now.wait) || !is_same_wait(now, nodes[i])))
				return false;
		}
		return true;
	}

	/* The waits of the cycle, this session's first; palloc'd. */
	char	   *describe() const
	{
		StringInfoData out;
		int			described = 0;

		initStringInfo(&out);
		for (int i = bms_next_member(blockers, -1); i >= 0; i = bms_next_member(blockers, i))
		{
			if (nodes[i].pid != 0 && described++ < DESCRIBED)
				describe_wait(&out, nodes[i]);
		}
		if (described > DESCRIBED)
			appendStringInfo(&out, "\n%d more of the cycle are not shown.", described - DESCRIBED);
		return out.data;
	}

private:
	int			add_node(const Node &node) noexcept
	{
		nodes[count] = node;
		return count++;
	}

	/* The node of a session's lock group, or LIVE. */
	int			node_of_session(const LockEntry &session)
	{
		Node		node = {};

		/* A prepared transaction has no place in the array. */
		if (session.pid == 0)
			return LIVE;
		if (session.leader_number == my_process_number())
			return ME;
		if (by_process[session.leader_number] != 0)
			return by_process[session.leader_number];
		node.pid = session_pid(session);
		node.proc_number = session.leader_number;
		if (!read_session_wait(node.proc_number, &node.wait))
			return LIVE;
		if (before != nullptr)
		{
			const Node &earlier = before->nodes[before->by_process[node.proc_number]];

			/* Only a session that was dead in the earlier search, in the same wait, can be dead. */
			if (earlier.is_live || !is_same_wait(earlier, node))
				return LIVE;
		}
		by_process[node.proc_number] = add_node(node);
		return by_process[node.proc_number];
	}

	void		add_edge(int from, int to)
	{
		nodes[from].blockers = lappend_int(nodes[from].blockers, to);
		nodes[to].waiters = lappend_int(nodes[to].waiters, from);
	}

	/* Mark a node as live, and all nodes that are live as a consequence. */
	void		make_live(int node)
	{
		List	   *live = list_make1_int(node);
		ListCell   *cell;
		ListCell   *waiter;

		/* The loop also visits nodes that are added to the list meanwhile. */
		foreach(cell, live)
		{
			Node	   &one = nodes[lfirst_int(cell)];

			if (one.is_live)
				continue;
			one.is_live = true;
			foreach(waiter, one.waiters)
			{
				if (--nodes[lfirst_int(waiter)].missing == 0)
					live = lappend_int(live, lfirst_int(waiter));
			}
		}
	}

	/* Is it this session's node, or does a node wait for it that is not known to be live? */
	bool		is_needed(int node) const noexcept
	{
		ListCell   *cell;

		foreach(cell, nodes[node].waiters)
		{
			if (!nodes[lfirst_int(cell)].is_live)
				return true;
		}
		return node == ME;
	}

	/* Find out what a node waits for. */
	void		expand(int node)
	{
		if (nodes[node].pid == 0)
			expand_semaphore(node);
		else if (nodes[node].wait.slots == 0)
			expand_lock_wait(node);
		else
		{
			Node		wanted = {};
			int			semaphore = 0;

			wanted.wait.tag = nodes[node].wait.tag;
			wanted.wait.slots = nodes[node].wait.slots;
			while (semaphore < count && (nodes[semaphore].pid != 0 || !is_same_target(nodes[semaphore], wanted)))
				semaphore++;
			if (semaphore == count)
				add_node(wanted);
			nodes[node].missing = 1;
			add_edge(node, semaphore);
			if (nodes[semaphore].is_live)
				make_live(node);
		}
	}

	/* A semaphore is live if it has a free slot, or one live holder. */
	void		expand_semaphore(int node)
	{
		DecodedTag	tag = decode_tag(nodes[node].wait.tag);
		int			slots = nodes[node].wait.slots;

		nodes[node].missing = 1;
		for (int slot = 1; slot <= slots; slot++)
		{
			LockEntry	holder;
			int			blocker = LIVE;

			if (slot % 64 == 0)
				CHECK_FOR_INTERRUPTS();
			if (is_held_by_anybody(slot_tag(tag.database, tag.key, slot), &holder))
				blocker = node_of_session(holder);
			if (blocker == LIVE || nodes[blocker].is_live)
				return make_live(node);
			if (nodes[node].blockers == NIL || llast_int(nodes[node].blockers) != blocker)
				add_edge(node, blocker);
		}
	}

	/* A wait for a lock is live if all of its blockers are. */
	void		expand_lock_wait(int node)
	{
		const LOCKMASK *conflicts = GetLockTagsMethodTable(&nodes[node].wait.tag)->conflictTab;
		int			reader = 0;
		int			waiter = 0;

		/* Read the lock once for all nodes that wait for it. */
		while (reader < count && (nodes[reader].entries.count == 0 || !same_tag(nodes[reader].wait.tag, nodes[node].wait.tag)))
			reader++;
		if (reader == count)
		{
			reader = node;
			nodes[node].entries = read_locks({nodes[node].wait.tag});
		}

		const LockEntries &entries = nodes[reader].entries;
		const LockEntry *all = entries.entries;

		while (waiter < entries.count && (all[waiter].granted || all[waiter].proc_number != nodes[node].proc_number))
			waiter++;
		if (waiter == entries.count)
			return make_live(node);

		visit_blockers(entries, all[waiter], [&](const LockEntry &other) {
			int			blocker = node_of_session(other);

			if (blocker != LIVE && !nodes[blocker].is_live)
			{
				add_edge(node, blocker);
				nodes[node].missing++;
			}
			/* A waiter ahead whose mode has at least the same conflicts waits for the other waiters ahead, too. */
			return other.granted || blocker == LIVE ||
				(conflicts[all[waiter].lockmode] & ~conflicts[other.lockmode]) != 0;
		});
		if (nodes[node].missing == 0)
			make_live(node);
	}

	/* The dead nodes that this session waits for, or that wait for it, directly or through others; itself included. */
	Bitmapset  *reachable_dead(List *Node::*edges) const
	{
		Bitmapset  *found = bms_make_singleton(ME);
		List	   *reached = list_make1_int(ME);
		ListCell   *cell;
		ListCell   *edge;

		/* The loop also visits nodes that are added to the list meanwhile. */
		foreach(cell, reached)
		{
			foreach(edge, nodes[lfirst_int(cell)].*edges)
			{
				int			node = lfirst_int(edge);

				if (nodes[node].is_live || bms_is_member(node, found))
					continue;
				found = bms_add_member(found, node);
				reached = lappend_int(reached, node);
			}
		}
		return found;
	}

	/* Add one line about a session's wait. */
	void		describe_wait(StringInfo out, const Node &session) const
	{
		const Node &node = session.wait.slots > 0 ? nodes[linitial_int(session.blockers)] : session;
		List	   *pids = NIL;
		ListCell   *cell;
		int			count;

		foreach(cell, node.blockers)
		{
			if (list_length(pids) <= DESCRIBED)
				pids = list_append_unique_int(pids, nodes[lfirst_int(cell)].pid);
		}
		count = Min(list_length(pids), DESCRIBED);

		appendStringInfo(out, "%sProcess %d waits for ", out->len > 0 ? "\n" : "", session.pid);
		if (session.wait.slots > 0)
			appendStringInfo(out, session.wait.slots == 1 ? "the only slot of " : "one of the %d slots of ", session.wait.slots);
		else
			appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, session.wait.lockmode));
		DescribeLockTag(out, &session.wait.tag);
		for (int i = 0; i < count; i++)
			appendStringInfo(out, "%s%d",
							 i > 0 ? ", " : count > 1 ? "; blocked by processes " : "; blocked by process ",
							 list_nth_int(pids, i));
		appendStringInfoString(out, list_length(pids) > count ? " and others." : ".");
	}

	const Search *before;
	int		   *by_process;		/* a session's node, by its proc_number; 0 if it has none: node 0 is this session */
	Node	   *nodes;			/* sessions, and for each no more than the one semaphore that it waits for */
	int			count = 0;
	Bitmapset  *blockers = nullptr; /* in a cycle: the dead nodes that this session waits for, itself included */
};

}								/* anonymous namespace */

/* Does any session wait for a lock or slot that this session holds? */
static bool
am_i_in_the_way()
{
	LockEntries mine = read_my_locks(true);

	for (int i = 0; i < mine.count; i++)
	{
		DecodedTag	tag = decode_tag(mine.entries[i].tag);

		/* All sessions in a semaphore's queue hold the queue lock. */
		if (mine.entries[i].is_awaited || is_held_by_anybody(queue_tag(tag.database, tag.key)))
			return true;
	}
	return false;
}

/*
 * The DETAIL of a session in a cycle, which must give up.  The other sessions have then been told
 * that it leaves.  Null if it is not in a cycle.
 */
static char *
find_deadlock(const Node &me)
{
	SharedRoot *root = shared_root_if_attached();
	PublishedWait wait;
	char	   *detail = nullptr;

	/* Without a published wait the other sessions cannot be told. */
	if (root != nullptr && !read_wait(my_process_number(), &wait))
		root = nullptr;

	for (int i = 0; i < ATTEMPTS && detail == nullptr; i++)
	{
		Search		first(me, nullptr);

		if (!first.am_i_in_cycle())
			return nullptr;

		Search		second(me, &first);

		if (root != nullptr)
			LWLockAcquire(&root->deadlock, LW_EXCLUSIVE);
		if (second.am_i_in_cycle() && second.is_unchanged())
		{
			publish_leaving(true);
			detail = second.describe();
		}
		if (root != nullptr)
			LWLockRelease(&root->deadlock);
	}
	return detail;
}

void
check_slot_deadlock(Key key, int slots)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext deadlock", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	char	   *detail = nullptr;
	Node		me = {};

	me.pid = MyProcPid;
	me.proc_number = my_process_number();
	me.wait.tag = queue_tag(MyDatabaseId, key);
	me.wait.slots = slots;
	/* A session that blocks no other session is not part of a cycle. */
	if (am_i_in_the_way())
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
