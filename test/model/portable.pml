/*
 * The semaphore and await of the portable edition (portable/advisory.sql: _acquire, _take_slots,
 * _await).  N sessions want one or two of K slots each: they try, wait, or await one, which is a
 * wait that ends after a while, and begins again.  All is in the lock manager: the slots, the queue
 * (slot 0, for which it has a queue of its own), and the lock of slot 16383, which whoever takes
 * several at once holds.  One session may be cancelled, or end, while it waits or takes.  Polling
 * is a step that waits until it finds enough.
 *
 * size -DN=3 -DK=1
 * size -DN=3 -DK=2
 *
 * No waiter is overtaken by a session that comes later:
 * mutant ignores_queue		a session does not look whether somebody waits: overtaken
 * mutant leaves_early		the first waiter leaves the queue before it has slots: overtaken
 * No slot is idle while the first waiter could use it, and nobody waits with a part of its set:
 * mutant looks_once		the first waiter does not look again: deadlock
 * mutant keeps_part		who finds too few slots keeps them: deadlock
 * Nothing stays held after a cancel:
 * mutant cancels_nothing	the handler releases nothing: mine
 */
#define ALL			((1 << K) - 1)
#define LOW(set)	((set) & -(set))
#define ENOUGH(set) (wanted == 1 -> (set) : (set) & ((set) - 1))
#define ME			(1 << me)
mtype = { none, ignores_queue, leaves_early, looks_once, keeps_part, cancels_nothing };

byte locked, mover;				/* slots; who has slot 16383: session + 1 */
byte queue[N], waiters;			/* the first one holds slot 0 */
byte waiting;					/* sessions in the queue that have no slots yet */
byte ahead[N];					/* those of them that waited when a session came */
byte cancels = 1;
hidden byte i, j, overtaken;

inline leave_queue() {
	d_step { i = 0; j = 0;
		do :: i < waiters -> if :: queue[i] != me -> queue[j] = queue[i]; j++ :: else fi; i++
		:: else -> break od;
		waiters = j; do :: j < N -> queue[j] = 0; j++ :: else -> break od }
}

proctype session(byte me) {
	byte wanted, rest, mine; bit awaits, tries, is_awaited, tries_again, is_first;

	if :: wanted = 1; if :: awaits = 1 :: tries = 1 :: skip fi
	:: K > 1 -> wanted = 2; if :: tries = 1 :: skip fi
	fi;
again:
	ahead[me] = waiting;
	if :: wanted > 1 -> d_step { !mover -> mover = me + 1 } :: else fi;
take_slots:
	atomic { rest = ALL & ~locked;
		is_awaited = waiters && queue[0] != me && MUTANT != ignores_queue;
		if :: is_awaited || !ENOUGH(rest | mine) -> rest = 0 :: else fi;
		tries_again = rest || mover && mover != me + 1 };
	do
	:: d_step { rest && !ENOUGH(mine) ->
		if :: !(locked & LOW(rest)) -> locked = locked | LOW(rest); mine = mine | LOW(rest)
		:: else fi;
		rest = rest & ~LOW(rest) }
	:: cancels && rest -> cancels--; goto canceled
	:: else -> break
	od;
	if
	:: ENOUGH(mine) -> atomic {
			waiting = waiting & ~ME; overtaken = ahead[me] & waiting; assert(!overtaken) };
		goto granted
	:: else -> if :: mine && MUTANT != keeps_part -> locked = locked & ~mine; mine = 0 :: else fi
	fi;
	rest = 0;
	if :: tries_again && !is_awaited -> goto take_slots :: else fi;
	if :: mover == me + 1 -> mover = 0 :: else fi;
	if
	:: tries -> goto canceled									/* it gets nothing */
	:: else
	fi;
	if
	:: !is_first -> is_first = 1;
		d_step { ahead[me] = waiting; queue[waiters] = me; waiters++; waiting = waiting | ME };
		if
		:: queue[0] == me && MUTANT == leaves_early -> leave_queue()
		:: queue[0] == me && MUTANT != leaves_early
		:: awaits -> goto too_late
		:: cancels -> cancels--; goto canceled
		fi;
		goto take_slots
	:: is_first ->
		if
		:: ENOUGH(ALL & ~locked | mine) && MUTANT != looks_once -> goto take_slots
		:: awaits -> goto too_late
		:: cancels -> cancels--; goto canceled
		fi
	fi;
too_late:										/* COMMIT: it comes once more, and later */
	atomic { waiting = waiting & ~ME; i = 0;
		do :: i < N -> ahead[i] = ahead[i] & ~ME; i++ :: else -> break od };
	leave_queue();
	is_first = 0;
	goto again;
granted:
	if :: mover == me + 1 -> mover = 0 :: else fi;
	if :: is_first -> leave_queue() :: else fi;
	locked = locked & ~mine;
	mine = 0;
	goto over;
canceled:
	if :: mover == me + 1 -> mover = 0 :: else fi;
	waiting = waiting & ~ME;
	if :: is_first -> leave_queue() :: else fi;		/* the end of the inner block */
	if :: MUTANT != cancels_nothing -> locked = locked & ~mine; mine = 0 :: else fi;
over:
	assert(!mine)
}

init {
	byte n;

	atomic { do :: n < N -> run session(n); n++ :: else -> break od }
}
