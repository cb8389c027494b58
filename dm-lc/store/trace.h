/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: one event for each step of data through a volume, in tracefs under events/lc.
 *
 * All arguments are numbers, so that a reader needs no structure of the module and no type
 * information: Debian's kernels have none of modules that are built elsewhere.  `dev` is the mapped
 * device.  What belongs together is joined by dev and seq (records), segment, or sector.
 * Names and fields are only ever added: lc-latency and others read them.
 *
 * A way of a write that is to be durable:
 *   record_closed -> record_ready (its last writer has left) -> record_sent (its turn, summed)
 *   -> record_written -> durable, with flush_begin and flush_end between these two if the write
 *   had no FUA.
 *
 * An event that is off costs a no-operation: arguments are what is at hand, and are computed from
 * only when it is on.  Any context.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lc

#if !defined(LC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LC_TRACE_H

#include <linux/blk_types.h>
#include <linux/blkdev.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

/* Where the data of a read is: numbers of lc_read. */
#define LC_TRACE_RAM	1
#define LC_TRACE_SSD	2
#define LC_TRACE_HDD	3
#define LC_TRACE_LOST	4

/* --- records -------------------------------------------------------------- */

/* Writers may put blocks into it.  It has no seq yet. */
TRACE_EVENT(lc_record_opened,
	TP_PROTO(dev_t dev, u64 segment, u32 slot),
	TP_ARGS(dev, segment, slot),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, segment)
		__field(u32, slot)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->segment = segment;
		__entry->slot = slot;
	),
	TP_printk("%d,%d segment %llu slot %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->segment, __entry->slot)
);

DECLARE_EVENT_CLASS(lc_record,
	TP_PROTO(dev_t dev, u64 seq, u64 segment, u32 slot, u32 blocks),
	TP_ARGS(dev, seq, segment, slot, blocks),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, seq)
		__field(u64, segment)
		__field(u32, slot)
		__field(u32, blocks)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->seq = seq;
		__entry->segment = segment;
		__entry->slot = slot;
		__entry->blocks = blocks;
	),
	TP_printk("%d,%d record %llu segment %llu slot %u blocks %u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->seq, __entry->segment, __entry->slot,
		  __entry->blocks)
);

/* It has its seq.  Writers that have slots in it may still be copying. */
DEFINE_EVENT(lc_record, lc_record_closed,
	TP_PROTO(dev_t dev, u64 seq, u64 segment, u32 slot, u32 blocks),
	TP_ARGS(dev, seq, segment, slot, blocks)
);

/* The last of them has left. */
DEFINE_EVENT(lc_record, lc_record_ready,
	TP_PROTO(dev_t dev, u64 seq, u64 segment, u32 slot, u32 blocks),
	TP_ARGS(dev, seq, segment, slot, blocks)
);

/* Its bio goes to the SSD. */
TRACE_EVENT(lc_record_sent,
	TP_PROTO(dev_t dev, u64 seq, u32 blocks, bool fua),
	TP_ARGS(dev, seq, blocks, fua),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, seq)
		__field(u32, blocks)
		__field(u8, fua)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->seq = seq;
		__entry->blocks = blocks;
		__entry->fua = fua;
	),
	TP_printk("%d,%d record %llu blocks %u fua %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->seq, __entry->blocks, __entry->fua)
);

DECLARE_EVENT_CLASS(lc_seq_ended,
	TP_PROTO(dev_t dev, u64 seq, blk_status_t status),
	TP_ARGS(dev, seq, status),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, seq)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->seq = seq;
		__entry->error = blk_status_to_errno(status);
	),
	TP_printk("%d,%d record %llu error %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->seq, __entry->error)
);

/* The bio has ended.  One that failed is sent again. */
DEFINE_EVENT(lc_seq_ended, lc_record_written,
	TP_PROTO(dev_t dev, u64 seq, blk_status_t status),
	TP_ARGS(dev, seq, status)
);

/* A FLUSH of the SSD has ended, which was sent for all records up to seq. */
DEFINE_EVENT(lc_seq_ended, lc_flush_end,
	TP_PROTO(dev_t dev, u64 seq, blk_status_t status),
	TP_ARGS(dev, seq, status)
);

DECLARE_EVENT_CLASS(lc_seq,
	TP_PROTO(dev_t dev, u64 seq),
	TP_ARGS(dev, seq),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, seq)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->seq = seq;
	),
	TP_printk("%d,%d record %llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->seq)
);

/* A FLUSH is sent for all records up to seq. */
DEFINE_EVENT(lc_seq, lc_flush_begin,
	TP_PROTO(dev_t dev, u64 seq),
	TP_ARGS(dev, seq)
);

/* All records up to seq survive a power cut; users who wait for them are told. */
DEFINE_EVENT(lc_seq, lc_durable,
	TP_PROTO(dev_t dev, u64 seq),
	TP_ARGS(dev, seq)
);

/* --- segments ------------------------------------------------------------- */

TRACE_EVENT(lc_segment_opened,
	TP_PROTO(dev_t dev, u64 segment, u32 lane),
	TP_ARGS(dev, segment, lane),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, segment)
		__field(u32, lane)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->segment = segment;
		__entry->lane = lane;
	),
	TP_printk("%d,%d segment %llu lane %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->segment, __entry->lane)
);

/* All segments below are free. */
TRACE_EVENT(lc_tail_moved,
	TP_PROTO(dev_t dev, u64 segment, u64 seq),
	TP_ARGS(dev, segment, seq),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, segment)
		__field(u64, seq)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->segment = segment;
		__entry->seq = seq;
	),
	TP_printk("%d,%d segment %llu record %llu", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->segment, __entry->seq)
);

/* --- users' bios ---------------------------------------------------------- */

DECLARE_EVENT_CLASS(lc_blocks,
	TP_PROTO(dev_t dev, u64 block, u64 blocks),
	TP_ARGS(dev, block, blocks),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, block)
		__field(u64, blocks)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->block = block;
		__entry->blocks = blocks;
	),
	TP_printk("%d,%d block %llu blocks %llu", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->block, __entry->blocks)
);

/* A write finds no buffer or segment, and waits.  These are the blocks that are left of it. */
DEFINE_EVENT(lc_blocks, lc_write_parked,
	TP_PROTO(dev_t dev, u64 block, u64 blocks),
	TP_ARGS(dev, block, blocks)
);

/* It does not wait any more: it is in the log, or goes another way. */
DEFINE_EVENT(lc_blocks, lc_write_continued,
	TP_PROTO(dev_t dev, u64 block, u64 blocks),
	TP_ARGS(dev, block, blocks)
);

/*
 * These blocks of the HDD have been read, or written through, and are in RAM to be written to the
 * SSD.  Those that nobody writes meanwhile are hits from then on, unless that write fails.
 */
DEFINE_EVENT(lc_blocks, lc_promoted,
	TP_PROTO(dev_t dev, u64 block, u64 blocks),
	TP_ARGS(dev, block, blocks)
);

/* Where the data of a read is.  One read may be split into several. */
TRACE_EVENT(lc_read,
	TP_PROTO(dev_t dev, u64 sector, u32 sectors, u32 place),
	TP_ARGS(dev, sector, sectors, place),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, sector)
		__field(u32, sectors)
		__field(u32, place)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->sector = sector;
		__entry->sectors = sectors;
		__entry->place = place;
	),
	TP_printk("%d,%d %llu + %u place %s", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->sector, __entry->sectors,
		  __print_symbolic(__entry->place, { LC_TRACE_RAM, "ram" }, { LC_TRACE_SSD, "ssd" },
				   { LC_TRACE_HDD, "hdd" }, { LC_TRACE_LOST, "lost" }))
);

/* --- writeback ------------------------------------------------------------ */

TRACE_EVENT(lc_batch_begin,
	TP_PROTO(dev_t dev, u64 first, u64 end, u32 blocks, u32 runs),
	TP_ARGS(dev, first, end, blocks, runs),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, first)
		__field(u64, end)
		__field(u32, blocks)
		__field(u32, runs)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->first = first;
		__entry->end = end;
		__entry->blocks = blocks;
		__entry->runs = runs;
	),
	TP_printk("%d,%d segments %llu to %llu blocks %u runs %u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->first, __entry->end - 1, __entry->blocks,
		  __entry->runs)
);

TRACE_EVENT(lc_batch_end,
	TP_PROTO(dev_t dev, u64 first, int error),
	TP_ARGS(dev, first, error),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, first)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->first = first;
		__entry->error = error;
	),
	TP_printk("%d,%d segment %llu error %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->first, __entry->error)
);

DECLARE_EVENT_CLASS(lc_run,
	TP_PROTO(dev_t dev, u64 block, u32 blocks, int error),
	TP_ARGS(dev, block, blocks, error),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, block)
		__field(u32, blocks)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->block = block;
		__entry->blocks = blocks;
		__entry->error = error;
	),
	TP_printk("%d,%d block %llu blocks %u error %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->block, __entry->blocks, __entry->error)
);

/* Blocks near each other on the hard disk: they are read from the SSD ... */
DEFINE_EVENT(lc_run, lc_run_begin,
	TP_PROTO(dev_t dev, u64 block, u32 blocks, int error),
	TP_ARGS(dev, block, blocks, error)
);

/* ... they have been read ... */
DEFINE_EVENT(lc_run, lc_run_read,
	TP_PROTO(dev_t dev, u64 block, u32 blocks, int error),
	TP_ARGS(dev, block, blocks, error)
);

/* ... and written. */
DEFINE_EVENT(lc_run, lc_run_written,
	TP_PROTO(dev_t dev, u64 block, u32 blocks, int error),
	TP_ARGS(dev, block, blocks, error)
);

/* --- life ----------------------------------------------------------------- */

/* enum lc_mode */
TRACE_EVENT(lc_mode_changed,
	TP_PROTO(dev_t dev, u32 mode),
	TP_ARGS(dev, mode),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, mode)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->mode = mode;
	),
	TP_printk("%d,%d mode %u", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->mode)
);

#endif /* LC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH store
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
