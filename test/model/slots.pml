/*
 * Slots of a semaphore: marking, claiming, locking and queueing (shmem/slotstate.cpp,
 * core/semaphore.cpp).  N sessions want one or two slots, of K, or with LESS=1 perhaps of K - 1.
 * One may give up its wait, as it does when it is cancelled, times out or dies.  With UNSEEN=1 one
 * more session has no shared memory: it locks a slot, and marks nothing.  The steps come in the
 * order of the code; what a processor makes of that order is in wakeup.pml.
 *
 * size -DK=2 -DN=2 -DLESS=1 -DUNSEEN=1
 * size -DK=2 -DN=3 -DLESS=0 -DUNSEEN=0
 * size -DK=3 -DN=3 -DLESS=0 -DUNSEEN=0
 * larger -DK=2 -DN=3 -DLESS=0 -DUNSEEN=1
 *
 * No wake-up is lost, and no slot is idle while the head could use it:
 * mutant sleeps_unread		who has joined sleeps before it reads the marks: deadlock
 * mutant wakes_early		who frees a slot wakes before it marks: deadlock
 * mutant leaves_silently	who gives up the wait wakes nobody: deadlock
 * mutant looks_silently	who finds a slot that nobody holds wakes nobody: deadlock
 * mutant is_interrupted	an interrupt is handled between claim and lock: idle
 * No waiter is overtaken, as far as the marks say when a session claims:
 * mutant overtakes			a claim takes what is set aside: overtaken
 * mutant gives_back_first	before it joins again: overtaken
 * Nobody waits with a part of its set:
 * mutant takes_singly		two slots are taken one after the other: deadlock
 * A claim fails only because of a session that marks nothing:
 * mutant marks_early		a slot is marked as free before it is unlocked: refused
 */
mtype = { none, sleeps_unread, wakes_early, leaves_silently, looks_silently, is_interrupted,
	overtakes, gives_back_first, takes_singly, marks_early };

#include "slotstate.h"

proctype session(byte me) {
	byte rest, mine, kept; bit is_queued, has_lock, has_looked, looks_at_all;

	slots[me] = K; if :: LESS -> slots[me] = K - 1 :: skip fi;
	if :: wanted[me] = 1; if :: MUTANT == takes_singly -> kept = ALL :: else fi
	:: MUTANT != takes_singly && slots[me] > 1 -> wanted[me] = 2 fi;

claim:
	claim_slots();
	if :: !rest -> goto not_free :: rest fi;
	do		/* take_slots() */
	:: d_step { rest && !(locked & LOW(rest)) ->
		mine = mine | LOW(rest); locked = locked | LOW(rest); rest = rest & ~LOW(rest) }
	:: d_step { MUTANT == is_interrupted && gives_up && !mine && rest -> gives_up--; rest = 0 }
	:: else -> break
	od;
	if
	:: rest ->
		refused = !UNSEEN; assert(!refused);
		locked = locked & ~mine;
		if :: is_queued && MUTANT != gives_back_first -> join_queue(1) :: else fi;
		d_step { unverified = unverified | LOW(rest); taken = taken & ~(mine | rest & ~LOW(rest));
			claimed[me] = 0; mine = 0 };
wake_others:
		rest = 0;
		wake_waiters();
		if :: is_queued && MUTANT == gives_back_first -> join_queue(1) :: else fi;
		goto claim
	:: else
	fi;
leave:
	if
	:: is_queued ->
		unlink_me();
		if :: mine || MUTANT != leaves_silently -> wake_waiters() :: else fi;
		d_step { is_queued = 0; queued_mode-- }
	:: else -> claimed[me] = 0
	fi;
	if :: kept == ALL -> kept = mine; mine = 0; goto claim :: else -> mine = mine | kept fi;

	if :: skip :: mine -> skip; timeout; check_quiet() fi;
	do
	:: mine ->		/* one by one, or all: the locks first, as at the end of a session */
		if :: rest = mine :: mine != LOW(mine) -> rest = LOW(mine) fi;
		d_step { mine = mine & ~rest; kept = rest;
			if :: MUTANT != marks_early -> locked = locked & ~rest :: else fi };
		do
		:: rest -> d_step { slot = LOW(rest); rest = rest & ~slot; unverified = unverified & ~slot;
				if :: MUTANT != wakes_early -> taken = taken & ~slot :: else fi };
			wake_waiters()
		:: else -> break
		od;
		if :: MUTANT == wakes_early -> taken = taken & ~kept
		:: MUTANT == marks_early -> locked = locked & ~kept :: else fi
	:: else -> goto over
	od;

not_free:
	if :: !has_looked ->		/* find_unmarked() */
		d_step { avail = USABLE(me); FOR_WAITERS(me, IN_QUEUE, avail = avail & ~USABLE(q[i]));
			rest = avail & ~locked & (looks_at_all -> taken : unverified);
			has_looked = 1; looks_at_all = 0 };
		if :: rest -> d_step { taken = taken & ~rest; unverified = unverified & ~rest };
			if :: MUTANT == looks_silently -> goto claim :: else -> goto wake_others fi
		:: else fi
	:: else fi;
	d_step { has_looked = 0; rest = 0 };
	if
	:: !is_queued -> goto over		/* try_acquire() */
	:: !is_queued -> join_queue(0);
		d_step { !head_mode -> queued_mode++; is_queued = 1 };
		if :: MUTANT == sleeps_unread -> has_looked = 1; goto not_free :: else -> goto claim fi
	:: d_step { is_queued && latch & ME -> latch = latch & ~ME }; goto claim
	:: d_step { is_queued && gives_up -> gives_up-- }; goto leave
	:: d_step { is_queued && looks -> looks--; looks_at_all = 1 }; goto claim
	:: UNSEEN && is_queued && timeout && taken & ~locked ->		/* LOOK_AFTER_MS */
		check_quiet(); looks_at_all = 1; goto claim
	fi;
over:
	skip
}

proctype unseen() {
	byte mine; bit waits;

	if :: waits = 1 :: skip fi;
	d_step { !queued_mode -> head_mode = 1 };
	!waits || ALL & ~locked;
	d_step { mine = LOW(ALL & ~locked); locked = locked | mine; head_mode = 0 };
	if :: skip :: skip; timeout; check_quiet() fi;
	locked = locked & ~mine
}

init {
	if :: gives_up = 1 :: skip fi;
	if :: UNSEEN -> run unseen(); if :: looks = 1 :: skip fi :: else fi;
	atomic { j = 0; do :: j < N -> run session(j); j++ :: else -> break od }
}
