/*
 * sql/autocommit.h
 *		The WARNING about a transaction-level lock that ends with its statement.
 */
#pragma once

namespace advisory
{

/*
 * Called by every function that takes a transaction-level lock.  Warns if it was called by a
 * SELECT that does nothing but call such functions, outside a transaction block: the
 * lock is released when that SELECT ends, so that it protects nothing.  Warns once for each
 * statement, and only if advisory_ext.warn_no_transaction is on.
 */
void		warn_if_no_transaction(FunctionCallInfo fcinfo);

}								/* namespace advisory */
