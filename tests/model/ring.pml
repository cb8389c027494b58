/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether every task makes progress: bios that find no buffer are parked, the workers that
 * prepare buffers and continue bios, records that must become durable before their
 * buffer is free, the ring of segments, readers that hold segments, writeback that moves
 * the tail, blocks with lost sectors that it must log again.  refill.c, write.c, intake.c,
 * record.c, log.c, ring.c and writeback.c, as far as one waits for the other.
 *
 * No timer runs: idle_seal_ms is 0, writeback is off, and what the code tries again
 * after a while it tries when something has changed.  So whatever needs a timer to go
 * on is found as a deadlock.
 *
 * Data is not modelled; a write to a slot is one step under the bucket lock, a run of a
 * worker is one step, and records are written in their order.
 *
 * Sizes
 *  BIO_0, BIOS_0, BIO_1, BIOS_1   slots of a bio, and bios, of each of the two writers
 *  BUFFERS   4 is the least that can be configured
 *  MOST      segments that may be open, ready or not written, at most (backlog.h).  By default
 *            only half of the buffers is the bound
 *  SLOW      MOST is the bound from some moment on to a later one, not before and not after
 *  NO_CACHE  the SSD has no volatile cache: what is written is durable, and half of the buffers
 *            is no bound
 *  SLOTS     data slots of a buffer
 *  NSEG      positions in the ring
 *  RESERVE   free segments below which writeback runs even when it is off
 *  FLUSHES   by the user
 *  READS     of cached blocks
 *  LOST      so many blocks with lost sectors are in the first segment; RELOGGED bounds how
 *            often they are logged again
 *  KEPT      segments kept back for them; the code has up to four
 *  HEADER    slots that each further record of a buffer costs
 *  FULL      the log is full from the beginning, and durable: all that is left is kept back
 *  NO_WRITEBACK   where the ring is large enough
 *
 * Mutants: a rule is left out by -D, and pan must find an error.
 *
 *  Hazard: C7   MUT_OVERTAKE        a write does not queue behind parked ones
 *  Hazard: D1   MUT_NO_RESERVE      no segment is kept back for what must be logged again
 *  Hazard: D1   MUT_ONE_KEPT        one segment is kept back, and a FLUSH comes while blocks
 *                                   are logged again
 *  Hazard: D1   MUT_GREEDY          all the segments kept back are taken at once, writes use
 *                                   what is left over, and the tail moves past all or nothing
 *  Hazard: D1   MUT_NO_RELOG_GATE   writes go on while writeback waits for that segment
 *  Hazard: D1   MUT_RELOG_GATE      only the start of a bio looks whether writeback needs
 *                                   the reserve; one that is under way takes it
 *  Hazard: D2   MUT_OFF_IS_OFF      writeback off does not yield when the log is full
 *  Hazard: D3   MUT_SLEEP           a worker sleeps for a buffer, and it is the only thread
 *                                   (that is so when memory is short)
 *  Hazard: D3   MUT_NO_WISH         no task flushes for want of a buffer
 *  Hazard: D3   MUT_WISH_ONCE       a wish for buffers is forgotten while a FLUSH runs,
 *                                   which may free none
 *  Hazard: D3   MUT_NO_LOOK         a buffer that only waits for a FLUSH is as good as free,
 *                                   but nobody looks
 *  Hazard: D23  MUT_NO_LEAST        MOST is 1: writers wait for a slow SSD that has nothing to
 *                                   write
 *  Hazard: P3   MUT_NO_IDLE_WAIT    a segment is given out while a read is on its way
 *  Hazard: D3   MUT_NO_WAKE         the last read of a segment wakes no task
 */
#ifndef BIO_0
#define BIO_0	3
#endif
#ifndef BIOS_0
#define BIOS_0	2
#endif
#ifndef BIO_1
#define BIO_1	1
#endif
#ifndef BIOS_1
#define BIOS_1	1
#endif
#ifndef BUFFERS
#define BUFFERS	4
#endif
#ifndef MOST
#define MOST	BUFFERS
#endif
#ifdef MUT_NO_LEAST
#undef MOST
#define MOST	1
#endif
#ifndef SLOTS
#define SLOTS	2
#endif
#ifndef NSEG
#define NSEG	4
#endif
#ifndef RESERVE
#define RESERVE	1
#endif
#ifndef FLUSHES
#define FLUSHES	1
#endif
#ifndef READS
#define READS	1
#endif

#ifndef KEPT
#define KEPT	1
#endif
#ifndef HEADER
#define HEADER	0
#endif

#ifdef LOST
#define RELOGGED 12
#else
#define RELOGGED 0
#endif

#ifdef FULL
#define FIRST	(1 + NSEG - KEPT)
#else
#define FIRST	1
#endif

#define SEQS	(BIO_0 * BIOS_0 + BIO_1 * BIOS_1 + RELOGGED)
#define POS(n)	((n) % NSEG)
#define FREE	(tail + NSEG - head)

/* --- pool, lane: a buffer goes by the number of its segment ------------- */

byte in_use;			/* buffers that are not in the pool */
byte lane_buffer;
byte lane_free;			/* slots of it in closed records */
bit lane_open;			/* there is an open record */
byte lane_used;			/* slots of it */
byte ready;
byte next_to_open = FIRST;	/* lane->next_segment */

/* --- ring --------------------------------------------------------------- */

byte head = FIRST, tail = 1;
bit in_ram[NSEG];		/* segment->buf; these three by position */
bit buffer_closed[NSEG];
byte undurable[NSEG];
byte content[NSEG];		/* blocks that are mapped there */
#define NOTHING		0
#define DIRTY		1
#define CLEAN		2
byte refs[NSEG];
bit waiting;			/* ring->waiting */
#ifdef LOST
byte lost_in[LOST];		/* numbers of the segments with the lost blocks */
#endif

/* --- log ---------------------------------------------------------------- */

byte last_seq, written_seq, durable_seq, want_seq, flush_seq;
byte want_buffers_seq;		/* 0: no wish holds */
bit flushing;
byte position_of[SEQS + 1];	/* of records that are not durable */
byte target[2];			/* of the user and of writeback, who wait */
#ifdef SLOW
byte most = BUFFERS;		/* lc_submit_most() */
#else
#define most	MOST
#endif

/* --- workers ------------------------------------------------------------ */

bit refill_queued, unpark_queued;
bit kicked;			/* writeback was woken */
bit writers_held;
bit lend_reserve;
bit too_many_unwritten;		/* what it found */
bit refill_buffer;		/* it has one in hand, and */
byte refill_taken;		/* its segment number */

byte parked[2];			/* writers + 1, first come first served */
byte left[2];			/* slots the bio still needs */
bit behind[2];			/* the other one was parked when this one came */

#ifdef MUT_SLEEP
bit asleep;			/* the worker, in whatever it does */
#define MAY_WORK	!asleep
#else
#define MAY_WORK	true
#endif

hidden byte i;

/* --- log ---------------------------------------------------------------- */

/* [log->lock] flush_start() */
inline flush_start()
{
	if
	:: want_buffers_seq && want_buffers_seq <= durable_seq -> want_buffers_seq = 0
	:: else
	fi;
#ifndef NO_CACHE
	if
	:: !flushing && written_seq > durable_seq &&
	   (want_buffers_seq > durable_seq ||
	    (want_seq > durable_seq && want_seq <= written_seq) ||
	    (target[0] > durable_seq && target[0] <= written_seq) ||
	    (target[1] > durable_seq && target[1] <= written_seq)) ->
		flushing = 1;
		flush_seq = written_seq;
		printf("FLUSH of %d begins\n", flush_seq)
	:: else
	fi
#endif
}

/* buffer_retire(), lc_buffer_unpin() */
inline retire(pos)
{
	in_ram[pos] = 0;
	in_use--;
	printf("buffer at position %d is free, %d in use\n", pos, in_use);
	refill_queued = 1
}

/* [lane->lock, log->lock] Close the open record; no writer is inside. */
inline record_close()
{
	last_seq++;
	assert(last_seq <= SEQS);
	position_of[last_seq] = POS(lane_buffer);
	undurable[POS(lane_buffer)]++;
	lane_free = lane_free + lane_used + HEADER;
	printf("record %d closed: segment %d, %d slots\n", last_seq, lane_buffer, lane_used);
	lane_used = 0;
	lane_open = 0
}

/* [lane->lock] open_record(), or the buffer is full and is closed. */
inline record_open()
{
	if
	:: lane_free < SLOTS -> lane_open = 1
	:: else ->
		buffer_closed[POS(lane_buffer)] = 1;
		printf("buffer of segment %d closed\n", lane_buffer);
		if
		:: !undurable[POS(lane_buffer)] -> retire(POS(lane_buffer))
		:: else
		fi;
		lane_buffer = 0;
		lane_free = 0
	fi
}

/* [lane->lock] lc_lane_seal() */
inline seal()
{
	if
	:: lane_open && lane_used -> record_close(); record_open()
	:: else
	fi
}

/* [log->lock] All records up to that one are. */
inline become_durable(seq)
{
	do
	:: durable_seq < seq ->
		durable_seq++;
		i = position_of[durable_seq];
		position_of[durable_seq] = 0;
		undurable[i]--;
		if
		:: !undurable[i] && buffer_closed[i] ->
			retire(i);
			want_buffers_seq = 0		/* the refill worker looks again */
		:: else
		fi
	:: else -> break
	od;
	i = 0
}

active proctype ssd()
{
end:	do
	:: d_step { written_seq < last_seq ->
		written_seq++;
		printf("record %d written\n", written_seq);
		/* Writers wait for the SSD only while it has more to write (BL2). */
		assert(!parked[0] || !too_many_unwritten || refill_queued || unpark_queued ||
		       writers_held || written_seq < last_seq);
#ifdef NO_CACHE
		become_durable(written_seq);
#else
#ifndef MUT_NO_LOOK
		/* count_unflushed(): the last one of a closed buffer? */
		i = written_seq + 1;
		do
		:: i <= last_seq && position_of[i] != position_of[written_seq] -> i++
		:: else -> break
		od;
		if
		:: i > last_seq && buffer_closed[position_of[written_seq]] -> refill_queued = 1
		:: else
		fi;
		i = 0;
#endif
#endif
		flush_start()
	   }
#ifndef NO_CACHE
	:: d_step { flushing ->
		flushing = 0;
		printf("FLUSH of %d ends\n", flush_seq);
		become_durable(flush_seq);
		flush_seq = 0;
		flush_start()
	   }
#endif
	od
}

#ifdef SLOW
/* The measured rate changes, which wakes nobody. */
active proctype rate()
{
	most = MOST;
	most = BUFFERS
}

#endif

/* --- writes ------------------------------------------------------------- */

#define HAS_SLOT	(lane_open && lane_free + lane_used < SLOTS)

/*
 * lc_lane_reserve(), one turn: take a slot, or [lane->lock] advance().
 * got: 0 -EAGAIN, 1 a slot was filled, 2 try again.
 */
inline reserve(got)
{
	if
	:: HAS_SLOT ->
		lane_used++;
		content[POS(lane_buffer)] = DIRTY;
		got = 1
	:: else ->
		if
		:: lane_open -> record_close()
		:: else
		fi;
		if
		:: lane_buffer -> record_open()
		:: else
		fi;
		if
		:: !lane_buffer && ready ->
			lane_buffer = ready;
			ready = 0;
			next_to_open = lane_buffer + 1;
			record_open()
		:: else
		fi;
		if
		:: !ready -> refill_queued = 1
		:: else
		fi;
		got = (lane_open -> 2 : 0)
	fi
}

/*
 * While writeback wants the reserve, no write takes a slot.  record.pml has the order of
 * the loads that make this one step.
 */
#if defined(MUT_RELOG_GATE) || defined(MUT_NO_RELOG_GATE)
#define GATE	false
#else
#define GATE	writers_held
#endif
#ifdef MUT_RELOG_GATE
#define GATE_AT_START	writers_held
#else
#define GATE_AT_START	false
#endif

inline park(me)
{
	printf("bio of writer %d is parked, %d slots left\n", me, left[me]);
	parked[(parked[0] -> 1 : 0)] = me + 1;
	unpark_queued = 1
}

#ifdef MUT_OVERTAKE
#define MUST_PARK	false
#else
#define MUST_PARK	(parked[0] || GATE_AT_START)
#endif

/* In map(), then waiting for the bio to complete. */
proctype writer(byte me, bios, slots)
{
	byte got;

	do
	:: atomic { bios ->
		bios--;
		left[me] = slots;
		behind[me] = parked[0] == 2 - me;
		got = !MUST_PARK
	   }
		do
		:: d_step { got && left[me] ->
			if
			:: GATE -> got = 0
			:: else -> reserve(got)
			fi;
			assert(got != 1 || !behind[me]);	/* C7 */
			left[me] = left[me] - (got == 1)
		   }
		:: atomic { !got || !left[me] -> break }
		od;
		if
		:: atomic { left[me] -> d_step { park(me) } }
		:: !left[me]
		fi;
		atomic { !left[me] -> got = 0; behind[1 - me] = 0 }
	:: atomic { !bios -> break }
	od
}

/* unpark_work() of intake.c */
active proctype unpark_work()
{
	byte me, got;

end:	do
	:: d_step { unpark_queued && MAY_WORK ->
		unpark_queued = 0;
		printf("parked bios are tried again\n");
		do
		:: parked[0] && !GATE_AT_START ->
			me = parked[0] - 1;
			got = 2;
			do
			:: got && left[me] ->
				behind[me] = 0;
				if
				:: GATE -> got = 0
				:: else -> reserve(got)
				fi;
				left[me] = left[me] - (got == 1)
			:: else -> break
			od;
			if
			:: left[me] -> break		/* -EAGAIN: it stays the first */
			:: else -> parked[0] = parked[1]; parked[1] = 0
			fi
		:: else -> break
		od;
#ifdef MUT_SLEEP
		asleep = parked[0] > 0;
#endif
		me = 0;
		got = 0
	   }
#ifdef MUT_SLEEP
		atomic { !asleep || ready || lane_open -> asleep = 0; unpark_queued = parked[0] > 0 }
#endif
	od
}

/* --- buffers with segments: refill.c ------------------------------------ */

#if defined(MUT_NO_RESERVE)
#define MAY_TAKE	(FREE > 0)
#elif defined(MUT_ONE_KEPT)
#define MAY_TAKE	(FREE > (lend_reserve -> 0 : 1))
#elif defined(MUT_GREEDY)
#define MAY_TAKE	(FREE > (writers_held -> 0 : KEPT))
#else
#define MAY_TAKE	(FREE > (lend_reserve -> 0 : KEPT))
#endif

/* [log->lock] lacks_flush(): closed, written, not durable; into @unflushed */
inline count_unflushed()
{
	unflushed = 0;
	i = 0;
	do
	:: i < NSEG ->
		n = (buffer_closed[i] && undurable[i]);
		seq = written_seq + 1;
		do
		:: seq <= last_seq ->
			n = (position_of[seq] == i -> 0 : n);
			seq++
		:: else -> break
		od;
		unflushed = unflushed + n;
		i++
	:: else -> break
	od;
	i = 0;
	n = 0;
	seq = 0
}

/* too_many_unwritten() */
#if defined(NO_CACHE)
#define LIMIT	most
#else
#define LIMIT	(most < BUFFERS - BUFFERS / 2 -> most : BUFFERS - BUFFERS / 2)
#endif
#define MAY_GET	(lend_reserve || in_use - unflushed < LIMIT)

active proctype refill_work()
{
	bit added, want_buffers;
	byte unflushed, seq, n;

end:	do
	:: d_step { refill_queued && MAY_WORK ->
		refill_queued = 0;
		too_many_unwritten = 0;
		count_unflushed();
		do
		/* [pool->lock] */
		:: !ready && !want_buffers && !too_many_unwritten && !refill_buffer ->
			if
			:: !MAY_GET -> too_many_unwritten = 1
			:: MAY_GET && in_use < BUFFERS -> in_use++; refill_buffer = 1
			:: else -> want_buffers = 1
			fi
		:: !ready && !want_buffers && refill_buffer && !refill_taken ->
			if
			:: MAY_TAKE ->			/* [ring->lock] */
				refill_taken = head;
				head++;
				assert(content[POS(refill_taken)] != DIRTY);	/* evict() */
				content[POS(refill_taken)] = NOTHING
			:: else -> want_buffers = 1
			fi
		:: !ready && !want_buffers && refill_taken ->
			waiting = 1;			/* lc_segment_idle() */
			if
#ifndef MUT_NO_IDLE_WAIT
			:: refs[POS(refill_taken)] -> want_buffers = 1
#endif
			:: else ->
				waiting = 0;
				assert(!refs[POS(refill_taken)]);	/* reads are over */
				buffer_closed[POS(refill_taken)] = 0;
				in_ram[POS(refill_taken)] = 1;
				ready = refill_taken;
				printf("segment %d is ready, %d in use\n", ready, in_use);
				refill_buffer = 0;
				refill_taken = 0;
				lend_reserve = 0;
				added = 1
			fi
		:: ready || want_buffers || too_many_unwritten -> break
		od;
		if
		:: added -> unpark_queued = 1
		:: else
		fi;
#ifndef MUT_NO_WISH
		if
		:: want_buffers || unflushed > BUFFERS / 4 ->	/* lc_log_want_buffers() */
			printf("short of buffers: %d shall be durable\n", last_seq);
#ifdef MUT_WISH_ONCE
			want_buffers_seq = (flushing -> want_buffers_seq : last_seq);
#else
			want_buffers_seq = last_seq;
#endif
			flush_start()
		:: else
		fi;
#endif
		kicked = 1;
		added = 0;
		unflushed = 0;
		want_buffers = 0
	   }
	od
}

/* --- reads -------------------------------------------------------------- */

#if READS
active proctype reader()
{
	byte n, p;

	do
	:: atomic { n < READS ->
		n++;
		p = 0;
		do
		:: p < NSEG - 1 -> p++
		:: break
		od;
		if
		:: content[p] && !in_ram[p] -> refs[p]++
		:: else -> p = NSEG
		fi
	   }
		if
		:: d_step { p < NSEG ->		/* lc_segment_put() */
			refs[p]--;
#ifndef MUT_NO_WAKE
			if
			:: !refs[p] && waiting -> refill_queued = 1
			:: else
			fi;
#endif
			p = 0
		   }
		:: p == NSEG
		fi
	:: atomic { n == READS -> break }
	od
}

#endif

/* --- FLUSHes of the user ------------------------------------------------ */

#if FLUSHES
active proctype user()
{
	byte n;

	do
	:: atomic { n < FLUSHES ->
		n++;
		printf("the user flushes\n");
		d_step { seal(); target[0] = last_seq; flush_start() }
	   }
		atomic { target[0] <= durable_seq -> target[0] = 0 }
	:: atomic { n == FLUSHES -> break }
	od
}

#endif

/* --- writeback ---------------------------------------------------------- */

/* NEXT_SEGMENT: lc_lanes_used(), SETTLED: segment_drainable(), SHOULD_RUN: should_run() */
#define UNTOUCHED	(!lane_free && !lane_used)
#define NEXT_SEGMENT	(lane_buffer -> (UNTOUCHED -> lane_buffer : lane_buffer + 1) : \
				       (ready -> ready : next_to_open))
#define SETTLED(n)	((n) < NEXT_SEGMENT && !in_ram[POS(n)])
#ifdef MUT_OFF_IS_OFF
#define SHOULD_RUN	(tail < NEXT_SEGMENT && writers_held)
#else
#define SHOULD_RUN	(tail < NEXT_SEGMENT && (writers_held || FREE <= RESERVE))
#endif

#ifndef NO_WRITEBACK
#ifdef MUT_GREEDY
#define WHOLE		true
#define RESERVE_USED	writers_held
#else
#define WHOLE		(FREE >= KEPT)
#define RESERVE_USED	(writers_held || FREE < KEPT)
#endif
#define IN_BATCH(n)	((n) >= tail && (n) < batch_end)
#if LOST > 1
#define TO_RELOG	(IN_BATCH(lost_in[0]) || IN_BATCH(lost_in[1]))
#define LOWEST		(IN_BATCH(lost_in[0]) && \
			 (!IN_BATCH(lost_in[1]) || lost_in[0] < lost_in[1]) -> \
			 lost_in[0] : lost_in[1])
#else
#define TO_RELOG	IN_BATCH(lost_in[0])
#define LOWEST		lost_in[0]
#endif
#ifdef MUT_GREEDY
#define NO_PART		true
#else
#define NO_PART		(LOWEST == tail)
#endif
#define TO_FLUSH	(last_seq > durable_seq || (lane_open && lane_used))

active proctype writeback()
{
	byte batch_end, got;

end:	do
	:: atomic { kicked -> kicked = 0 };
end_poll:	do
#ifndef FULL		/* there it is from the beginning */
		/* The oldest segment must be durable first; that again and again. */
		:: atomic { SHOULD_RUN && !SETTLED(tail) && TO_FLUSH ->
			d_step { seal(); target[1] = last_seq; want_seq = last_seq; flush_start() }
		   }
			atomic { target[1] <= durable_seq -> target[1] = 0 }
#endif
		:: atomic { SHOULD_RUN && SETTLED(tail) ->
			/* All that is settled; one segment while the reserve is needed. */
			batch_end = tail;
			do
			:: SETTLED(batch_end) && (batch_end == tail || !RESERVE_USED) ->
				content[POS(batch_end)] = CLEAN;
				batch_end++
			:: else -> break
			od;
			printf("writeback of segments %d to %d\n", tail, batch_end - 1)
		   }
#ifdef LOST
			do
			:: d_step { TO_RELOG ->			/* lc_relog() */
				reserve(got);
				if
				:: got == 1 ->
					do
					:: IN_BATCH(lost_in[i]) -> break
					:: else -> i++
					od;
					lost_in[i] = lane_buffer;
					i = 0;
					printf("a lost block is logged again\n")
				:: else
				fi
			   }
				if
#ifndef MUT_GREEDY
				/* shorten_batch() */
				:: atomic { !got && LOWEST > tail ->
					batch_end = LOWEST;
					printf("only up to segment %d\n", batch_end - 1)
				   }
#endif
				:: atomic { !got && NO_PART ->
					writers_held = 1;	/* the reserve is ours (D1) */
					lend_reserve = 1;	/* one segment of it, now */
					refill_queued = 1
				   }
					/* flush_work(), a tick, and from the beginning */
					!refill_queued;
					(lane_open || ready)
				:: got
				fi
			:: atomic { !TO_RELOG -> break }
			od;
			got = 0;
#endif
			/* lc_wb_move_tail() */
			atomic { true -> d_step { seal(); target[1] = last_seq; want_seq = last_seq; flush_start() } }
			atomic { target[1] <= durable_seq ->
				target[1] = 0;
				tail = batch_end;
				batch_end = 0;
				refill_queued = 1;
#ifdef LOST
				/* relog_done() */
				lend_reserve = 0;
				if
				:: writers_held && WHOLE -> writers_held = 0; unpark_queued = 1
				:: else
				fi
#endif
			}
		:: atomic { !SHOULD_RUN -> break }
		od
	od
}

#endif

init {
	atomic {
		refill_queued = 1;	/* nothing happens before */
#ifdef FULL
		for (i : 1 .. FIRST - 1) {
			content[POS(i)] = DIRTY
		}
		i = 0;
#endif
#ifdef LOST
		lost_in[0] = 1;
#if LOST > 1
		lost_in[1] = 1;
#endif
#endif
		run writer(0, BIOS_0, BIO_0);
		run writer(1, BIOS_1, BIO_1)
	}
}
