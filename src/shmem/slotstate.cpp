/*
 * shmem/slotstate.cpp
 *		What sessions tell each other about the slots of semaphores.
 *
 * Locking
 *
 * Boards are the entries of a hash table in shared memory.  To attach, detach, or
 * add a segment is done with the entry locked; an entry with sessions attached is
 * never deleted, and entries do not move, so that its address stays good.  Everything
 * else in it is atomic.
 *
 * A board begins with room for 64 slots; segments for more are added when first
 * needed, each four times as large as all before it, and stay.
 *
 * Waking
 *
 * Who frees a slot first releases the lock, then writes on the board, then looks at the
 * row.  Who waits first joins the row, then looks at the slots, then sleeps.  With a
 * memory barrier in between on both sides, either the one sees the slot or the other sees
 * the waiter.
 *
 * Slots often become free together, and to wake somebody costs some ten microseconds: so
 * nobody waits for the one ahead of him to be awake.  As many of the row are woken as
 * there are free slots, and nobody takes a slot unless there are enough for all ahead of
 * him who could have one.
 *
 * The row has a place for each process that the server allows, and is made when first
 * needed; a place is its process's own.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "shmem/root.h"
#include "shmem/slotstate.h"

namespace advisory
{

static constexpr int SLOTS_PER_WORD = 64;
static constexpr int FIRST_SLOTS = SLOTS_PER_WORD;
static constexpr int SEGMENT_FACTOR = 4;
static constexpr int SEGMENTS = 4;	/* besides the first slots */
static constexpr int NONE = -1;

namespace
{

/* One bit for each slot. */
struct SlotWord
{
	pg_atomic_uint64 taken;
	pg_atomic_uint64 doubtful;	/* taken, but maybe by nobody who will say so when it is free */
};

struct BoardKey
{
	int64		key;
	Oid			database;
	uint32		padding;		/* always 0, since keys are compared as bytes */
};

/* A place in the row. */
struct RowPlace
{
	pg_atomic_uint32 slots;		/* of which it wants one; 0: none */
	pg_atomic_uint64 ticket;
};

/* Which slots a part of the board is about. */
struct SlotRange
{
	SlotWord   *words;
	int			first;			/* slot of the first bit */
	int			count;			/* slots */
};

}								/* anonymous namespace */

struct SlotBoard
{
	BoardKey	key;			/* hash key */
	int			attached;		/* sessions */
	pg_atomic_uint32 line;		/* sessions that wait */
	pg_atomic_uint32 agreed;
	pg_atomic_uint64 next_ticket;
	pg_atomic_uint32 row_end;	/* places from this one on were never used */
	dsa_pointer row;
	SlotWord	first_word;
	dsa_pointer segments[SEGMENTS];
};

static dshash_table *boards = nullptr;

static dshash_parameters
board_parameters(const SharedRoot *root)
{
	return compat::hash_parameters(sizeof(BoardKey), sizeof(SlotBoard), root->tranche);
}

static void
attach_table(SharedRoot *root)
{
	dshash_parameters parameters = board_parameters(root);

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->boards == InvalidDsaPointer)
	{
		dshash_table *made = dshash_create(shared_area(), &parameters, &root->seed);

		root->boards = dshash_get_hash_table_handle(made);
		dshash_detach(made);
	}
	LWLockRelease(&root->lock);
	boards = dshash_attach(shared_area(), &parameters, root->boards, &root->seed);
}

static bool
has_table()
{
	if (boards != nullptr)
		return true;

	SharedRoot *root = shared_root();

	return root != nullptr && !shared_is_short() && shared_attempt([root]() { attach_table(root); });
}

/* ---- Where the bits of a slot are ---- */

/* The slots of the first part, and of each segment. */
static int
first_slot_of(int segment) noexcept
{
	int			first = FIRST_SLOTS + 1;

	for (int i = 0; i < segment; i++)
		first = (first - 1) * SEGMENT_FACTOR + 1;
	return first;
}

static int
slots_of(int segment) noexcept
{
	return first_slot_of(segment + 1) - first_slot_of(segment);
}

/* Part 0 is what every board has, the others are segments; no words where there is no memory. */
static SlotRange
range_of(SlotBoard *board, int part)
{
	if (part == 0)
		return SlotRange{&board->first_word, 1, FIRST_SLOTS};

	dsa_pointer place = board->segments[part - 1];
	SlotRange	range = {nullptr, first_slot_of(part - 1), slots_of(part - 1)};

	if (place != InvalidDsaPointer)
		range.words = static_cast<SlotWord *>(dsa_get_address(shared_area(), place));
	return range;
}

/* Call use(word, bit) for a slot that the board has room for. */
template <typename Use>
static void
with_slot(SlotBoard *board, int slot, Use use)
{
	for (int part = 0; part <= SEGMENTS; part++)
	{
		SlotRange	range = range_of(board, part);
		int			at = slot - range.first;

		if (at >= range.count)
			continue;
		if (range.words != nullptr)
			use(&range.words[at / SLOTS_PER_WORD], UINT64CONST(1) << (at % SLOTS_PER_WORD));
		return;
	}
}

/*
 * Call find(word, mask, first slot of the word) for each word with slots from first
 * to last, mask being which of its bits these are, until it returns a slot.
 */
template <typename Find>
static int
find_slot(SlotBoard *board, int first, int last, Find find)
{
	for (int part = 0; part <= SEGMENTS; part++)
	{
		SlotRange	range = {};

		if (part > 0 && first_slot_of(part - 1) > last)
			break;
		range = range_of(board, part);
		if (range.words == nullptr)
			continue;
		for (int at = 0; at < range.count && range.first + at <= last; at += SLOTS_PER_WORD)
		{
			int			start = range.first + at;
			uint64		mask = PG_UINT64_MAX;
			int			slot;

			if (start + SLOTS_PER_WORD <= first)
				continue;
			if (start < first)
				mask &= PG_UINT64_MAX << (first - start);
			if (last - start + 1 < SLOTS_PER_WORD)
				mask &= (UINT64CONST(1) << (last - start + 1)) - 1;
			slot = find(&range.words[at / SLOTS_PER_WORD], mask, start);
			if (slot != NO_SLOT)
				return slot;
		}
	}
	return NO_SLOT;
}

/* ---- Attaching ---- */

static void
init_word(SlotWord *word) noexcept
{
	pg_atomic_init_u64(&word->taken, 0);
	pg_atomic_init_u64(&word->doubtful, 0);
}

static void
init_board(SlotBoard *board) noexcept
{
	board->attached = 0;
	pg_atomic_init_u32(&board->line, 0);
	pg_atomic_init_u32(&board->agreed, 0);
	pg_atomic_init_u64(&board->next_ticket, 0);
	pg_atomic_init_u32(&board->row_end, 0);
	board->row = InvalidDsaPointer;
	init_word(&board->first_word);
	for (dsa_pointer &segment : board->segments)
		segment = InvalidDsaPointer;
}

/* With the entry locked. */
static void
add_segments(SlotBoard *board, int slots)
{
	for (int i = 0; i < SEGMENTS && first_slot_of(i) <= slots; i++)
	{
		int			words = slots_of(i) / SLOTS_PER_WORD;

		if (board->segments[i] != InvalidDsaPointer)
			continue;

		dsa_pointer place = dsa_allocate(shared_area(), sizeof(SlotWord) * words);
		auto	   *made = static_cast<SlotWord *>(dsa_get_address(shared_area(), place));

		for (int w = 0; w < words; w++)
			init_word(&made[w]);
		pg_write_barrier();
		board->segments[i] = place;
	}
}

SlotBoard *
board_attach(Key key, int slots)
{
	BoardKey	wanted = {key.value, MyDatabaseId, 0};
	SlotBoard  *board = nullptr;

	if (!has_table())
		return nullptr;
	shared_attempt([&]() {
		bool		found;
		auto	   *entry = static_cast<SlotBoard *>(dshash_find_or_insert(boards, &wanted, &found));

		if (!found)
			init_board(entry);
		entry->attached++;
		dshash_release_lock(boards, entry);
		board = entry;
	});
	if (board != nullptr)
		board_make_room(board, slots);
	return board;
}

bool
board_has_room(const SlotBoard *board, int slots) noexcept
{
	for (int i = 0; i < SEGMENTS && first_slot_of(i) <= slots; i++)
	{
		if (board->segments[i] == InvalidDsaPointer)
			return false;
	}
	return true;
}

void
board_make_room(SlotBoard *board, int slots)
{
	if (board_has_room(board, slots) || shared_is_short())
		return;
	shared_attempt([&]() {
		auto	   *entry = static_cast<SlotBoard *>(dshash_find(boards, &board->key, true));

		add_segments(entry, slots);
		dshash_release_lock(boards, entry);
	});
}

/* So that what is freed is not freed again if that fails half-way. */
static void
free_part(dsa_pointer *part)
{
	dsa_pointer place = *part;

	*part = InvalidDsaPointer;
	if (place != InvalidDsaPointer)
		dsa_free(shared_area(), place);
}

void
board_detach(SlotBoard *board)
{
	shared_attempt([&]() {
		auto	   *entry = static_cast<SlotBoard *>(dshash_find(boards, &board->key, true));

		if (--entry->attached > 0)
		{
			dshash_release_lock(boards, entry);
			return;
		}
		for (dsa_pointer &segment : entry->segments)
			free_part(&segment);
		free_part(&entry->row);
		dshash_delete_entry(boards, entry);
	});
}

/* ---- Slots ---- */

int
board_claim(SlotBoard *board, int slots) noexcept
{
	return find_slot(board, 1, slots, [](SlotWord *word, uint64 mask, int start) {
		uint64		free_bits = ~pg_atomic_read_u64(&word->taken) & mask;

		while (free_bits != 0)
		{
			int			at = pg_rightmost_one_pos64(free_bits);
			uint64		bit = UINT64CONST(1) << at;

			if ((pg_atomic_fetch_or_u64(&word->taken, bit) & bit) == 0)
				return start + at;
			free_bits &= free_bits - 1;
		}
		return NO_SLOT;
	});
}

int
board_next_doubtful(SlotBoard *board, int slots, int after) noexcept
{
	return find_slot(board, after + 1, slots, [](SlotWord *word, uint64 mask, int start) {
		uint64		bits = pg_atomic_read_u64(&word->doubtful) & mask;

		return bits != 0 ? start + pg_rightmost_one_pos64(bits) : NO_SLOT;
	});
}

void
board_mark_taken(SlotBoard *board, int slot) noexcept
{
	with_slot(board, slot, [](SlotWord *word, uint64 bit) {
		pg_atomic_fetch_or_u64(&word->taken, bit);
		if ((pg_atomic_read_u64(&word->doubtful) & bit) != 0)
			pg_atomic_fetch_and_u64(&word->doubtful, ~bit);
	});
}

void
board_mark_doubtful(SlotBoard *board, int slot) noexcept
{
	with_slot(board, slot, [](SlotWord *word, uint64 bit) {
		pg_atomic_fetch_or_u64(&word->doubtful, bit);
		pg_atomic_fetch_or_u64(&word->taken, bit);
	});
}

void
board_mark_free(SlotBoard *board, int slot) noexcept
{
	with_slot(board, slot, [](SlotWord *word, uint64 bit) {
		if ((pg_atomic_read_u64(&word->doubtful) & bit) != 0)
			pg_atomic_fetch_and_u64(&word->doubtful, ~bit);
		pg_atomic_fetch_and_u64(&word->taken, ~bit);
	});
}

/* ---- The line ---- */

void
board_enter_line(SlotBoard *board) noexcept
{
	pg_atomic_fetch_add_u32(&board->line, 1);
}

void
board_leave_line(SlotBoard *board) noexcept
{
	pg_atomic_fetch_sub_u32(&board->line, 1);
}

int
board_line_length(SlotBoard *board) noexcept
{
	return static_cast<int>(pg_atomic_read_u32(&board->line));
}

static int
my_number() noexcept
{
	return static_cast<int>(MyProc - ProcGlobal->allProcs);
}

/* With the entry locked. */
static void
add_row(SlotBoard *board)
{
	int			places = static_cast<int>(ProcGlobal->allProcCount);

	if (board->row != InvalidDsaPointer)
		return;

	dsa_pointer made = dsa_allocate(shared_area(), sizeof(RowPlace) * places);
	auto	   *row = static_cast<RowPlace *>(dsa_get_address(shared_area(), made));

	for (int i = 0; i < places; i++)
	{
		pg_atomic_init_u32(&row[i].slots, 0);
		pg_atomic_init_u64(&row[i].ticket, 0);
	}
	pg_write_barrier();
	board->row = made;
}

/* Null if nobody has joined it yet. */
static RowPlace *
row_of(SlotBoard *board)
{
	if (board->row == InvalidDsaPointer)
		return nullptr;
	return static_cast<RowPlace *>(dsa_get_address(shared_area(), board->row));
}

static int
row_end(SlotBoard *board) noexcept
{
	return static_cast<int>(pg_atomic_read_u32(&board->row_end));
}

static void
raise_row_end(SlotBoard *board, uint32 end) noexcept
{
	uint32		present = pg_atomic_read_u32(&board->row_end);

	while (end > present && !pg_atomic_compare_exchange_u32(&board->row_end, &present, end))
		;
}

bool
board_join_row(SlotBoard *board, int slots)
{
	if (board->row == InvalidDsaPointer && !shared_is_short())
		shared_attempt([&]() {
			auto	   *entry = static_cast<SlotBoard *>(dshash_find(boards, &board->key, true));

			add_row(entry);
			dshash_release_lock(boards, entry);
		});
	if (board->row == InvalidDsaPointer)
		return false;

	raise_row_end(board, static_cast<uint32>(my_number()) + 1);
	pg_atomic_write_u64(&row_of(board)[my_number()].ticket, pg_atomic_fetch_add_u64(&board->next_ticket, 1));
	board_mark_waiting(board, slots);
	return true;
}

void
board_mark_waiting(SlotBoard *board, int slots) noexcept
{
	/* Implies a memory barrier. */
	pg_atomic_exchange_u32(&row_of(board)[my_number()].slots, static_cast<uint32>(slots));
}

void
board_mark_served(SlotBoard *board) noexcept
{
	board_mark_waiting(board, 0);
}

void
board_leave_row(SlotBoard *board) noexcept
{
	if (board->row != InvalidDsaPointer)
		board_mark_served(board);
}

/* Are there more free slots than this, up to that one? */
static bool
has_more_free(SlotBoard *board, int slots, int count) noexcept
{
	int			found = 0;

	find_slot(board, 1, slots, [&](SlotWord *word, uint64 mask, int start) {
		found += pg_popcount64(~pg_atomic_read_u64(&word->taken) & mask);
		return found > count ? start : NO_SLOT;
	});
	return found > count;
}

bool
board_has_slot_for_me(SlotBoard *board, int slots) noexcept
{
	RowPlace   *row = row_of(board);
	uint64		ticket = pg_atomic_read_u64(&row[my_number()].ticket);
	int			ahead = 0;

	if (!has_more_free(board, slots, 0))
		return false;
	for (int i = 0; i < row_end(board); i++)
	{
		int			wanted = static_cast<int>(pg_atomic_read_u32(&row[i].slots));

		/* Whoever says that there are fewer slots may have none to choose from. */
		if (wanted != 0 && pg_atomic_read_u64(&row[i].ticket) < ticket &&
			(wanted >= slots || has_more_free(board, wanted, 0)))
			ahead++;
	}
	return has_more_free(board, slots, ahead);
}

bool
board_am_first(SlotBoard *board) noexcept
{
	RowPlace   *row = row_of(board);
	uint64		ticket = pg_atomic_read_u64(&row[my_number()].ticket);

	for (int i = 0; i < row_end(board); i++)
	{
		if (pg_atomic_read_u32(&row[i].slots) != 0 && pg_atomic_read_u64(&row[i].ticket) < ticket)
			return false;
	}
	return true;
}

/* Who has the lowest ticket from this one on, and wants one of more slots than that; NONE if nobody does. */
static int
next_in_row(SlotBoard *board, uint64 ticket, uint32 more_than) noexcept
{
	RowPlace   *row = row_of(board);
	int			next = NONE;
	uint64		lowest = PG_UINT64_MAX;

	for (int i = 0; row != nullptr && i < row_end(board); i++)
	{
		uint64		its = pg_atomic_read_u64(&row[i].ticket);

		if (pg_atomic_read_u32(&row[i].slots) <= more_than || its < ticket || its >= lowest)
			continue;
		next = i;
		lowest = its;
	}
	return next;
}

void
board_wake(SlotBoard *board) noexcept
{
	uint64		ticket = 0;
	uint32		useless = 0;	/* there is none left for those who say that there are so many */
	int			woken = 0;
	int			next;

	pg_memory_barrier();
	if (board_line_length(board) == 0)
		return;
	while ((next = next_in_row(board, ticket, useless)) != NONE)
	{
		RowPlace   *place = &row_of(board)[next];
		uint32		slots = pg_atomic_read_u32(&place->slots);

		ticket = pg_atomic_read_u64(&place->ticket) + 1;
		if (has_more_free(board, static_cast<int>(slots), woken))
		{
			SetLatch(&ProcGlobal->allProcs[next].procLatch);
			woken++;
		}
		else
			useless = Max(useless, slots);
	}
}

int
board_agree(SlotBoard *board, int slots) noexcept
{
	uint32		agreed = 0;

	if (pg_atomic_read_u32(&board->agreed) == static_cast<uint32>(slots))
		return slots;
	if (pg_atomic_compare_exchange_u32(&board->agreed, &agreed, static_cast<uint32>(slots)))
		return 0;
	return static_cast<int>(agreed);
}

void
board_set_agreed(SlotBoard *board, int slots) noexcept
{
	pg_atomic_write_u32(&board->agreed, static_cast<uint32>(slots));
}

}								/* namespace advisory */
