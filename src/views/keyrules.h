/*
 * views/keyrules.h
 *		How the keys of facts are computed, and locks recognized.
 */
#pragma once

#include "base/locktag.h"
#include "views/keyfacts.h"

namespace advisory
{

/* Names that a key is computed from besides the name of the database: a schema, and a table or queue.  Either may be null. */
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
 * usual_names() returns the names that a source has in every database; both are null if it has none.  They
 * apply even before the objects exist, because programs create these under the lock.  read_names() returns
 * the other names in the catalogs of this database, palloc'd; none if the lock table is too full to read them.
 */
const Names &usual_names(NameSource source) noexcept;
NameList	read_names(NameSource source);

/* Names as they are shown: the table with its schema, the queue, or the schema.  Null if there are none. */
const char *display_names(const Names &names);

/*
 * Compute the lock of a fact in a database, from the name of the database (which may be null) and these
 * names.  False if the fact has no key there, because it is a pattern or needs a name that is null.
 */
bool		tag_of_fact(const KeyFact &fact, Oid database, const char *database_name, const Names &names, LOCKTAG *tag);

/* Could the fact have this lock with some names? */
bool		could_have(const KeyFact &fact, const DecodedTag &tag) noexcept;

/* Does the lock fit the pattern of a fact?  *detail is further information from its keys, or null; palloc'd. */
bool		fits_pattern(const KeyFact &fact, const DecodedTag &tag, const char **detail);

}								/* namespace advisory */
