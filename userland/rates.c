// SPDX-License-Identifier: GPL-2.0-only
/* Rates of running volumes, see rates.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "rates.h"
#include "text.h"
#include "util.h"

#define HEADING_EVERY	20	/* lines */
#define NR_COLUMNS	ARRAY_SIZE(columns)

/* Counters of the status line. */
static const struct column {
	const char *key;
	const char *heading;
	bool bytes;
} columns[] = {
	{ "ssd_written_bytes", "SSD-WR/s", true },
	{ "ssd_flushes", "SSD-FL/s", false },
	{ "hdd_written_bytes", "HDD-WR/s", true },
	{ "hdd_writes", "HDD-W/s", false },
	{ "hdd_flushes", "HDD-FL/s", false },
	{ "parked", "PARKED/s", false },
};

struct rate {
	char name[sizeof(((struct dm_facts *)0)->name)];
	u64 at, epoch;		/* ns; life of the volume: each counts from 0 */
	bool known[NR_COLUMNS];
	u64 count[NR_COLUMNS];
};

static void take(struct rate *rate, const struct volume_view *view)
{
	unsigned int i;

	snprintf(rate->name, sizeof(rate->name), "%s", view->facts.name);
	rate->at = now_ns();
	rate->epoch = 0;
	dm_status_number(&view->status, "epoch", &rate->epoch);
	for (i = 0; i < NR_COLUMNS; i++)
		rate->known[i] = dm_status_number(&view->status, columns[i].key, &rate->count[i]);
}

static const struct rate *last_of(const struct rates *rates, const struct rate *now)
{
	size_t i;

	for (i = 0; i < rates->nr; i++) {
		if (!strcmp(rates->known[i].name, now->name) &&
		    rates->known[i].epoch == now->epoch && rates->known[i].at < now->at)
			return &rates->known[i];
	}
	return NULL;
}

static void print_column(FILE *out, const struct rate *last, const struct rate *now,
			 unsigned int i)
{
	double per_second;

	if (!last || !last->known[i] || !now->known[i] || now->count[i] < last->count[i]) {
		fprintf(out, " %10s", "-");
		return;
	}
	per_second = (double)(now->count[i] - last->count[i]) * 1e9 / (double)(now->at - last->at);
	if (columns[i].bytes)
		fprintf(out, " %10s", size_text((u64)per_second));
	else
		fprintf(out, " %10.1f", per_second);
}

static void print_heading(FILE *out)
{
	unsigned int i;

	fprintf(out, "%-16s %-9s %10s", "NAME", "MODE", "DIRTY");
	for (i = 0; i < NR_COLUMNS; i++)
		fprintf(out, " %10s", columns[i].heading);
	fprintf(out, "  WRITEBACK\n");
}

void rates_print(FILE *out, struct rates *rates, const struct volume_view *views, size_t nr)
{
	struct rate *now = xcalloc(nr + 1, sizeof(*now));
	size_t i;
	unsigned int k;

	if (!nr)
		fprintf(out, "No lc volume is running.\n");
	else if (!rates->lines)
		print_heading(out);
	rates->lines = (rates->lines + nr) / HEADING_EVERY ? 0 : rates->lines + nr;
	for (i = 0; i < nr; i++) {
		const struct rate *last;

		take(&now[i], &views[i]);
		last = last_of(rates, &now[i]);
		fprintf(out, "%-16s %-9s %10s", shown(now[i].name),
			view_text(&views[i], "mode"), view_blocks(&views[i], "dirty"));
		for (k = 0; k < NR_COLUMNS; k++)
			print_column(out, last, &now[i], k);
		fprintf(out, "  %s\n", view_text(&views[i], "writeback"));
	}
	fflush(out);
	free(rates->known);
	rates->known = now;
	rates->nr = nr;
}

void rates_free(struct rates *rates)
{
	free(rates->known);
}
