/*
 * The name table (shmem/namewrite.cpp: name_register, evict_one, name_pin, name_unpin).  Each of N
 * sessions uses ROUNDS names, one after the other, out of NAMES.  The table has room for MOST.  A
 * session pins a name that it knows without a lock; otherwise it looks the name up under the shared
 * lock, and adds it under the exclusive one.  If there is no room it evicts a name that the hand
 * has chosen before.  The table has one entry more than it has room for names.
 *
 * size -DN=2 -DROUNDS=3 -DNAMES=2 -DMOST=1
 * size -DN=2 -DROUNDS=2 -DNAMES=3 -DMOST=2
 * size -DN=3 -DROUNDS=1 -DNAMES=2 -DMOST=1
 *
 * A pinned entry keeps its name:
 * mutant pins_anything		a known entry is pinned whatever its generation is: other_name
 * mutant evicts_pinned		eviction does not look at the pins: other_name
 * mutant evicts_slowly		it looks at the pins first, and then changes the generation: other_name
 * Each name has one entry, and there are no more than there is room for:
 * mutant adds_blindly		a name is not looked up again under the exclusive lock: twice
 * mutant adds_over			nor is it checked that there is room: too_many
 * What is evicted is a name:
 * mutant evicts_again		the generation that the hand has seen is not compared: is_gone
 */
mtype = { none, pins_anything, evicts_pinned, evicts_slowly, adds_blindly, adds_over,
	evicts_again };
#define ENTRIES	(MOST + 1)
#define NOTHING	255

/* The entries. */
bit live[ENTRIES];
byte named[ENTRIES], pins[ENTRIES], generation[ENTRIES];
byte live_count;

/* NameTable.lock. */
byte readers;
bit writer;

hidden byte other_name, twice, too_many, is_gone;

inline lock_shared() { atomic { !writer -> readers++ } }
inline unlock_shared() { readers-- }
inline lock_exclusively() { atomic { !writer && !readers -> writer = 1 } }
inline unlock_exclusively() { writer = 0 }

/* visit_key(), with the lock held. */
inline find() {
	d_step {
		found = NOTHING;
		i = 0;
		do
		:: i < ENTRIES ->
			if :: live[i] && named[i] == name -> found = i :: else fi;
			i++
		:: else -> break
		od
	}
}

inline pin_found() {
	atomic { pins[found]++; known[name] = found; seen[name] = generation[found]; is_pinned = 1 }
}

/* name_pin(): the generation is compared in the step that pins. */
inline pin_known() {
	atomic {
		if
		:: generation[known[name]] == seen[name] || MUTANT == pins_anything ->
			pins[known[name]]++;
			is_pinned = 1
		:: else
		fi
	}
}

/* evict_one(): the hand stops at any name that is not pinned; and evict(). */
inline make_room() {
	lock_shared();
	atomic {
		victim = NOTHING;
		i = 0;
		do
		:: i < ENTRIES && live[i] && !pins[i] -> victim = i; victim_seen = generation[i]; break
		:: i < ENTRIES -> i++
		:: i == ENTRIES -> break
		od;
		i = 0
	};
	unlock_shared();
	if
	:: victim == NOTHING
	:: else ->
		lock_exclusively();
		if
		:: MUTANT == evicts_slowly ->
			if
			:: pins[victim] == 0 && generation[victim] == victim_seen -> is_evicted = 1
			:: else
			fi;
			if :: is_evicted -> generation[victim]++ :: else fi
		:: else ->
			atomic {
				if
				:: (pins[victim] == 0 || MUTANT == evicts_pinned) &&
						(generation[victim] == victim_seen || MUTANT == evicts_again) ->
					generation[victim]++;
					is_evicted = 1
				:: else
				fi
			}
		fi;
		if
		:: is_evicted ->
			is_gone = !live[victim];
			assert(!is_gone);
			d_step { live[victim] = 0; live_count--; is_evicted = 0 }
		:: else
		fi;
		unlock_exclusively()
	fi
}

/* The rest of name_register(). */
inline add() {
	lock_exclusively();
	find();
	if
	:: found != NOTHING && MUTANT != adds_blindly -> pin_found()
	:: else ->
		if
		:: live_count < MOST || MUTANT == adds_over ->
			twice = found != NOTHING;
			assert(!twice);
			d_step {
				found = 0;
				do :: found < ENTRIES && live[found] -> found++ :: else -> break od
			};
			if
			:: found < ENTRIES ->
				named[found] = name;
				d_step {
					live[found] = 1;
					live_count++;
					too_many = live_count > MOST;
					assert(!too_many)
				};
				pin_found()
			:: else
			fi
		:: else
		fi
	fi;
	unlock_exclusively()
}

proctype session() {
	byte known[NAMES], seen[NAMES];
	byte name, found, victim, victim_seen, i, round;
	bit is_pinned, is_evicted;

	for (i : 0 .. NAMES - 1) { known[i] = NOTHING }
	i = 0;
	do
	:: round < ROUNDS ->
		name = 0;
		do :: name < NAMES - 1 -> name++ :: break od;
		if :: known[name] != NOTHING -> pin_known() :: else fi;
		if
		:: !is_pinned ->
			lock_shared();
			find();
			if :: found != NOTHING -> pin_found() :: else fi;
			unlock_shared();
			if
			:: !is_pinned ->
				if :: live_count >= MOST -> make_room() :: else fi;
				add()
			:: else
			fi
		:: else
		fi;
		if
		:: is_pinned ->
			other_name = !live[known[name]] || named[known[name]] != name;
			assert(!other_name);
			atomic { pins[known[name]]--; is_pinned = 0 }	/* name_unpin() */
		:: else		/* not stored */
		fi;
		round++
	:: else -> break
	od
}

init {
	byte j;

	atomic {
		for (j : 1 .. N) { run session() }
	}
}
