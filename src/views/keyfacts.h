/*
 * views/keyfacts.h
 *		The keys of advisory locks that other programs take.
 *
 * This is the only list of these facts; the view advisory.known_keys and the column
 * known_as of advisory.locks are made from it.  Each fact names its source, a file
 * of a public repository.
 *
 * Everything here is pure.
 */
#ifndef ADVISORY_EXT_VIEWS_KEYFACTS_H
#define ADVISORY_EXT_VIEWS_KEYFACTS_H

#include <string_view>

#include "base/locktag.h"

namespace advisory
{

/* How the keys of a fact are computed, or how a lock is recognized. */
enum class KeyRule
{
	/* Keys, the same in every database */
	exact,						/* number */
	hash,						/* hashtext(text) */
	/* Keys that follow from the name of the database */
	crc_product,				/* number * crc32(database), 64 bits wide */
	crc_product_32,				/* the same, 32 bits wide and unsigned */
	/* Keys that follow from names in the database's catalogs */
	migrate_table,				/* of golang-migrate's tables, and number */
	pgmq_queue,					/* hashtext(text || queue) */
	/* Patterns */
	range_32,					/* number - 2^31 to number + 2^31 - 1 */
	repack_table,				/* a pair: number, and a table's oid - 2^31 */
	ascii_name,					/* a pair that encodes a name in 7-bit characters */
	classes						/* an objsubid whose bit is set in number */
};

struct KeyFact
{
	const char *tool;
	const char *purpose;
	const char *form;			/* "bigint", "int4 pair" or the objsubids */
	const char *scope;
	KeyRule		rule;
	int64		number;
	const char *text;
	const char *formula;		/* the rule in words; null if it is just the number */
	const char *source;
};

/* A range of facts, in the order in which they are shown. */
struct KeyFacts
{
	const KeyFact *first;
	int			count;

	const KeyFact *begin() const noexcept
	{
		return first;
	}
	const KeyFact *end() const noexcept
	{
		return first + count;
	}
};

KeyFacts	key_facts() noexcept;

/* The facts that are patterns.  They are the last ones. */
KeyFacts	key_patterns() noexcept;

/* What the keys of a rule follow from. */
enum class KeyOrigin
{
	anywhere,
	database_name,
	catalogs,
	pattern
};

constexpr KeyOrigin
origin_of(KeyRule rule) noexcept
{
	switch (rule)
	{
		case KeyRule::exact:
		case KeyRule::hash:
			return KeyOrigin::anywhere;
		case KeyRule::crc_product:
		case KeyRule::crc_product_32:
			return KeyOrigin::database_name;
		case KeyRule::migrate_table:
		case KeyRule::pgmq_queue:
			return KeyOrigin::catalogs;
		case KeyRule::range_32:
		case KeyRule::repack_table:
		case KeyRule::ascii_name:
		case KeyRule::classes:
			break;
	}
	return KeyOrigin::pattern;
}

/* "exact", "formula", "range" or "class", as in advisory.known_keys. */
const char *match_name(KeyRule rule) noexcept;

/*
 * The key of a hash or crc rule.  Names are used byte by byte as they are stored.
 */
Key			key_of_hash(std::string_view text) noexcept;
Key			key_of_crc(const KeyFact &fact, std::string_view database) noexcept;

/*
 * golang-migrate's key.  A program that connects by URL writes the URL's slash
 * before the database's name; other programs do not.
 */
Key			key_of_migrate_table(const KeyFact &fact, std::string_view schema, std::string_view table,
								 bool slash, std::string_view database) noexcept;

/* Does the tag fit the pattern? */
bool		fits_pattern(const KeyFact &fact, const DecodedTag &tag) noexcept;

/* The table that pg_repack works on, by the second key of its pair. */
Oid			repacked_table(int32 key2) noexcept;

/* Length of the longest name in a pair, and the terminating zero. */
constexpr int ASCII_NAME_SIZE = 10;

/*
 * Decode the name in a pair of keys.  False, with an undefined buffer, unless it has
 * at least one character and all characters are printable.
 */
bool		ascii_name(int32 key1, int32 key2, char name[ASCII_NAME_SIZE]) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_KEYFACTS_H */
