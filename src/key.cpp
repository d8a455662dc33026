/*
 * key.cpp
 *		From a namespace and a name to the 64-bit key.
 */
#include "pg.h"

#include "key.h"

namespace advisory
{

/*
 * One digest context for the life of the session, since most of the cost of a
 * short digest is in setting one up.  The server ties such a context to a
 * resource owner and frees it with that, so it gets an owner of its own that
 * no transaction ends.
 */
static pg_cryptohash_ctx *
digest_context()
{
	static pg_cryptohash_ctx *context = nullptr;
	static ResourceOwner lasting_owner = nullptr;

	if (context != nullptr)
		return context;

	if (lasting_owner == nullptr)
		lasting_owner = ResourceOwnerCreate(nullptr, "advisory_ext digest");

	ResourceOwner callers_owner = CurrentResourceOwner;

	PG_TRY();
	{
		CurrentResourceOwner = lasting_owner;
		context = pg_cryptohash_create(PG_SHA256);
	}
	PG_FINALLY();
	{
		CurrentResourceOwner = callers_owner;
	}
	PG_END_TRY();

	if (context == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	return context;
}

static std::string_view
to_utf8(std::string_view text)
{
	const char *converted = pg_server_to_any(text.data(), static_cast<int>(text.size()), PG_UTF8);

	if (converted == text.data())
		return text;
	return std::string_view(converted, strlen(converted));
}

static void
check_digest(int result, pg_cryptohash_ctx *context)
{
	if (result < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(context));
}

static void
add_to_digest(pg_cryptohash_ctx *context, std::string_view bytes)
{
	check_digest(pg_cryptohash_update(context,
									  reinterpret_cast<const uint8 *>(bytes.data()),
									  bytes.size()),
				 context);
}

static Key
finish_digest(pg_cryptohash_ctx *context)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	uint64		first = 0;

	check_digest(pg_cryptohash_final(context, digest, sizeof(digest)), context);
	for (int i = 0; i < 8; i++)
		first = (first << 8) | digest[i];
	return Key{static_cast<int64>(first)};
}

Key
key_of(std::string_view name)
{
	std::string_view utf8_name = to_utf8(name);
	pg_cryptohash_ctx *context = digest_context();

	check_digest(pg_cryptohash_init(context), context);
	add_to_digest(context, utf8_name);
	return finish_digest(context);
}

Key
key_of(std::string_view ns, std::string_view name)
{
	std::string_view utf8_ns = to_utf8(ns);
	std::string_view utf8_name = to_utf8(name);
	pg_cryptohash_ctx *context = digest_context();

	check_digest(pg_cryptohash_init(context), context);
	add_to_digest(context, utf8_ns);
	add_to_digest(context, std::string_view("\0", 1));
	add_to_digest(context, utf8_name);
	return finish_digest(context);
}

}								/* namespace advisory */
