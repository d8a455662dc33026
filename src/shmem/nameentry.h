/*
 * shmem/nameentry.h
 *		The inside of the name table, for the two files that write and read it.
 *
 * The locking protocol is in namewrite.cpp.
 */
#pragma once

#include "shmem/nametable.h"
#include "shmem/root.h"

namespace advisory
{

constexpr int NAME_CHUNK_ENTRIES = 256;
constexpr int NAME_MAX_CHUNKS = 4096;
constexpr int NAME_INLINE_BYTES = 88;
constexpr int NO_ENTRY = -1;

/* The entries of a key: the first of a list through NameEntry.next_of_key. */
struct IndexEntry
{
	SharedKey	key;			/* hash key */
	int			first;
};

struct NameTable
{
	LWLock		lock;
	int			entry_count;	/* made so far, in whole chunks */
	int			live_count;
	int			first_free;
	int			clock_hand;
	int			first_sums;		/* entries with the sums of evicted names, see sums_of(); linked by next_free */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	dsa_pointer chunks[NAME_MAX_CHUNKS];
};

/* The state of an entry: the pins in the lower half, the generation in the upper half. */
constexpr int GENERATION_SHIFT = 32;
constexpr uint64 ONE_GENERATION = UINT64CONST(1) << GENERATION_SHIFT;
constexpr uint64 PIN_MASK = ONE_GENERATION - 1;

/*
 * The members that every call needs are in the first 64 bytes: up to the first of NameStats.events.
 */
struct alignas(PG_CACHE_LINE_SIZE / 2) NameEntry
{
	pg_atomic_uint64 state;		/* see above, and namewrite.cpp */
	bool		is_live;		/* false: it is free, or has the sums of evicted names */
	volatile bool is_used;		/* used again since it was created or the clock hand last passed */
	NameStats	stats;
	SharedKey	key;
	Oid			roles[NAME_ROLES];	/* the first roles that gave it */
	int			next_of_key;
	int			next_free;
	int			ns_length;		/* 0: the label of a key */
	int			name_length;
	dsa_pointer long_text;		/* invalid if inline_text is enough */
	char		inline_text[NAME_INLINE_BYTES]; /* namespace and name, one behind the other */

	/* Only for callers that hold the table's lock: */

	bool		is_label() const noexcept
	{
		return ns_length == 0;
	}
	char	   *text()
	{
		return long_text != InvalidDsaPointer ? static_cast<char *>(dsa_get_address(shared_area, long_text)) : inline_text;
	}
	std::string_view ns()
	{
		return std::string_view(text(), ns_length);
	}
	std::string_view name()
	{
		return std::string_view(text() + ns_length, name_length);
	}
	bool		is_pinned() noexcept
	{
		return (pg_atomic_read_u64(&state) & PIN_MASK) != 0;
	}
	/* Is it a name, or a label that a holder or waiter of the lock gave? */
	bool		counts() noexcept
	{
		return !is_label() || is_pinned();
	}
	/* Has this role given it, as far as that is remembered? */
	bool		has_given(Oid role) const noexcept
	{
		for (Oid known : roles)
		{
			if (known == role && OidIsValid(role))
				return true;
		}
		return false;
	}
};

/* Null until has_name_table() has found it. */
extern NameTable *name_table;

/*
 * The addresses of the chunks in this process; null for a chunk that it has not used yet.  Chunks
 * are never freed.
 */
extern NameEntry *name_chunks[NAME_MAX_CHUNKS];

/* Is the table available?  Attaches this session to it if possible.  May ereport for a cancel. */
bool		has_name_table();

/* The number of a key's first entry, or NO_ENTRY.  The table's lock must be held. */
int			name_look_up(Oid database, Key key);

inline NameEntry *
name_entry(int number)
{
	NameEntry *&chunk = name_chunks[number / NAME_CHUNK_ENTRIES];

	if (chunk == nullptr)
		chunk = static_cast<NameEntry *>(dsa_get_address(shared_area, name_table->chunks[number / NAME_CHUNK_ENTRIES]));
	return chunk + number % NAME_CHUNK_ENTRIES;
}

/* Refers to this entry as it is now.  The table's lock must be held. */
inline NameReference
name_reference(int number)
{
	return NameReference{number, static_cast<uint32>(pg_atomic_read_u64(&name_entry(number)->state) >> GENERATION_SHIFT)};
}

}								/* namespace advisory */
