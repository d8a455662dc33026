/*
 * base/encoding.h
 *		Converting text between the encodings of different databases.
 */
#pragma once

namespace advisory
{

/*
 * Text of this database as UTF-8: the argument itself if it needs no conversion, else palloc'd.
 * Raises 22021 for bytes that are not valid UTF-8 in a SQL_ASCII database.
 */
std::string_view to_utf8(std::string_view text);

/*
 * UTF-8 as text of this database, zero-terminated and palloc'd.  Characters that its encoding does
 * not have are escaped, as \u2603; all that are not ASCII if the server's lock table is full and
 * the session has converted no text before.  May run a subtransaction, so not under an LWLock, nor
 * in the arguments of ereport().
 */
char	   *from_utf8(std::string_view utf8);

/*
 * Text from a database of any encoding.  If it is not valid in this database's encoding, a
 * copy with all non-ASCII bytes escaped, as \xe9.  Null for null.
 */
char	   *escape_foreign(char *text);

/*
 * Text that is shown to other users must not look like several lines, or like another text.  So
 * control characters, line separators, and characters that change the direction of text are not
 * printable.  make_printable() replaces them by '?'.  Neither function allocates memory.
 */
bool		is_printable(const char *text) noexcept;
void		make_printable(char *text) noexcept;

/* The text itself if it is printable, or a copy that is; null for null.  May ereport. */
inline const char *
printable_text(const char *text)
{
	char	   *shown;

	if (text == nullptr || is_printable(text))
		return text;
	shown = pstrdup(text);
	make_printable(shown);
	return shown;
}

}								/* namespace advisory */
