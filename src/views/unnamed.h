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
 * in double quotes, or the key.  NIL if the server's lock table is too full to look that up.  May
 * ereport.
 */
List	   *texts_of_unnamed(const List *tags);

}								/* namespace advisory */
