/*
 * base/locktag.cpp
 *		Keys, modes, scopes and the lock tags they make.
 */
#include "base/pg.h"

#include "base/locktag.h"

namespace advisory
{

void
hash_seed_init()
{
	if (!pg_strong_random(&hash_seed, sizeof(hash_seed)))
		hash_seed = pg_prng_uint64(&pg_global_prng_state);
}

const char *
lockmode_name(const LOCKTAG &tag, LOCKMODE lockmode) noexcept
{
	if (lockmode == ShareLock || (is_of_lease(tag) && lockmode == RowExclusiveLock))
		return mode_name(Mode::shared);
	if (lockmode == ExclusiveLock || is_of_lease(tag))
		return mode_name(Mode::exclusive);
	return GetLockmodeName(DEFAULT_LOCKMETHOD, lockmode);
}

const char *
kind_name(Kind kind) noexcept
{
	static const char *const names[] = {"lock", "lock", "semaphore", "queue", "lease", "foreign"};

	return names[index_of(kind)];
}

static Kind
kind_of(const LOCKTAG &tag) noexcept
{
	uint16		objsubid = tag.locktag_field4;

	if (is_advisory(tag) && objsubid == OBJSUBID_KEY)
		return Kind::lock;
	if (is_advisory(tag) && objsubid == OBJSUBID_PAIR)
		return Kind::pair;
	if (is_advisory(tag) && objsubid == OBJSUBID_QUEUE)
		return Kind::queue;
	if (is_of_lease(tag) || is_of_lease_queue(tag))
		return Kind::lease;
	if (is_advisory(tag) && objsubid > OBJSUBID_SLOT_BASE &&
		objsubid <= OBJSUBID_SLOT_BASE + MAX_SLOTS)
		return Kind::semaphore;
	return Kind::foreign;
}

DecodedTag
decode_tag(const LOCKTAG &tag) noexcept
{
	DecodedTag	decoded = {};

	decoded.kind = kind_of(tag);
	decoded.database = tag.locktag_field1;
	decoded.key = key_in(tag);
	decoded.key1 = static_cast<int32>(tag.locktag_field2);
	decoded.key2 = static_cast<int32>(tag.locktag_field3);
	decoded.objsubid = tag.locktag_field4;
	if (decoded.kind == Kind::semaphore)
		decoded.slot = slot_of(tag);
	else if (is_of_lease_slot(tag))
		decoded.slot = tag.locktag_field4 - OBJSUBID_LEASE_SLOT_BASE;
	return decoded;
}

bool
is_of_semaphore(const LOCKTAG &tag) noexcept
{
	Kind		kind = kind_of(tag);

	return kind == Kind::semaphore || kind == Kind::queue;
}

}								/* namespace advisory */
