/*
 * base/lockname.h
 *		What a lock is called: its key, and the namespace and name behind it.
 *
 * The key is a permanent public format: the first 8 bytes, big-endian and signed, of SHA-256 over
 * the UTF-8 bytes of "namespace", one zero byte and "name" (or of the name alone).  It never
 * changes between versions, platforms or encodings.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * The texts are in the server's encoding, point into memory of the caller (usually an SQL
 * argument), and have no terminating zero.
 */
struct LockName
{
	Key			key;
	std::string_view ns;		/* data() is null for a lock taken by key */
	std::string_view name;		/* by key: the label; data() is null if none */
	uint64		hash = 0;		/* of both texts, as core/namecache has it; 0 if it has none */
	/*
	 * What core/namecache knew about it when this was made; null if nothing.  Only name_ask() may
	 * follow it, because the entry can have another name, and another version, by now.
	 */
	struct CachedName *cached = nullptr;
	uint32		version = 0;	/* of that name, which changes with it */

	bool		by_name() const noexcept
	{
		return ns.data() != nullptr;
	}
	bool		has_name() const noexcept
	{
		return name.data() != nullptr;
	}
};

/*
 * The key of a name alone, or of a namespace and a name, both in the database's encoding.  Raises
 * 22021 for bytes that are not valid UTF-8 in a SQL_ASCII database, and an internal error if the
 * digest cannot be computed.
 */
Key			key_of(std::string_view name);
Key			key_of(std::string_view ns, std::string_view name);

/* How many bytes of a namespace, and of a name, are kept and shown, as UTF-8. */
constexpr int NAME_BYTES = 256;

/* Namespace and name with a zero byte between them, in memory that has room for that. */
inline void
join_with_zero(char *joined, std::string_view ns, std::string_view name) noexcept
{
	ns.copy(joined, ns.size());
	joined[ns.size()] = '\0';
	name.copy(joined + ns.size() + 1, name.size());
}

/* The end of a namespace or name that was cut. */
constexpr char CUT_MARK[] = "...";

/*
 * A namespace, name or label as it is kept and shown: the text itself, or if it is longer than
 * NAME_BYTES in UTF-8 a copy of its first characters, which ends in CUT_MARK.  So it is cut at the
 * same place in databases with different encodings.  May ereport (22021).
 */
std::string_view shown_part(std::string_view text);

/*
 * A namespace and a name as one text, palloc'd: billing/invoice:42.  The name alone if ns is null:
 * a label.
 */
char	   *join_name(const char *ns, const char *name);

/*
 * The lock as messages name it: billing/invoice:42, or the label, or the key as a number.
 * Long parts are cut.  Characters that are not printable are replaced.
 */
char	   *display_name(const LockName &name);

/* A zero-terminated copy. */
inline char *
to_cstring(std::string_view text)
{
	return pnstrdup(text.data(), text.size());
}

/*
 * The error fields schema_name (null for a lock by key) and constraint_name, which tell a program
 * the lock.
 */
char	   *field_namespace(const LockName &name);
char	   *field_name(const LockName &name);

/* Set these fields, in ereport().  Returns 0. */
int			set_lock_fields(const LockName &name);

}								/* namespace advisory */
