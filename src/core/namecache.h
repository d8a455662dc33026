/*
 * core/namecache.h
 *		The name cache: the names that this session has used.
 *
 * An entry holds the name that one role used for one key.  It saves the computation of the digest
 * when the name is used again.  It also refers to the entry of the name table, so that a name that
 * is registered already is found without a lock.
 *
 * An entry is in use while this session asks for the lock (see NameHandle), and while it holds the
 * lock.  As long as it is, its name is pinned in the name table.
 */
#pragma once

#include "base/lockname.h"
#include "shmem/nametable.h"

namespace advisory
{

/* Where the text of an entry is. */
enum class NameState : uint8
{
	unstored,					/* not known to be in the name table; also if there is no text */
	stored,						/* its entry was there, but is not pinned: it may be evicted */
	pinned,						/* its entry is pinned */
	outranked					/* a label of a key that has a name, whose entry is pinned */
};

/* The members that every call needs come first, so that a call touches few cache lines. */
struct CachedName
{
	Key			key;
	Oid			role;			/* the role that used it */
	NameState	state;
	bool		is_warned;		/* the WARNING about another name of the key was raised */
	uint16		ns_length;		/* of the text; 0 if it is a label */
	NameReference reference;	/* to the entry that is or was pinned; else to none */
	int			uses;			/* held locks, and requests; without any it has no pin */
	int			to_log;			/* ended holds that must be logged with this name; no pin either */
	uint16		name_length;
	char	   *text;			/* namespace and name as shown, each with a zero byte; or null */
	uint32		version;		/* another one when the text, the key or the role changes */
	uint64		hash;			/* of its text (see LockName), to find it by that and role; or 0 */
	uint32		key_hash;		/* of key and role */
	uint64		ns_hash;		/* of the whole namespace, if that was cut */
	CachedName *next_by_key;	/* in the chain of its key, or of those that have been dropped */
	CachedName *next_by_text;	/* in the chain of its hash */
	struct Hold *hold;			/* that was granted last under this name, for core/held; or null */

	bool		has_text() const noexcept
	{
		return text != nullptr;
	}
	bool		by_name() const noexcept
	{
		return ns_length > 0;
	}
	bool		has_pin() const noexcept
	{
		return state == NameState::pinned || state == NameState::outranked;
	}
	/* Of namespace and name, with the zero byte between them. */
	size_t		text_length() const noexcept
	{
		return static_cast<size_t>(ns_length) + 1 + name_length;
	}
	/* Null for a label, and if there is no text. */
	const char *ns() const noexcept
	{
		return by_name() ? text : nullptr;
	}
	const char *name() const noexcept
	{
		return has_text() ? text + ns_length + 1 : nullptr;
	}
	/* What the session publishes about it. */
	UsedName	used() const noexcept
	{
		return state == NameState::pinned ? UsedName{reference, role} : UsedName{};
	}
};

/*
 * A request for a lock under a name, from name_ask() to name_end().  It stands for the entry of the
 * name, which is in use until then.
 */
struct NameHandle
{
	CachedName *name = nullptr;
	int			place = 0;		/* how many requests were under way when it began */

	operator CachedName *() const noexcept
	{
		return name;
	}
	CachedName *operator->() const noexcept
	{
		return name;
	}
};

/* The lock that a namespace and a name stand for.  May ereport (22021). */
LockName	named_lock(std::string_view ns, std::string_view name);

/*
 * Call this before the current user asks for the lock under this name.  Registers the name, and
 * pins it until name_end(), or until an error ends the (sub)transaction.  A wait can run statements
 * that ask for other names.  Raises a WARNING, once per session and name, if the key also has
 * another name.  May ereport (out of memory).
 */
NameHandle	name_ask(const LockName &name);

/* The request is over. */
void		name_end(const NameHandle &request) noexcept;

/*
 * A transaction has ended, or a subtransaction has failed: so are all requests that began at its
 * nesting level or a deeper one.
 */
void		name_end_all(int nest_level) noexcept;

/* Count one less use of an entry. */
void		name_release(CachedName *name) noexcept;

/*
 * The name that the current user used for a key in this session; null if there is none.
 * has_label: or the label, which says nothing about the locks of other sessions.
 */
const CachedName *name_remembered(Key key, bool has_label) noexcept;

/* Is the lock's name in this namespace?  May ereport (out of memory). */
bool		name_is_in_namespace(const CachedName *name, std::string_view ns);

/* The statistics of the name; null if there are none. */
NameStats  *stats_of_name(const CachedName *name) noexcept;

/*
 * The name that the name table or this session has for a lock, such as billing/invoice:42. Null if
 * there is none, or if the current user may not see it and it is not for the server's log.  Do not
 * call this in the arguments of ereport(), because it may clear an error of its own.
 */
char	   *visible_name(const LOCKTAG &tag, bool for_log = false);

/*
 * The lock as messages name it (lockname.h), or visible_name() if it has no name.  Not in the
 * arguments of ereport() either.
 */
char	   *display_lock(const LockName &name);

}								/* namespace advisory */
