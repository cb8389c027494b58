/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crash.pml, second half: the start of a life (recovery.c, replay.c, superblock.c)
 * and the judge, who compares what a user can read then with what he was promised.
 */


/* recovery.c: scan_log(), scan_settle(); then look_behind() from where the run ends. */
inline scan()
{
	for (i : 0 .. PLACES - 1) {
		found[i] = 0;
		behind[i] = 0
	}
	stale = 0;
	scan_end = core.tail_segment;
	n = core.tail_segment;
	do
	:: n < core.tail_segment + NSEG && stale <= LANE_LIMIT ->
		i = (n % NSEG) * RECS;
		stale++;
		for (j : i .. i + RECS - 1) {
			if
			:: NOW(j, segment) == n ->
				stale = 0;
				scan_end = n + 1;
				if
				:: NOW(i, segment) != n ->
					found[j] = 1;
					behind[j] = 1;
					SAW(HIDDEN_HEADER)
				:: else
				fi
			:: else
			fi
		}
		do
		:: NOW(i, segment) == n ->
			found[i] = 1;
			i++;
			if
			:: i % RECS == 0 -> break
			:: else
			fi
		:: else -> break
		od;
		n++
	:: else -> break
	od
}

inline look_behind()
{
	n = core.tail_segment;
	for (i : 0 .. PLACES - 1) {
		if
		:: found[i] > 1 && NOW(i, seq) == last -> n = NOW(i, segment)
		:: else
		fi
	}
	for (i : 0 .. PLACES - 1) {
		if
		:: !found[i] && NOW(i, segment) >= n && NOW(i, segment) < scan_end ->
			found[i] = 1;
			behind[i] = 1;
			SAW(HIDDEN_HEADER)
		:: else
		fi
	}
}

/*
 * replay.c: lc_replay_select().  found: 1 a header, 2 exists, 3 in the run.
 * R2 and R7 decide nothing here: they are for records written twice under one seq,
 * which is not modelled.
 */
#define OUTDONE(i, e)	(core.first[e] && NOW(i, epoch) < e && NOW(i, seq) >= core.first[e])

inline select_run()
{
	sure = core.epoch_first - 1;
	for (i : 0 .. PLACES - 1) {
		if
		:: found[i] ->
			found[i] = 2;
			if
			:: NOW(i, epoch) > core.epoch -> phase = REFUSED	/* R6 */
			:: else
			fi;
#ifndef MUT_NO_EPOCHS
			if					/* R1 */
			:: NOW(i, epoch) < core.epoch && NOW(i, seq) >= core.epoch_first ->
				found[i] = 1;
				SAW(DEAD_EPOCH)
#ifdef EARLIER_LIVES
			:: OUTDONE(i, 2) || OUTDONE(i, 3) -> found[i] = 1
#endif
			:: else
			fi;
			for (j : 0 .. PLACES - 1) {
				if
#ifndef MUT_EPOCH_OF_SB
				:: found[j] && NOW(j, epoch) > NOW(i, epoch) &&
				   NOW(i, seq) >= NOW(j, epoch_first) -> found[i] = 1
#endif
				:: found[j] && NOW(j, epoch) > NOW(i, epoch) &&
				   NOW(i, segment) >= NOW(j, segment) ->
					found[i] = 1				/* R7 */
				:: else
				fi
			}
#endif
		:: else
		fi;
#ifndef MUT_NO_DURABLE_SEQ
		if					/* R5 */
		:: found[i] == 2 && NOW(i, durable) > sure -> sure = NOW(i, durable)
		:: else
		fi
#endif
	}
	expect = core.tail_seq;				/* R3, R4 */
	do
	:: true ->
		best = NONE;
		for (i : 0 .. PLACES - 1) {
			if				/* R2 */
			:: found[i] >= 2 && !behind[i] && NOW(i, seq) == expect ->
				if
				:: best == NONE -> best = i
				:: best != NONE && NOW(i, epoch) > NOW(best, epoch) ->
					best = i
				:: else
				fi
			:: else
			fi
		}
		if
		:: best == NONE -> break
		:: else ->
			found[best] = 3;
			chosen[expect] = best;
			expect++
		fi
	od;
	last = expect - 1
}

inline refuse()
{
	printf("refused\n");
#ifdef OLD
	assert(rotten || old);
	SAW(OLD_REFUSED);
#else
	assert(rotten);
#endif
	SAW(REFUSAL);
	phase = REFUSED
}

inline set_mapping(b, p, d)
{
	place_of[b] = p + 1;
	dirty[b] = d
}

/* recovery.c: verify_tail(), apply_log() and what core.c's start() does with it. */
inline apply()
{
	expect = core.tail_seq;
#ifndef MUT_NO_VERIFY
	do
	:: expect <= last ->
		if
		:: expect > sure && NOW(chosen[expect], torn) ->
			last = expect - 1;
			SAW(TORN_TAIL)
		:: else -> expect++
		fi
	:: else -> break
	od;
#endif
	head = core.tail_segment;
	tail = core.tail_segment;
	expect = core.tail_seq;
	do
	:: expect <= last ->
		best = chosen[expect];
		if
		:: best % RECS == 0 -> first_seq[best / RECS] = expect
		:: else
		fi;
		if
		:: expect > last_in[best / RECS] -> last_in[best / RECS] = expect
		:: else
		fi;
		for (i : 0 .. 1) {
			if
			:: NOW(best, copy[i]) -> set_mapping(i, best, 1)
			:: else
			fi
		}
		if
		:: NOW(best, segment) >= head -> head = NOW(best, segment) + 1
		:: else
		fi;
		expect++
	:: else -> break
	od
}

#ifdef CLEAN
/* core.c: load_clean() */
inline load_checkpoint()
{
	i = (core.head % NSEG) * RECS;
	if
	:: NOW(i, segment) == core.head && NOW(i, epoch) > core.epoch -> refuse()
	:: else ->
		SAW(CHECKPOINT);
		head = core.head;
		tail = core.tail_segment;
		last = core.next_seq - 1;
		for (i : 0 .. 1) {
			place_of[i] = ckpt_place[i];
			dirty[i] = ckpt_dirty[i]
		}
	fi
}

#endif

/*
 * pairing.h, T2: the life that the mark has reached by what the superblock knows.  Records
 * tell the same: recovery.c, check_disk().
 */
#if defined(OLD) && !defined(MUT_OLD_DISK)
#define SEEN		(core.clean -> core.epoch : core.marked)

inline check_disk()
{
	for (i : 0 .. PLACES - 1) {
		if
		:: found[i] && NOW(i, epoch) > mark_epoch -> phase = REFUSED
		:: else
		fi
	}
}
#endif

inline replay()
{
	scan();
	select_run();
	look_behind();
	select_run();
#ifdef SEEN
	check_disk();
#endif
	if
	:: phase == REFUSED || last < sure -> refuse()
	:: else -> apply()
	fi
}

inline start()
{
	saw = 0;
	if
#ifndef MUT_OLD_SSD
	:: mark_epoch > core.epoch -> refuse()
#endif
#ifdef SEEN
	:: mark_epoch < SEEN -> refuse()
#endif
	:: else ->
#ifdef CLEAN
		if
		:: core.clean && mark_epoch == core.epoch -> load_checkpoint()
		:: else -> replay()
		fi;
#else
		replay();
#endif
		if
		:: phase == DOWN ->
			if
			:: core.tail_seq == last + 1 ->
				core.tail_segment = head;
				tail = head
			:: else
			fi;
			start_segment = head;
			last_seq = last; written_seq = last; durable_seq = last;
			printf("replayed up to %d, next segment %d\n", last, head);
			phase = REPLAYED
		:: else
		fi
	fi;
	for (i : 0 .. PLACES - 1) {
		found[i] = 0;
		behind[i] = 0
	}
	best = 0; expect = 0; last = 0; n = 0; sure = 0; stale = 0; scan_end = 0; i = 0; j = 0
}

/* What a user reads now, against what he was promised and what he has seen. */
inline judge()
{
	for (i : 0 .. 1) {
		if
		:: place_of[i] ->
			k = place_of[i] - 1;
			seen[i] = (NOW(k, torn) -> TORN : NOW(k, copy[i]))
		:: else ->
			seen[i] = (hdd_cached[i] -> hdd_cached[i] : hdd[i]);
			if
			:: seen[i] -> SAW(FROM_HDD)
			:: else
			fi
		fi;
		assert(seen[i] <= writes);				/* P3 */
		assert(seen[i] >= promised[i]);				/* P1 */
		assert(!seen[i] || BLOCK_OF(seen[i]) == i);		/* P3 */
		assert(!HAS(dead, seen[i]))				/* what was gone is gone */
	}
	printf("life %d: blocks read %d %d\n", core.epoch, seen[0], seen[1]);
	for (i : 0 .. 1) {						/* P2 */
		n = 1;
		do
		:: n < seen[i] ->
			if
			:: HAS(dead, n) -> skip
#ifndef MUT_ORDER_OF_LANES
			:: !HAS(dead, n) && HAS(lanes, n) != HAS(lanes, seen[i]) -> skip
#endif
			:: else -> assert(seen[BLOCK_OF(n)] >= n)
			fi;
			n++
		:: else -> break
		od
	}
	n = 1;
	do
	:: n <= writes ->
		if
		:: seen[BLOCK_OF(n)] < n ->
			dead = dead | BIT(n);
			SAW(LOST_WRITE)
		:: else
		fi;
		n++
	:: else -> break
	od;
#ifdef OLD
	if
	:: old -> SAW(OLD_TAKEN)
	:: else
	fi;
	old = 0;			/* its mark is of this life now */
#endif
	for (i : 0 .. 1) {
		newest[i] = seen[i];
		promised[i] = seen[i];	/* what was shown is not taken back (L3) */
		seen[i] = 0
	}
	i = 0; k = 0; n = 0
}

/* The copy to believe. */
#define BEST		(sb[1].seq > sb[0].seq -> 1 : 0)

#ifdef ROT
/* One header of a record that superblock or another header know to be durable. */
inline rot()
{
	at = 0;
	do
	:: at < PLACES - 1 -> at++
	:: break
	od;
	d_step {
		sure = sb[BEST].epoch_first - 1;
		best = NONE;
		for (i : 0 .. PLACES - 1) {
			if
			:: i != at && ssd[i].durable > sure &&
			   (ssd[i].epoch == sb[BEST].epoch || ssd[i].seq < sb[BEST].epoch_first) ->
				sure = ssd[i].durable
			:: else
			fi;
			if
			:: i != at && ssd[i].segment && ssd[i].epoch == ssd[at].epoch -> best = i
			:: else
			fi
		}
#ifndef ROT_KNOWN
		best = at;
#endif
		if
		:: !state[at] && ssd[at].segment && ssd[at].seq <= sure && best != NONE ->
			forget_record(ssd[at]);
			printf("header at place %d rots\n", at);
			rotten = 1
		:: else
		fi;
		i = 0; at = 0; sure = 0; best = 0
	}
}
#endif

#ifdef OLD
inline keep_copy()
{
	printf("a copy is made\n");
#ifdef OLD_HDD
	kept_hdd[0] = hdd[0];
	kept_hdd[1] = hdd[1];
	kept_mark = mark_epoch;
#endif
#ifdef OLD_SSD
	for (i : 0 .. PLACES - 1) {
		copy_record(kept_ssd[i], ssd[i])
	}
	for (i : 0 .. 1) {
		copy_sb(kept_sb[i], sb[i]);
#ifdef CLEAN
		kept_place[i] = ckpt_place[i];
		kept_dirty[i] = ckpt_dirty[i]
#endif
	}
	i = 0;
#endif
	copies = 1
}

inline put_back()
{
#ifdef OLD_HDD
	printf("the copy of the hard disk is put back: blocks %d %d, mark of life %d\n",
	       kept_hdd[0], kept_hdd[1], kept_mark);
	hdd[0] = kept_hdd[0];
	hdd[1] = kept_hdd[1];
	mark_epoch = kept_mark;
	kept_hdd[0] = 0;
	kept_hdd[1] = 0;
	kept_mark = 0;
#endif
#ifdef OLD_SSD
	printf("the copy of the SSD is put back: superblock of life %d\n", kept_sb[0].epoch);
	for (i : 0 .. PLACES - 1) {
		copy_record(ssd[i], kept_ssd[i]);
		forget_record(kept_ssd[i])
	}
	for (i : 0 .. 1) {
		copy_sb(sb[i], kept_sb[i]);
		forget_sb(kept_sb[i]);
#ifdef CLEAN
		ckpt_place[i] = kept_place[i];
		ckpt_dirty[i] = kept_dirty[i];
		kept_place[i] = 0;
		kept_dirty[i] = 0
#endif
	}
	i = 0;
#endif
	old = 1;
	copies = 2
}
#endif

active proctype life()
{
	d_step {			/* lc-format */
		sb[0].seq = 1; sb[0].tail_seq = 1; sb[0].tail_segment = 1; sb[0].epoch_first = 1;
		sb[1].seq = 1; sb[1].tail_seq = 1; sb[1].tail_segment = 1; sb[1].epoch_first = 1
	}
end:	do
#ifdef OLD
	/* Of before a life, while the machine is off and what the disks hold is on their media. */
	:: d_step { phase == DOWN && crashes < LIVES - 1 && !copies -> keep_copy() }
	:: d_step { phase == DOWN && crashes && copies == 1 -> put_back() }
#endif
#ifdef ROT
	:: atomic { phase == DOWN && !rotten -> rot() }
#endif
	:: atomic { phase == DOWN ->
		if
		:: d_step { whole = BEST; copy_sb(core, sb[whole]) }
#ifdef ROT_SB
		:: d_step { sb[1 - BEST].seq -> whole = 1 - BEST; copy_sb(core, sb[whole]) }
#endif
		fi;
		d_step { start() };
#if LIVES > 2
		NOTE(DEAD_EPOCH);
#endif
		NOTE(TORN_TAIL);
#ifdef ROT
		NOTE(HIDDEN_HEADER);
		NOTE(REFUSAL);
#endif
#ifdef OLD
		NOTE(OLD_REFUSED);
#endif
#ifdef CLEAN
		NOTE(CHECKPOINT)
#endif
	   }
	:: d_step { phase == REPLAYED ->		/* recover(): FLUSH the SSD */
#ifndef MUT_NO_REPLAY_FLUSH
		for (i : 0 .. PLACES - 1) {
			if
			:: state[i] -> settle(i)
			:: else
			fi
		}
		i = 0;
#endif
		phase = FLUSHED
	   }
	:: d_step { phase == FLUSHED ->			/* lc_meta_begin_epoch() */
#ifdef EARLIER_LIVES
		if				/* lc_replay_next_life() */
		:: core.epoch_first <= last_seq && core.epoch ->
			core.first[core.epoch] = core.epoch_first
		:: else
		fi;
#endif
		core.epoch++;
		core.epoch_first = last_seq + 1;
#ifndef MUT_STILL_CLEAN
		core.clean = 0;
		core.next_seq = 0;
		core.head = 0;
#endif
		phase = OPENING;
		write_sb()
	   }
	:: d_step { phase == OPENING && !sb_sent && SB_DURABLE -> sb_done = 0; phase = MARKING }
	:: atomic { phase == MARKING ->
		d_step {
			mark_epoch = core.epoch;
			phase = RUNNING;
			saw = 0;
			judge()
		}
		NOTE(LOST_WRITE);
#ifdef OLD
		NOTE(OLD_TAKEN);
#endif
#ifdef WRITEBACK
		NOTE(FROM_HDD)
#endif
	   }
	od
}
