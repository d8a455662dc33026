/*
 * advisory_ext.cpp
 *		Module magic and initialisation, nothing else.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/guc.h"
#include "core/held.h"
#include "core/lease.h"
#include "core/owntables.h"
#include "core/semaphore.h"
#include "shmem/root.h"

#pragma GCC visibility push(default)
extern "C" {

ADVISORY_EXT_MODULE_MAGIC("advisory_ext", ADVISORY_EXT_VERSION);

void		_PG_init(void);

void
_PG_init(void)
{
	/*
	 * Settings can be defined only once.  If a cancel interrupted this, the session could not load
	 * the library any more.
	 */
	HOLD_INTERRUPTS();
	advisory::hash_init();
	advisory::guc_init();
	advisory::held_init({advisory::semaphore_slot_ended, advisory::synccommit_at_xact_end,
						 advisory::lease_transaction_released,
						 advisory::semaphores_detach});
	advisory::shared_init();
	RESUME_INTERRUPTS();
}

}
#pragma GCC visibility pop
