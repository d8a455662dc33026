/*
 * base/key.cpp
 *		From a namespace and a name to the 64-bit key.
 */
#include "base/pg.h"

extern "C" {
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
}

#include "base/encoding.h"
#include "base/key.h"

namespace advisory
{

/* Kept for the session, since to make one costs more than a digest. */
static pg_cryptohash_ctx *context = nullptr;

static void
make_context()
{
	MemoryContext callers_context = MemoryContextSwitchTo(TopMemoryContext);
	ResourceOwner callers_owner = CurrentResourceOwner;

	/* A digest context of OpenSSL belongs to a resource owner, so give it one that no transaction releases. */
	CurrentResourceOwner = ResourceOwnerCreate(nullptr, "advisory_ext digest");
	context = pg_cryptohash_create(PG_SHA256);
	CurrentResourceOwner = callers_owner;
	MemoryContextSwitchTo(callers_context);
	if (context == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
}

static Key
digest(std::string_view text)
{
	uint8		sha256[PG_SHA256_DIGEST_LENGTH];
	uint64		first;

	if (context == nullptr)
		make_context();

	if (pg_cryptohash_init(context) != 0 ||
		pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(text.data()), text.size()) != 0 ||
		pg_cryptohash_final(context, sha256, sizeof(sha256)) != 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(context));
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
