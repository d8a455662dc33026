/*
 * base/lockname.cpp
 *		What a lock is called: its key, and the namespace and name behind it.
 */
#include "base/pg.h"

extern "C" {
#include "mb/pg_wchar.h"
}

#include "base/encoding.h"
#include "base/lockname.h"

namespace advisory
{

static char *
displayed_part(std::string_view text)
{
	int			length = static_cast<int>(text.size());

	if (length <= DISPLAYED_NAME_BYTES)
		return to_cstring(text);
	length = pg_mbcliplen(text.data(), length, DISPLAYED_NAME_BYTES);
	return psprintf("%.*s%s", length, text.data(), CUT_MARK);
}

char *
display_name(const LockName &name)
{
	char	   *text;

	if (!name.has_name())
		return psprintf(INT64_FORMAT, name.key.value);
	text = displayed_part(name.name);
	if (name.by_name())
		text = psprintf("%s/%s", displayed_part(name.ns), text);
	make_printable(text);
	return text;
}

char *
call_arguments(const LockName &name)
{
	if (!name.by_name() || name.ns.size() + name.name.size() > DISPLAYED_NAME_BYTES)
		return nullptr;

	char	   *arguments = psprintf("%s, %s",
									 quote_literal_cstr(to_cstring(name.ns)),
									 quote_literal_cstr(to_cstring(name.name)));

	return is_printable(arguments) ? arguments : nullptr;
}

char *
field_namespace(const LockName &name)
{
	return name.by_name() ? to_cstring(name.ns) : nullptr;
}

char *
field_name(const LockName &name)
{
	return name.has_name() ? to_cstring(name.name) : display_name(name);
}

int
set_lock_fields(const LockName &name)
{
	if (name.by_name())
		err_generic_string(PG_DIAG_SCHEMA_NAME, field_namespace(name));
	err_generic_string(PG_DIAG_CONSTRAINT_NAME, field_name(name));
	return 0;
}

}								/* namespace advisory */
