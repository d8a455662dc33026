/*
 * base/texthash.h
 *		A fast hash of a number and two short texts, for a hash table in this process's memory.
 *
 * Each eight bytes are two numbers, to which two secret ones are added; the hash is the sum of the
 * products (NH, of RFC 4418).  The lengths and the number make the first product, and each text has
 * secrets of its own.  So whatever two inputs a user chooses, their hashes are equal for one choice
 * of the secrets in 2^32, and no part of one text can be taken for a part of the other.
 */
#pragma once

#include "base/pg.h"

namespace advisory
{

/* The longest text. */
constexpr int HASHED_BYTES = 256;
constexpr int SECRETS_PER_TEXT = HASHED_BYTES / 8;

struct TextSecrets
{
	uint64		of_lengths;
	uint64		of_text[2][SECRETS_PER_TEXT];
	uint64		factor;			/* odd */
};

/* Random numbers of this process, see hash_seed_init(). */
inline TextSecrets text_secrets;

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

/* The upper bits are as good as any number of them. */
inline uint64
hash_of_texts(uint32 number, std::string_view a, std::string_view b) noexcept
{
	uint64		hash = secret_product(number, static_cast<uint32>(a.size() << 16 | b.size()),
									  text_secrets.of_lengths);

	hash += sum_of_products(a, text_secrets.of_text[0]);
	hash += sum_of_products(b, text_secrets.of_text[1]);
	return hash * text_secrets.factor;
}

}								/* namespace advisory */
