/*
 * views/knownkeys.h
 *		What a lock may be used for, judging by its key.
 */
#pragma once

namespace advisory
{

/* A use of a key: of a well-known program, or a label of advisory.key_labels. */
struct KnownUse
{
	const char *text;
	bool		is_label;
};

/*
 * The known keys.  Those of a database are read when a lock of it is looked up.  Uses this memory
 * context, which must outlive it.
 */
class KnownKeys
{
public:
	/* May ereport, as the next one. */
	explicit KnownKeys(MemoryContext context);

	/*
	 * The uses of a lock (KnownUse *) in the current memory context: labels first, then keys of
	 * programs, then ranges of keys; NIL if nothing is known.  There are no labels if this user may
	 * not read them or if their table is locked, and nothing is known if the server's lock table is
	 * full.
	 */
	List	   *uses_of(const LOCKTAG &tag);

private:
	void		add(Oid database, const Datum *values, const bool *nulls);

	MemoryContext context;
	HTAB	   *locks;
};

}								/* namespace advisory */
