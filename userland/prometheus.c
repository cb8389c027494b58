// SPDX-License-Identifier: GPL-2.0-only
/* Text for Prometheus, see prometheus.h. */
#include <inttypes.h>
#include <string.h>

#include "memory.h"
#include "prometheus.h"
#include "text.h"

#define BLOCK 4096

#define WITH_STATS " Counted while the option stats is on."

/* A metric that is a number of the status line. */
struct number {
	const char *key;
	const char *name;
	const char *labels;	/* besides the volume's; NULL: none */
	const char *type;
	const char *help;	/* NULL: the sample belongs to the metric of the line above */
	unsigned int unit;	/* the status counts in this many base units */
};

static const struct number numbers[] = {
	{ "dirty", "lc_dirty_bytes", NULL, "gauge",
	  "Data whose newest copy is not, or not durably, on the hard disk.", BLOCK },
	{ "cached", "lc_cached_bytes", NULL, "gauge",
	  "Data that has a copy in the cache, clean or dirty.", BLOCK },
	{ "capacity", "lc_capacity_bytes", NULL, "gauge",
	  "Data that fits the cache.", BLOCK },
	{ "segments", "lc_segments", NULL, "gauge", "Segments on the SSD.", 1 },
	{ "free_segments", "lc_free_segments", NULL, "gauge",
	  "Segments that may be written again.", 1 },
	{ "segment_bytes", "lc_segment_size_bytes", NULL, "gauge", "Size of one segment.", 1 },
	{ "buffers", "lc_buffers", NULL, "gauge", "Write buffers.", 1 },
	{ "buffers_used", "lc_buffers_used", NULL, "gauge",
	  "Write buffers that are filled, in flight to the SSD, or prepared.", 1 },
	{ "parked_blocks", "lc_parked_bytes", NULL, "gauge",
	  "Data of writes that wait for a buffer or a segment now.", BLOCK },
	{ "parked", "lc_parked_writes_total", NULL, "counter",
	  "Writes that had to wait for a buffer or a segment.", 1 },
	{ "batches", "lc_writeback_batches_total", NULL, "counter",
	  "Batches of writeback that freed segments.", 1 },
	{ "promoted", "lc_promoted_bytes_total", NULL, "counter",
	  "Data brought to the SSD because it was read.", BLOCK },
	{ "bypassed_bytes", "lc_bypassed_bytes_total", NULL, "counter",
	  "Data that went around the log, straight to the hard disk.", 1 },
	{ "warmed", "lc_warmed_bytes_total", NULL, "counter",
	  "Clean data that was found on the SSD again after a crash.", BLOCK },
	{ "warm_left", "lc_warm_left_segments", NULL, "gauge",
	  "Segments in which such data is still to be looked for.", 1 },
	{ "ssd_writes", "lc_device_writes_total", "device=\"ssd\"", "counter",
	  "Writes that dm-lc has sent to a device, not those of users past the cache.", 1 },
	{ "hdd_writes", "lc_device_writes_total", "device=\"hdd\"", "counter", NULL, 1 },
	{ "ssd_written_bytes", "lc_device_written_bytes_total", "device=\"ssd\"", "counter",
	  "Data of the writes that dm-lc has sent to a device.", 1 },
	{ "hdd_written_bytes", "lc_device_written_bytes_total", "device=\"hdd\"", "counter", NULL,
	  1 },
	{ "ssd_flushes", "lc_device_flushes_total", "device=\"ssd\"", "counter",
	  "Flushes that dm-lc has sent to a device, also those that came with a write.", 1 },
	{ "hdd_flushes", "lc_device_flushes_total", "device=\"hdd\"", "counter", NULL, 1 },
	{ "ssd_read_bytes", "lc_writeback_read_bytes_total", NULL, "counter",
	  "Data that writeback has read from the SSD.", 1 },
	{ "copies_local", "lc_copied_bytes_total", "node=\"local\"", "counter",
	  "Data copied to write buffers, by whether their memory is of the writer's node."
	  WITH_STATS, BLOCK },
	{ "copies_remote", "lc_copied_bytes_total", "node=\"remote\"", "counter", NULL, BLOCK },
	{ "relogged", "lc_relogged_bytes_total", NULL, "counter",
	  "Data that writeback logged again at the head.", BLOCK },
	{ "refused", "lc_refused_bytes", NULL, "gauge",
	  "Dirty data that the hard disk did not take; it is tried again.", BLOCK },
	{ "lost", "lc_lost_bytes", NULL, "gauge", "Blocks with lost sectors.", BLOCK },
	{ "head_seq", "lc_log_head_seq", NULL, "gauge",
	  "Sequence number of the next record of the log.", 1 },
	{ "tail_seq", "lc_log_tail_seq", NULL, "gauge",
	  "Sequence number of the oldest record that a replay would need.", 1 },
	{ "durable_seq", "lc_log_durable_seq", NULL, "gauge",
	  "Each record up to this sequence number survives a power cut.", 1 },
	{ "epoch", "lc_epoch", NULL, "gauge", "Starts of the volume.", 1 },
	{ "lanes", "lc_lanes", NULL, "gauge", "Segments that are filled in parallel.", 1 },
	{ "index_bytes", "lc_index_bytes", NULL, "gauge", "Memory of the index.", 1 },
};

/* A word of the status line: one sample for each value it may have, 1 for the one it has. */
struct state {
	const char *key;
	const char *name;
	const char *label;
	const char *help;
	const char *values[6];
};

static const struct state states[] = {
	{ "mode", "lc_mode", "mode", "1 for the mode of the volume, 0 for the others.",
	  { "rw", "ro", "degraded", "fail" } },
	{ "cache_mode", "lc_cache_mode", "mode",
	  "1 for what becomes of writes, 0 for the others.",
	  { "writeback", "writethrough", "writearound", "changing" } },
	{ "writeback", "lc_writeback_state", "state",
	  "1 for the state of writeback, 0 for the others.",
	  { "idle", "running", "draining", "retrying", "off" } },
};

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The text of a label: shown() left nothing that would end the line. */
static void print_label(FILE *out, const char *label, const char *value)
{
	fprintf(out, "%s=\"", label);
	for (value = shown(value); *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', out);
		putc(*value, out);
	}
	putc('"', out);
}

static void print_name(FILE *out, const char *name, const struct volume_view *view)
{
	fprintf(out, "%s{", name);
	print_label(out, "volume", view->facts.name);
}

static void print_numbers(FILE *out, const struct volume_view *views, size_t nr)
{
	const struct number *metric;
	size_t i;
	u64 n;

	for (metric = numbers; metric < numbers + ARRAY_SIZE(numbers); metric++) {
		if (metric->help)
			print_head(out, metric->name, metric->type, metric->help);
		for (i = 0; i < nr; i++) {
			if (!dm_status_number(&views[i].status, metric->key, &n))
				continue;
			print_name(out, metric->name, &views[i]);
			if (metric->labels)
				fprintf(out, ",%s", metric->labels);
			/* In doubles, as Prometheus keeps it: no product of two numbers overflows. */
			fprintf(out, "} %.17g\n", (double)n * metric->unit);
		}
	}
}

static void print_state(FILE *out, const struct state *metric, const struct volume_view *view,
			const char *value, bool set)
{
	print_name(out, metric->name, view);
	putc(',', out);
	print_label(out, metric->label, value);
	fprintf(out, "} %d\n", set);
}

static void print_states(FILE *out, const struct volume_view *views, size_t nr)
{
	const char *const *value, *now;
	const struct state *metric;
	bool known;
	size_t i;

	for (metric = states; metric < states + ARRAY_SIZE(states); metric++) {
		print_head(out, metric->name, "gauge", metric->help);
		for (i = 0; i < nr; i++) {
			now = dm_status_get(&views[i].status, metric->key);
			if (!now)
				continue;
			known = false;
			for (value = metric->values; *value; value++) {
				known |= !strcmp(*value, now);
				print_state(out, metric, &views[i], *value, !strcmp(*value, now));
			}
			if (!known)	/* the module is newer than the tools */
				print_state(out, metric, &views[i], now, true);
		}
	}
}

/* What is not in the status line. */
static void print_facts(FILE *out, const struct volume_view *views, size_t nr)
{
	const char *generation;
	size_t i;

	print_head(out, "lc_volumes", "gauge", "Running volumes.");
	fprintf(out, "lc_volumes %zu\n", nr);
	print_head(out, "lc_volume_info", "gauge", "1; what the volume is, in labels.");
	for (i = 0; i < nr; i++) {
		print_name(out, "lc_volume_info", &views[i]);
		fprintf(out, ",device=\"dm-%u\"", views[i].facts.minor);
		generation = dm_status_get(&views[i].status, "generation");
		if (generation) {
			putc(',', out);
			print_label(out, "generation", generation);
		}
		fprintf(out, "} 1\n");
	}
	print_head(out, "lc_size_bytes", "gauge", "Size of the volume.");
	for (i = 0; i < nr; i++) {
		print_name(out, "lc_size_bytes", &views[i]);
		fprintf(out, "} %" PRIu64 "\n", (uint64_t)views[i].facts.sectors << 9);
	}
	print_head(out, "lc_suspended", "gauge", "1 while the volume is suspended.");
	for (i = 0; i < nr; i++) {
		print_name(out, "lc_suspended", &views[i]);
		fprintf(out, "} %d\n", views[i].facts.suspended);
	}
}

void prometheus_print(FILE *out, const struct volume_view *views, size_t nr)
{
	print_facts(out, views, nr);
	print_states(out, views, nr);
	print_numbers(out, views, nr);
}
