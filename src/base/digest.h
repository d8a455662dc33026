/*
 * base/digest.h
 *		SHA-256, with the costly preparation done once in a session.
 *
 * Most of the cost of a short digest is preparation: the server's wrapper makes
 * OpenSSL look up the algorithm for each digest.  If the server is built with
 * OpenSSL, its library is called directly, and the algorithm and a context are kept.
 * Otherwise the server's wrapper is called, and its context is kept.
 */
#ifndef ADVISORY_EXT_BASE_DIGEST_H
#define ADVISORY_EXT_BASE_DIGEST_H

#include <string_view>

namespace advisory
{

/*
 * For each digest: start, add as often as needed, finish.  Only one digest at a
 * time.  Each function may ereport (out of memory, or an internal error if the
 * algorithm is not available); after an error call start again.
 */
void		sha256_start();
void		sha256_add(std::string_view bytes);
void		sha256_finish(uint8 digest[PG_SHA256_DIGEST_LENGTH]);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_DIGEST_H */
