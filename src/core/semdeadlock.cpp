/*
 * core/semdeadlock.cpp
 *		Deadlocks over the slots of semaphores.
 *
 * The search begins with this session and looks only at what it waits for, directly or through
 * others.  It follows the first holder of a slot as far as it can before it looks at the next,
 * and ends as soon as this session is known to be live.  Most searches thus read one or two slots.
 *
 * Nothing is locked during a search but one partition of the lock table at a time, so what is read may
 * never have been true all at once.  What a session holds stays the same while it waits, however.
 * So a session that seems to be in a cycle searches a second time.  Then only those can be dead that were
 * dead the first time and have gone on with the very same wait, and at the end it reads all of these
 * waits once more.  So all of them waited, and held what the second search read, throughout that search.
 *
 * The second search runs with the root's deadlock lock held, so that a session that gives up is seen by
 * the next to search.  Only sessions in a cycle get there, and they search only that cycle.
 *
 * Where in doubt a session is live.  A parallel worker's wait is not followed.
 */
#include "base/pg.h"

#include "core/semdeadlock.h"
#include "server/waitgraph.h"
#include "shmem/root.h"
#include "shmem/waiters.h"

namespace advisory
{

/* More would not be read in an error message. */
static constexpr int DESCRIBED_WAITS = 20;
static constexpr int DESCRIBED_BLOCKERS = 20;

/* Something can change while it is looked at; the next check would be a second later. */
static constexpr int ATTEMPTS = 3;

/* Instead of a node's number, for what is live at first sight. */
static constexpr int LIVE = -1;

static constexpr int NO_EDGE = -1;

namespace
{

/* What a session waits for: a lock, or one of so many slots of a semaphore. */
struct Target
{
	LOCKTAG		tag;			/* of a semaphore its queue's */
	int			slots;			/* 0: a lock */
};

/* A session that waits, or a semaphore with a number of slots, which all that say so share. */
struct Node
{
	int			proc_number;	/* of a session, and of its lock group's leader */
	int			pid;
	Target		target;			/* of a semaphore: itself */
	LOCKMODE	lockmode;		/* of a wait for a lock */
	TimestampTz since;
	bool		is_session;
	bool		is_live;
	bool		is_expanded;	/* are its edges there? */
	int			missing;		/* live nodes that it needs in order to be live itself */
	int			first_edge;		/* to what it waits for; they are side by side */
	int			edge_count;
	int			first_from;		/* the edges that lead here, through Edge.next_from */
};

/* from waits for to. */
struct Edge
{
	int			from;
	int			to;
	int			next_from;
};

/* The node of a semaphore, or the entries of a lock that somebody waits for. */
struct KnownTarget
{
	Target		target;
	int			node;
	LockEntries entries;
};

}								/* anonymous namespace */

static constexpr int ME = 0;

static int
my_number() noexcept
{
	return static_cast<int>(MyProc - ProcGlobal->allProcs);
}

/*
 * Fill in what a node's session waits for.  False if it waits for nothing, or says that it is about to
 * stop, or if that cannot be told.
 */
static bool
read_session_wait(Node *node)
{
	LockEntry	waiter;
	PublishedWait wait;

	if (read_awaited_lock(node->proc_number, &waiter))
	{
		node->target = Target{waiter.tag, 0};
		node->lockmode = waiter.lockmode;
		node->since = waiter.wait_start;
		return waiter.wait_start != 0;
	}
	if (!read_wait(node->proc_number, &wait) || wait.slots == 0 || wait.is_leaving ||
		decode_tag(wait.tag).kind != Kind::queue)
		return false;
	node->target = Target{wait.tag, wait.slots};
	node->since = wait.since;
	return true;
}

/* Is it the very same wait? */
static bool
is_same_wait(const Node &a, const Node &b) noexcept
{
	return a.pid == b.pid && same_tag(a.target.tag, b.target.tag) && a.target.slots == b.target.slots &&
		a.since == b.since;
}

/* Do all that are in the waiter's way stand in this one's, too? */
static bool
covers(const LockEntry &ahead, const LockEntry &waiter)
{
	const LockMethodData *method = GetLockTagsMethodTable(&waiter.tag);

	return (method->conflictTab[waiter.lockmode] & ~method->conflictTab[ahead.lockmode]) == 0;
}

static bool
contains(const int *pids, int count, int pid) noexcept
{
	for (int i = 0; i < count; i++)
	{
		if (pids[i] == pid)
			return true;
	}
	return false;
}

namespace
{

class Search
{
public:
	/* before: an earlier search of this session, or null. */
	Search(const Target &mine, const Search *before)
		: before(before),
		  by_process(static_cast<int *>(palloc0(sizeof(int) * ProcGlobal->allProcCount)))
	{
		Node		me = {};

		/* This session knows what it waits for, also where others cannot. */
		me.is_session = true;
		me.proc_number = my_number();
		me.pid = MyProcPid;
		me.target = mine;
		add_node(me);
	}

	/* Is this session dead, and would it help if it gave up: do all that it waits for wait for it in turn? */
	bool		am_i_in_cycle()
	{
		while (pending.count > 0 && !nodes[ME].is_live)
		{
			int			node = pending[--pending.count];

			CHECK_FOR_INTERRUPTS();
			if (!nodes[node].is_expanded && !nodes[node].is_live && is_needed(node))
				expand(node);
		}
		if (nodes[ME].is_live)
			return false;

		const bool *blockers = mark_blockers();
		const bool *waiters = mark_waiters();

		for (int i = 0; i < nodes.count; i++)
		{
			if (blockers[i] && !waiters[i])
				return false;
		}
		return true;
	}

	/* Do all that it waits for wait as they did? */
	bool		is_unchanged() const
	{
		const bool *blockers = mark_blockers();

		for (int i = ME + 1; i < nodes.count; i++)
		{
			Node		now = nodes[i];

			if (blockers[i] && now.is_session && (!read_session_wait(&now) || !is_same_wait(now, nodes[i])))
				return false;
		}
		return true;
	}

	/* The waits of the cycle, this session's first; palloc'd. */
	char	   *describe() const
	{
		const bool *blockers = mark_blockers();
		StringInfoData out;
		int			described = 0;

		initStringInfo(&out);
		for (int i = 0; i < nodes.count; i++)
		{
			if (blockers[i] && nodes[i].is_session && described++ < DESCRIBED_WAITS)
				describe_wait(&out, nodes[i]);
		}
		if (described > DESCRIBED_WAITS)
			appendStringInfo(&out, "\n%d more wait in turn.", described - DESCRIBED_WAITS);
		return out.data;
	}

private:
	int			add_node(const Node &node)
	{
		int			number = nodes.add(node);

		nodes[number].first_from = NO_EDGE;
		pending.add(number);
		return number;
	}

	/* Was it dead before, with the very same wait? */
	bool		may_be_dead(const Node &node) const noexcept
	{
		if (before == nullptr)
			return true;

		int			earlier = before->by_process[node.proc_number];

		return earlier != 0 && !before->nodes[earlier].is_live && is_same_wait(before->nodes[earlier], node);
	}

	/* The node of a session's lock group, or LIVE. */
	int			node_of_session(const LockEntry &session)
	{
		Node		node = {};

		/* A prepared transaction has no place in the array. */
		if (session.pid == 0)
			return LIVE;
		if (session.leader_number == my_number())
			return ME;
		if (by_process[session.leader_number] != 0)
			return by_process[session.leader_number];
		node.is_session = true;
		node.proc_number = session.leader_number;
		node.pid = session_pid(session);
		if (!read_session_wait(&node) || !may_be_dead(node))
			return LIVE;
		by_process[node.proc_number] = add_node(node);
		return by_process[node.proc_number];
	}

	/* Its number in the list; *is_new if it has just been added. */
	int			known_target(const Target &target, bool *is_new)
	{
		*is_new = false;
		for (int i = 0; i < targets.count; i++)
		{
			if (targets[i].target.slots == target.slots && same_tag(targets[i].target.tag, target.tag))
				return i;
		}
		*is_new = true;
		return targets.add(KnownTarget{target, 0, {}});
	}

	int			node_of_semaphore(const Target &target)
	{
		bool		is_new;
		int			known = known_target(target, &is_new);

		if (is_new)
		{
			Node		node = {};

			node.target = target;
			targets[known].node = add_node(node);
		}
		return targets[known].node;
	}

	void		add_edge(int from, int to)
	{
		int			edge = edges.add(Edge{from, to, nodes[to].first_from});

		nodes[to].first_from = edge;
		nodes[from].edge_count++;
	}

	/* With all that follows from it. */
	void		make_live(int node)
	{
		Array<int>	found;

		found.add(node);
		while (found.count > 0)
		{
			Node	   &live = nodes[found[--found.count]];

			if (live.is_live)
				continue;
			live.is_live = true;
			for (int i = live.first_from; i != NO_EDGE; i = edges[i].next_from)
			{
				if (--nodes[edges[i].from].missing == 0)
					found.add(edges[i].from);
			}
		}
	}

	/* Is there one that would not be known to be live without this one? */
	bool		is_needed(int node) const noexcept
	{
		for (int i = nodes[node].first_from; i != NO_EDGE; i = edges[i].next_from)
		{
			if (!nodes[edges[i].from].is_live)
				return true;
		}
		return node == ME;
	}

	/* It needs one live holder, or a free slot. */
	void		expand_semaphore(int node)
	{
		DecodedTag	tag = decode_tag(nodes[node].target.tag);
		int			slots = nodes[node].target.slots;

		nodes[node].missing = 1;
		for (int slot = 1; slot <= slots; slot++)
		{
			LockEntry	holder;
			int			blocker = LIVE;

			if (slot % 64 == 0)
				CHECK_FOR_INTERRUPTS();
			if (read_holder(slot_tag(tag.database, tag.key, slot), &holder))
				blocker = node_of_session(holder);
			if (blocker == LIVE || nodes[blocker].is_live)
				return make_live(node);
			if (nodes[node].edge_count == 0 || edges[edges.count - 1].to != blocker)
				add_edge(node, blocker);
		}
	}

	/* It needs all of them. */
	void		expand_lock_wait(int node)
	{
		bool		is_new;
		int			known = known_target(nodes[node].target, &is_new);
		int			waiter = 0;

		if (is_new)
			targets[known].entries = read_lock(nodes[node].target.tag);

		const LockEntries entries = targets[known].entries;

		while (waiter < entries.count &&
			   (entries.entries[waiter].granted || entries.entries[waiter].proc_number != nodes[node].proc_number))
			waiter++;
		if (waiter == entries.count)
			return make_live(node);

		visit_blockers(entries, 0, waiter, [&](int i) {
			int			blocker = node_of_session(entries.entries[i]);

			if (blocker != LIVE && !nodes[blocker].is_live)
			{
				add_edge(node, blocker);
				nodes[node].missing++;
			}
			/* What one further ahead waits for it waits for through this one. */
			return entries.entries[i].granted || blocker == LIVE || !covers(entries.entries[i], entries.entries[waiter]);
		});
		if (nodes[node].missing == 0)
			make_live(node);
	}

	/* Find out what it waits for. */
	void		expand(int node)
	{
		nodes[node].is_expanded = true;
		nodes[node].first_edge = edges.count;
		if (!nodes[node].is_session)
			expand_semaphore(node);
		else if (nodes[node].target.slots > 0)
		{
			int			semaphore = node_of_semaphore(nodes[node].target);

			if (nodes[semaphore].is_live)
				return make_live(node);
			nodes[node].missing = 1;
			add_edge(node, semaphore);
		}
		else
			expand_lock_wait(node);

		/* The first is to be looked at first. */
		for (int i = nodes[node].edge_count - 1; i >= 0; i--)
			pending.add(edges[nodes[node].first_edge + i].to);
	}

	/* Mark the dead that this session waits for, itself included. */
	bool	   *mark_blockers() const
	{
		return mark_reachable(nodes.count, ME, [this](int node, auto visit) {
			for (int i = nodes[node].first_edge; i < nodes[node].first_edge + nodes[node].edge_count; i++)
			{
				if (!nodes[edges[i].to].is_live)
					visit(edges[i].to);
			}
		});
	}

	/* The other way round: itself, and the dead that wait for it. */
	bool	   *mark_waiters() const
	{
		return mark_reachable(nodes.count, ME, [this](int node, auto visit) {
			for (int i = nodes[node].first_from; i != NO_EDGE; i = edges[i].next_from)
			{
				if (!nodes[edges[i].from].is_live)
					visit(edges[i].from);
			}
		});
	}

	/* One line. */
	void		describe_wait(StringInfo out, const Node &session) const
	{
		const Target &target = session.target;
		const Node &node = target.slots > 0 ? nodes[edges[session.first_edge].to] : session;
		int			pids[DESCRIBED_BLOCKERS];
		int			count = 0;
		bool		is_cut = false;

		for (int i = 0; i < node.edge_count && !is_cut; i++)
		{
			int			pid = nodes[edges[node.first_edge + i].to].pid;

			if (contains(pids, count, pid))
				continue;
			is_cut = count == DESCRIBED_BLOCKERS;
			if (!is_cut)
				pids[count++] = pid;
		}

		appendStringInfo(out, "%sProcess %d waits for ", out->len > 0 ? "\n" : "", session.pid);
		if (target.slots > 0)
			appendStringInfo(out, target.slots == 1 ? "the only slot of " : "one of the %d slots of ", target.slots);
		else
			appendStringInfo(out, "%s on ", GetLockmodeName(DEFAULT_LOCKMETHOD, session.lockmode));
		DescribeLockTag(out, &target.tag);
		for (int i = 0; i < count; i++)
			appendStringInfo(out, "%s%d",
							 i > 0 ? ", " : count > 1 ? "; blocked by processes " : "; blocked by process ", pids[i]);
		appendStringInfoString(out, is_cut ? " and others." : ".");
	}

	const Search *before;
	int		   *by_process;		/* a session's node, by its proc_number; 0 if it has none: node 0 is this session */
	Array<KnownTarget> targets;
	Array<Node>	nodes;
	Array<Edge>	edges;
	Array<int>	pending;		/* nodes to be expanded, the last first */
};

}								/* anonymous namespace */

/* ---- The check ---- */

/* Does anybody wait for something that this session holds? */
static bool
am_i_in_the_way()
{
	LockEntries mine = read_my_awaited_locks();
	const LockEntry *last = nullptr;

	for (int i = 0; i < mine.count; i++)
	{
		const LockEntry &entry = mine.entries[i];
		DecodedTag	tag = decode_tag(entry.tag);

		if (entry.is_awaited)
			return true;
		if (last != nullptr && is_same_semaphore(entry.tag, last->tag))
			continue;
		last = &entry;
		/* All in a semaphore's queue hold the queue's lock. */
		if (is_held_by_anybody(queue_tag(tag.database, tag.key)))
			return true;
	}
	return false;
}

/* Null, or what a session that gives up is to say; then others know already that it leaves. */
static char *
verify(const Target &mine, const Search &first)
{
	Search		second(mine, &first);

	if (!second.am_i_in_cycle() || !second.is_unchanged())
		return nullptr;
	publish_leaving(true);
	return second.describe();
}

static char *
find_deadlock(const Target &mine)
{
	SharedRoot *root = shared_root_if_attached();
	PublishedWait wait;
	char	   *detail = nullptr;

	/* Without a published wait there is nobody to be told. */
	if (root != nullptr && !read_wait(my_number(), &wait))
		root = nullptr;

	for (int i = 0; i < ATTEMPTS && detail == nullptr; i++)
	{
		Search		first(mine, nullptr);

		if (!first.am_i_in_cycle())
			return nullptr;
		if (root != nullptr)
			LWLockAcquire(&root->deadlock, LW_EXCLUSIVE);
		detail = verify(mine, first);
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

	/* A session that is in nobody's way is part of no cycle. */
	if (am_i_in_the_way())
		detail = find_deadlock(Target{queue_tag(MyDatabaseId, key), slots});
	MemoryContextSwitchTo(old_context);
	if (detail != nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail_internal("%s", detail)));
	MemoryContextDelete(context);
}

}								/* namespace advisory */
