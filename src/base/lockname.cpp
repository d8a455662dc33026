/*
 * base/lockname.cpp
 *		What a lock is called: its key, and the namespace and name behind it.
 */
#include "base/pg.h"

#ifdef USE_OPENSSL
#include <openssl/evp.h>
#endif

#include "base/encoding.h"
#include "base/lockname.h"

namespace advisory
{

static Key
digest(std::string_view text)
{
	uint8		sha256[PG_SHA256_DIGEST_LENGTH];
	uint64		first;

#ifdef USE_OPENSSL
	/*
	 * With pg_cryptohash_init() OpenSSL 3 would look up the algorithm each time, which takes twice
	 * as long as the digest.
	 */
	static const EVP_MD *algorithm = nullptr;
	static EVP_MD_CTX *context = nullptr;

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
	if (algorithm == nullptr)
		algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
#else
	algorithm = EVP_sha256();
#endif
	if (context == nullptr)
		context = EVP_MD_CTX_new();
	if (algorithm == nullptr || context == nullptr ||
		EVP_DigestInit_ex(context, algorithm, nullptr) != 1 ||
		EVP_DigestUpdate(context, text.data(), text.size()) != 1 ||
		EVP_DigestFinal_ex(context, sha256, nullptr) != 1)
		elog(ERROR, "could not compute SHA-256");
#else
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);

	if (pg_cryptohash_init(context) != 0 ||
		pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(text.data()),
							 text.size()) != 0 ||
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
	char		buffer[2 * NAME_BYTES + 1];
	char	   *joined = length <= sizeof(buffer) ? buffer : static_cast<char *>(palloc(length));

	join_with_zero(joined, utf8_ns, utf8_name);

	Key			key = digest(std::string_view(joined, length));

	if (joined != buffer)
		pfree(joined);
	return key;
}

/*
 * How many bytes of a text in this database's encoding make at most NAME_BYTES in UTF-8; whole
 * characters.
 */
static int
kept_bytes(std::string_view text)
{
	int			encoding = GetDatabaseEncoding();
	int			characters = 0;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII)
		return pg_encoding_mbcliplen(PG_UTF8, text.data(), static_cast<int>(text.size()),
									 NAME_BYTES);

	/* A character has no more than four bytes in any encoding. */
	text = std::string_view(text.data(),
							pg_mbcliplen(text.data(), static_cast<int>(text.size()),
										 4 * NAME_BYTES));

	std::string_view utf8 = to_utf8(text);
	int			length = pg_encoding_mbcliplen(PG_UTF8, utf8.data(), static_cast<int>(utf8.size()),
											   NAME_BYTES);

	for (int i = 0; i < length;
		 i += pg_utf_mblen(reinterpret_cast<const unsigned char *>(utf8.data()) + i))
		characters++;
	return pg_mbcharcliplen(text.data(), static_cast<int>(text.size()), characters);
}

static pg_noinline std::string_view
cut_part(std::string_view text)
{
	int			kept = kept_bytes(text);

	return static_cast<size_t>(kept) == text.size() ? text
		: psprintf("%.*s%s", kept, text.data(), CUT_MARK);
}

std::string_view
shown_part(std::string_view text)
{
	return text.size() * MAX_CONVERSION_GROWTH <= NAME_BYTES ? text : cut_part(text);
}

char *
join_name(const char *ns, const char *name)
{
	return ns != nullptr ? psprintf("%s/%s", ns, name) : pstrdup(name);
}

char *
display_name(const LockName &name)
{
	char	   *text;

	if (!name.has_name())
		return psprintf(INT64_FORMAT, name.key.value);

	/* No copies on the way: a CONTEXT is made in memory that is not freed before the next error. */
	std::string_view ns = shown_part(name.ns);
	std::string_view shown = shown_part(name.name);

	text = psprintf("%.*s%s%.*s", static_cast<int>(ns.size()), ns.data(), name.by_name() ? "/" : "",
					static_cast<int>(shown.size()), shown.data());
	make_printable(text);
	return text;
}

char *
field_namespace(const LockName &name)
{
	return name.by_name() ? to_cstring(name.ns) : nullptr;
}

char *
field_name(const LockName &name)
{
	return name.has_name() ? to_cstring(name.name) : display_name(name);
}

int
set_lock_fields(const LockName &name)
{
	if (name.by_name())
		err_generic_string(PG_DIAG_SCHEMA_NAME, field_namespace(name));
	err_generic_string(PG_DIAG_CONSTRAINT_NAME, field_name(name));
	return 0;
}

}								/* namespace advisory */
