/*
 * base/pg.h
 *		PostgreSQL's headers that every file needs.
 *
 * Every source file includes this file first, and then other headers of the server that it needs, with C linkage.
 */
#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
}

/* The server's gettext macros would change names in C++ library headers. */
#undef gettext
#undef dgettext
#undef ngettext
#undef dngettext
