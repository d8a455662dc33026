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
 * in double quotes, or the key.  NIL if that cannot be looked up: the server's lock table is too
 * full, another session has locked the view, or the current user may not read it.  May ereport.
 */
List	   *texts_of_unnamed(const List *tags);

}								/* namespace advisory */
