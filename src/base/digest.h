/*
 * base/digest.h
 *		SHA-256, with what is costly about it done once a session.
 *
 * Most of the cost of a short digest is the way to it: OpenSSL looks its
 * algorithm up anew each time the server's own wrapper starts one.  So where the
 * server is built with OpenSSL its library is used directly, with the algorithm
 * and a context kept; elsewhere the server's wrapper is, with the context kept.
 */
#ifndef ADVISORY_EXT_BASE_DIGEST_H
#define ADVISORY_EXT_BASE_DIGEST_H

#include <string_view>

namespace advisory
{

/*
 * One digest after the other: start, add as often as needed, finish.  Each may
 * ereport (out of memory, or an internal error if the algorithm is not to be
 * had); the next start begins afresh.
 */
void		sha256_start();
void		sha256_add(std::string_view bytes);
void		sha256_finish(uint8 digest[PG_SHA256_DIGEST_LENGTH]);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_DIGEST_H */
