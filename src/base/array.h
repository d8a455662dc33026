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

	T		   *items = nullptr;
	int			count = 0;

private:
	int			capacity = 0;
};

}								/* namespace advisory */
