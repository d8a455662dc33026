/*
 * base/encoding.cpp
 *		Converting text between the encodings of different databases.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/errors.h"

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

/*
 * The function that converts UTF-8 to the encoding of this database, which the session keeps; null
 * if there is none.  So the catalog is read once, as the server does for the client's encoding.
 * Null also if it cannot be read: names are needed in errors and views, which must not fail because
 * the server's lock table is full.
 */
static FmgrInfo *
conversion_from_utf8()
{
	static FmgrInfo conversion;
	static bool is_known = false;

	if (!is_known && IsTransactionState())
		unless_lock_table_is_full([]() {
			Oid			function = FindDefaultConversionProc(PG_UTF8, GetDatabaseEncoding());

			if (OidIsValid(function))
				fmgr_info_cxt(function, &conversion, TopMemoryContext);
			is_known = true;
		});
	return is_known && OidIsValid(conversion.fn_oid) ? &conversion : nullptr;
}

char *
from_utf8(std::string_view utf8)
{
	StringInfoData out;
	FmgrInfo   *conversion;

	if (GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII)
		return pnstrdup(utf8.data(), utf8.size());

	initStringInfo(&out);
	conversion = conversion_from_utf8();
	while (!utf8.empty())
	{
		char	   *bytes = const_cast<char *>(utf8.data());
		int			length = static_cast<int>(utf8.size());
		int			converted = 0;

		if (conversion != nullptr)
		{
			enlargeStringInfo(&out, length * MAX_CONVERSION_GROWTH + 1);
			converted = DatumGetInt32(FunctionCall6(
				conversion, Int32GetDatum(PG_UTF8), Int32GetDatum(GetDatabaseEncoding()),
				CStringGetDatum(bytes), CStringGetDatum(out.data + out.len), Int32GetDatum(length),
				BoolGetDatum(true)));
			out.len += static_cast<int>(strlen(out.data + out.len));
		}
		else
		{
			/* ASCII is the same in all encodings of databases. */
			while (converted < length && !IS_HIGHBIT_SET(bytes[converted]))
				converted++;
			appendBinaryStringInfo(&out, bytes, converted);
		}
		/* The character behind the converted part has no counterpart. */
		if (converted < length)
		{
			auto	   *rest = reinterpret_cast<unsigned char *>(bytes) + converted;
			pg_wchar	character = utf8_to_unicode(rest);

			appendStringInfo(&out, character <= 0xFFFF ? "\\u%04X" : "\\U%08X", character);
			converted += pg_utf_mblen(rest);
		}
		utf8.remove_prefix(converted);
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
