/*
 * views/linewidth.h
 *		Texts that fit into the columns of a terminal.
 */
#pragma once

namespace advisory
{

/*
 * The text itself if it takes no more than so many columns; else a copy without its middle, because
 * names often differ only at their ends.  An ellipsis marks the place, or three dots if the client
 * or this database does not have it.  May ereport (out of memory).
 */
const char *cut_text(const char *text, int columns);

}								/* namespace advisory */
