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

struct NameKey
{
	int64		key;
	Oid			database;
	uint32		padding;		/* always 0, since keys are compared as bytes */
};

/* The entries of a key: the first of a list through NameEntry.next_of_key. */
struct IndexEntry
{
	NameKey		key;			/* hash key */
	int			first;
};

struct NameTable
{
	LWLock		lock;
	dshash_table_handle index;
	int			entry_count;	/* made so far, in whole chunks */
	int			live_count;
	int			first_free;
	int			clock_hand;
	int			first_sums;		/* entries with the sums of evicted names, see sums_of(); linked by next_free */
	int			sums_count;
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	dsa_pointer chunks[NAME_MAX_CHUNKS];
};

/* The members that every call needs are in the first 64 bytes: up to the first of NameStats.events. */
struct alignas(PG_CACHE_LINE_SIZE / 2) NameEntry
{
	pg_atomic_uint64 state;		/* generation and number of pins, see namewrite.cpp */
	bool		is_live;		/* false: it is free */
	volatile bool is_used;		/* used again since it was created or the clock hand last passed */
	NameStats	stats;
	NameKey		key;
	Oid			roles[NAME_ROLES];	/* the first roles that gave it */
	int			next_of_key;
	int			next_free;
	int			ns_length;		/* 0: the label of a key */
	int			name_length;
	dsa_pointer long_text;		/* invalid if inline_text is enough */
	char		inline_text[NAME_INLINE_BYTES]; /* namespace and name, one behind the other */
};

/* Null until has_name_table() has found it. */
extern NameTable *name_table;

/* The addresses of the chunks in this process; null for a chunk that it has not used yet.  Chunks are never freed. */
extern NameEntry *name_chunks[NAME_MAX_CHUNKS];

/* Is the table available?  Attaches this session to it if possible.  May ereport for a cancel. */
bool		has_name_table();

/* The number of a key's first entry, or NO_ENTRY.  The table's lock must be held. */
int			name_look_up(Oid database, Key key);

/* Is the entry this name or label?  Their keys are the same.  The table's lock must be held. */
bool		is_same_name(NameEntry *entry, const GivenName &name);

/* Has this role given it, as far as that is remembered?  The table's lock must be held. */
bool		has_given(const NameEntry *entry, Oid role) noexcept;

/* Is it a name, or a label that a holder or waiter of the lock gave?  The table's lock must be held. */
bool		name_counts(NameEntry *entry) noexcept;

/* Refers to this entry as it is now.  The table's lock must be held. */
NameReference name_reference(int number) noexcept;

/* Does the reference refer to this entry as it is now?  The table's lock must be held. */
bool		refers_to(const NameReference &reference, int number) noexcept;

inline NameEntry *
name_entry(int number)
{
	NameEntry *&chunk = name_chunks[number / NAME_CHUNK_ENTRIES];

	if (chunk == nullptr)
		chunk = static_cast<NameEntry *>(dsa_get_address(shared_area(), name_table->chunks[number / NAME_CHUNK_ENTRIES]));
	return chunk + number % NAME_CHUNK_ENTRIES;
}

inline bool
is_label(const NameEntry *entry) noexcept
{
	return entry->ns_length == 0;
}

inline char *
text_of(NameEntry *entry)
{
	if (entry->long_text != InvalidDsaPointer)
		return static_cast<char *>(dsa_get_address(shared_area(), entry->long_text));
	return entry->inline_text;
}

inline std::string_view
namespace_of(NameEntry *entry)
{
	return std::string_view(text_of(entry), entry->ns_length);
}

inline std::string_view
name_of(NameEntry *entry)
{
	return std::string_view(text_of(entry) + entry->ns_length, entry->name_length);
}

}								/* namespace advisory */
