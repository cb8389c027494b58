// SPDX-License-Identifier: GPL-2.0-only
/*
 * When lc-format says no.  Everything here only reads, and all of it runs
 * before the first byte is written.  All reasons are told at once, so that
 * nobody forces one only to meet the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"
#include "signature.h"
#include "text.h"
#include "util.h"

static const struct {
	const char *name;
	unsigned int refusal;
	const char *text;
} classes[] = {
	{ "ssd-signature", REFUSE_SSD_SIGNATURE,
	  "the SSD holds a file system, RAID or LVM member or partition table" },
	{ "dirty-cache", REFUSE_DIRTY_CACHE,
	  "the SSD is an lc cache with data its hard disk does not have" },
	{ "hdd-signature", REFUSE_HDD_SIGNATURE,
	  "the hard disk holds a file system, RAID or LVM member or partition table" },
	{ "paired", REFUSE_PAIRED, "the hard disk belongs to another cache" },
	{ "fs-at-end", REFUSE_FS_AT_END,
	  "in place: what the hard disk holds reaches into its last MiB, or may" },
	{ "same-disk", REFUSE_SAME_DISK, "SSD and hard disk are parts of one disk" },
};

unsigned int refusal_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		if (!strcmp(name, classes[i].name))
			return classes[i].refusal;
	}
	return 0;
}

void refusals_print(FILE *to)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++)
		fprintf(to, "      %-14s %s\n", classes[i].name, classes[i].text);
}

/* Complain and return 1, unless this class is forced: then only warn. */
static int refuse(const struct pair_request *req, unsigned int refusal, const struct device *dev,
		  const char *reason, const char *remedy)
{
	const char *name = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		if (classes[i].refusal == refusal)
			name = classes[i].name;
	}
	if (req->forced & refusal) {
		complain(dev->path, "warning: %s (--force=%s)", reason, name);
		return 0;
	}
	complain(dev->path, "%s; %s, or give --force=%s to overrule", reason, remedy, name);
	return 1;
}

static int refuse_ssd(const struct pair_request *req)
{
	const char *why = NULL;
	struct signatures found;
	struct image img;
	char *reason;
	int ret;

	ret = image_read(&img, req->ssd);
	if (ret)
		return ret;
	ret = signatures_probe(req->ssd, &found);
	if (ret)
		return ret;
	if (found.nr) {
		reason = xasprintf("holds %s", signatures_text(&found));
		ret |= refuse(
			req, REFUSE_SSD_SIGNATURE, req->ssd, reason,
			"formatting destroys it: use another device, or wipe it with wipefs(8)");
		free(reason);
	}
	/* What cannot be started has another remedy than what can. */
	if (image_dirty(&img, &why))
		ret |= refuse(req, REFUSE_DIRTY_CACHE, req->ssd, why, image_sb(&img) ?
			      "start it with lc-resume, then lc-flush and lc-remove it" :
			      "lc-check tells more; if an lc-format was interrupted, or nothing on "
			      "it is needed, go on");
	return ret;
}

static int refuse_marks(const struct pair_request *req)
{
	u64 offsets[2] = { 0, mark_offset_in_place(req->hdd->bytes) };
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	unsigned int i;
	char *reason;
	int ret;

	for (i = 0; i < 2; i++) {
		ret = marks_read(&marks, req->hdd, offsets[i]);
		if (ret)
			return ret;
		if (!marks_any_magic(&marks) && !marks_unreadable(&marks))
			continue;
		mark = marks_best(&marks);
		if (mark)
			reason = xasprintf("is %s cache %s%s%s",
					   mark->state == LC_MARK_ABANDONED ?
					   "marked as having lost its" : "paired with",
					   uuid_text(mark->cache_uuid),
					   mark->label[0] ? ", label " : "", shown(mark->label));
		else
			reason = xasprintf(marks_any_magic(&marks) ?
					   "holds a damaged or newer dm-lc mark" :
					   "may hold a dm-lc mark: its place cannot be read");
		ret = refuse(req, REFUSE_PAIRED, req->hdd, reason,
			     "a new pairing makes that cache useless: flush and remove it first; "
			     "if there is none, because lc-format was interrupted or the SSD is "
			     "gone, go on");
		free(reason);
		return ret;
	}
	return 0;
}

static int refuse_hdd_signatures(const struct pair_request *req)
{
	u64 limit = mark_offset_in_place(req->hdd->bytes);
	char why[256], *reason;
	struct signatures found;
	int ret;

	ret = signatures_probe(req->hdd, &found);
	if (ret || !found.nr)
		return ret;
	if (!req->in_place) {
		reason = xasprintf("holds %s", signatures_text(&found));
		ret = refuse(req, REFUSE_HDD_SIGNATURE, req->hdd, reason,
			     "formatting destroys it: use --in-place to keep what is there");
		free(reason);
		return ret;
	}
	if (req->no_mark || signatures_end_below(req->hdd, &found, limit, why, sizeof(why)))
		return 0;
	reason = xasprintf("the last MiB is needed for the mark, and %s", why);
	ret = refuse(req, REFUSE_FS_AT_END, req->hdd, reason,
		     "shrink it by 1 MiB, or use --no-mark (see lc-format(8) for what that costs)");
	free(reason);
	return ret;
}

/**
 * refuse_pair() - may these two be formatted?
 *
 * Return: 0 yes, 1 no (all reasons were told), or a negative errno.
 */
int refuse_pair(const struct pair_request *req)
{
	int (*const checks[])(const struct pair_request *) = {
		refuse_ssd, refuse_marks, refuse_hdd_signatures,
	};
	int ret, refused = 0;
	size_t i;

	if (req->ssd->id.whole == req->hdd->id.whole)
		refused |=
			refuse(req, REFUSE_SAME_DISK, req->ssd,
			       "is on the same disk as the backing device",
			       "a cache on the disk it caches makes everything slower: use an SSD");
	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		ret = checks[i](req);
		if (ret < 0)
			return ret;
		refused |= ret;
	}
	return refused;
}

/**
 * holds_text() - what is on a device, one line, to be freed
 */
char *holds_text(const struct device *dev)
{
	struct signatures found;
	struct mark_pair marks;
	struct image img;
	const char *why;
	char *text;

	if (!image_read(&img, dev) && image_any_magic(&img)) {
		bool dirty = image_dirty(&img, &why);

		text = xasprintf("an lc cache%s%s", dirty ? ": " : ", nothing unsaved in it",
				 dirty ? why : "");
	} else if (!signatures_probe(dev, &found) && found.nr) {
		text = xasprintf("%s", signatures_text(&found));
	} else if (!marks_read(&marks, dev, 0) && marks_any_magic(&marks)) {
		text = xasprintf("the hard disk side of an lc volume");
	} else {
		text = xasprintf("nothing that is recognised");
	}
	return text;
}
