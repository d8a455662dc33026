/*
 * The two barriers of shmem/slotstate.cpp, on a processor that delays stores: a session joins the
 * queue and reads the marks (join_queue, claim_slots), another one clears a mark and looks for a
 * first waiter (mark_slot, wake_waiters).  Each session has a store buffer, which reaches the
 * memory at any time, and at a barrier at the latest.
 *
 * size -DFREED=1
 * size -DFREED=2
 *
 * No wake-up is lost:
 * mutant joins_without		no barrier after the waiter has joined: deadlock
 * mutant frees_without		no barrier after the mark is cleared: deadlock
 */
mtype = { none, joins_without, frees_without };
byte taken = FREED;				/* in memory: slots that are marked as taken */
bit first, latch;				/* a waiter is in the queue; it is woken */
bit joined;						/* in the waiter's store buffer */
bit cleared[2];					/* in those of the sessions that free slots */

active proctype waiter() {
	joined = 1;					/* join_queue() */
	if :: MUTANT != joins_without -> !joined :: else fi;
	do
	:: taken < FREED -> break	/* claim_slots() */
	:: else -> latch; latch = 0
	od
}

active [FREED] proctype holder() {
	bit is_seen;

	cleared[_pid - 1] = 1;		/* mark_slot() */
	if :: MUTANT != frees_without -> !cleared[_pid - 1] :: else fi;
	is_seen = first;			/* wake_waiters() */
	if :: is_seen -> latch = 1 :: else fi
}

active proctype memory() {
end:
	do
	:: d_step { joined -> first = 1; joined = 0 }
	:: d_step { cleared[0] -> taken--; cleared[0] = 0 }
	:: d_step { cleared[1] -> taken--; cleared[1] = 0 }
	od
}
