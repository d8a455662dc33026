/*
 * base/key.cpp
 *		From a namespace and a name to the 64-bit key.
 */
#include "base/pg.h"

#include "base/digest.h"
#include "base/encoding.h"
#include "base/key.h"

namespace advisory
{

static constexpr size_t JOINED_BYTES = 512;

static Key
finish_key()
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	uint64		first = 0;

	sha256_finish(digest);
	for (int i = 0; i < 8; i++)
		first = (first << 8) | digest[i];
	return Key{static_cast<int64>(first)};
}

Key
key_of(std::string_view name)
{
	std::string_view utf8_name = to_utf8(name);

	sha256_start();
	sha256_add(utf8_name);
	return finish_key();
}

Key
key_of(std::string_view ns, std::string_view name)
{
	std::string_view utf8_ns = to_utf8(ns);
	std::string_view utf8_name = to_utf8(name);
	char		joined[JOINED_BYTES];
	size_t		length = utf8_ns.size() + 1 + utf8_name.size();

	sha256_start();
	if (length <= sizeof(joined))
	{
		/* In one piece, since each piece costs a call. */
		memcpy(joined, utf8_ns.data(), utf8_ns.size());
		joined[utf8_ns.size()] = '\0';
		memcpy(joined + utf8_ns.size() + 1, utf8_name.data(), utf8_name.size());
		sha256_add(std::string_view(joined, length));
		return finish_key();
	}
	sha256_add(utf8_ns);
	sha256_add(std::string_view("\0", 1));
	sha256_add(utf8_name);
	return finish_key();
}

}								/* namespace advisory */
