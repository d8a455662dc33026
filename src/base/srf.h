/*
 * base/srf.h
 *		Filling a set-returning function's result, column by column.
 */
#ifndef ADVISORY_EXT_BASE_SRF_H
#define ADVISORY_EXT_BASE_SRF_H

namespace advisory
{

/* A text value, or null for null; palloc'd.  May ereport. */
inline NullableDatum
make_text(const char *text)
{
	NullableDatum value = {};

	if (text != nullptr)
		value.value = CStringGetTextDatum(text);
	else
		value.isnull = true;
	return value;
}

/* One row, whose columns are added in order. */
class Row
{
public:
	static constexpr int MAX_COLUMNS = 32;

	Row() noexcept : values(own_values), nulls(own_nulls)
	{
	}
	/* Columns are stored in the caller's arrays. */
	Row(Datum *values, bool *nulls) noexcept : values(values), nulls(nulls)
	{
	}

	void		add(Datum value) noexcept
	{
		Assert(count < MAX_COLUMNS);
		values[count] = value;
		nulls[count++] = false;
	}
	void		add_null() noexcept
	{
		Assert(count < MAX_COLUMNS);
		values[count] = Datum(0);
		nulls[count++] = true;
	}
	void		add(NullableDatum value) noexcept
	{
		Assert(count < MAX_COLUMNS);
		values[count] = value.value;
		nulls[count++] = value.isnull;
	}
	/* These may ereport (out of memory). */
	void		add_text(const char *text)
	{
		add(make_text(text));
	}
	void		add_bool(bool value) noexcept
	{
		add(BoolGetDatum(value));
	}
	void		add_int32(int32 value) noexcept
	{
		add(Int32GetDatum(value));
	}
	void		add_int64(int64 value)
	{
		add(Int64GetDatum(value));
	}
	void		add_float8(double value)
	{
		add(Float8GetDatum(value));
	}
	/* Null for a time of 0. */
	void		add_time(TimestampTz time)
	{
		if (time != 0)
			add(TimestampTzGetDatum(time));
		else
			add_null();
	}
	/* The interval from time to now; null for a time of 0. */
	void		add_age(TimestampTz time, TimestampTz now)
	{
		if (time == 0)
			return add_null();

		auto	   *age = static_cast<Interval *>(palloc0(sizeof(Interval)));

		age->time = Max(now - time, 0);
		add(IntervalPGetDatum(age));
	}
	int			column_count() const noexcept
	{
		return count;
	}
	/* Append the row to the result that InitMaterializedSRF made. */
	void		put(ReturnSetInfo *result)
	{
		Assert(count == result->setDesc->natts);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}

private:
	Datum		own_values[MAX_COLUMNS];
	bool		own_nulls[MAX_COLUMNS];
	Datum	   *values;
	bool	   *nulls;
	int			count = 0;
};

/*
 * Run show(i) for each i from 0 to count - 1.  The current memory context is emptied
 * after each, so that memory does not grow with the number of rows.  May ereport.
 */
template <typename Show>
inline void
show_each(int count, Show show)
{
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext row",
													  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(row_context);

	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		show(i);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(row_context);
}

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_SRF_H */
