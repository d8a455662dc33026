/*
 * core/namecache.h
 *		The name cache: the names that this session has used.
 *
 * An entry holds the name that one role used for one key.  It saves the computation of the
 * digest when the name is used again.  It also refers to the entry of the name table, so that
 * a name that is registered already is found without a lock.
 *
 * As long as an entry is in use, its name is pinned in the name table.  An entry is in use
 * while this session asks for the lock, and while it holds the lock.
 */
#pragma once

#include "base/lockname.h"
#include "shmem/nametable.h"

namespace advisory
{

/* Longer names need memory of their own. */
constexpr size_t CACHED_INLINE_BYTES = 40;

/* The members that every call needs come first, so that a call touches few cache lines. */
struct CachedName
{
	Key			key;
	Oid			role;			/* the role that used it */
	bool		has_name;		/* false: only the key, without a label */
	bool		by_name;		/* false: the name is a label */
	bool		is_found_by_name;
	bool		is_registered;	/* at the last look-up, the name table had this name, given by this role */
	bool		wants_label;	/* the key has another label; see name_replace_label() */
	bool		clash_reported;
	bool		is_pinned;
	int			uses;
	NameReference reference;
	uint16		ns_length;		/* as kept */
	uint16		name_length;
	int			to_log;			/* ended holds that must still be logged with this name; they do not pin it */
	char	   *text;			/* namespace and name as kept, each with CUT_MARK if it was cut, and a zero byte */
	char		inline_text[CACHED_INLINE_BYTES];
	uint64		hash;			/* hash key: of role, namespace and name */
	uint32		full_ns_length;
	uint32		full_name_length;
	int64		ns_key;			/* of a namespace that was cut */

	/* For display: zero-terminated, with CUT_MARK if it was cut; null if there is none. */
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
 * Call this before the current user asks for the lock under this name.  Registers the name,
 * and pins it until name_end_asking() or the end of the (sub)transaction.  A session asks for
 * one lock at a time.  Raises a WARNING, once per session and name, if the key also has another
 * name.  May ereport (out of memory).
 */
CachedName *name_ask(const LockName &name);
void		name_end_asking() noexcept;

/* Call this at the end of the (sub)transaction of this nesting level, which ends deeper levels, too. */
void		name_end_asking_of_level(int nest_level) noexcept;

/*
 * Call this when the lock was granted.  If it was requested with a label, and the name table
 * has another label for the key, the new label may replace it, which only a holder of the lock
 * may do.  name_ask() has registered everything else.  May ereport.
 */
void		name_replace_label(CachedName *entry, const LockName &name, Mode mode);

/* Count one more use of an entry that is already in use; or one less. */
void		name_use(CachedName *name) noexcept;
void		name_release(CachedName *name) noexcept;

/* At the end of the session: remove all pins. */
void		name_unpin_all() noexcept;

/* The name that the current user used for a key in this session; null if there is none. */
const CachedName *name_remembered(Key key) noexcept;

/* Is the lock's name in this namespace, whose key is that of name_namespace_key()? */
bool		name_is_in_namespace(const CachedName *name, std::string_view ns, int64 ns_key) noexcept;
int64		name_namespace_key(std::string_view ns);

/* The statistics of the name; null if there are none. */
NameStats  *stats_of_name(const CachedName *name) noexcept;

}								/* namespace advisory */
