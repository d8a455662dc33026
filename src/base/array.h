/*
 * base/array.h
 *		An array that grows, of what can be copied byte by byte.
 */
#pragma once

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
		if (items == nullptr)
			items = static_cast<T *>(palloc(sizeof(T) * (capacity = 16)));
		if (count == capacity)
			items = static_cast<T *>(repalloc_huge(items, sizeof(T) * (capacity *= 2)));
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
