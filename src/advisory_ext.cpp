/*
 * advisory_ext.cpp
 *		Module magic and initialisation, nothing else.
 */
#include "pg.h"

#include "compat.h"
#include "guc.h"
#include "holds.h"
#include "semaphore.h"
#include "shared.h"

#pragma GCC visibility push(default)
extern "C" {

ADVISORY_EXT_MODULE_MAGIC("advisory_ext", ADVISORY_EXT_VERSION);

void		_PG_init(void);

void
_PG_init(void)
{
	advisory::guc_init();
	advisory::holds_init();
	advisory::semaphores_init();
	advisory::shared_init();
}

}
#pragma GCC visibility pop
