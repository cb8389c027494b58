/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state word of a record (record.c): slots and references are taken and given back
 * without a lock, while others close the record, take it back untouched and open it
 * again, for a tombstone too.  Each load, store and cmpxchg is a step of its own.
 *
 * One buffer, which is not used again; the number of an incarnation does not wrap.
 *
 * RELOG: writeback wants to log blocks again.  A record that it opens then stands for
 * one in the reserve segment: also in the place of an old one, as when its buffer is
 * used again.
 *
 * Mutants: a rule is left out by -D, and pan must find an error.
 *
 *  Hazard: C1   MUT_NO_INCARNATION  a cmpxchg succeeds on a record that was opened again
 *  Hazard: C1   MUT_CLOSED_OK       a reference is taken although the record is closed
 *  Hazard: C1   MUT_NO_CLOSER       the task that closes a record takes no reference
 *  Hazard: C1   MUT_RETRACT_USED    a record is taken back although a writer is inside
 *  Hazard: B4   MUT_BACK_ANYWAY     slots that are not the last ones are given back
 *  Hazard: L12  MUT_LIMIT_FIRST     the limit is read before the state
 *  Hazard: D1   MUT_WISH_FIRST      the wish of writeback is read before the state
 *  Hazard: D1   MUT_NO_WISH         no writer looks for that wish
 */
#ifndef SLOTS
#define SLOTS	5		/* of the segment */
#endif
#ifndef WRITERS
#define WRITERS	2
#endif
#ifndef SEALS
#define SEALS	1
#endif
#ifndef DISCARDS
#define DISCARDS 1
#endif
#define RECORDS	SLOTS
#define NONE	255

/* rec->state: closed, incarnation, slots handed out, writers */
bit closed[RECORDS];
byte incarnation[RECORDS];
byte next[RECORDS];
byte writers[RECORDS];

byte first[RECORDS];		/* slot of the header */
byte limit[RECORDS];
byte nr_slots[RECORDS];		/* set when closed */
bit range[RECORDS];		/* a tombstone */
byte seq[RECORDS];
bit submitted[RECORDS];

bit lane_lock;			/* lane->lock */
byte nr_records;
byte lane_incarnation;
byte lane_open = NONE;
bit buffer_closed;
byte last_seq;

#ifdef RELOG
bit writers_held;
bit reserved[RECORDS];		/* for relogging */
#ifndef MUT_NO_WISH
#define READS_WISH
#endif
#endif

bit handed[SLOTS];		/* slots that a writer may write to, or did */
byte running;			/* processes */

/* [lane->lock] lc_record_shut(); the caller holds a reference afterwards. */
inline record_close(r)
{
	d_step {
		assert(!closed[r]);
		closed[r] = 1;
#ifndef MUT_NO_CLOSER
		writers[r]++;
#endif
		nr_slots[r] = next[r];
		last_seq++;
		seq[r] = last_seq;
		printf("record %d is closed: %d slots, %d writers\n", r, next[r], writers[r])
	}
}

/* lc_record_put() */
inline record_put(r)
{
	d_step {
		assert(writers[r]);
		writers[r]--;
		if
		:: closed[r] && !writers[r] ->
			assert(!submitted[r] && seq[r] && nr_slots[r] == next[r]);
			submitted[r] = 1;
			printf("record %d goes to the log\n", r)
		:: else
		fi
	}
}

/* [lane->lock] lc_record_retract() */
inline retract(r, done)
{
	done = 0;
	if
#ifdef MUT_RETRACT_USED
	:: atomic { !next[r] ->
#else
	:: atomic { !next[r] && !writers[r] ->
#endif
		closed[r] = 1;
		nr_records--;
		printf("record %d is taken back\n", r);
		lane_open = NONE;
		done = 1
	   }
	:: else
	fi
}

/* [lane->lock] lc_record_open(): the state last, so that a task that sees it sees the rest. */
inline record_open(r, is_range)
{
	d_step {
		r = (nr_records -> first[nr_records - 1] + 1 + nr_slots[nr_records - 1] : 0);
		if
		:: buffer_closed || r + (is_range -> 1 : 2) > SLOTS ->
			buffer_closed = 1;
			r = NONE
		:: else ->
			first[nr_records] = r;
			r = nr_records;
			nr_records++;
			limit[r] = 0
		fi
	}
	if
	:: r != NONE ->
		d_step {
			limit[r] = (is_range -> 0 : SLOTS - first[r] - 1);
			nr_slots[r] = 0;
			range[r] = is_range;
#ifdef RELOG
			reserved[r] = writers_held;
#endif
			seq[r] = 0;
			submitted[r] = 0
		}
		d_step {
			lane_incarnation++;
			closed[r] = 0;
			incarnation[r] = lane_incarnation;
			next[r] = 0;
			writers[r] = 0;
			printf("record %d is open: incarnation %d, at slot %d\n", r, incarnation[r],
			       first[r])
		}
	:: else
	fi
}

proctype writer()
{
	byte r, fresh;
	byte lim, old_next, old_writers, old_incarnation, got, i;
	bit old_closed;
#ifdef READS_WISH
	bit wish;
#endif

	/* lc_lane_reserve() */
	do
	:: atomic { true ->
		r = lane_open;
		if
		:: r == NONE -> goto advance
		:: r != NONE
		fi
	   }
		/* lc_record_get() */
#if defined(READS_WISH) && defined(MUT_WISH_FIRST)
		wish = writers_held;
#endif
#ifdef MUT_LIMIT_FIRST
		lim = limit[r];
#endif
		do
		:: atomic { true ->
			old_closed = closed[r];
			old_next = next[r];
			old_writers = writers[r];
			old_incarnation = incarnation[r];
#ifndef MUT_CLOSED_OK
			if
			:: old_closed -> goto advance
			:: else
			fi
#endif
		   }
#ifdef READS_WISH
			atomic { true ->
#ifndef MUT_WISH_FIRST
				wish = writers_held;
#endif
				if
				:: wish -> goto out		/* it is parked */
				:: else
				fi
			}
#endif
			atomic { true ->
#ifndef MUT_LIMIT_FIRST
				lim = limit[r];
#endif
				if
				:: old_next >= lim -> goto advance
				:: old_next < lim -> got = 1
				:: old_next + 1 < lim -> got = 2
				fi;
				lim = 0
			}
			if
			:: atomic { next[r] == old_next && writers[r] == old_writers &&
#ifndef MUT_NO_INCARNATION
				    incarnation[r] == old_incarnation &&
#endif
				    closed[r] == old_closed ->
				d_step {
					next[r] = next[r] + got;
					printf("%d slots of record %d reserved\n", got, r);
					writers[r]++;
					assert(!range[r] && next[r] <= limit[r]);
#ifdef RELOG
					assert(!reserved[r]);	/* B5 */
#endif
					do
					:: i < got ->
						assert(!handed[first[r] + 1 + old_next + i]);
						handed[first[r] + 1 + old_next + i] = 1;
						i++
					:: else -> break
					od;
					i = 0;
					old_incarnation = incarnation[r]
				}
				goto inside
			   }
			:: else
			fi
		od;
advance:	/* advance() */
		atomic { !lane_lock ->
			lane_lock = 1;
			old_closed = 0; old_next = 0; old_writers = 0; old_incarnation = 0;
			lim = 0; got = 0
		};
		if
		:: lane_open != r -> lane_lock = 0
		:: else ->
			if
			:: r != NONE -> record_close(r)
			:: else
			fi;
			record_open(fresh, 0);
			lane_open = fresh;
			lane_lock = 0;
			if
			:: r != NONE -> record_put(r)
			:: else
			fi;
			if
			:: fresh == NONE -> goto out		/* no buffer */
			:: else
			fi
		fi
	od;

inside:	atomic {
		assert(incarnation[r] == old_incarnation && !submitted[r]);	/* B1 */
		/* None of the slots is used, or one, or both. */
		i = old_next;
		old_next = old_next + got;		/* cur->end */
		if
		:: true
		:: i++
		:: got == 2 -> i = i + 2
		fi;
		old_closed = 0; old_writers = 0; got = 0
	}
	/* lc_cursor_release() */
	do
	:: atomic { i < old_next ->
		old_closed = closed[r];
		old_writers = writers[r];
		got = next[r];
		if
#ifdef MUT_BACK_ANYWAY
		:: old_closed -> break
#else
		:: old_closed || got != old_next -> break
#endif
		:: else
		fi
	   }
		if
		:: atomic { closed[r] == old_closed && writers[r] == old_writers && next[r] == got ->
			next[r] = next[r] - (old_next - i);
			handed[first[r] + 1 + i] = 0;
			handed[first[r] + old_next] = 0;
			old_next = i
		   }
		:: else
		fi
	:: atomic { i == old_next -> break }
	od;
	/* Holes are zeroed. */
	assert(incarnation[r] == old_incarnation && !submitted[r]);		/* B1 */
	record_put(r);
out:	atomic {
		running--;
		r = 0; fresh = 0; i = 0;
		old_closed = 0; old_next = 0; old_writers = 0; old_incarnation = 0; lim = 0; got = 0
	}
}

#if SEALS
proctype sealer()
{
	byte r, n, fresh;
	bit close_segment, taken_back;

	do
	:: n < SEALS ->
		n++;
		if
		:: close_segment = 0
		:: close_segment = 1
		fi;
		/* lc_lane_seal() */
		atomic { !lane_lock -> lane_lock = 1; r = NONE };
		if
		:: lane_open != NONE && next[lane_open] ->
			r = lane_open;
			record_close(r);
			lane_open = NONE
		:: else
		fi;
		taken_back = 1;
		if
		:: close_segment && lane_open != NONE -> retract(lane_open, taken_back)
		:: else
		fi;
		if
		:: close_segment && taken_back ->
			if
			:: nr_records -> buffer_closed = 1
			:: else
			fi
		:: !(close_segment && taken_back) && r != NONE ->
			record_open(fresh, 0);
			lane_open = fresh
		:: else
		fi;
		lane_lock = 0;
		if
		:: r != NONE -> record_put(r)
		:: else
		fi
	:: n == SEALS -> break
	od;
	running--
}

#endif

#ifdef RELOG
/* Up to the moment when writeback takes its first slot; what it has opened is in use. */
proctype relogger()
{
	byte r, fresh;
	bit taken_back;

	writers_held = 1;
	atomic { !lane_lock -> lane_lock = 1; r = NONE; taken_back = 1 };
	if
	:: lane_open != NONE -> retract(lane_open, taken_back)
	:: else
	fi;
	if
	:: !taken_back -> r = lane_open; record_close(r)
	:: taken_back
	fi;
	record_open(fresh, 0);
	lane_open = fresh;
	lane_lock = 0;
	if
	:: r != NONE -> record_put(r)
	:: else
	fi;
	running--
}

#endif

#if DISCARDS
proctype discarder()
{
	byte r, n, old, fresh;
	bit taken_back;

	do
	:: n < DISCARDS ->
		n++;
		/* lc_lanes_append_ranges() */
		atomic { !lane_lock -> lane_lock = 1; old = NONE; taken_back = 1 };
		if
		:: lane_open != NONE -> retract(lane_open, taken_back)
		:: else
		fi;
		if
		:: !taken_back -> old = lane_open; record_close(old)
		:: taken_back
		fi;
		record_open(r, 1);
		if
		:: r != NONE -> record_close(r)
		:: else
		fi;
		record_open(fresh, 0);
		lane_open = fresh;
		lane_lock = 0;
		if
		:: old != NONE -> record_put(old)
		:: else
		fi;
		if
		:: r != NONE -> record_put(r)
		:: else
		fi
	:: n == DISCARDS -> break
	od;
	running--
}

#endif

/*
 * Everything that was closed has gone to the log, no two records overlap, and what was
 * handed out and not given back lies in them.
 */
inline judge()
{
	n = 0;
	do
	:: n < SLOTS -> total = total + handed[n]; n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < nr_records ->
		assert(!closed[n] || submitted[n]);
		assert(!n || first[n] > first[n - 1] + nr_slots[n - 1]);
		assert(!n || !seq[n] || seq[n] == seq[n - 1] + 1);
		i = 0;
		do
		:: i < next[n] -> i++; assert(handed[first[n] + i]); total--
		:: else -> break
		od;
		n++
	:: else -> break
	od;
	assert(!total)
}

init {
	byte n, i, total;

	atomic {
		do
		:: n < WRITERS -> run writer(); running++; n++
		:: else -> break
		od;
#if SEALS
		run sealer();
		running++;
#endif
#ifdef RELOG
		run relogger();
		running++;
#endif
#if DISCARDS
		run discarder();
		running++;
#endif
		n = 0
	}
	atomic { running == 0 -> judge() }
}
