/*
 * views/semaphores.h
 *		The rows of advisory.semaphores.
 */
#ifndef ADVISORY_EXT_VIEWS_SEMAPHORES_H
#define ADVISORY_EXT_VIEWS_SEMAPHORES_H

namespace advisory
{

/* A row for each semaphore of this database that somebody has or awaits a slot of.  May ereport. */
void		show_semaphores(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_SEMAPHORES_H */
