/*
 * core/owntables.h
 *		Tables and sequences of this extension that its functions write for everybody.
 */
#pragma once

extern "C" {
#include "miscadmin.h"
#include "utils/guc.h"
}

namespace advisory
{

/* The OID of a table or sequence of this extension.  Raises 42P01 if it is not there. */
Oid			own_relation(const char *name);

Oid			owner_of_relation(Oid relation);

/*
 * Run run() as the owner of a table or sequence of this extension, as a SECURITY DEFINER function
 * would.  The end of the (sub)transaction restores the user after an error.
 *
 * The owner may be an ordinary role, and attach triggers to a table that a superuser's call writes.  So these run
 * in a security-restricted operation, which refuses deferred triggers: up to 17 the end of the transaction
 * runs them as the session's user.  And what they set is undone.
 */
template <typename Run>
void
as_owner_of(Oid relation, Run run)
{
	Oid			user;
	int			context;
	int			guc_level = NewGUCNestLevel();

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner_of_relation(relation), context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	run();
	AtEOXact_GUC(false, guc_level);
	SetUserIdAndSecContext(user, context);
}

}								/* namespace advisory */
