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

inline char *
NameEntry::text()
{
	return long_text == InvalidDsaPointer
		? inline_text : static_cast<char *>(dsa_get_address(shared_area, long_text));
}

inline std::string_view
NameEntry::ns()
{
	return std::string_view(text(), ns_length);
}

inline std::string_view
NameEntry::name()
{
	return std::string_view(text() + ns_length, name_length);
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
