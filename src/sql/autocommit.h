/*
 * sql/autocommit.h
 *		The WARNING about a transaction-level lock that ends with its statement.
 */
#pragma once

namespace advisory
{

/*
 * Every function that takes a transaction-level lock calls this.  Warns if a SELECT outside a
 * transaction block does nothing but call such functions.  The locks are released when that
 * SELECT ends, so they protect nothing.  Warns once per statement, and only if
 * advisory_ext.warn_no_transaction is on.
 */
void		warn_if_no_transaction(FunctionCallInfo fcinfo);

}								/* namespace advisory */
