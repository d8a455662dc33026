/*
 * views/visiblename.h
 *		The names of many locks, as far as the current user may see them.
 *
 * Members of pg_read_all_stats see every name.  Others see a name where they may see the
 * session that holds or awaits the lock, and also the role that named it: in that session, or
 * somewhere else.
 */
#ifndef ADVISORY_EXT_VIEWS_VISIBLENAME_H
#define ADVISORY_EXT_VIEWS_VISIBLENAME_H

#include "base/srf.h"
#include "server/locktable.h"
#include "shmem/heldread.h"
#include "shmem/nametable.h"

namespace advisory
{

/* Stands for what the current user may not see. */
constexpr char HIDDEN[] = "<insufficient privilege>";

/*
 * A name as the current user may see it: zero-terminated, in the database's encoding, and
 * as text values.  Null where it was never seen; HIDDEN where it may not be seen.  A lock by
 * key has no namespace, and its label for a name.
 */
struct VisibleName
{
	const char *ns;
	const char *name;
	NullableDatum ns_text;
	NullableDatum name_text;
};

/*
 * The names of locks, and what their holders say of them, as it is when this is
 * made or first asked.  In the current memory context, which must outlive it.
 */
class VisibleNames
{
public:
	/* lookups: how many entries will be asked about, or so.  May ereport. */
	explicit VisibleNames(int lookups);

	/* The name of the lock that an entry holds or waits for; good as long as this.  May ereport. */
	const VisibleName &of(const LockEntry &entry);

	/*
	 * What the holder says of an entry that is granted; null if nothing.  Good
	 * until the next call.  May ereport.
	 */
	const KnownHold *hold_of(const LockEntry &entry);

	struct Item;

private:
	void		read_all();
	Item	   *add(Oid database, Key key, const char *ns, const char *name, bool is_visible);
	Item	   *item_of(const LOCKTAG &tag);
	bool		may_see(const LockEntry &entry, const Item *item);
	bool		may_see_role_again(Oid role);

	MemoryContext context;
	bool		sees_all;
	bool		is_many;		/* the name table is read as a whole, not name by name */
	bool		has_read_all = false;
	struct items_hash *items;
	HoldReader	holds;
	const LockEntry *last_entry = nullptr;	/* hold_of() was asked about it, and the answer */
	bool		last_is_known = false;
	KnownHold	last_hold;
	Oid			last_role = InvalidOid;	/* that was asked for, and the answer */
	bool		last_answer = false;
};

/*
 * Add the columns namespace, name, slot, key, key1 and key2, which say which lock a
 * row is about.  May ereport (out of memory).
 */
void		add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_VISIBLENAME_H */
