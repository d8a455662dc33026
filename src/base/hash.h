/*
 * base/hash.h
 *		The hashes of keys and names, for hash tables in this process's memory.
 *
 * Each eight bytes are two numbers, to which two secret ones are added; the hash is the sum of the
 * products (NH, of RFC 4418), times a secret factor.  The lengths of texts, and the number that
 * comes with them, make a product of their own, and each text has secrets of its own.  So whatever
 * two inputs a user chooses, their hashes are equal for one choice of the secrets in 2^32.
 */
#pragma once

namespace advisory
{

/* The longest text that hash_of_texts() takes. */
constexpr int HASHED_BYTES = 256;

struct HashSecrets
{
	uint64		of_numbers[2];
	uint64		of_text[2][HASHED_BYTES / 8];
	uint64		factor;			/* odd */
};

/* Random numbers of this process, so that users cannot choose keys or names that collide. */
inline HashSecrets hash_secrets;

/* The same, as a seed for hash_bytes_extended(). */
inline uint64 hash_seed = 0;

/* Called from _PG_init: chooses these numbers. */
void		hash_init();

inline uint64
secret_product(uint32 a, uint32 b, uint64 secret) noexcept
{
	return static_cast<uint64>(a + static_cast<uint32>(secret)) *
		static_cast<uint32>(b + static_cast<uint32>(secret >> 32));
}

inline uint32
four_bytes(const char *at) noexcept
{
	uint32		bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

/* The last eight bytes may overlap those before them; of fewer the halves overlap. */
inline uint64
sum_of_products(std::string_view text, const uint64 *secrets) noexcept
{
	const char *at = text.data();
	const char *end = at + text.size();
	uint64		sum = 0;

	if (text.size() < 4)
	{
		uint32		bytes = 0;

		for (; at < end; at++)
			bytes = bytes << 8 | static_cast<unsigned char>(*at);
		return secret_product(bytes, 0, *secrets);
	}
	for (; end - at > 8; at += 8)
		sum += secret_product(four_bytes(at), four_bytes(at + 4), *secrets++);
	if (text.size() > 8)
		at = end - 8;
	return sum + secret_product(four_bytes(at), four_bytes(end - 4), *secrets);
}

/* The hash of a key, and of a number that comes with it. */
inline uint32
hash_of_key(int64 key, uint32 besides) noexcept
{
	uint64		hash = secret_product(static_cast<uint32>(key), static_cast<uint32>(key >> 32),
									  hash_secrets.of_numbers[0]) +
		secret_product(besides, 0, hash_secrets.of_numbers[1]);

	/* The upper bits are the best ones; many tables use the lower ones. */
	return murmurhash32(static_cast<uint32>(hash * hash_secrets.factor >> 32));
}

/* The hash of two texts, and of a number that comes with them.  Use the upper bits. */
inline uint64
hash_of_texts(uint32 number, std::string_view a, std::string_view b) noexcept
{
	uint64		hash = secret_product(number, static_cast<uint32>(a.size() << 16 | b.size()),
									  hash_secrets.of_numbers[0]);

	hash += sum_of_products(a, hash_secrets.of_text[0]);
	hash += sum_of_products(b, hash_secrets.of_text[1]);
	return hash * hash_secrets.factor;
}

}								/* namespace advisory */
