/*
 * shmem/nameentry.h
 *		The inside of the name table, for the two files that write and read it.
 *
 * namewrite.cpp describes it.
 */
#pragma once

#include "shmem/nametable.h"
#include "shmem/root.h"

namespace advisory
{

constexpr int NAME_CHUNK_ENTRIES = 256; /* a power of two, see add_chunk() */
constexpr int NAME_MAX_CHUNKS = 4096;
constexpr int NAME_INLINE_BYTES = 88;
constexpr int NO_ENTRY = -1;

/* The state of an entry: the number of pins, and in the upper half the generation. */
constexpr int GENERATION_SHIFT = 32;
constexpr uint64 ONE_GENERATION = UINT64CONST(1) << GENERATION_SHIFT;
constexpr uint64 PIN_MASK = ONE_GENERATION - 1;

/* The members that every call needs are in the first 64 bytes: up to the first of stats.events. */
struct alignas(PG_CACHE_LINE_SIZE / 2) NameEntry
{
	pg_atomic_uint64 state;
	bool		is_live;
	volatile bool is_used;		/* used again since it was created, or since the hand passed */
	NameStats	stats;
	SharedKey	key;
	pg_atomic_uint32 roles[NAME_ROLES]; /* the first roles that gave it */
	int			bucket;			/* the first entry of a bucket of the hash table, see bucket_of() */
	int			next_in_bucket;
	int			next;			/* of a free entry, or one with sums: the next of these */
	int			ns_length;		/* 0: the label of a key */
	int			name_length;
	dsa_pointer long_text;		/* invalid if inline_text is enough */
	char		inline_text[NAME_INLINE_BYTES]; /* namespace and name, one behind the other */

	bool		is_of(Oid database, Key its_key) const noexcept
	{
		return key.key == its_key && key.database == database;
	}
	bool		is_label() const noexcept
	{
		return ns_length == 0;
	}
	char	   *text()
	{
		return long_text == InvalidDsaPointer
			? inline_text : static_cast<char *>(dsa_get_address(shared_area, long_text));
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
	bool		has_given(Oid role) noexcept
	{
		for (pg_atomic_uint32 &known : roles)
		{
			if (pg_atomic_read_u32(&known) == role && OidIsValid(role))
				return true;
		}
		return false;
	}
	/* Remember that this role has given it, too, if there is room.  A shared lock is enough. */
	void		add_role(Oid role) noexcept
	{
		for (pg_atomic_uint32 &known : roles)
		{
			uint32		before = pg_atomic_read_u32(&known);

			if (before == role || (before == InvalidOid &&
				(pg_atomic_compare_exchange_u32(&known, &before, role) || before == role)))
				return;
		}
	}
};

struct NameTable
{
	LWLock		lock;
	volatile int entry_count;	/* made so far, in whole chunks */
	int			bucket_count;	/* the largest power of two up to that */
	int			live_count;
	int			free;			/* the first of the free entries */
	int			sums;			/* the first of those that have sums */
	pg_atomic_uint32 hand;		/* how many entries the hand has passed */
	pg_atomic_uint32 allowed;	/* the sum of pins */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	dsa_pointer chunks[NAME_MAX_CHUNKS];
	volatile int pins[FLEXIBLE_ARRAY_MEMBER];	/* by process number, see allow() */
};

/* Null until has_name_table() has found it. */
extern NameTable *name_table;

/* The addresses of the chunks in this process. */
extern NameEntry *name_chunks[NAME_MAX_CHUNKS];

/* Is the table available?  Attaches this session to it if possible.  May ereport. */
bool		has_name_table();

/* Lock the table; may ereport if the memory of new entries cannot be mapped. */
void		lock_names(LWLockMode mode);

inline void
unlock_names() noexcept
{
	LWLockRelease(&name_table->lock);
}

inline NameEntry *
entry_of(int number) noexcept
{
	auto		place = static_cast<uint32>(number);

	return &name_chunks[place / NAME_CHUNK_ENTRIES][place % NAME_CHUNK_ENTRIES];
}

/* Refers to this entry as it is now.  The table's lock must be held. */
inline NameReference
reference_to(int number) noexcept
{
	uint64		state = pg_atomic_read_u64(&entry_of(number)->state);

	return NameReference{number, static_cast<uint32>(state >> GENERATION_SHIFT)};
}

inline uint32
hash_of(const SharedKey &key) noexcept
{
	return hash_of_key(key.key.value, key.database, attached_root->seed);
}

/*
 * The first entry of the bucket of keys with this hash.  Each of the first bucket_count entries has
 * room for one, so that the hash table grows with the entries, and needs no memory of its own.
 */
inline int *
bucket_of(uint32 hash) noexcept
{
	return &entry_of(static_cast<int>(hash & (name_table->bucket_count - 1)))->bucket;
}

/* Call visit(number, entry) for each live entry of this key. */
template <typename Visit>
inline void
visit_key(const SharedKey &key, uint32 hash, Visit visit)
{
	NameEntry  *entry;

	for (int i = *bucket_of(hash); i != NO_ENTRY; i = entry->next_in_bucket)
	{
		entry = entry_of(i);
		if (entry->is_of(key.database, key.key))
			visit(i, entry);
	}
}

}								/* namespace advisory */
