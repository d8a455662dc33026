/*
 * base/array.h
 *		An array that grows, of what can be copied byte by byte.
 */
#ifndef ADVISORY_EXT_BASE_ARRAY_H
#define ADVISORY_EXT_BASE_ARRAY_H

namespace advisory
{

/* Its memory goes with the memory context that was the current one at the first add(). */
template <typename T>
class Array
{
public:
	/* Where it was added.  May ereport (out of memory). */
	int			add(const T &item)
	{
		if (count == capacity)
		{
			capacity = Max(2 * capacity, 16);

			Size		bytes = sizeof(T) * capacity;

			items = static_cast<T *>(items == nullptr ? palloc(bytes) : repalloc_huge(items, bytes));
		}
		items[count] = item;
		return count++;
	}

	T		   &operator[](int i) const noexcept
	{
		return items[i];
	}

	/* For qsort.  An empty list has nothing to sort. */
	void		sort(int (*compare) (const void *, const void *)) const
	{
		if (count > 1)
			qsort(items, count, sizeof(T), compare);
	}

	T		   *items = nullptr;
	int			count = 0;

private:
	int			capacity = 0;
};

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_ARRAY_H */
