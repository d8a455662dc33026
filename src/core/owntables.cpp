/*
 * core/owntables.cpp
 *		Tables and sequences of this extension that its functions write for everybody.
 */
#include "base/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include "base/srf.h"
#include "core/owntables.h"

namespace advisory
{

static constexpr char SCHEMA[] = "advisory";

Oid
own_relation(const char *name)
{
	Oid			relation = get_relname_relid(name, get_namespace_oid(SCHEMA, false));

	if (!OidIsValid(relation))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist", SCHEMA, name),
				 errhint(OTHER_VERSION_HINT)));
	return relation;
}

Oid
owner_of_relation(Oid relation)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(row))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation)));
	owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relowner;
	ReleaseSysCache(row);
	return owner;
}

}								/* namespace advisory */
