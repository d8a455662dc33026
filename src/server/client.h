/*
 * server/client.h
 *		The client of this session.
 */
#pragma once

extern "C" {
/* As in libpq/libpq.h, which needs the header files of GSSAPI if the server was built with it. */
extern bool pq_check_connection(void);
}

namespace advisory
{

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

}								/* namespace advisory */
