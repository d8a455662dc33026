/*
 * run(): the hand-over from the session-level to the transaction-level hold (core/job.cpp: run_job,
 * claim_and_run, run_statements, keep_for_transaction; core/heldends.cpp: end_all_holds).  N
 * sessions run a job each, under one lock.  The job may be once per window, its command may commit,
 * the CALL may stand in a transaction block, and the session may have held the lock before.  An
 * error, or the end of the session, may come at each step, also in the commit.
 *
 * After an error the session-level hold becomes a transaction-level one, too: rows are still there,
 * though nobody will see them.
 *
 * size -DN=2
 * size -DN=3
 *
 * Nobody gets the lock while the job runs, or while its rows may still be committed:
 * mutant unlocks_first		the session-level hold is given up first: overlap
 * mutant keeps_nothing		the lock is free when the command has ended: overlap
 * mutant only_transaction	the hold is transaction-level from the start: overlap
 * mutant dies_unlocked		the end of a session releases locks first: overlap
 * Nothing stays held after an error, and nothing that the session held before is lost:
 * mutant catches_nothing	an error does not give up the hold: session
 * mutant gives_up_all		an error releases all session-level holds: session
 */
mtype = { none, unlocks_first, keeps_nothing, only_transaction, dies_unlocked, catches_nothing,
	gives_up_all };
byte session[3], xact[3];		/* the lock manager: holds of the one lock */
bit runs[3], rows[3];			/* the job; rows that are neither committed nor gone */
byte failures = 2;				/* that may come */
hidden byte overlap;

#define BLOCKS(i)	(i != me && session[i] + xact[i])
#define AT_WORK(i)	(i != me && (runs[i] || rows[i]))

/* The lock manager grants the lock. */
inline take_lock(holds) {
	d_step {
		!(BLOCKS(0) || BLOCKS(1) || BLOCKS(2)) ->
		overlap = AT_WORK(0) || AT_WORK(1) || AT_WORK(2);
		assert(!overlap);
		holds++
	}
}

inline may_fail() {
	if
	:: skip
	:: failures -> failures--; goto error
	:: failures -> failures--; goto session_end
	fi
}

/* The rows become visible before the locks are released. */
inline commit() { may_fail(); rows[me] = 0; xact[me] = 0 }

proctype job(byte me) {
	bit before, may_commit, is_caught;

	if :: before = 1; take_lock(session[me]) :: skip fi;
	if :: may_commit = 1 :: skip fi;
	may_fail();

	/* run_job() */
	if :: MUTANT != only_transaction -> take_lock(session[me]) :: else -> take_lock(xact[me]) fi;
	d_step { is_caught = 1; runs[me] = 1 };
	may_fail();
	if
	:: may_commit -> rows[me] = 1; commit()		/* begin_window() */
	:: skip
	fi;
	/* run_statements() */
	do
	:: !rows[me] -> rows[me] = 1; may_fail()
	:: may_commit -> commit()
	:: break
	od;
	may_fail();
	runs[me] = 0;
	if
	:: MUTANT == only_transaction
	:: MUTANT == keeps_nothing -> session[me]--
	:: MUTANT == unlocks_first -> session[me]--; take_lock(xact[me])
	:: else -> take_lock(xact[me]); may_fail(); session[me]--	/* keep_for_transaction() */
	fi;
	is_caught = 0;
	if
	:: !may_commit -> rows[me] = 1; may_fail()	/* more in the transaction block */
	:: skip
	fi;
	commit();
	goto over;

error:
	runs[me] = 0;
	if
	:: !is_caught || MUTANT == catches_nothing || MUTANT == only_transaction
	:: is_caught && MUTANT == gives_up_all -> session[me] = 0
	:: else ->
		if :: xact[me] == 0 -> xact[me] = 1 :: else fi;
		session[me]--		/* keep_for_transaction() */
	fi;
	atomic { rows[me] = 0 };
	xact[me] = 0;
	goto over;

session_end:
	if :: MUTANT == dies_unlocked -> session[me] = 0 :: else fi;
	atomic { runs[me] = 0; rows[me] = 0 };		/* AbortOutOfAnyTransaction() */
	xact[me] = 0;
	session[me] = 0;							/* end_all_holds() */
	goto dead;

over:
	assert(session[me] == before && !xact[me]);
	session[me] = 0;
dead:
	skip
}

init {
	byte j;

	atomic { do :: j < N -> run job(j); j++ :: else -> break od }
}
