/*
 * server/latch.h
 *		Sleeping until another process wakes this one.
 *
 * Nothing else uses the server's latches, which PostgreSQL 20 may replace with interrupts.
 *
 * A sleeper looks whether what it waits for has come, and sleeps if not; the other process changes
 * that first, and then wakes the sleeper.  A call of wake() after the last sleep ends the next one
 * at once, so none gets lost.  But the server itself wakes processes and swallows wake-ups, too: a
 * sleep may end early, and what a session waits for must be looked at after each one.
 */
#pragma once

namespace advisory
{

/*
 * Sleep until this process is woken, or for so many milliseconds.  The wait event is shown in
 * pg_stat_activity meanwhile.  Handles no interrupts.  Ends the process if the server has died.
 */
inline void
sleep_until_woken(int64 milliseconds, uint32 wait_event)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 static_cast<long>(milliseconds), wait_event);
	ResetLatch(MyLatch);
}

/* Wake the process with this number in the server's array of processes. */
inline void
wake(int proc_number) noexcept
{
	SetLatch(&ProcGlobal->allProcs[proc_number].procLatch);
}

/*
 * If this session is idle outside a transaction, let it begin and commit an empty transaction as
 * soon as possible.  For handlers of signals.
 */
inline void
stir_if_idle() noexcept
{
	HandleCatchupInterrupt();
}

}								/* namespace advisory */
