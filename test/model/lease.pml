/*
 * A lease: queue, row, era (core/lease.cpp, core/leaserows.cpp, core/token.cpp, and
 * doc/beyond-a-session.md).  Two clients take the lease, by lease() or try_lease(), renew it, rely
 * on it (check_lease) and end it, early, late or when somebody else has it.  One transaction may
 * fail, and the server may be replaced once: all transactions abort, the era is a new one, and the
 * clock jumps by at most a MINUTE.  A client goes by the time that passes: one TTL from its call.
 *
 * size -DCALLS=2 -DTTL=1 -DEND=2
 *
 * There is at most one owner in the committed history:
 * mutant grants_unseen		a grant does not look whether the row has changed: robbed
 * mutant renews_unseen		a renewal does not look again under the lock: stale
 * mutant ends_unseen		nor does end_lease(): robbed
 * mutant restarts_nothing	a lease of an older era keeps its end: robbed
 * mutant relies_unlocked	check_lease() keeps no lock: stale
 * Tokens grow:
 * mutant numbers_early		the token is made before the lock is granted: falls
 */
#define MINUTE 1
mtype = { none, grants_unseen, renews_unseen, ends_unseen, restarts_nothing, relies_unlocked,
	numbers_early };

typedef Row { byte token, era, ends, renewals };	/* token 0: it is not there */
Row row;						/* as committed */
byte time, offset = 1;			/* the server's clock shows their sum */
byte era = 1, began = 1;		/* of the server; began 0: nobody has asked for it yet */
byte position;					/* in the write-ahead log: of the last token */
byte last;						/* committed token */
byte owner_until;				/* what the owner goes by; 0: it has ended the lease */
byte queue;						/* who has the lock of the queue: client + 1 */
byte exclusive, renewed, relying;	/* who has the lease's lock, in its modes: sets of clients */
byte lost;						/* clients whose transaction is aborted from outside */
hidden byte robbed, stale, falls;

#define ME		(1 << me)
#define NOW		(time + offset)
#define OTHERS	(exclusive | renewed | relying) & ~ME

/* When the lease is free, as read_row() and restart() see it. */
#define IS_OLD(r) (r.era != era && r.ends + MINUTE >= began && MUTANT != restarts_nothing)
#define ENDS(r)	(IS_OLD(r) -> began + TTL : r.ends)

/* The era is recorded by whoever asks for it first. */
inline read_row() { d_step { before.token = row.token; before.era = row.era; before.ends = row.ends;
	before.renewals = row.renewals; if :: !began -> began = NOW :: else fi } }
#define IS_FREE	(!before.token || NOW >= ENDS(before))
#define CHANGED	(row.token != before.token || row.renewals != before.renewals)

proctype client(byte me) {
	Row before; byte token, new, until, ends, calls; bit waits, renews, relies;

	do
	:: calls < CALLS ->
		calls++;
		{	skip;
end_queue:
			if
			:: d_step { !queue -> queue = me + 1; waits = 1 }	/* wait_for_lease() */
			:: queue == 0 -> waits = 0							/* try_lease_now() */
			:: token -> d_step { renews = 1; relies = 0 }; goto find
			:: token -> d_step { renews = 0; relies = 1 }; goto find
			:: token -> d_step { renews = 0; relies = 0 }; goto find	/* lease_end() */
			fi;
look:
			if :: waits -> !(exclusive & ~ME) :: else fi;
			read_row();
end_sleep:
			if
			:: IS_FREE
			:: !waits && !IS_FREE -> goto over
			:: waits && CHANGED -> goto look
			fi;
			if :: MUTANT == numbers_early -> position++; new = position :: else fi;
			if
			:: d_step { !(OTHERS) -> exclusive = exclusive | ME }
			:: !waits && (OTHERS) -> goto over
			fi;
			/* take() */
			if :: MUTANT != numbers_early -> d_step { position++; new = position } :: else fi;
			if
			:: CHANGED || before.token && before.era != era ->
				read_row();
				if
				:: !IS_FREE && MUTANT != grants_unseen -> exclusive = exclusive & ~ME;
					if :: waits -> goto look :: else -> goto over fi
				:: else
				fi
			:: else
			fi;
			d_step { until = time + TTL; ends = NOW + TTL };
			d_step { /* COMMIT */
				robbed = owner_until > time; assert(!robbed);
				falls = new <= last; assert(!falls);
				last = new; token = new; owner_until = until;
				row.token = new; row.era = era; row.ends = ends; row.renewals = 0 };
			goto over;
find:		/* find_and_lock_lease() */
			if :: row.token != token -> token = 0; goto over :: else fi;
			if
			:: d_step { renews && !((exclusive | renewed) & ~ME) -> renewed = renewed | ME }
			:: d_step { relies && !(exclusive & ~ME) ->
				relying = relying | (MUTANT == relies_unlocked -> 0 : ME) }
			:: d_step { !renews && !relies && !(OTHERS) -> exclusive = exclusive | ME }
			fi;
			if
			:: row.token != token && !(MUTANT == renews_unseen && renews) &&
				!(MUTANT == ends_unseen && !renews && !relies) -> token = 0; goto over
			:: else
			fi;
			d_step { until = time + TTL; ends = NOW + TTL };
			d_step { /* COMMIT */
				stale = row.token != token && (renews || relies); assert(!stale);
				if :: renews -> row.era = era; row.ends = ends; row.renewals++; owner_until = until
				:: !renews && !relies -> robbed = row.token != token; assert(!robbed);
					row.token = 0; row.era = 0; row.ends = 0; row.renewals = 0; owner_until = 0
				:: else fi };
over:
			skip
		} unless { lost & ME };
		d_step { exclusive = exclusive & ~ME; renewed = renewed & ~ME; relying = relying & ~ME;
			if :: queue == me + 1 -> queue = 0 :: else fi;
			lost = lost & ~ME; new = 0; until = 0; ends = 0; waits = 0;
			before.token = 0; before.era = 0; before.ends = 0; before.renewals = 0 }
	:: else -> break
	od
}

active proctype clock() {
	do :: time < END -> time++ :: break od
}

active proctype trouble() {
	byte jump;

	if :: lost = 1 :: lost = 2 :: skip fi;	/* an error, a cancel, the end of a session */
	if
	:: jump = 0 :: jump = MINUTE :: jump = 2 * MINUTE :: goto over
	fi;
	d_step { era = 2; began = 0; offset = offset + jump - MINUTE;
		lost = 3; queue = 0; exclusive = 0; renewed = 0; relying = 0 };
over:
	skip
}

init { atomic { run client(0); run client(1) } }
