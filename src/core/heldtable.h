/*
 * core/heldtable.h
 *		The table in which core/held.cpp finds a held lock by its tag and mode.
 *
 * Both are in the entry, and their hash, too: the table only points to it.
 */
#pragma once

extern "C" {
#include "common/hashfn.h"
#include "port/pg_bitutils.h"
}

#include "core/held.h"

namespace advisory
{

/* Set what an entry is found by. */
inline void
set_held_key(HeldLock *held, const LOCKTAG &tag, Mode mode) noexcept
{
	held->tag = tag;
	held->mode = mode;
	held->hash = hash_of_key(static_cast<int64>((static_cast<uint64>(tag.locktag_field2) << 32) | tag.locktag_field3),
							 tag.locktag_field4 * 2 + index_of(mode));
}

namespace
{

struct HeldPointer
{
	HeldLock   *held;
	uint32		hash;
	char		status;
};

#define SH_PREFIX helds
#define SH_ELEMENT_TYPE HeldPointer
#define SH_KEY_TYPE HeldLock *
#define SH_KEY held
#define SH_HASH_KEY(table, wanted) ((wanted)->hash)
#define SH_EQUAL(table, a, b) (same_tag((a)->tag, (b)->tag) && (a)->mode == (b)->mode)
#define SH_STORE_HASH
#define SH_GET_HASH(table, element) ((element)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

}								/* namespace advisory */
