/*
 * shmem/nameentry.h
 *		The inside of the name table, for the two files that write and read it.
 *
 * nametable.cpp describes it.
 */
#pragma once

#include "shmem/nametable.h"
#include "shmem/root.h"

namespace advisory
{

/* In NameEntry.state, beside the number of pins. */
static constexpr uint32 IS_PARKED = UINT32_C(1) << 31;

/* The members that every call needs come first. */
struct NameEntry
{
	uint64		id;
	pg_atomic_uint32 state;
	volatile bool is_used;		/* used again since it was created, or since its last turn */
	uint16		ns_length;		/* 0: the label of a key */
	uint16		name_length;
	NameStats	stats;
	SharedKey	key;
	pg_atomic_uint32 roles[NAME_ROLES]; /* the first roles that gave it, added one by one */
	dsa_pointer self;
	dsa_pointer next_of_key;
	dsa_pointer next;			/* in the list that it is in */
	char		text[FLEXIBLE_ARRAY_MEMBER];	/* namespace and name, one behind the other */

	bool		is_label() const noexcept
	{
		return ns_length == 0;
	}
	std::string_view ns() const noexcept
	{
		return std::string_view(text, ns_length);
	}
	std::string_view name() const noexcept
	{
		return std::string_view(text + ns_length, name_length);
	}
	bool		is_named(const GivenName &given) const noexcept
	{
		return ns() == given.ns && name() == given.name;
	}
	bool		is_pinned() noexcept
	{
		return (pg_atomic_read_u32(&state) & ~IS_PARKED) != 0;
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
};

/* In the hash table: the entries of a key. */
struct NamesOfKey
{
	SharedKey	key;
	dsa_pointer first;
};

/* A list through NameEntry.next. */
struct EntryList
{
	dsa_pointer first;
	dsa_pointer last;			/* if the list is not empty */
};

struct NameTable
{
	LWLock		lock;
	uint64		last_id;
	volatile int name_count;
	int			sum_count;
	EntryList	queue;
	EntryList	held;
	dsa_pointer sums;			/* the first of the list */
	dsa_pointer_atomic returned;	/* the first of the stack */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 not_stored;
	pg_atomic_uint64 collisions;
	volatile int pins[FLEXIBLE_ARRAY_MEMBER];	/* by process number, see count_pin() */
};

/* Both are null until has_name_table() has found them. */
extern NameTable *name_table;
extern dshash_table *names_by_key;

/* Is the table available?  Attaches this session to it if possible.  May ereport. */
bool		has_name_table();

inline NameEntry *
entry_at(dsa_pointer place)
{
	return static_cast<NameEntry *>(dsa_get_address(shared_area, place));
}

/* Call visit(entry) for each entry of the list that begins here. */
template <typename Visit>
inline void
visit_list(dsa_pointer first, dsa_pointer NameEntry::*next, Visit visit)
{
	for (NameEntry *entry; first != InvalidDsaPointer; first = entry->*next)
	{
		entry = entry_at(first);
		visit(entry);
	}
}

/*
 * The entries of this key, with the lock on their part of the hash table held shared; null, and no
 * lock, if there are none.  May ereport.
 */
inline NamesOfKey *
find_key(Oid database, Key key)
{
	SharedKey	wanted = {key, database};

	return static_cast<NamesOfKey *>(dshash_find(names_by_key, &wanted, false));
}

}								/* namespace advisory */
