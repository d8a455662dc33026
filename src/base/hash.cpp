/*
 * base/hash.cpp
 *		The hashes of keys and names, for hash tables in this process's memory.
 */
#include "base/pg.h"

#include "base/hash.h"

namespace advisory
{

static void
choose(uint64 *numbers, size_t count)
{
	if (pg_strong_random(numbers, sizeof(uint64) * count))
		return;
	for (size_t i = 0; i < count; i++)
		numbers[i] = pg_prng_uint64(&pg_global_prng_state);
}

void
hash_init()
{
	choose(&hash_seed, 1);
	choose(reinterpret_cast<uint64 *>(&hash_secrets), sizeof(hash_secrets) / sizeof(uint64));
	hash_secrets.factor |= 1;
}

}								/* namespace advisory */
