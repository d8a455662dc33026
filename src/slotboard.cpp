/*
 * slotboard.cpp
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
 * front row.  Who waits first joins the row, then looks at the slots, then sleeps.
 * With a memory barrier in between on both sides, either the one sees the slot or the
 * other sees the waiter.
 *
 * The row is there because slots often become free together: to wake one waiter costs
 * some ten microseconds, and if each had to come forward first before the next could,
 * the last slot would be idle for many of those.  Of those in the row, whose order their
 * tickets say, as many are woken as there are slots, and nobody takes a slot unless
 * there are enough for all ahead of him.
 */
#include "pg.h"

#include "compat.h"
#include "shared.h"
#include "slotboard.h"

namespace advisory
{

static constexpr int SLOTS_PER_WORD = 64;
static constexpr int FIRST_SLOTS = SLOTS_PER_WORD;
static constexpr int SEGMENT_FACTOR = 4;
static constexpr int SEGMENTS = 4;	/* besides the first slots */
static constexpr int ROW_PLACES = 64;

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

/* A place in the front row. */
struct RowPlace
{
	pg_atomic_uint32 process;	/* its number, plus 1; 0 if it is empty */
	pg_atomic_uint32 slots;		/* of which it wants one; 0: it has marked one */
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
	pg_atomic_uint32 door;		/* number of the process that keeps the door, plus 1; or 0 */
	pg_atomic_uint32 agreed;
	pg_atomic_uint64 next_ticket;
	RowPlace	row[ROW_PLACES];
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
		dshash_table *made = dshash_create(shared_area(), &parameters, nullptr);

		root->boards = dshash_get_hash_table_handle(made);
		dshash_detach(made);
	}
	LWLockRelease(&root->lock);
	boards = dshash_attach(shared_area(), &parameters, root->boards, nullptr);
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
		SlotRange	range = range_of(board, part);

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
	pg_atomic_init_u32(&board->door, 0);
	pg_atomic_init_u32(&board->agreed, 0);
	pg_atomic_init_u64(&board->next_ticket, 0);
	for (RowPlace &place : board->row)
	{
		pg_atomic_init_u32(&place.process, 0);
		pg_atomic_init_u32(&place.slots, 0);
		pg_atomic_init_u64(&place.ticket, 0);
	}
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

static bool
has_room(const SlotBoard *board, int slots) noexcept
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
	if (has_room(board, slots) || shared_is_short())
		return;
	shared_attempt([&]() {
		auto	   *entry = static_cast<SlotBoard *>(dshash_find(boards, &board->key, true));

		add_segments(entry, slots);
		dshash_release_lock(boards, entry);
	});
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
		for (dsa_pointer segment : entry->segments)
		{
			if (segment != InvalidDsaPointer)
				dsa_free(shared_area(), segment);
		}
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

static uint32
my_process() noexcept
{
	return static_cast<uint32>(MyProc - ProcGlobal->allProcs) + 1;
}

static void
wake(uint32 process) noexcept
{
	if (process != 0)
		SetLatch(&ProcGlobal->allProcs[process - 1].procLatch);
}

static int
row_length(SlotBoard *board) noexcept
{
	int			length = 0;

	for (RowPlace &place : board->row)
		length += pg_atomic_read_u32(&place.process) != 0;
	return length;
}

bool
board_row_is_full(SlotBoard *board) noexcept
{
	return row_length(board) == ROW_PLACES;
}

bool
board_join_row(SlotBoard *board, int slots) noexcept
{
	for (RowPlace &place : board->row)
	{
		if (pg_atomic_read_u32(&place.process) != 0)
			continue;
		pg_atomic_write_u32(&place.slots, static_cast<uint32>(slots));
		pg_atomic_write_u64(&place.ticket, pg_atomic_fetch_add_u64(&board->next_ticket, 1));
		/* Implies a memory barrier. */
		pg_atomic_exchange_u32(&place.process, my_process());
		return true;
	}
	return false;
}

static RowPlace *
my_place(SlotBoard *board) noexcept
{
	uint32		me = my_process();

	for (RowPlace &place : board->row)
	{
		if (pg_atomic_read_u32(&place.process) == me)
			return &place;
	}
	return nullptr;
}

void
board_leave_row(SlotBoard *board) noexcept
{
	RowPlace   *place = my_place(board);

	if (place == nullptr)
		return;
	pg_atomic_exchange_u32(&place->process, 0);
	if (row_length(board) <= ROW_PLACES / 2)
		wake(pg_atomic_read_u32(&board->door));
}

static bool
wants_slot(RowPlace *place) noexcept
{
	return pg_atomic_read_u32(&place->process) != 0 && pg_atomic_read_u32(&place->slots) != 0;
}

/* How many stand in the row before this ticket. */
static int
count_ahead(SlotBoard *board, uint64 ticket) noexcept
{
	int			ahead = 0;

	for (RowPlace &place : board->row)
		ahead += wants_slot(&place) && pg_atomic_read_u64(&place.ticket) < ticket;
	return ahead;
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
	RowPlace   *place = my_place(board);

	return place != nullptr &&
		has_more_free(board, slots, count_ahead(board, pg_atomic_read_u64(&place->ticket)));
}

void
board_mark_waiting(SlotBoard *board, int slots) noexcept
{
	RowPlace   *place = my_place(board);

	if (place != nullptr)
		pg_atomic_exchange_u32(&place->slots, static_cast<uint32>(slots));
}

void
board_mark_served(SlotBoard *board) noexcept
{
	board_mark_waiting(board, 0);
}

bool
board_am_first(SlotBoard *board) noexcept
{
	RowPlace   *place = my_place(board);

	return place == nullptr || count_ahead(board, pg_atomic_read_u64(&place->ticket)) == 0;
}

void
board_keep_door(SlotBoard *board) noexcept
{
	pg_atomic_exchange_u32(&board->door, my_process());
}

void
board_open_door(SlotBoard *board) noexcept
{
	uint32		mine = my_process();

	pg_atomic_compare_exchange_u32(&board->door, &mine, 0);
}

/* Who has the lowest ticket from this one on; null if there is nobody. */
static RowPlace *
next_in_row(SlotBoard *board, uint64 ticket) noexcept
{
	RowPlace   *next = nullptr;
	uint64		lowest = PG_UINT64_MAX;

	for (RowPlace &place : board->row)
	{
		uint64		its = pg_atomic_read_u64(&place.ticket);

		if (!wants_slot(&place) || its < ticket || its >= lowest)
			continue;
		next = &place;
		lowest = its;
	}
	return next;
}

void
board_wake(SlotBoard *board) noexcept
{
	uint64		ticket = 0;

	pg_memory_barrier();
	if (board_line_length(board) == 0)
		return;
	for (int ahead = 0; RowPlace *next = next_in_row(board, ticket); ahead++)
	{
		if (!has_more_free(board, static_cast<int>(pg_atomic_read_u32(&next->slots)), ahead))
			return;
		wake(pg_atomic_read_u32(&next->process));
		ticket = pg_atomic_read_u64(&next->ticket) + 1;
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
