/*
 * views/leaks.h
 *		Session-level locks that look forgotten.
 */
#ifndef ADVISORY_EXT_VIEWS_LEAKS_H
#define ADVISORY_EXT_VIEWS_LEAKS_H

namespace advisory
{

/*
 * Add the session-level locks of sessions that the current user may see, of which
 * one can say that nobody seems to need them any more.  May ereport.
 */
void		show_leaks(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_LEAKS_H */
