/*
 * views/keyfacts.h
 *		What is known of the advisory locks that other programs take: their keys,
 *		and how those are made.
 *
 * The one place where these facts are written down; the view advisory.known_keys
 * and the column known_as of advisory.locks are both fed from here.  Each fact
 * has its source, a file of a public repository.
 *
 * Everything here is pure.
 */
#ifndef ADVISORY_EXT_VIEWS_KEYFACTS_H
#define ADVISORY_EXT_VIEWS_KEYFACTS_H

#include <string_view>

#include "base/locktag.h"

namespace advisory
{

/* How the keys of a fact are found, or a lock is recognised as one of its. */
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
	/* Patterns that a lock fits */
	range_32,					/* number, give or take 2^31 */
	repack_table,				/* a pair: number, and a table's oid - 2^31 */
	ascii_name,					/* a pair that is a name in 7-bit characters */
	classes						/* an objsubid that is among the bits of number */
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
	const char *formula;		/* the rule for people; null where it is the number */
	const char *source;
};

/* All of them, in the order in which they are shown. */
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

/* Those of them that are patterns, which stand together at the end. */
KeyFacts	key_patterns() noexcept;

/* Where the keys of a rule come from, if it is one that has keys. */
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
 * The key of a hash or crc rule.  Names are taken byte by byte, as they are
 * stored.
 */
Key			key_of_hash(std::string_view text) noexcept;
Key			key_of_crc(const KeyFact &fact, std::string_view database) noexcept;

/*
 * golang-migrate's key.  A program that connects by URL hands the database's
 * name on with the URL's slash before it; one that does not, without.
 */
Key			key_of_migrate_table(const KeyFact &fact, std::string_view schema, std::string_view table,
								 bool slash, std::string_view database) noexcept;

/* Does the tag fit the pattern? */
bool		fits_pattern(const KeyFact &fact, const DecodedTag &tag) noexcept;

/* The table that pg_repack works on, from the second key of its pair. */
Oid			repacked_table(int32 key2) noexcept;

/* Longest name that a pair can stand for, and its terminating zero. */
constexpr int ASCII_NAME_SIZE = 10;

/*
 * The name that the pair stands for, if it has at least one character and all
 * can be printed; what is in the buffer is of no interest otherwise.
 */
bool		ascii_name(int32 key1, int32 key2, char name[ASCII_NAME_SIZE]) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_KEYFACTS_H */
