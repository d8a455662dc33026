/*
 * base/pg.h
 *		PostgreSQL's headers, and those of the C++ library.
 *
 * Every source file includes this file first, and nothing else from outside.  The server's headers
 * are written for C, so they need C linkage, which is given to all of them here.  The list is also
 * what the extension uses of the server.  lib/simplehash.h is not in it: that is a template, which
 * the files with such a hash table include.
 */
#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/relscan.h"
#include "access/rmgr.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_control.h"
#include "catalog/pg_database.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "common/int.h"
#include "common/ip.h"
#include "common/pg_prng.h"
#include "common/sha2.h"
#include "common/string.h"
#include "executor/execdesc.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "foreign/fdwapi.h"
#include "lib/dshash.h"
#include "lib/ilist.h"
#include "mb/pg_wchar.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/pg_shmem.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "storage/sinval.h"
#include "storage/spin.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/dsa.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_crc.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"
/* The next two came with later versions: 16 and 17. */
#if __has_include("utils/guc_hooks.h")
#include "utils/guc_hooks.h"
#endif
#if __has_include("storage/dsm_registry.h")
#include "storage/dsm_registry.h"
#endif
}

/* The server's gettext macros would change names in C++ library headers. */
#undef gettext
#undef dgettext
#undef ngettext
#undef dngettext

#include <limits.h>
#include <math.h>
#include <signal.h>

#include <algorithm>
#include <initializer_list>
#include <new>
#include <string_view>
#include <tuple>
#include <utility>
