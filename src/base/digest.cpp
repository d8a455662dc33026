/*
 * base/digest.cpp
 *		SHA-256, with the costly preparation done once in a session.
 */
#include "base/pg.h"

#ifdef USE_OPENSSL
#include <openssl/evp.h>
#endif

#include "base/digest.h"

namespace advisory
{

#ifdef USE_OPENSSL

static EVP_MD_CTX *context = nullptr;
static const EVP_MD *algorithm = nullptr;

static void
check_digest(int result)
{
	if (result != 1)
		elog(ERROR, "could not compute SHA-256");
}

/* Before OpenSSL 3.0 algorithms were static and needed no look-up. */
static const EVP_MD *
find_algorithm()
{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
	return EVP_MD_fetch(nullptr, "SHA256", nullptr);
#else
	return EVP_sha256();
#endif
}

static void
prepare()
{
	if (algorithm == nullptr)
		algorithm = find_algorithm();
	if (algorithm == nullptr)
		elog(ERROR, "SHA-256 is not available");
	if (context == nullptr)
		context = EVP_MD_CTX_new();
	if (context == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
}

void
sha256_start()
{
	if (context == nullptr)
		prepare();
	check_digest(EVP_DigestInit_ex(context, algorithm, nullptr));
}

void
sha256_add(std::string_view bytes)
{
	check_digest(EVP_DigestUpdate(context, bytes.data(), bytes.size()));
}

void
sha256_finish(uint8 digest[PG_SHA256_DIGEST_LENGTH])
{
	check_digest(EVP_DigestFinal_ex(context, digest, nullptr));
}

#else							/* !USE_OPENSSL */

static pg_cryptohash_ctx *context = nullptr;

static void
check_digest(int result)
{
	if (result < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(context));
}

void
sha256_start()
{
	/* Without OpenSSL the context is palloc'd, and belongs to no resource owner. */
	if (context == nullptr)
	{
		MemoryContext callers_context = MemoryContextSwitchTo(TopMemoryContext);

		context = pg_cryptohash_create(PG_SHA256);
		MemoryContextSwitchTo(callers_context);
	}
	check_digest(pg_cryptohash_init(context));
}

void
sha256_add(std::string_view bytes)
{
	check_digest(pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(bytes.data()), bytes.size()));
}

void
sha256_finish(uint8 digest[PG_SHA256_DIGEST_LENGTH])
{
	check_digest(pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH));
}

#endif							/* USE_OPENSSL */

}								/* namespace advisory */
