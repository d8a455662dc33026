/*
 * shmem/nameread.cpp
 *		Reading the name table.
 */
#include "base/pg.h"

extern "C" {
#include "common/string.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
}

#include "base/encoding.h"
#include "base/lockname.h"
#include "server/backends.h"
#include "shmem/nameentry.h"

namespace advisory
{

/* Copy a text of the table and leave room for CUT_MARK.  Returns the place behind that. */
static char *
copy_text(char *copy, std::string_view text) noexcept
{
	memcpy(copy, text.data(), text.size());
	copy[text.size()] = '\0';
	return copy + text.size() + sizeof(CUT_MARK);
}

/* Copy an entry; palloc'd.  make_fit() must follow.  The table's lock must be held. */
static void
copy_entry(NameEntry *entry, KnownName *known, bool with_stats)
{
	auto	   *copy = static_cast<char *>(palloc(entry->ns_length + entry->name_length + 2 * sizeof(CUT_MARK)));

	known->ns = entry->by_name ? copy : nullptr;
	known->name = copy_text(copy, namespace_of(entry));
	copy_text(known->name, name_of(entry));
	known->counts = name_counts(entry);
	known->ns_is_cut = entry->full_ns_length > entry->ns_length;
	known->name_is_cut = entry->full_name_length > entry->name_length;
	memcpy(known->roles, entry->roles, sizeof(known->roles));
	if (with_stats)
		known->stats = stats_read(&entry->stats);
}

static char *
make_text_fit(char *text, bool is_cut)
{
	if (is_cut)
		strcat(text, CUT_MARK);
	return pg_is_ascii(text) ? text : from_utf8(text);
}

/* Add CUT_MARK and convert the encoding, after the lock was released. */
static void
make_fit(KnownName *known)
{
	if (known->ns != nullptr)
		known->ns = make_text_fit(known->ns, known->ns_is_cut);
	known->name = make_text_fit(known->name, known->name_is_cut);
}

const KnownName *
name_find(Oid database, Key key)
{
	KnownName  *known = nullptr;
	int			number;

	if (!has_name_table())
		return nullptr;

	LWLockAcquire(&name_table->lock, LW_SHARED);
	number = name_look_up(database, key);
	if (number != NO_ENTRY)
	{
		known = static_cast<KnownName *>(palloc(sizeof(KnownName)));
		copy_entry(name_entry(number), known, false);
	}
	LWLockRelease(&name_table->lock);
	if (known != nullptr)
		make_fit(known);
	return known;
}

/* Call visit(entry) for each entry of this database in a chunk, with the table's lock held shared. */
template <typename Visit>
static void
visit_chunk(int chunk, Visit visit)
{
	LWLockAcquire(&name_table->lock, LW_SHARED);
	for (int i = 0; i < NAME_CHUNK_ENTRIES; i++)
	{
		NameEntry  *entry = name_entry(chunk * NAME_CHUNK_ENTRIES + i);

		if (entry->is_live && entry->key.database == MyDatabaseId)
			visit(entry);
	}
	LWLockRelease(&name_table->lock);
}

int
name_chunk_count()
{
	return has_name_table() ? name_table->entry_count / NAME_CHUNK_ENTRIES : 0;
}

KnownName *
name_read_chunk(int chunk, int *count)
{
	auto	   *names = static_cast<KnownName *>(palloc(sizeof(KnownName) * NAME_CHUNK_ENTRIES));

	*count = 0;
	visit_chunk(chunk, [=](NameEntry *entry) {
		copy_entry(entry, &names[(*count)++], true);
	});
	for (int i = 0; i < *count; i++)
		make_fit(&names[i]);
	return names;
}

bool
may_see_name(const Oid *roles)
{
	for (int i = 0; i < NAME_ROLES && OidIsValid(roles[i]); i++)
	{
		if (may_see_role(roles[i]))
			return true;
	}
	return false;
}

void
name_reset_stats()
{
	for (int chunk = 0; chunk < name_chunk_count(); chunk++)
	{
		CHECK_FOR_INTERRUPTS();
		visit_chunk(chunk, [](NameEntry *entry) {
			stats_clear(&entry->stats);
		});
	}
}

NameTableState
name_table_state()
{
	NameTableState state = {};

	if (!has_name_table())
		return state;
	state.available = true;
	LWLockAcquire(&name_table->lock, LW_SHARED);
	state.names = name_table->live_count;
	LWLockRelease(&name_table->lock);
	state.evicted = static_cast<int64>(pg_atomic_read_u64(&name_table->evicted));
	state.refused = static_cast<int64>(pg_atomic_read_u64(&name_table->refused));
	state.clashes = static_cast<int64>(pg_atomic_read_u64(&name_table->clashes));
	return state;
}

}								/* namespace advisory */
