/*
 * base/remedy.cpp
 *		The statements that end what is in the way, ready to paste.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/remedy.h"

namespace advisory
{

/* A longer name would not fit on a line. */
static constexpr size_t STATEMENT_NAME_BYTES = 50;

/* In SQL_ASCII a text may be anything, and only UTF-8 has a key. */
static bool
can_have_key(std::string_view text)
{
	return GetDatabaseEncoding() != PG_SQL_ASCII ||
		pg_verify_mbstr(PG_UTF8, text.data(), static_cast<int>(text.size()), true);
}

/* Is this the name of the key?  Not if it is hidden or cut, or if its characters were replaced. */
static bool
is_exact(const LockName &name)
{
	return name.by_name() && name.has_name() && can_have_key(name.ns) && can_have_key(name.name) &&
		key_of(name.ns, name.name) == name.key;
}

/* The namespace and the name as SQL literals: 'billing', 'invoice:42'; null if not printable. */
static char *
name_literals(const LockName &name)
{
	char	   *literals = psprintf("%s, %s", quote_literal_cstr(to_cstring(name.ns)),
									quote_literal_cstr(to_cstring(name.name)));

	return is_printable(literals) ? literals : nullptr;
}

char *
terminate_holder_statement(const LockName &name, Kind kind, int pid)
{
	char	   *literals = nullptr;

	if (is_exact(name) && name.ns.size() + name.name.size() <= STATEMENT_NAME_BYTES)
		literals = name_literals(name);
	if (literals != nullptr)
		return psprintf("SELECT advisory.terminate_holder(%s, %d, kind => '%s')", literals, pid,
						kind_name(kind));
	return psprintf("SELECT advisory.terminate_holder_key(" INT64_FORMAT ", %d, kind => '%s')",
					name.key.value, pid, kind_name(kind));
}

char *
terminate_blocker_statement(int pid, const char *exact_lock)
{
	return psprintf("SELECT advisory.terminate_blocker(%d, %s)", pid,
					quote_literal_cstr(exact_lock));
}

char *
cancel_waiter_statement(int pid, const char *exact_lock)
{
	return psprintf("SELECT advisory.cancel_waiter(%d, %s)", pid, quote_literal_cstr(exact_lock));
}

char *
rollback_statement(const char *gid)
{
	return psprintf("ROLLBACK PREPARED %s", quote_literal_cstr(gid));
}

char *
break_lease_statement(const LockName &name, int64 token)
{
	char	   *literals = is_exact(name) ? name_literals(name) : nullptr;

	return literals == nullptr ? nullptr :
		psprintf("SELECT advisory.break_lease(%s, " INT64_FORMAT ")", literals, token);
}

/* Calls nothing that an owner of the database may have put before pg_catalog. */
char *
show_slots_statement(Key key)
{
	return psprintf("SELECT pid, granted, slots FROM advisory.locks "
					"WHERE key OPERATOR(pg_catalog.=) " INT64_FORMAT, key.value);
}

/*
 * The first slash must end the namespace.  Texts about locks consist of words and names: without a
 * space a name cannot look like such a word.
 */
char *
exact_name(const LockName &name)
{
	char	   *text;

	if (!is_exact(name) || name.ns.find('/') != name.ns.npos ||
		name.ns.find(' ') != name.ns.npos || name.name.find(' ') != name.name.npos)
		return nullptr;
	text = psprintf("%s/%s", to_cstring(name.ns), to_cstring(name.name));
	return is_printable(text) ? text : nullptr;
}

char *
key_text(const DecodedTag &tag)
{
	if (has_key(tag.kind))
		return psprintf(INT64_FORMAT, tag.key.value);
	if (tag.kind == Kind::pair)
		return psprintf("%d, %d", tag.key1, tag.key2);
	return psprintf("%d, %d (objsubid %d)", tag.key1, tag.key2, tag.objsubid);
}

}								/* namespace advisory */
