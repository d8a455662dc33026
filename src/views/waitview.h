/*
 * views/waitview.h
 *		Who waits for whom: the rows of advisory.waits, and the same as text.
 */
#ifndef ADVISORY_EXT_VIEWS_WAITVIEW_H
#define ADVISORY_EXT_VIEWS_WAITVIEW_H

namespace advisory
{

/* Add a row for each line of the trees of waits.  May ereport. */
void		show_waits(ReturnSetInfo *result);

/*
 * The same, as one indented text each:
 *
 *		4711 app@worker holds billing/invoice:42 exclusive, idle in transaction 35 s
 *		  4712 app@web waits for billing/invoice:42 exclusive 12 s
 */
void		print_waits(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_WAITVIEW_H */
