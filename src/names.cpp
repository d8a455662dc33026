/*
 * names.cpp
 *		What a lock is called, as far as the current user may know.
 */
#include "pg.h"

#include "holds.h"
#include "names.h"

namespace advisory
{

ShownName
shown_name(const LockEntry &entry)
{
	DecodedTag	tag = decode_tag(entry.tag);
	const Hold *hold = nullptr;

	if (tag.kind == Kind::lock && tag.database == MyDatabaseId)
		hold = hold_find(tag.key);
	if (hold == nullptr)
		return ShownName{};
	return ShownName{hold->ns, hold->name};
}

}								/* namespace advisory */
