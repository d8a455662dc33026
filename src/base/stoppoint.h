/*
 * base/stoppoint.h
 *		Named points at which a test stops a session, so that a race is run step by step.
 *
 * STOP_POINT("name") does nothing, and leaves nothing in the library, but in the one that is built
 * by make FAULTS=1.  There SELECT stop_at('name') makes the session stop at this point, once, until
 * the test lets it go on.  It stops as a process does, by SIGSTOP: so a point may stand anywhere,
 * also where nothing may ereport, allocate or take a lock.  What others need then, such as an
 * LWLock that is held at the point, they do not get.
 *
 * The test (test/races, by StopPoints.pm) sees that the session has stopped, does what is to come
 * in between, and continues it.  Signals and timeouts that come while it is stopped are handled
 * when it goes on, before anything else.
 *
 * A name says what has just happened, and stands at one place only.
 */
#pragma once

#ifdef ADVISORY_EXT_FAULTS
namespace advisory
{
void		stop_point(const char *name) noexcept;	/* test/faults/faults.cpp */
}
#define STOP_POINT(name) advisory::stop_point(name)
#else
#define STOP_POINT(name) static_cast<void>(0)
#endif
