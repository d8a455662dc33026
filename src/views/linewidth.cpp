/*
 * views/linewidth.cpp
 *		Texts that fit into the columns of a terminal.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "views/linewidth.h"

namespace advisory
{

/* A part of a text: a character, with its place among the columns. */
struct Letter
{
	const char *bytes;
	int			length;
	int			width;
	int			from_left;		/* columns up to its end */
};

/*
 * Run visit(letter) for each character.  It takes two columns at most, and none that is shorter
 * than these takes more than one.
 */
template <typename Visit>
static void
each_letter(const char *text, Visit visit)
{
	int			encoding = GetDatabaseEncoding();
	int			narrow = encoding == PG_UTF8 ? 2 : 1;
	int			from_left = 0;

	while (*text != '\0')
	{
		int			length = static_cast<int>(strnlen(text, pg_encoding_mblen(encoding, text)));
		int			width = length > narrow ? 2 : 1;

		from_left += width;
		visit(Letter{text, length, width, from_left});
		text += length;
	}
}

static void
append_letter(StringInfo out, const Letter &letter)
{
	/* In SQL_ASCII a letter is a byte, and a part of a character would be no text. */
	if (GetDatabaseEncoding() == PG_SQL_ASCII && IS_HIGHBIT_SET(*letter.bytes))
		appendStringInfoChar(out, '?');
	else
		appendBinaryStringInfo(out, letter.bytes, letter.length);
}

const char *
cut_text(const char *text, int columns)
{
	bool		has_ellipsis = GetDatabaseEncoding() == PG_UTF8 &&
		pg_get_client_encoding() == PG_UTF8;
	int			room = columns - (has_ellipsis ? 1 : 3);
	int			total = 0;
	bool		is_marked = false;
	StringInfoData out;

	each_letter(text, [&](const Letter &letter) { total = letter.from_left; });
	if (total <= columns)
		return text;
	initStringInfo(&out);
	each_letter(text, [&](const Letter &letter) {
		int			from_right = total - letter.from_left + letter.width;

		if (letter.from_left > (room + 1) / 2 && !is_marked)
		{
			appendStringInfoString(&out, has_ellipsis ? "\xe2\x80\xa6" : "...");
			is_marked = true;
		}
		if (letter.from_left <= (room + 1) / 2 || from_right <= room / 2)
			append_letter(&out, letter);
	});
	return out.data;
}

/* cut(line text, columns integer): null for an empty line, and for null */
static Datum
cut(FunctionCallInfo fcinfo)
{
	const char *line = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (*line == '\0' || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(raw_text_datum(cut_text(line, PG_GETARG_INT32(1))));
}

ADVISORY_SQL_FUNCTION(advisory_cut, cut);

}								/* namespace advisory */
