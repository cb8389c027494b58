// SPDX-License-Identifier: GPL-2.0-only
/*
 * When lc-format says no.  Everything here only reads, and all of it runs
 * before the first byte is written.  All reasons are told at once, so that
 * nobody forces one only to meet the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "memory.h"
#include "refusal.h"
#include "signature.h"
#include "storage.h"
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
	  "one of them is an lc cache with data its hard disk does not have" },
	{ "hdd-signature", REFUSE_HDD_SIGNATURE,
	  "the hard disk holds a file system, RAID or LVM member or partition table" },
	{ "paired", REFUSE_PAIRED, "one of them is the hard disk of another cache" },
	{ "fs-at-end", REFUSE_FS_AT_END,
	  "in place: what the hard disk holds reaches into its last MiB, or may" },
	{ "same-disk", REFUSE_SAME_DISK, "SSD and hard disk are parts of one disk" },
	{ "other-path", REFUSE_OTHER_PATH,
	  "a disk with the WWN of one of them is in use: another path to it, as it seems" },
	{ "roles", REFUSE_ROLES,
	  "the SSD is rotational and the hard disk is not, or the SSD is larger" },
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

static int refuse_roles(struct pair_request *req)
{
	const struct device *ssd = req->ssd, *hdd = req->hdd;
	char *reason = NULL;
	int ret;

	if (ssd->id.rotational == 1 && !hdd->id.rotational)
		reason = xasprintf("is rotational, and the backing device %s is not", hdd->path);
	else if (ssd->bytes > hdd->bytes)
		reason = xasprintf("is larger (%s) than the backing device %s (%s)",
				   size_text(ssd->bytes), hdd->path, size_text(hdd->bytes));
	if (!reason)
		return 0;
	ret = refuse(req, REFUSE_ROLES, ssd, reason, "device names may have changed: see whether "
		     "SSD and hard disk are the wrong way round");
	free(reason);
	return ret;
}

/* A cache whose data would be lost, on the SSD, or on the disk because the two are swapped. */
static int refuse_cache(const struct pair_request *req, const struct device *dev)
{
	const char *why = NULL, *remedy;
	struct image img;
	int ret;

	ret = image_read(&img, dev);
	if (ret || !image_dirty(&img, &why))
		return ret;
	if (image_newer(&img))
		remedy = "use that version's tools to drain and remove it";
	else if (image_sb(&img))
		remedy = "start it with lc-resume, then lc-flush and lc-remove it";
	else
		remedy = "lc-check tells more; if an lc-format was interrupted, or nothing on it is needed, go on";
	return refuse(req, REFUSE_DIRTY_CACHE, dev, why, remedy);
}

/* The mark of another pairing: the device is that one's hard disk. */
static int refuse_mark(const struct pair_request *req, const struct device *dev, u64 offset)
{
	const char *remedy = "a new pairing makes that cache useless: drain and remove it first; if there is none, because lc-format was interrupted or the SSD is gone, go on";
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	char *reason;
	int ret;

	ret = marks_read(&marks, dev, offset);
	if (ret)
		return ret;
	mark = marks_best(&marks);
	if (!mark && !marks_any_magic(&marks)) {
		reason = xasprintf("may hold a dm-lc mark: its place, byte %llu, cannot be read",
				   offset);
	} else if (!mark) {
		reason = xasprintf("holds a damaged or newer dm-lc mark at byte %llu", offset);
	} else if (mark->state == LC_MARK_PAIRED && !mark->epoch) {
		reason = xasprintf("is paired with cache %s, which was never started",
				   uuid_text(mark->cache_uuid));
		remedy = "nothing is lost with it, and an interrupted lc-format leaves that, too: go on";
	} else {
		reason = xasprintf("is %s cache %s%s%s (mark at byte %llu)",
				   mark->state == LC_MARK_ABANDONED ?
				   "marked as having lost its" : "paired with",
				   uuid_text(mark->cache_uuid), mark->label[0] ? ", label " : "",
				   shown(mark->label), offset);
	}
	ret = refuse(req, REFUSE_PAIRED, dev, reason, remedy);
	free(reason);
	return ret;
}

/* Every mark there is, also where a disk of another size would have it. */
static int refuse_marks(const struct pair_request *req, const struct device *dev,
			struct old_marks *marks)
{
	struct signatures found;
	int ret, refused = 0;
	unsigned int i;

	ret = signatures_probe(dev, &found);
	if (!ret)
		ret = old_marks_find(dev, signatures_known_end(dev, &found), marks);
	for (i = 0; !ret && i < marks->nr; i++) {
		ret = refuse_mark(req, dev, marks->offset[i]);
		if (ret > 0) {
			refused = 1;
			ret = 0;
		}
	}
	return ret ? ret : refused;
}

static int refuse_ssd(struct pair_request *req)
{
	struct signatures found;
	int ret, refused = 0;
	char *reason;

	ret = signatures_probe(req->ssd, &found);
	if (ret)
		return ret;
	if (found.nr) {
		reason = xasprintf("holds %s", signatures_text(&found));
		refused |= refuse(
			req, REFUSE_SSD_SIGNATURE, req->ssd, reason,
			"formatting destroys it: use another device, or wipe it with wipefs(8)");
		free(reason);
	}
	ret = refuse_cache(req, req->ssd);
	if (ret < 0)
		return ret;
	refused |= ret;
	ret = refuse_marks(req, req->ssd, &req->ssd_marks);
	return ret < 0 ? ret : refused | ret;
}

/*
 * What cannot be overruled: the first MiB of what is on the disk is elsewhere, or may be, and
 * would be lost to a layout that does not know it.  Sets req->head_is_moved.
 */
static int refuse_moved_head(struct pair_request *req, const struct mark_pair *marks)
{
	const struct lc_mark_info *mark = marks_best(marks);
	u64 end = mark_offset_in_place(req->hdd->bytes);

	if (mark && attach_interrupted(mark)) {
		complain(req->hdd->path, "%s", attach_text(mark, req->hdd->path));
		return 1;
	}
	if (!req->in_place || marks->offset)
		return 0;
	if (!mark) {
		complain(req->hdd->path, "bears a damaged mark, which alone knows where its first "
			 "MiB is; see lc-check --repair");
		return 1;
	}
	if (!mark->head_offset)
		return 0;
	if (req->no_mark || mark->head_offset != end) {
		complain(req->hdd->path, "its first MiB lies at byte %llu because it is cached in "
			 "place; put it back with lc-detach first", mark->head_offset);
		return 1;
	}
	req->head_is_moved = true;
	return 0;
}

static int refuse_hdd(struct pair_request *req)
{
	const struct lc_mark_info *mark;
	struct mark_pair front;
	int ret, refused;

	refused = refuse_cache(req, req->hdd);
	if (refused < 0)
		return refused;
	ret = refuse_marks(req, req->hdd, &req->hdd_marks);
	if (ret < 0)
		return ret;
	refused |= ret;
	ret = marks_read(&front, req->hdd, 0);
	if (ret)
		return ret;
	if (marks_any_magic(&front) || marks_unreadable(&front))
		refused |= refuse_moved_head(req, &front);
	mark = marks_best(&front);
	req->keep_volume = req->in_place || (mark && mark->data_offset == LC_MARK_BYTES);
	return refused;
}

/* What would become the contents of the volume, or the disk's own. */
static int refuse_what_is_there(const struct pair_request *req, u64 offset)
{
	struct signatures found;
	char *reason;
	int ret;

	ret = signatures_probe_at(req->hdd, offset, &found);
	if (ret || !found.nr)
		return ret;
	reason = xasprintf("holds %s%s", signatures_text(&found),
			   offset ? " where the volume begins, at byte 1048576" : "");
	ret = refuse(req, REFUSE_HDD_SIGNATURE, req->hdd, reason,
		     "formatting destroys it: use --in-place to keep what is there");
	free(reason);
	return ret;
}

static int refuse_hdd_signatures(struct pair_request *req)
{
	u64 limit = mark_offset_in_place(req->hdd->bytes);
	char why[256], *reason;
	struct signatures found;
	int ret;

	if (!req->in_place) {
		ret = refuse_what_is_there(req, 0);
		if (ret || req->keep_volume)
			return ret;
		return refuse_what_is_there(req, LC_MARK_BYTES);
	}
	ret = signatures_probe(req->hdd, &found);
	if (ret || !found.nr)
		return ret;
	if (req->no_mark || signatures_end_below(req->hdd, &found, limit, why, sizeof(why)))
		return 0;
	reason = xasprintf("the last MiB is needed for the mark, and %s", why);
	ret = refuse(req, REFUSE_FS_AT_END, req->hdd, reason,
		     "shrink it by 1 MiB, or use --no-mark (see lc-format(8) for what that costs)");
	free(reason);
	return ret;
}

/* Two names of one storage never; two parts of one disk if that is what is wanted. */
static int refuse_shared(struct pair_request *req)
{
	enum storage_relation relation;
	char *chains, *reason;
	int ret;

	relation = storage_relate(req->ssd, req->hdd, &chains);
	if (relation == STORAGE_OVERLAP) {
		complain(req->ssd->path, "is on the same storage as the backing device: %s; name "
			 "two devices (this cannot be forced)", chains);
		free(chains);
		return -EINVAL;
	}
	if (relation == STORAGE_APART && req->ssd->id.whole != req->hdd->id.whole)
		return 0;
	reason = xasprintf("is on the same %s as the backing device%s%s",
			   relation == STORAGE_SAME_WWN ? "storage" : "disk",
			   chains ? ": " : "", chains ? chains : "");
	ret = refuse(req, REFUSE_SAME_DISK, req->ssd, reason, relation == STORAGE_SAME_WWN ?
		     "each would destroy the other: name two disks" :
		     "a cache on the disk it caches makes everything slower: use an SSD");
	free(reason);
	free(chains);
	return ret;
}

static int refuse_used(struct pair_request *req)
{
	const struct device *pair[] = { req->ssd, req->hdd };
	int ret = 0, refused = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pair); i++) {
		char *doubt;

		ret |= storage_check_unused(pair[i], pair[!i], &doubt);
		if (doubt)
			refused |= refuse(req, REFUSE_OTHER_PATH, pair[i], doubt,
					  "stop that first");
		free(doubt);
	}
	return ret ? -EBUSY : refused;
}

int refuse_pair(struct pair_request *req)
{
	int (*const checks[])(struct pair_request *) = {
		refuse_shared, refuse_used, refuse_roles, refuse_ssd, refuse_hdd,
		refuse_hdd_signatures,
	};
	int ret, refused = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		ret = checks[i](req);
		if (ret < 0)
			return ret;
		refused |= ret;
	}
	return refused;
}

char *holds_text(const struct device *dev)
{
	char *cache = NULL, *mark = NULL, *text;
	struct signatures found = { 0 };
	struct mark_pair marks;
	struct image img;
	const char *why;

	if (!image_read(&img, dev) && image_any_magic(&img)) {
		bool dirty = image_dirty(&img, &why);

		cache = xasprintf("an lc cache%s%s", dirty ? ": " : ", nothing unsaved in it",
				  dirty ? why : "");
	}
	if (!marks_read(&marks, dev, 0) && marks_any_magic(&marks))
		mark = xasprintf("the hard disk side of an lc volume");
	if (signatures_probe(dev, &found))
		found.nr = 0;
	text = xasprintf("%s%s%s%s%s", cache ? cache : "", cache && mark ? "; " : "",
			 mark ? mark : "", (cache || mark) && found.nr ? "; " : "",
			 found.nr ? signatures_text(&found) :
			 cache || mark ? "" : "nothing that is recognised");
	free(cache);
	free(mark);
	return text;
}
