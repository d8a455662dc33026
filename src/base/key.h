/*
 * base/key.h
 *		From a namespace and a name to the 64-bit key.
 *
 * The key is a permanent public format: the first 8 bytes, big-endian and signed, of SHA-256 over the UTF-8 bytes of "namespace", one zero
 * byte and "name" (or of the name alone).  It never changes between versions, platforms or encodings.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * The key of a name alone, or of a namespace and a name, both in the database's encoding.  Raises 22021 for bytes that are not valid UTF-8
 * in a SQL_ASCII database, and an internal error if the digest cannot be computed.
 */
Key			key_of(std::string_view name);
Key			key_of(std::string_view ns, std::string_view name);

}								/* namespace advisory */
