/*
 * core/visiblename.h
 *		What a lock is called, as far as the current user may know.
 *
 * A name is for members of pg_read_all_stats.  Others see it where they may see the
 * session that holds or awaits the lock, and also the role that named it: in
 * that session, or somewhere else.
 */
#ifndef ADVISORY_EXT_CORE_VISIBLENAME_H
#define ADVISORY_EXT_CORE_VISIBLENAME_H

#include "shmem/nametable.h"
#include "base/lockname.h"
#include "server/locktable.h"
#include "shmem/published.h"
#include "shmem/waiters.h"
#include "base/srf.h"

namespace advisory
{

/* What stands in the place of what the current user may not see. */
constexpr char HIDDEN[] = "<insufficient privilege>";

/*
 * Zero-terminated, in the database's encoding; null where never seen.  A lock by
 * key has no namespace, and its label for a name.
 */
struct ShownName
{
	const char *ns;
	const char *name;
};

struct ShownTexts
{
	NullableDatum ns;
	NullableDatum name;
};

/*
 * The names of locks, and what their holders say of them, as it is when this is
 * made or first asked.  In the current memory context, which must outlive it.
 */
class Names
{
public:
	/* lookups: how many entries will be asked about, or so.  May ereport. */
	explicit Names(int lookups);

	/*
	 * The name of the lock that an entry holds or waits for; good as long as
	 * this.  May ereport (out of memory).
	 */
	ShownName	of(const LockEntry &entry);

	/* The same as text values, which are made once for all entries of a lock. */
	ShownTexts	texts_of(const LockEntry &entry);

	/*
	 * What the holder said of an entry that is granted; null if nothing.  Good
	 * until the next call.  May ereport.
	 */
	const PublishedHold *published(const LockEntry &entry);

	struct Item;

private:
	void		read_whole();
	void		fill(Item *item, const ShownName &name, const Oid *roles);
	Item	   *add(const struct ItemKey &key, const ShownName &name, const Oid *roles);
	Item	   *add(const KnownName &known);
	Item	   *item_for(const LOCKTAG &tag);
	Item	   *item_to_show(const LockEntry &entry);
	bool		may_see(const LockEntry &entry, const Item *item);
	bool		may_see_all_of(const LockEntry &entry, const PublishedHold *hold);
	bool		may_see_role_again(Oid role);

	MemoryContext context;
	bool		sees_all;
	bool		is_many;		/* the directory is read whole, rather than name by name */
	bool		has_read_whole;
	struct items_hash *items;
	Item	   *unknown;		/* stands for all that have no name */
	Item	   *hidden;			/* and for all that must not be shown */
	PublishedHolds holds;
	const LockEntry *last_entry = nullptr;	/* that was asked for, and the answer */
	bool		last_is_published = false;
	PublishedHold last_hold;
	Oid			last_role;		/* that was asked for, and the answer */
	bool		last_answer;
};

/*
 * Add the columns namespace, name, slot, key, key1 and key2, which say which lock a
 * row is about.  May ereport (out of memory).
 */
void		add_name_columns(Row &row, const DecodedTag &tag, const ShownTexts &name);

/* A name that the directory does not have yet, as it will have it.  palloc'd.  May ereport. */
KnownName	make_known(const NewName &name);

/*
 * The lock as messages name it (lockname.h): a lock by key, without a label, by
 * what visible_name() has for it.  palloc'd.  May ereport.  Not to be called among
 * the arguments of ereport(), since it can have an error of its own to clear.
 */
char	   *display_lock(const LockName &name);

/*
 * What the directory or this session calls a lock, if the current user may see who
 * called it so; else null.  Like billing/invoice:42, palloc'd.  May ereport.
 */
char	   *visible_name(const LOCKTAG &tag);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_VISIBLENAME_H */
