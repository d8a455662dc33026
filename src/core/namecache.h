/*
 * core/namecache.h
 *		The name cache: the names that this session has used.
 *
 * An entry is what one role called one key.  It saves the digest of a name that comes
 * again, and knows the entry of the name table, so that a name which is there already is
 * found without a lock.
 *
 * As long as an entry is in use, its name is pinned in the name table: while this session
 * asks for the lock, and while it holds it.
 */
#pragma once

#include "base/lockname.h"
#include "shmem/nametable.h"

namespace advisory
{

/* Names that are longer need memory of their own. */
constexpr size_t CACHED_INLINE_BYTES = 40;

/* What every call needs comes first, so that it touches few cache lines. */
struct CachedName
{
	Key			key;
	Oid			role;			/* that used it */
	bool		has_name;		/* else the key alone, without a label */
	bool		by_name;		/* else the name is a label */
	bool		is_found_by_name;
	bool		is_registered;	/* the name table had this very name, given by this role, when it was last asked */
	bool		wants_label;	/* the key has another label; see name_replace_label() */
	bool		clash_reported;
	bool		is_pinned;
	int			uses;
	NameReference reference;
	uint16		ns_length;		/* as kept */
	uint16		name_length;
	int			to_log;			/* held locks that have ended and are still to be logged by this name; they do not pin it */
	char	   *text;			/* namespace and name as far as they are kept, each with the mark where it was cut, and a zero behind it */
	char		inline_text[CACHED_INLINE_BYTES];
	uint64		hash;			/* of role, namespace and name, by which it is found */
	uint32		full_ns_length;
	uint32		full_name_length;
	int64		ns_key;			/* of a namespace that was cut */

	/* As they are shown: zero-terminated, and marked where they were cut; null where there is none. */
	const char *ns() const noexcept
	{
		return by_name ? text : nullptr;
	}
	const char *name() const noexcept
	{
		return has_name ? text + ns_length + (ns_length < full_ns_length ? CUT_MARK_BYTES : 0) + 1 : nullptr;
	}
};

/* The lock that a namespace and a name stand for.  May ereport (22021). */
LockName	named_lock(std::string_view ns, std::string_view name);

/*
 * The current user is about to ask for the lock under this name: register the name, and pin
 * it until name_end_asking() or the end of the (sub)transaction.  One lock is asked for at
 * a time.  WARNING, once a session and name, if the key is also called something else.  May
 * ereport (out of memory).
 */
CachedName *name_ask(const LockName &name);
void		name_end_asking() noexcept;

/* The (sub)transaction of this nesting level, and what is below it, has ended. */
void		name_end_asking_of_level(int nest_level) noexcept;

/*
 * Call this when the lock was granted.  If it was asked for with a label, and the name table
 * has another label for the key, the new one may replace it: only who holds the lock may do
 * that.  All else was registered by name_ask().  May ereport.
 */
void		name_replace_label(CachedName *entry, const LockName &name, Mode mode);

/* One more use of an entry, which is in use already; and one less. */
void		name_use(CachedName *name) noexcept;
void		name_release(CachedName *name) noexcept;

/* The session ends: nothing is pinned any more. */
void		name_unpin_all() noexcept;

/* What the current user called a key in this session; null if nothing. */
const CachedName *name_remembered(Key key) noexcept;

/* Is the lock's name in this namespace, whose key is that of name_namespace_key()? */
bool		name_is_in_namespace(const CachedName *name, std::string_view ns, int64 ns_key) noexcept;
int64		name_namespace_key(std::string_view ns);

/* The statistics of the name; null where there are none. */
NameStats  *stats_of_name(const CachedName *name) noexcept;

}								/* namespace advisory */
