/*
 * base/lockname.h
 *		What a lock is called: its key, and the namespace and name behind it.
 */
#pragma once

#include <string_view>

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

	bool		by_name() const noexcept
	{
		return ns.data() != nullptr;
	}
	bool		has_name() const noexcept
	{
		return name.data() != nullptr;
	}
};

/* The end of a namespace or name that was cut. */
constexpr char CUT_MARK[] = "...";
constexpr int CUT_MARK_BYTES = sizeof(CUT_MARK) - 1;

/* The longest namespace or name, in bytes, that a message shows in full. */
constexpr int DISPLAYED_NAME_BYTES = 256;

/*
 * The lock as messages name it: billing/invoice:42, or the label, or the key as a number.
 * Long parts are cut at a character boundary and end in CUT_MARK.  Characters that are not
 * printable are replaced.
 */
char	   *display_name(const LockName &name);

/*
 * The arguments that name the lock in a call, as SQL literals: 'billing', 'invoice:42'.  Null
 * if the caller must use the key instead: for a lock by key, and if the arguments are not
 * printable or too long for a hint.
 */
char	   *call_arguments(const LockName &name);

/* A zero-terminated copy. */
inline char *
to_cstring(std::string_view text)
{
	return pnstrdup(text.data(), text.size());
}

/*
 * The error fields schema_name (null for a lock by key) and constraint_name, which tell a
 * program the lock.
 */
char	   *field_namespace(const LockName &name);
char	   *field_name(const LockName &name);

/* Set these fields, in ereport().  Returns 0. */
int			set_lock_fields(const LockName &name);

}								/* namespace advisory */
