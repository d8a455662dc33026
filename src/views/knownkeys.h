/*
 * views/knownkeys.h
 *		Which well-known use a lock may be: the facts, what follows from them in
 *		this database, and the labels that users have put into
 *		advisory.key_labels.
 *
 * What comes out are candidates, not verdicts: a key says nothing about who took
 * it, and small numbers fit several programs.
 *
 * Labels, and formulas over the catalogs, are for locks of the current database
 * only; formulas over a database's name are for those of every database.
 *
 * Lock tag				looked for
 * bigint key			exact keys, formulas, ranges, labels
 * int4 pair			pg_repack's tables, names of DistributedLock.NET, labels
 * other objsubids		classes
 */
#ifndef ADVISORY_EXT_VIEWS_KNOWNKEYS_H
#define ADVISORY_EXT_VIEWS_KNOWNKEYS_H

#include "base/locktag.h"

namespace advisory
{

struct KnownKeys;

/*
 * Read the labels, and get ready to ask about any number of locks.  What is
 * made, now and later, lives in the context.  Labels that cannot be read, for
 * want of privileges or because the table is locked, are left out.
 * May ereport (out of memory, cancellation).
 */
KnownKeys  *load_known_keys(MemoryContext context);

/*
 * What the lock may be, as text[] in the current memory context: labels first,
 * then the facts in their order; null if it fits nothing.  Costs one look-up in
 * a hash table where nothing fits.  May ereport (out of memory, cancellation).
 */
ArrayType  *known_as(KnownKeys *known, const DecodedTag &tag);

/* Add the rows of advisory.known_keys: a label or a fact each, or a key of it. */
void		show_known_keys(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_KNOWNKEYS_H */
