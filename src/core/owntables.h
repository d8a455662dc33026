/*
 * core/owntables.h
 *		Tables and sequences of this extension that its functions write for everybody.
 */
#pragma once

extern "C" {
#include "miscadmin.h"
}

namespace advisory
{

/* The OID of a table or sequence of this extension.  Raises 42P01 if it is not there. */
Oid			own_relation(const char *name);

Oid			owner_of_relation(Oid relation);

/*
 * Run run() as the owner of a table or sequence of this extension, as a SECURITY DEFINER function
 * would.  The end of the (sub)transaction restores the user after an error.
 */
template <typename Run>
void
as_owner_of(Oid relation, Run run)
{
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner_of_relation(relation), context | SECURITY_LOCAL_USERID_CHANGE);
	run();
	SetUserIdAndSecContext(user, context);
}

}								/* namespace advisory */
