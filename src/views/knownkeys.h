/*
 * views/knownkeys.h
 *		What a lock may be used for, judging by its key.
 */
#pragma once

extern "C" {
#include "nodes/pg_list.h"
#include "storage/lock.h"
}

namespace advisory
{

/* A use of a key: of a well-known program, or a label of advisory.key_labels. */
struct KnownUse
{
	const struct KeyFact *fact;	/* null for a label */
	char	   *text;
};

/* The data that was read so far, in its memory context.  It is read when a lock needs it. */
struct KnownKeys;

/* May ereport, as the next one. */
KnownKeys  *make_known_keys(MemoryContext context);

/*
 * The uses of a lock (KnownUse *) in the current memory context: labels first, then the facts in their
 * order; NIL if nothing is known.
 */
List	   *known_uses(KnownKeys *known, const LOCKTAG &tag);

}								/* namespace advisory */
