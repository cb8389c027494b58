/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a write from map() to the SSD: reserve, copy, overwrite in place, close,
 * seal, write, FLUSH, retire the buffer, use it again; readers that pin buffers; an SSD
 * that fails.  record.c, write.c, read.c and log.c, with one lane as they are, or with
 * two as the design wants them.
 *
 * A block has two halves, copied one after the other, so that a mixture can be seen.
 * A copy is named by the number of the write that made it, in the order of the bucket
 * lock; 0 is a slot of zeros.  Segments are never used again here (ring.pml has that),
 * so that the SSD is what each seq holds of each block.
 *
 * Steps that the code takes under a lock are one atomic block, with the lock's name
 * before it.  The one lock that is held over several steps is that of the index bucket.
 * The reference on a record is one atomic step here; record.pml takes it apart.
 *
 * Not here: FUA writes of the user, and the records that a FLUSH leaves open because there is
 * nothing else in them (G7).
 *
 * Sizes
 *  LANES    1, or 2: then writer n uses lane n, a block in any open record is
 *           overwritten there, and a cursor in a closed record is dropped whenever the
 *           block is anywhere else
 *  WRITES_0, WRITES_1   of each of the two writers, to any block
 *  READS
 *  FLUSHES  by the user
 *  BUFFERS
 *  SLOTS    of a segment, headers included
 *  FAIL     writes and FLUSHes of the SSD may fail
 *
 * Mutants: a rule is left out by -D, and pan must find an error.
 *
 *  Hazard: C1   MUT_NO_WAIT          a closed record is written while writers are inside
 *  Hazard: C1   MUT_NO_REFERENCE     an overwrite in place holds no reference
 *  Hazard: C6   MUT_NO_PIN           readers do not pin the buffer
 *  Hazard: C6   MUT_NO_SECOND_LOOK   a pinned buffer may be that of another segment by now
 *  Hazard: C8   MUT_NO_ZEROING       slots given up keep what was in them
 *  Hazard: F1   MUT_WRITTEN_HIGHEST  written_seq is the highest written, not the unbroken run
 *  Hazard: F1   MUT_ACK_WRITTEN      a FLUSH completes when its records are written
 *  Hazard: F2   MUT_FLUSH_AGAIN      a failed FLUSH is forgotten and the next one counts
 *  Hazard: F4   MUT_FUA_ALONE        FUA although something below is not durable
 *  Hazard: B2   MUT_RETIRE_WRITTEN   a buffer is given up when it is written
 *  Hazard: P2   MUT_NO_OUTDATED      a cursor in an older record than the block's is used
 *  Hazard: L11  MUT_LANES_APART      two lanes with the rule of one: positions decide
 */
#ifndef LANES
#define LANES		1
#endif
#ifndef WRITES_0
#define WRITES_0	2
#endif
#ifndef WRITES_1
#define WRITES_1	1
#endif
#ifndef READS
#define READS		1
#endif
#ifndef FLUSHES
#define FLUSHES		1
#endif
#ifndef BUFFERS
#define BUFFERS		(LANES + 1)
#endif
#ifndef SLOTS
#define SLOTS		3
#endif

#define SEQS		(WRITES_0 + WRITES_1 + 2)
#define SEGMENTS	(SEQS + BUFFERS)

/* Records and slots of all buffers are numbered through: a record is its header's slot. */
#define ALL_SLOTS	(BUFFERS * SLOTS)
#define BUFFER_OF(slot)	((slot) / SLOTS)
#define SEGMENT_OF(slot)	segment[BUFFER_OF(slot)]
#define NONE		255
#define OLD		127		/* bytes of an earlier life */

/* --- buffers and records ------------------------------------------------ */

byte segment[BUFFERS];		/* number; 0: free */
byte pins[BUFFERS];		/* owner and readers */
byte undurable[BUFFERS];	/* log->lock */
bit buffer_closed[BUFFERS];	/* log->lock */
byte buffer_of[SEGMENTS + 1];	/* segment->buf: buffer + 1 */
byte next_segment = 1;

bit open[ALL_SLOTS];		/* these three are rec->state */
byte next[ALL_SLOTS];
byte writers[ALL_SLOTS];
bit image_final[ALL_SLOTS];	/* handed to the log */
byte seq_of[ALL_SLOTS];

byte lower[ALL_SLOTS];		/* the bytes of a slot, half by half */
byte upper[ALL_SLOTS];
byte entry[ALL_SLOTS];		/* in the header: block + 1 */

byte lane_buffer[LANES];	/* buffer + 1; all four: lane->lock */
byte lane_free[LANES];		/* first slot behind the records of it */
byte lane_open[LANES];		/* record + 1 */
byte lane_ready[LANES];		/* buffer + 1 */

/* --- log: log->lock ----------------------------------------------------- */

#define UNUSED		0
#define CLOSED		1
#define SUBMITTED	2
#define SENT		3
#define SENT_FUA	4
#define WRITTEN		5	/* in the cache of the SSD */
#define COVERED		6	/* and by the FLUSH at work */
#define DURABLE		7	/* on the medium */
#define DROPPED		8	/* the SSD failed it */
byte stage[SEQS + 1];
byte record_of[SEQS + 1];
bit want_durable[SEQS + 1];
byte holds[2 * (SEQS + 1)];	/* what the SSD has under this seq, for each block */
byte last_seq, written_seq, durable_seq, want_seq, flush_seq;
bit failed;
byte target;			/* of the user's FLUSH */
bit flushing;

/* --- index: bucket lock ------------------------------------------------- */

bit locked[2];
byte at_slot[2];		/* + 1; 0: not cached */
byte at_segment[2];
byte newest[2];			/* what a read must return */
byte count;			/* copies so far */
byte complete[2];		/* newest copy whose write has completed */

hidden byte i, j, fua;
/*
 * pan does not tell which statements inside a d_step were never reached.  They leave a mark, which
 * the d_step clears first; of the statements behind it, which look at the marks, pan does tell.
 */
hidden int saw;
#define SAW(what)	saw = saw | (1 << what)
#define NOTE(what)	if :: saw & (1 << what) -> assert(true) :: else fi
#define HOLE		0

hidden byte visible[2];

/* ------------------------------------------------------------------------ */

inline unpin(buf)
{
	pins[buf]--;
	if
	:: !pins[buf] -> segment[buf] = 0	/* into the pool */
	:: else
	fi
}

inline retire(buf)
{
	assert(buffer_of[segment[buf]] == buf + 1);
	buffer_of[segment[buf]] = 0;
	printf("buffer %d of segment %d is given up\n", buf, segment[buf]);
	unpin(buf)
}

/* [lane->lock, log->lock] lc_log_append().  The caller holds a reference afterwards. */
inline record_close(rec, want)
{
	open[rec] = 0;
	writers[rec]++;
	last_seq++;
	assert(last_seq <= SEQS);
	seq_of[rec] = last_seq;
	record_of[last_seq] = rec;
	printf("record %d is closed: seq %d\n", rec, last_seq);
	want_durable[last_seq] = want;
	undurable[BUFFER_OF(rec)]++;
#ifdef MUT_NO_WAIT
	stage[last_seq] = SUBMITTED;
	image_final[rec] = 1
#else
	stage[last_seq] = CLOSED
#endif
}

/* lc_record_put(): the last one out of a closed record hands it to the log. */
inline record_put(rec)
{
	writers[rec]--;
	if
	:: !open[rec] && !writers[rec] && stage[seq_of[rec]] == CLOSED ->
		image_final[rec] = 1;
		stage[seq_of[rec]] = SUBMITTED;
		printf("nobody is in record %d any more\n", rec)
	:: else
	fi
}

/* [lane->lock] open_record(): the next record of the lane's buffer, if a block fits. */
inline record_open(lane)
{
	i = lane_free[lane];
	if
	:: i + 1 < SLOTS ->
		i = (lane_buffer[lane] - 1) * SLOTS + i;
		open[i] = 1;
		next[i] = 0;
		image_final[i] = 0;
		assert(!writers[i]);
		seq_of[i] = 0;
		lane_open[lane] = i + 1;
		for (j : i + 1 .. i + SLOTS - 1 - i % SLOTS) {
			entry[j] = 0
		}
		j = 0
	:: else ->			/* close_buffer() */
		i = lane_buffer[lane] - 1;
		lane_buffer[lane] = 0;
		lane_open[lane] = 0;
		lane_free[lane] = 0;
		buffer_closed[i] = 1;
		if
		:: !undurable[i] -> retire(i)
		:: else
		fi
	fi;
	i = 0
}

/* [lane->lock] lc_lane_open_next() */
inline lane_open_next(lane)
{
	if
	:: lane_buffer[lane] -> record_open(lane)
	:: else
	fi;
	if
	:: !lane_buffer[lane] && lane_ready[lane] ->
		lane_buffer[lane] = lane_ready[lane];
		lane_ready[lane] = 0;
		record_open(lane)
	:: else
	fi
}

/* Where the next record of a lane begins, once this one is closed. */
inline close_open(lane, want)
{
	lane_free[lane] = (lane_open[lane] - 1) % SLOTS + 1 + next[lane_open[lane] - 1];
	record_close(lane_open[lane] - 1, want);
	lane_open[lane] = 0
}

#define LIMIT(rec)	(SLOTS - 1 - (rec) % SLOTS)
#define OWNS(rec, b)	(at_segment[b] == SEGMENT_OF(rec) && at_slot[b] > (rec) + 1 && \
			 at_slot[b] - 1 - (rec) <= next[rec])

/* lc_cursor_compare(): LC_ORDER_NEWER */
#if LANES == 1 || defined(MUT_LANES_APART)
#define OUTDATED(rec, b)	(at_slot[b] && (at_segment[b] > SEGMENT_OF(rec) || \
				 (at_segment[b] == SEGMENT_OF(rec) && !OWNS(rec, b) && \
				  at_slot[b] - 1 > (rec))))
#else
#define OUTDATED(rec, b)	(at_slot[b] && !open[rec] && !OWNS(rec, b))
#endif

#if LANES == 2 && !defined(MUT_LANES_APART)
#define OPEN_IN_OTHER(b)	(at_slot[b] && !OWNS(rec, b) && lane_open[1 - lane] && \
				 OWNS(lane_open[1 - lane] - 1, b))
#else
#define OPEN_IN_OTHER(b)	false
#endif

/* What a replay of the medium would find. */
inline durable_copies()
{
	visible[0] = 0;
	visible[1] = 0;
	i = 1;
	do
	:: i <= last_seq && stage[i] == DURABLE ->
		for (j : 0 .. 1) {
			if
			:: holds[2 * i + j] -> visible[j] = holds[2 * i + j]
			:: else
			fi
		}
		i++
	:: else -> break
	od;
	i = 0; j = 0
}

/* B2: what is not in RAM is on the medium, and is the newest copy there. */
inline on_ssd(b)
{
	d_step {
		durable_copies();
		assert(visible[b] == newest[b])
	}
}

/* --- the way of a write ------------------------------------------------- */

/* A record of the lane has a slot left; one can be opened. */
#define HAS_SLOT(lane)	(lane_open[lane] && next[lane_open[lane] - 1] < LIMIT(lane_open[lane] - 1))
#define CAN_OPEN(lane)	(lane_open[lane] || lane_ready[lane])

/* [bucket lock] write_block(): where to, and the first half of the copy. */
inline write_begin()
{
	locked[b] = 1;
	image = rec;
	if
	:: OPEN_IN_OTHER(b) ->
		image = lane_open[1 - lane] - 1;
		writers[image]++;
		to = at_slot[b] - 1
	:: !OPEN_IN_OTHER(b) && OWNS(rec, b) ->
		to = at_slot[b] - 1;
#ifdef MUT_NO_REFERENCE
		record_put(rec)
#endif
#ifndef MUT_NO_OUTDATED
	:: !OPEN_IN_OTHER(b) && !OWNS(rec, b) && OUTDATED(rec, b) ->
		to = NONE;				/* -ESTALE */
		locked[b] = 0
#endif
	:: else -> to = slot
	fi;
	if
	:: to != NONE ->
		assert(!image_final[image]);		/* B1 */
		count++;
		copy = count;
		lower[to] = copy;
		printf("copy %d of block %d begins: slot %d, record %d\n", copy, b, to, image)
	:: else
	fi
}

/* [bucket lock] The second half, the header's entry, the index. */
inline write_end()
{
	assert(!image_final[image]);			/* B1 */
	upper[to] = copy;
	entry[to] = b + 1;
	at_slot[b] = to + 1;
	at_segment[b] = SEGMENT_OF(to);
	newest[b] = copy;
	locked[b] = 0;
	printf("copy %d ends\n", copy)
}

/* lc_cursor_release(): give the slot back if it is the last one, or leave a hole. */
inline release()
{
	if
	:: slot == to
	:: slot != to && open[rec] && slot == rec + next[rec] -> next[rec]--
	:: slot != to && !(open[rec] && slot == rec + next[rec]) ->
		SAW(HOLE);
		assert(!image_final[rec]);
#ifndef MUT_NO_ZEROING
		lower[slot] = 0;
		upper[slot] = 0
#endif
	fi;
	if
	:: image != rec -> record_put(image)
	:: else
	fi;
#ifdef MUT_NO_REFERENCE
	if
	:: slot != to && to != NONE
	:: else -> record_put(rec)
	fi
#else
	record_put(rec)
#endif
}

proctype writer(byte lane, todo)
{
	byte b, rec, slot, image, to, copy;

	do
	:: atomic { todo && HAS_SLOT(lane) ->		/* lc_lane_reserve() */
		rec = lane_open[lane] - 1;
		next[rec]++;
		writers[rec]++;
		slot = rec + next[rec];
		if
		:: count -> b = 1
		:: b = 0
		fi
	   }
		atomic { !locked[b] -> d_step { saw = 0; write_begin() } }
		if
		:: atomic { to != NONE -> d_step { write_end() } }
		:: to == NONE
		fi;
		atomic { true ->
			d_step {			/* and the bio completes */
				saw = 0;
				release();
				if
				:: copy -> todo--
				:: else
				fi;
				if
				:: copy > complete[b] -> complete[b] = copy
				:: else
				fi;
				b = 0; rec = 0; slot = 0; image = 0; to = 0; copy = 0
			}
			NOTE(HOLE)
		}
	/* [lane->lock] advance() */
	:: atomic { todo && !HAS_SLOT(lane) && CAN_OPEN(lane) ->
		d_step {
			rec = NONE;
			if
			:: lane_open[lane] -> rec = lane_open[lane] - 1; close_open(lane, 0)
			:: else
			fi;
			lane_open_next(lane)
		}
	   }
		d_step {
			if
			:: rec != NONE -> record_put(rec)
			:: else
			fi;
			rec = 0
		}
	/* Otherwise the bio is parked; ring.pml has that. */
	:: atomic { !todo || (failed && !CAN_OPEN(lane)) -> break }
	od
}

#if READS
/* --- the way of a read: [bucket lock] throughout ------------------------ */

proctype reader()
{
	byte n, b, buf, low;

	do
	:: atomic { n < READS ->
		if
		:: !locked[0] -> b = 0
		:: !locked[1] && at_slot[1] -> b = 1
		fi;
		locked[b] = 1;
		n++;
		/* lc_buffer_pin() */
		buf = (at_slot[b] -> buffer_of[at_segment[b]] : NONE)
	   }
		if
		:: buf == NONE				/* on the hard disk */
		:: atomic { !buf -> on_ssd(b) }
		:: buf && buf != NONE ->
#ifndef MUT_NO_PIN
			if
			:: atomic { pins[buf - 1] -> pins[buf - 1]++ }
			:: atomic { !pins[buf - 1] -> on_ssd(b); buf = 0 }
			fi;
#ifndef MUT_NO_SECOND_LOOK
			if
			:: atomic { buf && buffer_of[at_segment[b]] != buf ->
				d_step { unpin(buf - 1); buf = 0 };
				on_ssd(b)
			   }
			:: else
			fi;
#endif
#endif
			if
			:: atomic { buf ->
				low = lower[at_slot[b] - 1];
				printf("block %d is read from buffer %d: %d\n", b, buf - 1, low)
			   }
				d_step {
					assert(low == upper[at_slot[b] - 1]);	/* P3 */
					assert(low == newest[b]);
					low = 0;
#ifndef MUT_NO_PIN
					unpin(buf - 1)
#endif
				}
			:: !buf
			fi
		fi;
		atomic { locked[b] = 0; b = 0; buf = 0 }
	:: atomic { n == READS -> break }
	od
}

#endif

/* --- the log ------------------------------------------------------------ */

/* [log->lock] flush_start() */
inline flush_start()
{
	if
	:: !flushing && !failed && written_seq > durable_seq &&
	   ((want_seq > durable_seq && want_seq <= written_seq) ||
	    (target > durable_seq && target <= written_seq)) ->
		flushing = 1;
		flush_seq = written_seq;
		printf("FLUSH of %d begins\n", flush_seq);
		for (i : 1 .. last_seq) {
			if
			:: stage[i] == WRITTEN -> stage[i] = COVERED
			:: else
			fi
		}
		i = 0
	:: else
	fi
}

/* [log->lock] collect_durable(): buffers of which nothing more is needed. */
inline collect(seq)
{
	i = BUFFER_OF(record_of[seq]);
	undurable[i]--;
	if
	:: !undurable[i] && buffer_closed[i] -> retire(i)
	:: else
	fi;
	i = 0
}

/* [log->lock] durable_seq rises. */
inline set_durable(seq)
{
	do
	:: durable_seq < seq ->
		durable_seq++;
		printf("seq %d is durable\n", durable_seq);
		assert(stage[durable_seq] == DURABLE);		/* G2 */
#ifndef MUT_RETIRE_WRITTEN
		collect(durable_seq)
#endif
	:: else -> break
	od;
	assert(durable_seq <= written_seq && written_seq <= last_seq)	/* G1 */
}

/* seal() in submit.c: sum and seal the image; no task changes it any more. */
inline record_seal(seq)
{
	printf("seq %d is sealed\n", seq);
	j = record_of[seq];
	assert(image_final[j]);
	for (i : j + 1 .. j + next[j]) {
		if
		:: entry[i] ->
			assert(lower[i] && lower[i] == upper[i]);		/* P3 */
			holds[2 * seq + entry[i] - 1] = lower[i]
		:: else -> assert(!lower[i] && !upper[i])			/* B4 */
		fi
	}
	/* Whatever replay puts on top is the newest. */
	for (i : 1 .. last_seq) {
		for (j : 0 .. 1) {
			assert(!holds[2 * i + j] || !holds[2 * seq + j] || i == seq ||
			       (holds[2 * i + j] < holds[2 * seq + j]) == (i < seq))
		}
	}
	i = 0; j = 0
}

/* record_fua() */
#ifdef MUT_FUA_ALONE
#define FUA_ALLOWED(seq)	(want_durable[seq] && !flushing)
#else
#define FUA_ALLOWED(seq)	(want_durable[seq] && !flushing && durable_seq == (seq) - 1)
#endif

/* [log->lock] record_written() */
inline record_end(seq)
{
	fua = stage[seq] == SENT_FUA;
	stage[seq] = (fua -> DURABLE : WRITTEN);
	printf("seq %d is written, FUA %d\n", seq, fua);
#ifdef MUT_WRITTEN_HIGHEST
	if
	:: !failed && seq > written_seq -> written_seq = seq
	:: else
	fi;
#endif
	do
	:: !failed && written_seq < last_seq &&
	   (stage[written_seq + 1] >= WRITTEN && stage[written_seq + 1] <= DURABLE) ->
		written_seq++;
#ifdef MUT_RETIRE_WRITTEN
		collect(written_seq)
#endif
	:: else -> break
	od;
	if
	:: fua && !failed && durable_seq == seq - 1 -> set_durable(seq)
#ifdef MUT_FUA_ALONE
	:: fua && !failed && durable_seq != seq - 1 -> set_durable(seq)
#endif
	:: else
	fi;
	fua = 0;
	flush_start()
}

proctype record_work(byte seq)
{
end:	stage[seq] == SUBMITTED;
	d_step {
		record_seal(seq);
		stage[seq] = (FUA_ALLOWED(seq) -> SENT_FUA : SENT)
	}
	if
	:: atomic { stage[seq] == SENT -> d_step { record_end(seq) } }
	:: atomic { stage[seq] == SENT_FUA -> d_step { record_end(seq) } }
#ifdef FAIL
	:: atomic { true -> stage[seq] = DROPPED; failed = 1 }
#endif
	fi
}

active proctype flush_work()
{
end:	do
	:: d_step { flushing ->			/* [log->lock] log_flush_end() */
		for (i : 1 .. last_seq) {
			if
			:: stage[i] == COVERED -> stage[i] = DURABLE
			:: else
			fi
		}
		i = 0;
		if
		:: !failed && flush_seq > durable_seq -> set_durable(flush_seq)
		:: else
		fi;
		flushing = 0;
		flush_seq = 0;
		flush_start()
	   }
#ifdef FAIL
	/* It fails, and the drive drops what was in its cache. */
	:: d_step { flushing ->
		for (i : 1 .. last_seq) {
			if
			:: stage[i] == COVERED || stage[i] == WRITTEN -> stage[i] = DROPPED
			:: else
			fi
		}
		i = 0;
#ifndef MUT_FLUSH_AGAIN
		failed = 1;
#endif
		flushing = 0;
		flush_seq = 0;
		flush_start()
	   }
#endif
	od
}

#ifdef MUT_ACK_WRITTEN
#define ENOUGH	written_seq
#else
#define ENOUGH	durable_seq
#endif

/* [lane->lock] lc_lane_seal() of one lane */
inline seal(lane)
{
	rec[lane] = 0;
	if
	:: lane_open[lane] && next[lane_open[lane] - 1] ->
		rec[lane] = lane_open[lane];
		close_open(lane, 1);
		record_open(lane)
	:: else
	fi;
	goal = last_seq
}

/* The user's FLUSH, in map(). */
active proctype user()
{
	byte n, goal, rec[LANES], need[2];

	do
	:: d_step { n < FLUSHES ->
		n++;
		need[0] = complete[0];
		need[1] = complete[1];
		seal(0)
	   }
#if LANES == 2
		d_step { i = 0; seal(1) }
#endif
		/* Let go of the records, then [log->lock] lc_log_flush_io() */
		atomic { true ->
			d_step {
				i = 0;
				do
				:: i < LANES ->
					if
					:: rec[i] -> record_put(rec[i] - 1)
					:: else
					fi;
					rec[i] = 0;
					i++
				:: else -> break
				od;
				target = goal;
				flush_start()
			}
		}
		if
		:: target <= ENOUGH ->			/* it completes well: G3 */
			d_step {
				printf("the user's FLUSH of %d completes\n", target);
				durable_copies();
				assert(visible[0] >= need[0] && visible[1] >= need[1])	/* P1 */
			}
		:: failed && target > durable_seq	/* with an error: G4 */
		fi;
		d_step { target = 0; goal = 0; need[0] = 0; need[1] = 0 }
	:: atomic { n == FLUSHES -> break }
	od
}

/* --- buffers come back -------------------------------------------------- */

/* A free buffer with the next segment for a lane that has none. */
inline refill(lane)
{
	i = 0;
	do
	:: segment[i] -> i++
	:: else -> break
	od;
	pins[i] = 1;
	segment[i] = next_segment;
	buffer_closed[i] = 0;
	assert(next_segment <= SEGMENTS);
	buffer_of[next_segment] = i + 1;
	next_segment++;
	lane_ready[lane] = i + 1;
	printf("buffer %d of segment %d is ready\n", i, segment[i]);
	i = 0
}

#if BUFFERS == 2
#define ANY_FREE	(!segment[0] || !segment[1])
#elif BUFFERS == 3
#define ANY_FREE	(!segment[0] || !segment[1] || !segment[2])
#else
#define ANY_FREE	(!segment[0] || !segment[1] || !segment[2] || !segment[3])
#endif
#define STARVED(lane)	(!lane_open[lane] && !lane_ready[lane])

active proctype refill_work()
{
end:	do
	:: d_step { !lane_ready[0] && ANY_FREE -> refill(0) }
#if LANES == 2
	:: d_step { !lane_ready[1] && ANY_FREE -> refill(1) }
#endif
	/* lc_log_want_buffers() */
	:: d_step { (STARVED(0) || STARVED(LANES - 1)) && !ANY_FREE && want_seq < last_seq ->
		want_seq = last_seq;
		flush_start()
	   }
	od
}

init {
	byte n = 1;

	atomic {
		do				/* the buffers were used before */
		:: n <= ALL_SLOTS -> lower[n - 1] = OLD; upper[n - 1] = OLD; n++
		:: else -> n = 1; break
		od;
		run writer(0, WRITES_0);
		run writer(LANES - 1, WRITES_1);
#if READS
		run reader();
#endif
		do
		:: n <= SEQS -> run record_work(n); n++
		:: else -> break
		od
	}
}
