/*
 * views/keylabels.h
 *		Reading the labels that users give to keys: the table advisory.key_labels.
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

namespace advisory
{

struct KeyLabel
{
	LOCKTAG		tag;			/* a lock of this database */
	const char *label;
	const char *note;			/* or null */
};

/*
 * The labels in the order of their keys, palloc'd.  There are none if this user may not read them, if
 * their table is locked, if it does not have the columns that it was created with, or if the server's
 * lock table is full.
 */
const KeyLabel *read_key_labels(int *count);

}								/* namespace advisory */
