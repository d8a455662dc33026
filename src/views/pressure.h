/*
 * views/pressure.h
 *		The rows of advisory.pressure, pressure_by_backend and pressure_by_type.
 */
#ifndef ADVISORY_EXT_VIEWS_PRESSURE_H
#define ADVISORY_EXT_VIEWS_PRESSURE_H

namespace advisory
{

/* Append the row of advisory.pressure; what is in use counted lock by lock if by_counting.  May ereport. */
void		show_pressure(ReturnSetInfo *result, bool by_counting);

/* Append the rows of pressure_by_backend and of pressure_by_type.  May ereport. */
void		show_pressure_by_backend(ReturnSetInfo *result);
void		show_pressure_by_type(ReturnSetInfo *result);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_VIEWS_PRESSURE_H */
