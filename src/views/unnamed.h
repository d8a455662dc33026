/*
 * views/unnamed.h
 *		The texts of locks without a name.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * The texts (char *) of these locks (LOCKTAG *), in their order: the label or known use of the key,
 * in double quotes, or the key.  All are keys if that cannot be looked up: the server's lock table
 * is too full, another session has locked the view, or the current user may not read it.  May
 * ereport.
 */
List	   *texts_of_unnamed(const List *tags);

/*
 * Complete the lines (Line *) that show a lock without a name, which they have as unnamed: call
 * insert(text) for each of them.  May ereport.
 */
template <typename Line>
void
complete_lines(const List *lines)
{
	List	   *tags = NIL;
	List	   *texts;
	ListCell   *cell;
	int			next = 0;

	foreach(cell, lines)
	{
		const auto *line = static_cast<Line *>(lfirst(cell));

		if (line->unnamed != nullptr)
			tags = lappend(tags, const_cast<LOCKTAG *>(line->unnamed));
	}
	texts = texts_of_unnamed(tags);
	foreach(cell, lines)
	{
		auto	   *line = static_cast<Line *>(lfirst(cell));

		if (line->unnamed != nullptr)
			line->insert(static_cast<char *>(list_nth(texts, next++)));
	}
}

}								/* namespace advisory */
