/*
 * server/latch.h
 *		Sleeping until another process wakes this one, and looking for the client after it.
 *
 * Nothing else uses the server's latches, which PostgreSQL 20 may replace with interrupts.
 *
 * A sleeper looks whether what it waits for has come, and sleeps if not; the other process changes
 * that first, and then wakes the sleeper.  A call of wake() after the last sleep ends the next one
 * at once, so none gets lost.  But the server itself wakes processes and swallows wake-ups, too: a
 * sleep may end early, and what a session waits for must be looked at after each one.
 */
#pragma once

extern "C" {
/* As in libpq/libpq.h, which needs the header files of GSSAPI if the server was built with it. */
extern bool pq_check_connection(void);
}

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

/*
 * End the session (FATAL, 08006) if its client has closed the connection, or has died; handle other
 * interrupts, too.  A session notices that by itself only when it reads or writes, unless
 * client_connection_check_interval is set.  Call this after a wait, so that nothing is granted to a
 * client that is gone.  It may reset the latch.
 */
inline void
check_client()
{
	if (MyProcPort != nullptr && WaitEventSetCanReportClosed() && !pq_check_connection())
	{
		ClientConnectionLost = true;
		InterruptPending = true;
	}
	CHECK_FOR_INTERRUPTS();
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
