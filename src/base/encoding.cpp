/*
 * base/encoding.cpp
 *		Converting text between the encodings of different databases.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/errors.h"

namespace advisory
{

/*
 * ---- Conversions ----
 *
 * The session keeps the functions that convert, so it reads the catalog once for each, as the
 * server does for the client's encoding.  Names are needed in errors and views, which must not fail
 * because the server's lock table is full.
 */

/* Find a function and keep it; null if there is none.  May ereport, and keeps nothing then. */
static FmgrInfo *
find_conversion(FmgrInfo *kept, int from, int to)
{
	if (!OidIsValid(kept->fn_oid))
	{
		Oid			function = FindDefaultConversionProc(from, to);

		if (OidIsValid(function))
			fmgr_info_cxt(function, kept, TopMemoryContext);
	}
	return OidIsValid(kept->fn_oid) ? kept : nullptr;
}

/* Convert, to a zero-terminated text.  Returns how many bytes could be, if it raises no error. */
static int
convert(FmgrInfo *conversion, int from, int to, std::string_view text, char *out, bool raises)
{
	return DatumGetInt32(FunctionCall6(conversion, Int32GetDatum(from), Int32GetDatum(to),
									   CStringGetDatum(const_cast<char *>(text.data())),
									   CStringGetDatum(out),
									   Int32GetDatum(static_cast<int>(text.size())),
									   BoolGetDatum(!raises)));
}

/* How many bytes at the beginning are ASCII, which is the same in all encodings of databases. */
static int
ascii_bytes(std::string_view text) noexcept
{
	return static_cast<int>(std::find_if(text.begin(), text.end(), [](char byte) {
		return IS_HIGHBIT_SET(byte);
	}) - text.begin());
}

static pg_noinline std::string_view
convert_to_utf8(std::string_view text)
{
	static FmgrInfo kept;
	int			encoding = GetDatabaseEncoding();
	FmgrInfo   *conversion = nullptr;
	char	   *converted;

	if (encoding != PG_SQL_ASCII)
		conversion = find_conversion(&kept, encoding, PG_UTF8);
	if (conversion == nullptr)
		converted = pg_server_to_any(text.data(), static_cast<int>(text.size()), PG_UTF8);
	else
	{
		converted = static_cast<char *>(palloc_extended(text.size() * MAX_CONVERSION_GROWTH + 1,
														MCXT_ALLOC_HUGE));
		convert(conversion, encoding, PG_UTF8, text, converted, true);
	}
	return converted == text.data() ? text : std::string_view(converted, strlen(converted));
}

std::string_view
to_utf8(std::string_view text)
{
	if (GetDatabaseEncoding() == PG_UTF8 || ascii_bytes(text) == static_cast<int>(text.size()))
		return text;
	return convert_to_utf8(text);
}

char *
from_utf8(std::string_view utf8)
{
	static FmgrInfo kept;
	int			encoding = GetDatabaseEncoding();
	FmgrInfo   *conversion = nullptr;
	StringInfoData out;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII)
		return pnstrdup(utf8.data(), utf8.size());

	auto		find = [&]() { conversion = find_conversion(&kept, PG_UTF8, encoding); };

	if (OidIsValid(kept.fn_oid))
		find();
	else if (IsTransactionState())
		unless_lock_table_is_full(find);
	initStringInfo(&out);
	while (!utf8.empty())
	{
		int			converted = ascii_bytes(utf8);

		if (conversion != nullptr)
		{
			enlargeStringInfo(&out, static_cast<int>(utf8.size()) * MAX_CONVERSION_GROWTH + 1);
			converted = convert(conversion, PG_UTF8, encoding, utf8, out.data + out.len, false);
			out.len += static_cast<int>(strlen(out.data + out.len));
		}
		else
			appendBinaryStringInfo(&out, utf8.data(), converted);
		utf8.remove_prefix(converted);
		/* The character behind the converted part has no counterpart. */
		if (!utf8.empty())
		{
			auto	   *bytes = reinterpret_cast<const unsigned char *>(utf8.data());
			pg_wchar	character = utf8_to_unicode(bytes);

			appendStringInfo(&out, character <= 0xFFFF ? "\\u%04X" : "\\U%08X", character);
			utf8.remove_prefix(pg_utf_mblen(bytes));
		}
	}
	return out.data;
}

/* ---- What may be shown ---- */

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

/* Unicode's categories Cc, Zl and Zp, and its Bidi_Control characters. */
static bool
is_printable_unicode(pg_wchar character) noexcept
{
	return character >= 0x20 && !(character >= 0x7f && character <= 0x9f) && character != 0x61c &&
		character != 0x200e && character != 0x200f &&
		!(character >= 0x2028 && character <= 0x202e) &&
		!(character >= 0x2066 && character <= 0x2069);
}

/*
 * Is the first character, which has *length bytes, printable?  In this database's encoding;
 * SQL_ASCII counts as UTF-8.
 */
static bool
is_first_printable(const char *text, int *length) noexcept
{
	auto	   *bytes = reinterpret_cast<const unsigned char *>(text);
	int			encoding = GetDatabaseEncoding();
	bool		is_utf8 = encoding == PG_UTF8 || encoding == PG_SQL_ASCII;
	bool		has_c1_controls = is_utf8 || (encoding >= PG_LATIN1 && encoding <= PG_LATIN10) ||
		(encoding >= PG_ISO_8859_5 && encoding <= PG_ISO_8859_8);

	*length = pg_encoding_mblen(is_utf8 ? PG_UTF8 : encoding, text);
	*length = static_cast<int>(strnlen(text, *length));
	if (is_utf8 && pg_utf8_islegal(bytes, *length))
		return is_printable_unicode(utf8_to_unicode(bytes));
	if (is_utf8)
		*length = 1;
	return *length > 1 ||
		(has_c1_controls ? is_printable_unicode(*bytes) : *bytes >= 0x20 && *bytes != 0x7f);
}

bool
is_printable(const char *text) noexcept
{
	for (int length = 1; *text != '\0'; text += length, length = 1)
	{
		/* The same in all encodings of databases, and usual, so this is quick. */
		bool		is_ascii = *text >= ' ' && *text <= '~';

		if (!is_ascii && !is_first_printable(text, &length))
			return false;
	}
	return true;
}

void
make_printable(char *text) noexcept
{
	char	   *out = text;

	for (int length; *text != '\0'; text += length)
	{
		if (!is_first_printable(text, &length))
		{
			*out++ = '?';
			continue;
		}
		memmove(out, text, length);
		out += length;
	}
	*out = '\0';
}

}								/* namespace advisory */
