/*
 * Semaphore states, as in shmem/slotstate.cpp; included by slots.pml.
 *
 * Sets of slots and of sessions are bits.  q has the waiters by position; linked are those of them
 * that are in the queue.
 */
#define ALL			((1 << K) - 1)
#define LOW(set)	((set) & -(set))
#define ENOUGH(set, n) ((n) == 1 -> (set) : (set) & ((set) - 1))
#define USABLE(who)	((1 << slots[who]) - 1)
#define ME			(1 << me)
#define IN_QUEUE	(linked & (1 << q[i]))
#define FOR_WAITERS(before, condition, statement) \
	i = 0; do :: i < waiters && q[i] != before -> if :: condition -> statement :: else fi; i++ \
	:: else -> break od

byte taken, unverified, locked; /* the marks; what the lock manager has granted */
byte slots[N], wanted[N], claimed[N];	/* claimed: and not locked yet */
byte q[N], waiters, linked, latch, gives_up, looks;
byte queued_mode, head_mode;	/* the queue's lock; TRYING_MODE is as HEAD_MODE here */
bit state_lock;
hidden byte i, j, missing, slot, avail, idle, overtaken, refused;

/* Removes what is set aside for a waiter; missing: how many slots it lacks. */
inline set_aside(who) {
	missing = wanted[who]; slot = 1 << (K - 1);
	do :: slot && missing ->
		if :: avail & USABLE(who) & slot -> avail = avail & ~slot; missing-- :: else fi;
		slot = slot >> 1
	:: else -> break od
}

inline check_quiet() {
	d_step { avail = ALL & ~taken; idle = ALL & ~locked & taken & ~unverified; assert(!idle);
		FOR_WAITERS(N, IN_QUEUE, set_aside(q[i]); assert(missing)) }
}

inline wake_waiters() {
	if
	:: linked -> d_step { !state_lock -> avail = ALL & ~taken; FOR_WAITERS(N, IN_QUEUE,
			set_aside(q[i]); if :: !missing -> latch = latch | (1 << q[i]) :: else fi) }
	:: else
	fi
}

/* Leaves in rest what this session has claimed: nothing, or what it wants. */
inline claim_slots() {
	if
	:: d_step { !linked && wanted[me] == 1 ->
			FOR_WAITERS(me, claimed[q[i]] == 0, overtaken = 1; assert(!overtaken)) }
	:: linked || wanted[me] > 1 ->
		rest = ALL & ~taken & USABLE(me);
		if :: linked & ME || ENOUGH(rest, wanted[me]) ->
			d_step { !state_lock -> state_lock = 1; has_lock = 1 }
		:: else -> rest = 0; goto not_free fi
	fi;
	do
	:: d_step { avail = ALL & ~taken;
			FOR_WAITERS(me, has_lock && IN_QUEUE && MUTANT != overtakes, set_aside(q[i]));
			rest = avail & USABLE(me);
			if :: ENOUGH(rest, wanted[me]) ->
				j = LOW(rest); if :: wanted[me] > 1 -> j = j | LOW(rest & ~j) :: else fi; rest = j
			:: else -> rest = 0; j = 0 fi;
			/* Those ahead, but for those that are about to lock, must not lose what they need. */
			avail = ALL & ~taken & ~j;
			FOR_WAITERS(me, claimed[q[i]] == 0 && has_lock, set_aside(q[i]);
				overtaken = missing && j & USABLE(q[i]); assert(!overtaken)) };
		do
		:: d_step { rest && !(taken & LOW(rest)) ->
			taken = taken | LOW(rest); mine = mine | LOW(rest); rest = rest & ~LOW(rest) }
		:: else -> break
		od;
		if
		:: rest -> d_step { taken = taken & ~mine; mine = 0; rest = 0 }
		:: else -> break
		fi
	od;
	atomic { rest = mine; mine = 0;
		if :: rest -> linked = linked & ~ME; claimed[me] = rest :: else fi;
		if :: has_lock -> state_lock = 0; has_lock = 0 :: else fi }
}

/* Joins at the end, or in its previous position. */
inline join_queue(again) {
	d_step { !state_lock -> linked = linked | ME;
		if :: !again -> q[waiters] = me; waiters++ :: else fi }
}

inline unlink_me() {
	d_step { !state_lock -> i = 0; j = 0;
		do :: i < waiters -> if :: q[i] != me -> q[j] = q[i]; j++ :: else fi; i++
		:: else -> break od;
		waiters = j; do :: j < N -> q[j] = 0; j++ :: else -> break od;
		linked = linked & ~ME; latch = latch & ~ME; claimed[me] = 0 }
}
