/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One block, written, written back and discarded at the same time: discard.c beside
 * write.c and writeback.c.  A crash at any moment leaves the durable records from the
 * tail on, and the hard disk.
 *
 * Records are numbered in the order of their seqs, which is that of their opening (there
 * is one lane).  A copy is named by the number of the write that made it; on the hard
 * disk 0 is what a discard leaves.
 *
 * Sizes
 *  WRITERS   each writes once
 *  BATCHES   of writeback
 *  DISCARDS
 *
 * Mutants: a rule is left out by -D, and pan must find an error.
 *
 *  Hazard: C5   MUT_PLACES_FREE   the hard disk is discarded while writeback may write there
 *  Hazard: C5   MUT_NO_REFRESH    a copy that was dropped since it was listed is written
 *  Hazard: C5   MUT_HDD_FIRST     the hard disk is discarded before the tombstone is durable
 *  Hazard: L12  MUT_DROP_EARLY    copies are dropped before the tombstone is durable
 *  Hazard: L12  MUT_DROP_NEWER    a copy newer than the tombstone is dropped, too
 *  Hazard: D26  MUT_NOT_HELD      a write does not wait for a discard whose bio has ended
 *  Hazard: W2   MUT_CLEAN_ANYWAY  a copy is clean although it was overwritten meanwhile
 */
#ifndef WRITERS
#define WRITERS	2
#endif
#ifndef BATCHES
#define BATCHES	1
#endif
#ifndef DISCARDS
#define DISCARDS 1
#endif

#define RECORDS	(2 * WRITERS + 2 * DISCARDS + 2)

byte holds[RECORDS];		/* copy of the block; 0: none */
bit tombstone[RECORDS];
byte inside[RECORDS];		/* writers */
byte current = 1;		/* the open record; all below it are closed: lane->lock */
byte durable;			/* all up to here: log->lock */
byte tail = 1;			/* of the durable superblock */

byte mapped;			/* record with the newest copy; 0: on the hard disk */
bit dirty;
byte writes;			/* copies so far */
byte hdd;			/* flushed at once */
bit claimed;			/* by a discard that has its turn: claims->lock */
bit copying;			/* by a run that has its turn */
bit discarding;
byte come, ended;		/* discards: their bios */
bit held;			/* writes, by a discard whose bio has ended (CL3) */
byte late;			/* a copy that no discard that has come may drop */

hidden byte i, found, complete_log, dropped_by, last_tombstone;

/* [lane->lock] lc_lane_seal(); to: all that must become durable. */
inline seal(to)
{
	d_step {
		if
		:: holds[current] -> current++
		:: else
		fi;
		to = current - 1;
		assert(current < RECORDS)
	}
}

/* The log: a closed record without writers is written and flushed. */
active proctype log()
{
end:	do
	:: atomic { durable + 1 < current && !inside[durable + 1] ->
		durable++;
		printf("record %d is durable\n", durable)
	   }
	:: d_step { holds[current] && current + 1 < RECORDS -> current++ }	/* full */
	od
}

proctype writer()
{
	byte rec, behind;
	bit again = 1;

	atomic { !held -> behind = (ended == come -> ended : 0) };	/* must_park() */
	do
	:: atomic { again -> rec = current; inside[rec]++ };	/* lc_lane_reserve() */
		d_step {					/* [bucket lock] */
			if
			:: mapped > rec			/* -ESTALE */
			:: else ->
				writes++;
				holds[rec] = writes;
				printf("copy %d in record %d\n", writes, rec);
				mapped = rec;
				dirty = 1;
				again = 0;
				if
				:: behind && behind == come -> late = writes
				:: else
				fi
			fi
		}
		atomic { inside[rec]--; rec = 0 }
	:: atomic { !again -> behind = 0; break }
	od
}

active proctype writeback()
{
	byte n, item, copy, batch_end, to;

end:	do
	:: atomic { n < BATCHES && durable >= tail ->
		n++;
		batch_end = durable + 1;
		item = (mapped && mapped < batch_end && dirty -> mapped : 0);
		copy = holds[item]
	   }
		if
		:: atomic { item && !claimed ->		/* run_claim(), run_refresh() */
			copying = 1;
			if
#ifndef MUT_NO_REFRESH
			:: mapped != item -> copy = 0
#endif
			:: else
			fi
		   }
			atomic { true ->		/* and FLUSH */
				if
				:: copy ->
					hdd = copy;
					printf("copy %d on the hard disk\n", copy)
				:: else
				fi;
				copying = 0
			}
		:: !item
		fi;
		atomic { true ->
			if
#ifdef MUT_CLEAN_ANYWAY
			:: item -> dirty = 0
#else
			:: item && mapped == item -> dirty = 0		/* [bucket lock] */
#endif
			:: else
			fi
		}
		seal(to);			/* lc_wb_move_tail() */
		atomic { durable >= to ->
			tail = batch_end;
			printf("the tail is at record %d\n", tail);
			item = 0; copy = 0; to = 0; batch_end = 0
		}
	:: atomic { n == BATCHES -> break }
	od
}

active proctype discarder()
{
	byte rec, to;

	do
	:: atomic { come < DISCARDS && !copying ->
		come++;
		late = 0;
		discarding = 1;
#ifndef MUT_PLACES_FREE
		claimed = 1
#endif
	   }
#ifdef MUT_HDD_FIRST
		hdd = 0;
#endif
		if
		:: atomic { mapped ->			/* end_early() */
#ifndef MUT_NOT_HELD
			held = 1;
#endif
			ended = come
		   }
			seal(to);
			atomic { durable >= to -> to = 0 };
			/* [all lanes locked] lc_lanes_append_ranges() */
			d_step {
				if
				:: holds[current] || inside[current] -> current++
				:: else
				fi;
				rec = current;
				tombstone[rec] = 1;
				printf("tombstone in record %d\n", rec);
				current++;
				held = 0;
				assert(current < RECORDS)
			};
#ifndef MUT_DROP_EARLY
			seal(to);
			atomic { durable >= to -> to = 0 };
#endif
			d_step {				/* [bucket lock] visit_block() */
				if
#ifdef MUT_DROP_NEWER
				:: mapped ->
#else
				:: mapped && mapped < rec ->
#endif
					mapped = 0;
					dirty = 0;
					printf("dropped from the index\n")
				:: else
				fi
			}
		:: !mapped
		fi;
		atomic { true -> hdd = 0; printf("discarded on the hard disk\n") }
		atomic {
#ifndef MUT_PLACES_FREE
			claimed = 0;
#endif
			discarding = 0; rec = 0; ended = come
		}
	:: atomic { come == DISCARDS -> break }
	od
}

/* What a log says of the block, from one record to another: a copy, or 0: the hard disk. */
inline replay(from, to)
{
	found = 0;
	dropped_by = 0;
	i = from;
	do
	:: i <= to ->
		if
		:: holds[i] -> found = holds[i]
		:: tombstone[i] -> found = 0; dropped_by = i
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/*
 * At any one moment.  What lies behind the tail is on the hard disk: replay finds the
 * same as if all of the log were there.
 */
active proctype judge()
{
	atomic { true ->
		d_step {
			replay(1, durable);
			complete_log = found;
			last_tombstone = dropped_by;
			replay(tail, durable);
			/* A copy that is durable and that no tombstone has dropped. */
			assert(!complete_log || (found -> found : hdd) == complete_log);
			/* A discard that is complete stays so. */
			assert(complete_log || discarding || !last_tombstone || !(found -> found : hdd));
			/* The hard disk has what is clean. */
			assert(!mapped || dirty || hdd == holds[mapped]);
			/* RAM and log agree on what is newest, but for a discard under way. */
			replay(1, current);
			assert(discarding || (mapped -> holds[mapped] : 0) == found);
			/* A write that was sent when the bio of the last discard had ended. */
			assert(!late || found >= late);
			assert(!late || (mapped -> holds[mapped] : 0) >= late)
		}
	}
}

init {
	atomic {
		run writer();
#if WRITERS > 1
		run writer();
#endif
#if WRITERS > 2
		run writer()
#endif
	}
}
