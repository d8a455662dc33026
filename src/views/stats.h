/*
 * views/stats.h
 *		The rows of advisory.stats and advisory.directory.
 */
#ifndef ADVISORY_EXT_VIEWS_STATS_H
#define ADVISORY_EXT_VIEWS_STATS_H

namespace advisory
{

/* Add the statistics of every name of this database.  May ereport. */
void		show_stats(ReturnSetInfo *result);

/* Add the one row that says how the directory of names is doing.  May ereport. */
void		show_directory(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_STATS_H */
