/*
 * views/visiblename.h
 *		The names of locks, as far as the current user may see them.
 *
 * The current user sees a name if it may see the session that holds or awaits the lock, and also
 * the name (may_see_name() in nametable.h). A role always sees the name that it has given a lock in
 * this session.
 */
#pragma once

#include "base/lockname.h"
#include "base/sqlfunction.h"
#include "server/backends.h"
#include "shmem/nametable.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* Shown instead of a value that the current user may not see. */
constexpr char HIDDEN[] = "<insufficient privilege>";

/*
 * A name as the current user may see it: zero-terminated, in the database's encoding.  Null if it
 * was never seen; HIDDEN if the user may not see it.  A lock by key has no namespace, and its label
 * for a name.
 */
struct VisibleName
{
	const char *ns;
	const char *name;
	bool		is_hidden;

	/* As the name of the lock with this key, which need not be its name (LockName). */
	LockName	with_key(Key key) const noexcept
	{
		return LockName{key, ns != nullptr ? std::string_view(ns) : std::string_view(),
			name != nullptr ? std::string_view(name) : std::string_view()};
	}
};

/*
 * Looks up names.  Uses the current memory context, which must outlive it.  All functions may
 * ereport.
 */
class VisibleNames
{
public:
	/* The name of the lock that an entry holds or waits for; palloc'd. */
	VisibleName of(const LockEntry &entry)
	{
		return of(entry, decode_tag(entry.tag), holds.find(entry).hold);
	}

	/* The same where the caller has these already; hold is all 0 if the entry has none. */
	VisibleName of(const LockEntry &entry, const DecodedTag &tag, const PublishedHold &hold)
	{
		NameQuery	query = query_for(entry, tag, hold);

		return of(entry, tag, query, name_find(query));
	}

	/* The same in two steps, between which the names of several entries can be found at once. */
	NameQuery	query_for(const LockEntry &entry, const DecodedTag &tag,
						  const PublishedHold &hold);
	VisibleName of(const LockEntry &entry, const DecodedTag &tag, const NameQuery &query,
				   const KnownName *known);

	/*
	 * The name of an entry's lock as one text, palloc'd: billing/invoice:42; a label of the session
	 * in double quotes, so that it cannot be mistaken for a name; the key if the name is hidden.
	 * Null if it has none: then SQL makes the text, by the known uses of the key.  *exact: a text
	 * that no other lock of the database has, the name or the key.
	 */
	char	   *text_of(const LockEntry &entry, char **exact = nullptr);

	HoldReader	holds;

private:
	bool		sees_all = may_see_all();
};

/*
 * Add columns that identify the lock of a row: kind, which is the Datum of a text, namespace, name,
 * slot, key, key1 and key2; or for SQL datid, high, low and objsubid.  May ereport (out of memory).
 */
void		add_name_columns(Row &row, const DecodedTag &tag, const VisibleName &name, Datum kind);
void		add_tag_columns(Row &row, const DecodedTag &tag);

}								/* namespace advisory */
