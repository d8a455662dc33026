/*
 * One slot of each of several semaphores: joining several queues, claiming, waking and leaving
 * (shmem/slotstate.cpp, core/semaphore.cpp).  N sessions want a slot of the first semaphore, of the
 * second, or of both; each semaphore has K slots.  One of them may give up its wait.  How one
 * semaphore chooses, marks and locks its slots is in slots.pml; here a slot is a number.
 *
 * size -DK=1 -DN=2
 * size -DK=1 -DN=3
 * size -DK=2 -DN=3
 *
 * Waiters do not stand in each other's way, and no wake-up is lost:
 * mutant differs_by_queue	a session draws a ticket for each queue: deadlock
 * mutant locks_unsorted	the states are locked in the caller's order: deadlock
 * mutant sleeps_unread		who has joined sleeps before it reads the marks: deadlock
 * mutant wakes_early		who frees a slot wakes before it marks: deadlock
 * mutant wakes_one_queue	who frees both slots wakes only the waiters for one: deadlock
 * mutant leaves_silently	who gives up the wait wakes nobody: deadlock
 * mutant leaves_one_queue	it stays in its other queue: deadlock
 * In turn: of two that could be served, the one that came first is:
 * mutant overtakes			a claim takes what is set aside: overtaken
 * All or none:
 * mutant keeps_a_part		who gets one of two keeps it while it waits for the other one: part
 */
mtype = { none, differs_by_queue, locks_unsorted, sleeps_unread, wakes_early, wakes_one_queue,
	leaves_silently, leaves_one_queue, overtakes, keeps_a_part };

#define ME			(1 << me)
#define BOTH		3
#define HAS(set, s)	((set) & (1 << (s)))
#define OF(who, s)	(2 * (who) + (s))

byte taken[2], linked[2], latch;	/* slots that are marked; who is in a queue; who is woken */
byte ticket[2 * N], wants[N], next_ticket[2], gives_up;
bit state_lock[2];
hidden byte i, j, ahead, part, overtaken;
hidden byte fits;

/* How many waiters are ahead of who in a queue; who comes after all of them if it is not in it. */
inline count_ahead(who, s) {
	ahead = 0; i = 0;
	do
	:: i < N -> ahead = ahead + (i != who && HAS(linked[s], i) &&
			(!HAS(linked[s], who) || ticket[OF(i, s)] < ticket[OF(who, s)])); i++
	:: else -> break
	od
}

/* Is a slot free, and set aside for it, in each queue? */
inline find_out(who) {
	fits = 1;
	if :: HAS(wants[who], 0) -> count_ahead(who, 0); fits = taken[0] + ahead < K :: else fi;
	if :: fits && HAS(wants[who], 1) -> count_ahead(who, 1); fits = taken[1] + ahead < K :: else fi
}

/* Every other waiter that is served if it claims now must be served after this claim, too. */
inline check_turn() {
	j = 0;
	do
	:: j < N ->
		if :: j != me && wants[j] && (linked[0] & 1 << j || !HAS(wants[j], 0)) &&
				(linked[1] & 1 << j || !HAS(wants[j], 1)) ->
			find_out(j);
			if
			:: fits ->
				taken[0] = taken[0] + HAS(rest, 0); taken[1] = taken[1] + (HAS(rest, 1) >> 1);
				find_out(j); overtaken = !fits; assert(!overtaken);
				taken[0] = taken[0] - HAS(rest, 0); taken[1] = taken[1] - (HAS(rest, 1) >> 1)
			:: else fi
		:: else fi; j++
	:: else -> break
	od
}

inline check_quiet() {
	d_step { j = 0;
		do :: j < N -> if :: linked[0] & 1 << j || linked[1] & 1 << j ->
				find_out(j); overtaken = fits; assert(!overtaken) :: else fi; j++
		:: else -> break od; j = 0 }
}

inline lock_state(s) { d_step { !state_lock[s] -> state_lock[s] = 1 } }

inline lock_states() {
	if
	:: wants[me] == BOTH && MUTANT == locks_unsorted && !from_first -> lock_state(1); lock_state(0)
	:: else ->
		if :: HAS(wants[me], 0) -> lock_state(0) :: else fi;
		if :: HAS(wants[me], 1) -> lock_state(1) :: else fi
	fi
}

inline unlock_states() {
	d_step { if :: HAS(wants[me], 0) -> state_lock[0] = 0 :: else fi;
		if :: HAS(wants[me], 1) -> state_lock[1] = 0 :: else fi; i = 0 }
}

inline wake_waiters(s) {
	if
	:: linked[s] -> d_step { !state_lock[s] -> j = 0;
			do :: j < N -> if :: HAS(linked[s], j) -> count_ahead(j, s);
					if :: taken[s] + ahead < K -> latch = latch | 1 << j :: else fi
				:: else fi; j++
			:: else -> break od; j = 0 }
	:: else
	fi
}

/* Leaves in mine what this session has claimed: all that it wants, or nothing. */
inline claim_slots() {
	if
	:: wants[me] != BOTH && !linked[wants[me] - 1] ->	/* without the lock */
		d_step { if :: taken[wants[me] - 1] < K ->
				taken[wants[me] - 1]++; mine = wants[me] :: else fi }
	:: else ->
		lock_states();
		do
		:: d_step { find_out(me);
				if :: MUTANT == overtakes -> fits = (!HAS(wants[me], 0) || taken[0] < K) &&
					(!HAS(wants[me], 1) || taken[1] < K) :: else fi;
				rest = (fits -> wants[me] : 0);
				if :: !fits && MUTANT == keeps_a_part && taken[0] < K -> rest = wants[me] & 1
				:: else fi;
				check_turn(); j = 0 };
			/* One after the other: somebody without the lock can be faster. */
			do
			:: d_step { HAS(rest, 0) && taken[0] < K ->
					taken[0]++; mine = mine | 1; rest = rest & 2 }
			:: d_step { rest == 2 && taken[1] < K -> taken[1]++; mine = mine | 2; rest = 0 }
			:: else -> break
			od;
			if
			:: rest -> d_step { taken[0] = taken[0] - HAS(mine, 0);
					taken[1] = taken[1] - (HAS(mine, 1) >> 1); mine = 0; rest = 0 }
			:: else -> break
			fi
		od;
		atomic { if :: mine == wants[me] -> linked[0] = linked[0] & ~ME; linked[1] = linked[1] & ~ME
			:: else fi; fits = 0 };
		unlock_states()
	fi
}

inline join_queue(s) {
	d_step { !state_lock[s] -> linked[s] = linked[s] | ME;
		if :: MUTANT == differs_by_queue -> ticket[OF(me, s)] = next_ticket[s]; next_ticket[s]++
		:: else fi }
}

/* One ticket for all queues, drawn before the first; who has a later one may be in it earlier. */
inline join_queues() {
	d_step { ticket[OF(me, 0)] = next_ticket[0]; ticket[OF(me, 1)] = next_ticket[0];
		if :: MUTANT != differs_by_queue -> next_ticket[0]++ :: else fi };
	if :: wants[me] == BOTH -> join_queue(0); join_queue(1)
	:: else -> join_queue(wants[me] - 1) fi
}

inline leave_queue(s) {
	if :: HAS(wants[me], s) -> d_step { !state_lock[s] -> linked[s] = linked[s] & ~ME } :: else fi
}

proctype session(byte me) {
	byte mine, rest; bit from_first, is_queued, s;

	if :: from_first = 1 :: MUTANT == locks_unsorted && wants[me] == BOTH -> skip fi;
claim:
	claim_slots();
	if :: mine == wants[me] -> goto served :: else fi;
wait:
	part = mine; assert(!part);
	if
	:: !is_queued -> goto over		/* try_acquire_all() */
	:: !is_queued -> join_queues(); is_queued = 1;
		if :: MUTANT == sleeps_unread -> goto wait :: else -> goto claim fi
	:: d_step { is_queued && latch & ME -> latch = latch & ~ME }; goto claim
	:: d_step { is_queued && gives_up -> gives_up-- };
		leave_queue(0);
		if :: MUTANT != leaves_one_queue || wants[me] != BOTH -> leave_queue(1) :: else fi;
		if :: MUTANT != leaves_silently -> wake_waiters(0); wake_waiters(1) :: else fi;
		atomic { latch = latch & ~ME; wants[me] = 0; ticket[OF(me, 0)] = 0; ticket[OF(me, 1)] = 0;
			from_first = 0; is_queued = 0 }; goto over
	fi;
served:
	/* As at the end of a wait: those behind in any of the queues may be served now. */
	if :: is_queued -> wake_waiters(0); wake_waiters(1) :: else fi;
	atomic { latch = latch & ~ME; is_queued = 0; from_first = 0; ticket[OF(me, 0)] = 0;
		ticket[OF(me, 1)] = 0 };
	if :: skip :: skip; timeout; check_quiet() fi;
	do
	:: mine ->		/* in any order */
		if :: HAS(mine, 0) -> s = 0 :: HAS(mine, 1) -> s = 1 fi;
		mine = mine & ~(1 << s);
		if :: MUTANT == wakes_early -> wake_waiters(s) :: else fi;
		d_step { assert(taken[s] <= K); taken[s]-- };
		if :: MUTANT != wakes_early && !(MUTANT == wakes_one_queue && wants[me] == BOTH && !mine) ->
			wake_waiters(s) :: else fi
	:: else -> break
	od;
	atomic { wants[me] = 0; s = 0 };
over:
	skip
}

init {
	byte n;

	if :: gives_up = 1 :: skip fi;
	atomic {
		do
		:: n < N ->
			if		/* in which order the sessions stand here makes no difference */
			:: !n || wants[n - 1] == 1 -> wants[n] = 1
			:: !n || wants[n - 1] <= 2 -> wants[n] = 2
			:: wants[n] = BOTH
			fi;
			run session(n); n++
		:: else -> break
		od
	}
}
