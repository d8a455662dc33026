/*
 * base/encoding.cpp
 *		Converting text between the encodings of different databases.
 */
#include "base/pg.h"

#include "base/encoding.h"

namespace advisory
{

std::string_view
to_utf8(std::string_view text)
{
	const char *converted = pg_server_to_any(text.data(), static_cast<int>(text.size()), PG_UTF8);

	if (converted == text.data())
		return text;
	return std::string_view(converted, strlen(converted));
}

/* Append one UTF-8 character as an escape.  Returns its number of bytes. */
static int
append_escaped(StringInfo out, const char *utf8)
{
	auto	   *bytes = reinterpret_cast<const unsigned char *>(utf8);
	pg_wchar	character = utf8_to_unicode(bytes);

	appendStringInfo(out, character <= 0xFFFF ? "\\u%04X" : "\\U%08X", character);
	return pg_utf_mblen(bytes);
}

/* Convert and append text up to the first character that cannot be converted.  Returns the number of bytes converted. */
static int
append_converted(StringInfo out, Oid conversion, std::string_view utf8)
{
	int			length = static_cast<int>(utf8.size());
	int			room = length * MAX_CONVERSION_GROWTH + 1;
	int			converted;

	enlargeStringInfo(out, room);

	auto	   *end = reinterpret_cast<unsigned char *>(out->data + out->len);

	converted = pg_do_encoding_conversion_buf(conversion, PG_UTF8, GetDatabaseEncoding(),
											  reinterpret_cast<unsigned char *>(const_cast<char *>(utf8.data())),
											  length, end, room, true);
	out->len += static_cast<int>(strlen(reinterpret_cast<char *>(end)));
	return converted;
}

char *
from_utf8(std::string_view utf8)
{
	StringInfoData out;
	Oid			conversion;

	if (GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII)
		return pnstrdup(utf8.data(), utf8.size());

	initStringInfo(&out);
	conversion = FindDefaultConversionProc(PG_UTF8, GetDatabaseEncoding());
	while (!utf8.empty())
	{
		if (OidIsValid(conversion))
			utf8.remove_prefix(append_converted(&out, conversion, utf8));
		if (!utf8.empty())
			utf8.remove_prefix(append_escaped(&out, utf8.data()));
	}
	return out.data;
}

char *
escape_foreign(char *text)
{
	StringInfoData escaped;

	if (text == nullptr || pg_verifymbstr(text, static_cast<int>(strlen(text)), true))
		return text;

	initStringInfo(&escaped);
	for (const char *byte = text; *byte != '\0'; byte++)
	{
		if (IS_HIGHBIT_SET(*byte))
			appendStringInfo(&escaped, "\\x%02x", static_cast<unsigned char>(*byte));
		else
			appendStringInfoChar(&escaped, *byte);
	}
	return escaped.data;
}

}								/* namespace advisory */
