/*
 * views/keyrules.h
 *		How the keys of facts are computed, and locks recognized.
 */
#pragma once

#include "base/locktag.h"
#include "views/keyfacts.h"

namespace advisory
{

/* What keys are made of besides the name of the database: a schema, and a table or queue.  Either may be null. */
struct Names
{
	const char *schema;
	const char *table;
};

struct NameList
{
	Names	   *names;
	int			count;
};

/*
 * The names that a source has in every database, also before they are there, because they are created
 * under the lock; both null if it has none.  And those in the catalogs of this database, without the
 * usual ones, palloc'd: none if the lock table is too full to read them.
 */
const Names &usual_names(NameSource source) noexcept;
NameList	read_names(NameSource source);

/* Names as they are shown: the table with its schema, the queue, or the schema.  Null if there are none. */
const char *display_names(const Names &names);

/*
 * Get the lock that a fact has in a database, by the name of that (which may be null) and these names.
 * False if it has no key there: it needs a name that is null, or is a pattern.
 */
bool		tag_of_fact(const KeyFact &fact, Oid database, const char *database_name, const Names &names, LOCKTAG *tag);

/* Could the fact have such a lock, with some names? */
bool		could_have(const KeyFact &fact, const DecodedTag &tag) noexcept;

/* Does the lock fit the pattern of a fact?  *detail is what else its keys tell, or null; palloc'd. */
bool		fits_pattern(const KeyFact &fact, const DecodedTag &tag, const char **detail);

}								/* namespace advisory */
