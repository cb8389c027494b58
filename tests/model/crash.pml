/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What survives a crash: the log on an SSD with a volatile cache, FLUSH and FUA,
 * writeback to a hard disk with a volatile cache, the tail, segments used again,
 * superblock and mark, power cuts and warm reboots at any moment, replay, further
 * lives.  replay.pml is the second half.
 *
 * Each atomic block is what the code does under one lock, or one command of a
 * device being taken or completed; a crash can come between any two of them.
 * A write is one step here (lane.pml takes it apart), so that two writers are one
 * that takes any block, and the reader is the judge of each new life.
 *
 * A copy of a block is named by the number of the write that made it: 1, 2, ...
 * Records have a place of fixed size, so the chain of headers of a segment is its
 * places in their order.
 *
 * Not modelled: discards, lost sectors, failing devices, more than one bad header,
 * the third superblock copy.
 *
 * Sizes
 *  LANES   open segments, 1 or 2.  The code has one; the rules for two are those of
 *          the design: a block in any open record is overwritten there, and the tail
 *          passes a segment only together with every lower seq.
 *  WRITES  in all lives together
 *  LIVES   crashes and clean stops at most, plus one
 *  NSEG    positions in the ring
 *  RECS    records in a segment
 *
 * What may happen besides writes, FLUSHes and power cuts
 *  WRITEBACK
 *  FUA       a record that a flush closes is made durable alone
 *  WARM      the machine restarts while the disks keep power and cache
 *  CLEAN     a life ends cleanly
 *  ROT_SB    at a start one of two superblock copies is unreadable
 *  ROT       a header of a durable record goes bad; then replay may refuse
 *  ROT_KNOWN   only if there is another header of its epoch
 *  OLD_HDD   between two lives the hard disk, mark included, is replaced by a copy that was
 *            made between two earlier ones; then a start may refuse
 *  OLD_SSD   the same of the SSD
 *            Left out: the fingerprint, for it sees only samples; the superblock's `lives`.
 *
 * Mutants: a rule is left out by -D, and pan must find an error.
 *
 *  Hazard: L1   MUT_NO_EPOCHS        replay takes records of any life (R1, R2, R7)
 *  Hazard: L2   MUT_EPOCH_OF_SB      R1 knows only the superblock's own first seq
 *  Hazard: L2   MUT_LONE_HEADER      ... and those in headers, none of earlier lives: the
 *                                    only header of one goes bad, and a dead record of an
 *                                    earlier one takes its place
 *  Hazard: L3   MUT_NO_REPLAY_FLUSH  nothing flushes the SSD before a new life
 *  Hazard: L4   MUT_NO_DURABLE_SEQ   R5 is left out
 *  Hazard: L5   MUT_TAIL_EARLY       the tail moves while what overwrote a block is in RAM
 *  Hazard: L6   MUT_TAIL_LAST        the tail's seq is that behind the last durable record
 *  Hazard: L9   MUT_ONE_COPY         a superblock counts when its first copy is durable
 *  Hazard: L6   MUT_REUSE_EARLY      segments are free before a superblock says so
 *  Hazard: L9   MUT_SB_ORDER         the first copy is written first, even if only it is whole
 *  Hazard: L10  MUT_STILL_CLEAN      opening an epoch leaves `clean` set
 *  Hazard: L11  MUT_ORDER_OF_LANES   order is promised across two open lanes
 *  Hazard: L11  MUT_LANES_APART      a block that is open in one lane is written to another
 *  Hazard: F1   MUT_ACK_WRITTEN      a FLUSH completes when its records are written
 *  Hazard: F3   MUT_NO_HDD_FLUSH     blocks are clean before the hard disk was flushed
 *  Hazard: F4   MUT_FUA_ALONE        FUA although something below is not durable
 *  Hazard: W1   MUT_WB_VOLATILE      writeback takes records that are not durable
 *  Hazard: S7   MUT_OLD_DISK         a mark behind a clean superblock, the lives it knows of or
 *                                    the epoch of a record is taken
 *  Hazard: S7   MUT_TAIL_KEEPS_MARK  a move of the tail does not note that the mark is there
 *  Hazard: S7   MUT_OLD_SSD          a mark of a later life than the superblock is taken
 *  Hazard: P3   MUT_NO_VERIFY        replay does not verify records above durable_seq
 */
#ifndef LANES
#define LANES	1
#endif
#ifndef WRITES
#define WRITES	3
#endif
#ifndef LIVES
#define LIVES	3
#endif
#ifndef NSEG
#define NSEG	3
#endif
#ifndef RECS
#define RECS	2
#endif

#if defined(ROT) && !defined(MUT_LONE_HEADER) && !defined(MUT_EPOCH_OF_SB)
#define EARLIER_LIVES
#if LIVES > 4
#error "first[] is too short"
#endif
#endif

#if defined(OLD_HDD) || defined(OLD_SSD)
#define OLD
#endif

#define PLACES		(NSEG * RECS)
#define NONE		255
#define TORN		15		/* a copy that is a mixture */
#define LANE_LIMIT	LANES

#define BIT(i)		(1 << (i))
#define HAS(set, i)	(((set) >> (i)) & 1)
#define BLOCK_OF(write)	HAS(blocks, write)

/*
 * pan does not tell which statements inside a d_step were never reached.  So they
 * leave a mark, which the d_step clears first, and of the statements behind it, which
 * look at the marks, pan does tell.
 */
#define SAW(what)	saw = saw | (1 << what)
#define NOTE(what)	if :: saw & (1 << what) -> assert(true) :: else fi

#define DEAD_EPOCH	0
#define HIDDEN_HEADER	3
#define TORN_TAIL	4
#define LOST_WRITE	5
#define FROM_HDD	6
#define REFUSAL		7
#define CHECKPOINT	8
#define EVICTED		9
#define OVERWRITTEN	10
#define TAIL_WAITS	11
#define SEQ_OF_HEADER	12
#define OLD_REFUSED	13
#define OLD_TAKEN	14
hidden int saw;

/* --- media -------------------------------------------------------------- */

typedef record {
	byte segment;		/* its number; 0: no header can be decoded */
	byte seq;
	byte epoch;
	byte epoch_first;
	byte durable;		/* durable_seq when it was sealed */
	byte copy[2];		/* of each block; 0: none */
	bit torn		/* the data is not what was summed */
};

record ssd[PLACES];		/* what a power cut leaves */
record cached[PLACES];		/* the newer content, by state */
byte state[PLACES];
#define IDLE		0	/* nothing newer */
#define SENT		1	/* not completed */
#define SENT_FUA	2
#define COMPLETE	3	/* in the cache */
#define FLUSHING	4	/* and covered by the FLUSH at work */

byte hdd[2], hdd_cached[2];	/* a copy of each block; 0: cached[] is nothing newer */
byte mark_epoch;

typedef superblock {
	byte seq;		/* 0: unreadable */
	byte epoch;
	byte epoch_first;
	byte tail_seq;
	byte tail_segment;
#ifdef EARLIER_LIVES
	byte first[4];		/* seqs of earlier lives that have records, by epoch */
#endif
#ifdef OLD
	byte marked;		/* mark_epoch: the mark is of this life or a later one */
#endif
	byte next_seq;		/* these two with `clean` only */
	byte head;
	bit clean
};

superblock sb[2];
#ifdef CLEAN
byte ckpt_place[2];		/* the checkpoint: place + 1 */
bit ckpt_dirty[2];
#endif

#ifdef OLD
/* A copy of a disk. */
byte copies;			/* 1: there is one; 2: it was put back */
bit old;			/* and no life has started since */
#ifdef OLD_HDD
byte kept_hdd[2], kept_mark;
#endif
#ifdef OLD_SSD
record kept_ssd[PLACES];
superblock kept_sb[2];
#ifdef CLEAN
byte kept_place[2];
bit kept_dirty[2];
#endif
#endif
#endif

/* --- RAM: one life ------------------------------------------------------ */

#define DOWN		0
#define REPLAYED	1	/* nothing was written yet */
#define FLUSHED		2
#define OPENING		3	/* the superblock with the new epoch is in flight */
#define MARKING		4
#define RUNNING		5
#define CLOSING		6	/* the clean superblock is in flight */
#define REFUSED		7
byte phase;

superblock core;		/* core->sb */
byte sb_sent;			/* copy in flight + 1 */
byte sb_done;			/* copies that are durable, of those to be written */
bit whole;			/* the copy that is whole whatever becomes of the other one */

byte lane_segment[LANES];	/* 0: the lane has none */
byte lane_place[LANES];		/* of the open record in it */
byte open_copy[2 * LANES];	/* what is in the open record, for each block */
byte head;			/* next segment number */
byte tail;			/* as lc_ring knows it */
byte start_segment;
byte first_seq[NSEG];		/* of the segment at a position; 0: no record yet */
byte last_in[NSEG];		/* highest seq of the segment, for two lanes */

byte last_seq, written_seq, durable_seq;
byte flush_seq;
bit flushing;
byte completed;			/* set of seqs */
bit waiting;			/* a FLUSH of the user */
byte wait_seq;

byte place_of[2];		/* index: place + 1 of the newest copy; 0: on the HDD */
bit dirty[2];

byte wb_step, wb_end, wb_seq;
byte wb_item[2];		/* place + 1 */

/* --- what was promised -------------------------------------------------- */

byte writes;			/* so far */
byte blocks;			/* set of writes to block 1 */
byte lanes;			/* set of writes that went to lane 1 */
byte dead;			/* set of writes a crash has taken */
byte newest[2];			/* what a read must return now */
byte wanted[2];			/* when the user's FLUSH was issued */
byte promised[2];		/* survives every crash */
byte crashes;
bit rotten;
byte at;			/* the place a power cut is deciding on; else 0 */

/* --- scratch: not part of the state ------------------------------------- */

hidden byte i, j, k, n, best, expect, last, sure, stale, scan_end;
hidden byte found[PLACES];
hidden byte behind[PLACES];	/* found, but no chain of headers leads there */
hidden byte chosen[16];
hidden byte seen[2];

#define NOW(p, field)	(state[p] -> cached[p].field : ssd[p].field)

inline copy_record(to, from)
{
	to.segment = from.segment; to.seq = from.seq; to.epoch = from.epoch;
	to.epoch_first = from.epoch_first; to.durable = from.durable;
	to.copy[0] = from.copy[0]; to.copy[1] = from.copy[1];
	to.torn = from.torn
}

inline forget_record(r)
{
	r.segment = 0; r.seq = 0; r.epoch = 0; r.epoch_first = 0; r.durable = 0;
	r.copy[0] = 0; r.copy[1] = 0;
	r.torn = 0
}

inline copy_sb(to, from)
{
	to.seq = from.seq; to.epoch = from.epoch; to.epoch_first = from.epoch_first;
	to.tail_seq = from.tail_seq; to.tail_segment = from.tail_segment;
#ifdef EARLIER_LIVES
	to.first[1] = from.first[1]; to.first[2] = from.first[2]; to.first[3] = from.first[3];
#endif
#ifdef OLD
	to.marked = from.marked;
#endif
	to.next_seq = from.next_seq; to.head = from.head; to.clean = from.clean
}

inline forget_sb(s)
{
	s.seq = 0; s.epoch = 0; s.epoch_first = 0; s.tail_seq = 0; s.tail_segment = 0;
#ifdef EARLIER_LIVES
	s.first[1] = 0; s.first[2] = 0; s.first[3] = 0;
#endif
#ifdef OLD
	s.marked = 0;
#endif
	s.next_seq = 0; s.head = 0; s.clean = 0
}

inline settle(p)		/* what is in the cache reaches the medium */
{
	copy_record(ssd[p], cached[p]);
	forget_record(cached[p]);
	state[p] = IDLE
}

/* --- writers ------------------------------------------------------------ */

/* [lane->lock, ring->lock] A buffer with the next free segment; what it held leaves the index. */
inline open_segment(l)
{
	d_step {
		saw = 0;
		lane_segment[l] = head;
		lane_place[l] = (head % NSEG) * RECS;
		for (i : 0 .. 1) {
			if
			:: place_of[i] && (place_of[i] - 1) / RECS == head % NSEG ->
				assert(!dirty[i]);	/* evict() */
				place_of[i] = 0;
				SAW(EVICTED);
				/* Reads go to the hard disk from now on. */
				assert((hdd_cached[i] -> hdd_cached[i] : hdd[i]) == newest[i])
			:: else
			fi
		}
		first_seq[head % NSEG] = 0;
		last_in[head % NSEG] = 0;
		head++;
		i = 0
	}
#ifdef WRITEBACK
	NOTE(EVICTED)
#endif
}

/* [bucket lock, with a reference on the record] The whole of write.c. */
inline write_block(b, l)
{
	d_step {
		writes++;
		blocks = blocks | (b << writes);
		newest[b] = writes;
		printf("write %d: block %d, lane %d\n", writes, b, l);
		if
#if LANES == 2 && !defined(MUT_LANES_APART)
		:: open_copy[2 * (1 - l) + b] ->	/* open in the other lane: overwrite it there */
			open_copy[2 * (1 - l) + b] = writes;
			lanes = lanes | ((1 - l) << writes)
#endif
		:: else ->
			open_copy[2 * l + b] = writes;
			lanes = lanes | (l << writes);
			place_of[b] = lane_place[l] + 1;
			dirty[b] = 1
		fi
	}
}

#define MAY_WRITE(l)	(phase == RUNNING && writes < WRITES && lane_segment[l])
/* Two lanes without a segment are alike: then the first opens. */
#define MAY_OPEN(l)	(phase == RUNNING && writes < WRITES && !lane_segment[l] && \
			 lane_segment[0] >= (l) && head < tail + NSEG)
#define USED(l)		(open_copy[2 * (l)] || open_copy[2 * (l) + 1])

/* [lane->lock, log->lock] record_close(); no writer is inside, so the record is submitted. */
inline close_record(l, how)
{
	k = lane_place[l];
	last_seq++;
	cached[k].segment = lane_segment[l];
	cached[k].seq = last_seq;
	cached[k].epoch = core.epoch;
	cached[k].epoch_first = core.epoch_first;
	cached[k].durable = durable_seq;
	cached[k].copy[0] = open_copy[2 * l];
	cached[k].copy[1] = open_copy[2 * l + 1];
	open_copy[2 * l] = 0;
	open_copy[2 * l + 1] = 0;
	state[k] = how;
	printf("record %d.%d closed: place %d of segment %d, copies %d %d\n", core.epoch, last_seq,
	       k, lane_segment[l], cached[k].copy[0], cached[k].copy[1]);
	if
	:: !first_seq[k / RECS] -> first_seq[k / RECS] = last_seq
	:: else
	fi;
	last_in[k / RECS] = last_seq;
	lane_place[l]++;
	if
	:: lane_place[l] % RECS == 0 ->		/* full */
		lane_segment[l] = 0;
		lane_place[l] = 0
	:: else
	fi;
	k = 0
}

/* [log->lock] record_fua() of the record that is being closed. */
#ifdef MUT_FUA_ALONE
#define FUA_ALLOWED	(!flushing)
#else
#define FUA_ALLOWED	(!flushing && durable_seq == last_seq)
#endif

/* lc_lane_seal() of every lane. */
inline seal()
{
	for (i : 0 .. LANES - 1) {
		if
		:: USED(i) -> close_record(i, SENT)
		:: else
		fi
	}
	i = 0
}

active proctype writer()
{
end:	do
	:: atomic { MAY_OPEN(0) -> open_segment(0) }
	:: atomic { MAY_WRITE(0) -> write_block(0, 0) }
	:: atomic { MAY_WRITE(0) && writes -> write_block(1, 0) }
	:: d_step { phase == RUNNING && USED(0) -> close_record(0, SENT) }
#ifdef FUA
	:: d_step { phase == RUNNING && USED(0) && FUA_ALLOWED -> close_record(0, SENT_FUA) }
#endif
	:: d_step { phase == RUNNING && lane_place[0] % RECS && !USED(0) ->
		lane_segment[0] = 0;		/* lc_lane_seal(close_segment) */
		lane_place[0] = 0
	   }
#if LANES == 2
	:: atomic { MAY_OPEN(1) -> open_segment(1) }
	:: atomic { MAY_WRITE(1) -> write_block(0, 1) }
	:: atomic { MAY_WRITE(1) && writes -> write_block(1, 1) }
	:: d_step { phase == RUNNING && USED(1) -> close_record(1, SENT) }
	:: d_step { phase == RUNNING && lane_place[1] % RECS && !USED(1) ->
		lane_segment[1] = 0;
		lane_place[1] = 0
	   }
#endif
	od
}

/* --- the SSD and the log ------------------------------------------------ */

/* [log->lock] record_end(): written_seq follows the unbroken run (G1). */
inline record_end(p)
{
	printf("record %d written\n", cached[p].seq);
	completed = completed | BIT(cached[p].seq);
	if
	:: state[p] == SENT_FUA ->
#ifndef MUT_FUA_ALONE
		assert(durable_seq == cached[p].seq - 1);	/* G2 */
#endif
		durable_seq = cached[p].seq;
		settle(p)
	:: else -> state[p] = COMPLETE
	fi;
	do
	:: HAS(completed, written_seq + 1) -> written_seq++
	:: else -> break
	od;
	assert(durable_seq <= written_seq && written_seq <= last_seq)
}

/* One place of the SSD: a command to it completes. */
active [PLACES] proctype place()
{
end:	do
	:: d_step { phase == RUNNING && (state[_pid - 1] == SENT || state[_pid - 1] == SENT_FUA) ->
		record_end(_pid - 1)
	   }
	od
}

active proctype flush()
{
end:	do
	:: d_step { phase == RUNNING && !flushing && written_seq > durable_seq ->
		flushing = 1;
		flush_seq = written_seq;
		printf("FLUSH of %d begins\n", flush_seq);
		for (i : 0 .. PLACES - 1) {
			if
			:: state[i] == COMPLETE -> state[i] = FLUSHING
			:: else
			fi
		}
		i = 0
	   }
	:: d_step { phase == RUNNING && flushing ->	/* [log->lock] log_flush_end() */
		flushing = 0;
		printf("FLUSH ends\n");
		for (i : 0 .. PLACES - 1) {
			if
			:: state[i] == FLUSHING -> settle(i)
			:: else
			fi
		}
		if
		:: flush_seq > durable_seq -> durable_seq = flush_seq
		:: else
		fi;
		flush_seq = 0;
		i = 0
	   }
	od
}

/* A FLUSH of the user; a FUA write is a write and the same. */
active proctype user()
{
end:	do
	:: d_step { phase == RUNNING && !waiting &&
		    (newest[0] != promised[0] || newest[1] != promised[1]) ->
		printf("the user flushes\n");
		seal();
		waiting = 1;
		wait_seq = last_seq;
		wanted[0] = newest[0];
		wanted[1] = newest[1]
	   }
	:: d_step { phase == RUNNING && waiting &&
#ifdef MUT_ACK_WRITTEN
		wait_seq <= written_seq ->
#else
		wait_seq <= durable_seq ->
#endif
		waiting = 0;
		wait_seq = 0;
		printf("the user's FLUSH completes: %d and %d are durable\n", wanted[0], wanted[1]);
		promised[0] = wanted[0];
		promised[1] = wanted[1];
		wanted[0] = 0;
		wanted[1] = 0
	   }
	od
}

/* --- superblock and writeback ------------------------------------------- */

/* [meta->lock] One copy: PREFLUSH is over, the write with FUA is in flight. */
inline send_sb(copy)
{
#ifdef MUT_NO_REPLAY_FLUSH
	if
	:: phase != OPENING ->
#endif
	for (i : 0 .. PLACES - 1) {
		if
		:: state[i] >= COMPLETE -> settle(i)
		:: else
		fi
	}
#ifdef MUT_NO_REPLAY_FLUSH
	:: else
	fi;
#endif
	sb_sent = copy + 1;
	i = 0
}

/* [meta->lock] write_sb() */
inline write_sb()
{
	core.seq++;
	sb_done = 0;
#ifdef MUT_SB_ORDER
	send_sb(0)
#else
	send_sb(1 - whole)
#endif
}

#ifdef MUT_ONE_COPY
#define SB_DURABLE	(sb_done == 1)
#else
#define SB_DURABLE	(sb_done == 2)
#endif

active proctype superblock_copies()
{
end:	do
	:: d_step { sb_sent ->
		copy_sb(sb[sb_sent - 1], core);
		printf("superblock copy %d is durable: epoch %d, tail %d in segment %d, clean %d\n",
		       sb_sent - 1, core.epoch, core.tail_seq, core.tail_segment, core.clean);
		k = sb_sent - 1;
		sb_sent = 0;
		sb_done++;
		if
		:: SB_DURABLE
		:: else -> send_sb(1 - k)
		fi;
		k = 0
	   }
	od
}

#define OPEN_NOW(number)	(lane_segment[0] == (number) || lane_segment[LANES - 1] == (number))

/* segment_settled(): durable and nothing will be added. */
#ifdef MUT_WB_VOLATILE
#define SETTLED(number)		((number) < head && !OPEN_NOW(number))
#else
#define SETTLED(number)		((number) < head && !OPEN_NOW(number) && \
				 last_in[(number) % NSEG] <= durable_seq)
#endif

/* [lane->lock] first_seq_of(): lowest seq in the segments from this number on. */
inline find_first_seq(number)
{
	expect = last_seq + 1;
	n = number;
	do
	:: n < head ->
		k = first_seq[n % NSEG];
		if
		:: !k && n < start_segment ->	/* before a clean stop: the header knows */
			k = ssd[(n % NSEG) * RECS].seq;
			SAW(SEQ_OF_HEADER)
		:: else
		fi;
		if
		:: k && k < expect -> expect = k
		:: else
		fi;
		n++
	:: else -> break
	od;
	k = 0
}

#ifdef WRITEBACK
active proctype writeback()
{
end:	do
	:: d_step { phase == RUNNING && wb_step == 0 && SETTLED(tail) ->
		wb_end = tail + 1;		/* 1: collect */
		printf("writeback of segment %d\n", tail);
		for (i : 0 .. 1) {
			if
			:: dirty[i] && (place_of[i] - 1) / RECS == tail % NSEG ->
				wb_item[i] = place_of[i]
			:: else
			fi
		}
		wb_step = (wb_item[0] || wb_item[1] -> 1 : 4);
		i = 0
	   }
	:: d_step { phase == RUNNING && wb_step == 0 && SETTLED(tail) && SETTLED(tail + 1) ->
		printf("writeback of segments %d and %d\n", tail, tail + 1);
		wb_end = tail + 2;		/* as many as are settled */
		for (i : 0 .. 1) {
			if
			:: dirty[i] && ((place_of[i] - 1) / RECS == tail % NSEG ||
					(place_of[i] - 1) / RECS == (tail + 1) % NSEG) ->
				wb_item[i] = place_of[i]
			:: else
			fi
		}
		wb_step = (wb_item[0] || wb_item[1] -> 1 : 4);
		i = 0
	   }
	:: d_step { phase == RUNNING && wb_step == 1 ->
		for (i : 0 .. 1) {		/* 3: verify and copy */
			if
			:: wb_item[i] ->
				assert(!NOW(wb_item[i] - 1, torn));
				hdd_cached[i] = NOW(wb_item[i] - 1, copy[i])
			:: else
			fi
		}
		wb_step = 2;
		i = 0
	   }
	:: d_step { phase == RUNNING && wb_step == 2 ->
#ifndef MUT_NO_HDD_FLUSH
		for (i : 0 .. 1) {		/* 4: FLUSH */
			if
			:: hdd_cached[i] -> hdd[i] = hdd_cached[i]
			:: else
			fi;
			hdd_cached[i] = 0
		}
#endif
		printf("hard disk flushed: %d %d\n", hdd[0], hdd[1]);
		wb_step = 3;
		i = 0
	   }
	:: atomic { d_step { phase == RUNNING && wb_step == 3 ->
		saw = 0;
		for (i : 0 .. 1) {		/* 5: clean, each under its bucket lock */
			if
			:: wb_item[i] && wb_item[i] == place_of[i] -> dirty[i] = 0
			:: wb_item[i] && wb_item[i] != place_of[i] -> SAW(OVERWRITTEN)
			:: else
			fi;
			wb_item[i] = 0
		}
		wb_step = 4;
		i = 0
	   }
	   NOTE(OVERWRITTEN) }
	:: d_step { phase == RUNNING && wb_step == 4 ->
#ifndef MUT_TAIL_EARLY
		seal();				/* 6: the log is durable first */
		wb_seq = last_seq;
#endif
		wb_step = 5
	   }
	:: atomic { d_step { phase == RUNNING && wb_step == 5 && wb_seq <= durable_seq ->
		saw = 0;
		wb_seq = 0;
		find_first_seq(wb_end);
#ifdef MUT_TAIL_LAST
		expect = durable_seq + 1;
#endif
		last = 0;
		for (i : tail .. wb_end - 1) {
			if
			:: last_in[i % NSEG] > last -> last = last_in[i % NSEG]
			:: else
			fi
		}
		if
		:: last >= expect ->		/* only with two lanes: a lower seq is above */
			assert(LANES > 1);
			SAW(TAIL_WAITS);
			wb_end = 0;
			wb_step = 0
		:: else ->			/* 7 */
			core.tail_segment = wb_end;
			core.tail_seq = expect;
#if defined(OLD) && !defined(MUT_TAIL_KEEPS_MARK)
			core.marked = core.epoch;
#endif
			write_sb();
#ifdef MUT_REUSE_EARLY
			tail = wb_end;
#endif
			wb_step = 6
		fi;
		expect = 0; last = 0; n = 0; i = 0
	   }
#if LANES == 2
	   NOTE(TAIL_WAITS);
#endif
#ifdef CLEAN
	   NOTE(SEQ_OF_HEADER)
#endif
	   }
	:: d_step { phase == RUNNING && wb_step == 6 && !sb_sent && SB_DURABLE ->
		sb_done = 0;
		tail = wb_end;			/* [ring->lock] */
		wb_end = 0;
		wb_step = 0
	   }
	od
}

#endif

/* --- the end of a life -------------------------------------------------- */

inline forget_ram()
{
	forget_sb(core);
	sb_sent = 0; sb_done = 0;
	for (i : 0 .. LANES - 1) {
		lane_segment[i] = 0; lane_place[i] = 0;
		open_copy[2 * i] = 0; open_copy[2 * i + 1] = 0
	}
	for (i : 0 .. NSEG - 1) {
		first_seq[i] = 0; last_in[i] = 0
	}
	for (i : 0 .. 1) {
		place_of[i] = 0; dirty[i] = 0; wb_item[i] = 0; wanted[i] = 0; newest[i] = 0
	}
	head = 0; tail = 0; start_segment = 0;
	last_seq = 0; written_seq = 0; durable_seq = 0; flush_seq = 0; flushing = 0;
	completed = 0; waiting = 0; wait_seq = 0;
	wb_step = 0; wb_end = 0; wb_seq = 0;
	i = 0;
	phase = DOWN
}

/* Each volatile write is kept, dropped or torn. */
inline cut_power()
{
	at = 0;
	do
	:: at < PLACES && state[at] ->
		if
		:: d_step { settle(at); printf("place %d kept\n", at) }
		:: d_step {
			forget_record(cached[at]);
			state[at] = IDLE;
			printf("place %d dropped\n", at)
		   }
		:: d_step {
			forget_record(cached[at]);
			forget_record(ssd[at]);
			state[at] = IDLE;
			printf("header at place %d torn\n", at)
		   }
		:: d_step { settle(at); ssd[at].torn = 1; printf("data at place %d torn\n", at) }
		fi;
		at++
	:: at < PLACES && !state[at] -> at++
	:: at == PLACES -> break
	od;
#ifdef WRITEBACK
	at = 0;
	do
	:: at < 2 && hdd_cached[at] ->
		if
		:: hdd[at] = hdd_cached[at]
		:: printf("block %d dropped by the hard disk\n", at)
		:: d_step { hdd[at] = TORN; printf("block %d torn on the hard disk\n", at) }
		fi;
		hdd_cached[at] = 0;
		at++
	:: at < 2 && !hdd_cached[at] -> at++
	:: at == 2 -> break
	od;
#endif
	at = 0
}

#ifdef WARM
/* The disks keep their caches; what was on the way arrived or did not. */
inline restart_warm()
{
	at = 0;
	do
	:: at < PLACES && state[at] ->
		if
#ifdef FUA
		:: state[at] == SENT_FUA -> d_step { settle(at) }
#endif
		:: state[at] != SENT_FUA -> state[at] = COMPLETE
		:: state[at] <= SENT_FUA -> d_step { forget_record(cached[at]); state[at] = IDLE }
		fi;
		at++
	:: at < PLACES && !state[at] -> at++
	:: at == PLACES -> break
	od;
	at = 0
}
#endif

/*
 * A superblock copy on its way: the old one, the new one or a mixture.  A mark is not
 * torn, because all that changes in it while the SSD works lies in its first 512 bytes.
 */
inline cut_metadata()
{
	if
	:: d_step { sb_sent ->
		copy_sb(sb[sb_sent - 1], core);
		printf("superblock copy %d has arrived all the same\n", sb_sent - 1)
	   }
	:: d_step { sb_sent ->
		forget_sb(sb[sb_sent - 1]);
		printf("superblock copy %d is torn\n", sb_sent - 1)
	   }
	:: phase == MARKING -> mark_epoch = core.epoch
	:: skip
	fi
}

active proctype power()
{
end:	do
	:: atomic { phase != REFUSED && crashes < LIVES - 1 ->
		crashes++;
		printf("POWER CUT\n");
		cut_metadata();
		cut_power();
		d_step { forget_ram() }
	   }
#ifdef WARM
	:: atomic { phase != REFUSED && phase != DOWN && crashes < LIVES - 1 ->
		crashes++;
		printf("WARM REBOOT\n");
		cut_metadata();
		restart_warm();
		d_step { forget_ram() }
	   }
#endif
#ifdef CLEAN
	/* stop_clean(): everything is durable and nothing runs. */
	:: d_step { phase == RUNNING && crashes < LIVES - 1 && !wb_step && !waiting && !flushing &&
		    !USED(0) && !USED(LANES - 1) && durable_seq == last_seq ->
		crashes++;
		for (i : 0 .. 1) {
			ckpt_place[i] = place_of[i];
			ckpt_dirty[i] = dirty[i]
		}
		core.next_seq = last_seq + 1;
		core.head = (lane_segment[0] && lane_place[0] % RECS == 0 -> lane_segment[0] : head);
		core.clean = 1;
#ifdef OLD
		core.marked = core.epoch;
#endif
		printf("CLEAN STOP\n");
		write_sb();
		phase = CLOSING;
		i = 0
	   }
	:: d_step { phase == CLOSING && !sb_sent && SB_DURABLE -> forget_ram() }
#endif
	od
}

#include "replay.pml"
