/*
 * base/key.cpp
 *		From a namespace and a name to the 64-bit key.
 */
#include "base/pg.h"

#ifdef USE_OPENSSL
#include <openssl/evp.h>
#endif

#include "base/encoding.h"
#include "base/key.h"

namespace advisory
{

static Key
digest(std::string_view text)
{
	uint8		sha256[PG_SHA256_DIGEST_LENGTH];
	uint64		first;

#ifdef USE_OPENSSL
	/* With pg_cryptohash_init() OpenSSL 3 would look up the algorithm each time, which takes twice as long as the digest. */
	static const EVP_MD *algorithm = nullptr;

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
	if (algorithm == nullptr)
		algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
#else
	algorithm = EVP_sha256();
#endif
	if (algorithm == nullptr || EVP_Digest(text.data(), text.size(), sha256, nullptr, algorithm, nullptr) != 1)
		elog(ERROR, "could not compute SHA-256");
#else
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);

	if (pg_cryptohash_init(context) != 0 ||
		pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(text.data()), text.size()) != 0 ||
		pg_cryptohash_final(context, sha256, sizeof(sha256)) != 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(context));
	pg_cryptohash_free(context);
#endif
	memcpy(&first, sha256, sizeof(first));
	return Key{static_cast<int64>(pg_ntoh64(first))};
}

Key
key_of(std::string_view name)
{
	return digest(to_utf8(name));
}

Key
key_of(std::string_view ns, std::string_view name)
{
	std::string_view utf8_ns = to_utf8(ns);
	std::string_view utf8_name = to_utf8(name);
	size_t		length = utf8_ns.size() + 1 + utf8_name.size();
	auto	   *joined = static_cast<char *>(palloc(length));

	memcpy(joined, utf8_ns.data(), utf8_ns.size());
	joined[utf8_ns.size()] = '\0';
	memcpy(joined + utf8_ns.size() + 1, utf8_name.data(), utf8_name.size());

	Key			key = digest(std::string_view(joined, length));

	pfree(joined);
	return key;
}

}								/* namespace advisory */
