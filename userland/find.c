// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hard disk that belongs to a cache, and the SSD that a link names.
 *
 * The mark on the disk is the proof: it carries the random generation of the
 * format run.  What the disk says of itself (WWN, serial, PARTUUID, DM UUID)
 * finds it without reading every disk, and tells a disk from a copy of it.
 * Without a mark (lc-format --no-mark) identity is all there is.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "find.h"
#include "halves.h"
#include "identity.h"
#include "memory.h"
#include "pairing.h"
#include "storage.h"
#include "text.h"
#include "util.h"

bool backing_identity_known(const struct lc_sb *sb)
{
	return sb->backing_wwn[0] || sb->backing_serial[0] || sb->backing_partuuid[0] ||
	       sb->backing_dm_uuid[0];
}

bool backing_identity_matches(const struct lc_sb *sb, const struct identity *id)
{
	if (sb->backing_dm_uuid[0])
		return !strcmp(sb->backing_dm_uuid, id->dm_uuid);
	if (sb->backing_partuuid[0])
		return !strcmp(sb->backing_partuuid, id->partuuid);
	if (id->partuuid[0] || id->dm_uuid[0])
		return false;
	if (sb->backing_wwn[0])
		return !strcmp(sb->backing_wwn, id->wwn);
	return sb->backing_serial[0] && !strcmp(sb->backing_serial, id->serial);
}

bool backing_provable(const struct lc_sb *sb)
{
	return sb->mark_offset != LC_NO_MARK || backing_identity_known(sb) ||
	       sb->flags & LC_SB_CLEAN || !sb->epoch;
}

static int refuse(const struct device *hdd, bool quiet, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct device *hdd, bool quiet, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (quiet)
		return -EXDEV;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	complain(hdd->path, "%s", text);
	return -EXDEV;
}

static int judge_mark(const struct lc_sb *sb, const struct lc_mark_info *mark,
		      const struct device *hdd, bool quiet)
{
	switch (lc_pairing_check(sb, mark)) {
	case LC_PAIRING_FOREIGN:
		return refuse(hdd, quiet,
			      "belongs to cache %s, this one is %s; name the right disk",
			      uuid_text(mark->cache_uuid), uuid_text(sb->cache_uuid));
	case LC_PAIRING_INTERRUPTED:
		return refuse(hdd, quiet, "%s", attach_text(mark, hdd->path));
	case LC_PAIRING_ABANDONED:
		return refuse(hdd, quiet,
			      "went on without this cache since life %llu, so what the "
			      "cache holds is out of date; format a new cache for the disk, in the "
			      "same layout (lc-format --force=paired, see lc-format(8))",
			      mark->epoch);
	case LC_PAIRING_OLD_CACHE:
		return refuse(hdd, quiet,
			      "has seen life %llu of the volume but the cache only life "
			      "%llu: the cache device is an old copy or lost its superblock; "
			      "find the right one, or see lc-check",
			      mark->epoch, sb->epoch);
	case LC_PAIRING_OLD_DISK:
		return refuse(hdd, quiet,
			      "is an old copy of the hard disk: its mark is of life %llu, the disk "
			      "of this cache was used in life %llu; attach that disk, or format a "
			      "new cache for this one and lose what the cache holds "
			      "(lc-format --force=paired --force=dirty-cache, see lc-format(8))",
			      mark->epoch, lc_pairing_seen(sb));
	case LC_PAIRING_FORKED:
		return refuse(hdd, quiet,
			      "was used with a copy of this cache, which went on without this one: its "
			      "mark is of life %llu and owner %llx, the superblock of life %llu and "
			      "owner %llx, after %llx; name the cache device that was used last, or "
			      "see --this-copy in lc-check(8)", mark->epoch, mark->owner, sb->epoch,
			      sb->owner, sb->mark_owner);
	case LC_PAIRING_LOST:
		return refuse(hdd, quiet,
			      "records lost data that nobody has accepted yet; see lc-check");
	default:
		return 0;
	}
}

static int verify_mark(const struct lc_sb *sb, const struct device *hdd, bool quiet)
{
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	unsigned int i;
	int ret;

	ret = marks_read(&marks, hdd, sb->mark_offset);
	if (ret)
		return ret;
	mark = marks_best(&marks);
	if (!mark && marks_unreadable(&marks))
		return refuse(hdd, quiet, "no good copy of the mark can be read at byte %llu, so "
			      "nobody knows if it is the hard disk of this cache; have it read "
			      "again, or name another one", sb->mark_offset);
	if (!mark && sb->incompat & LC_INCOMPAT_MOVED_HEAD && !sb->epoch)
		return refuse(hdd, quiet, "bears no mark, so lc-format was interrupted before it "
			      "took the disk, which is as it was: give the same lc-format command "
			      "again, or name the right disk");
	if (!mark)
		return refuse(hdd, quiet, "is not the hard disk of this cache: %s at byte %llu; "
			      "name the right one", marks.why[0], sb->mark_offset);
	for (i = 0; i < 2 && !quiet; i++) {
		if (marks.err[i])
			complain(hdd->path, "warning: mark copy %u is bad: %s; using the other one, "
				 "lc-check --repair writes it anew", i, marks.why[i]);
	}
	return judge_mark(sb, mark, hdd, quiet);
}

/*
 * The mark of another pair at a place where ours is not: the disk was paired anew, after it had
 * grown.  The module's lc_foreign_check() has the same rule and says why.
 */
static int verify_no_other(const struct lc_sb *sb, const struct device *hdd, bool quiet)
{
	u64 places[2] = { 0, mark_offset_in_place(hdd->bytes) };
	const struct lc_mark_info *mark;
	struct mark_pair marks;
	unsigned int i;
	u64 needs;
	int ret;

	for (i = 0; i < 2; i++) {
		if (places[i] == sb->mark_offset)
			continue;
		ret = marks_read(&marks, hdd, places[i]);
		if (ret)
			return ret;
		mark = marks_best(&marks);
		if (!mark || mark_belongs(mark, sb))
			continue;
		needs = mark->volume_sectors + (LC_MARK_BYTES >> 9);
		if (needs < sb->volume_sectors ||
		    (needs == sb->volume_sectors && sb->mark_offset != LC_NO_MARK))
			continue;
		return refuse(hdd, quiet, "bears the mark of cache %s too, at byte %llu, so it was "
			      "paired anew since; start that cache, or format anew",
			      uuid_text(mark->cache_uuid), places[i]);
	}
	return 0;
}

int backing_verify(const struct lc_sb *sb, const struct device *hdd, bool quiet)
{
	int ret;

	if (hdd->bytes < sb->backing_bytes)
		return refuse(hdd, quiet, "has %llu bytes but had %llu when it was formatted; "
			      "make it as large as it was, or name the right disk",
			      hdd->bytes, sb->backing_bytes);
	if (hdd->lbs > sb->backing_lbs)
		return refuse(hdd, quiet,
			      "has logical blocks of %u bytes but had %u when it was "
			      "formatted; attach it the way it was then",
			      hdd->lbs, sb->backing_lbs);
	ret = verify_no_other(sb, hdd, quiet);
	if (ret)
		return ret;
	if (sb->mark_offset == LC_NO_MARK) {
		if (backing_identity_known(sb) && !backing_identity_matches(sb, &hdd->id))
			return refuse(hdd, quiet, "is not the hard disk of this cache: it is %s; "
				      "name the right one", identity_text(&hdd->id));
		return 0;
	}
	ret = verify_mark(sb, hdd, quiet);
	if (!ret && !quiet && backing_identity_known(sb) &&
	    !backing_identity_matches(sb, &hdd->id))
		complain(hdd->path,
			 "warning: says it is %s, not the disk that was formatted, but "
			 "bears its mark; go on only if it is no old copy",
			 identity_text(&hdd->id));
	return ret;
}

struct search {
	const struct lc_sb *sb;
	const struct device *ssd;
	char **paths;
	bool *fits;
	unsigned int nr_fits, nr_free;
	char *only;		/* the last that fits */
};

static bool held(const char *path)
{
	struct device dev;
	int ret = device_open(&dev, path, DEVICE_QUIET | DEVICE_EXCL);

	if (!ret)
		device_close(&dev);
	return ret == -EBUSY;
}

/* Do two names stand for one storage?  A path below multipath is known by its WWN. */
static bool same_storage(const char *a, const char *b)
{
	enum storage_relation relation = STORAGE_APART;
	struct device dev[2];
	char *chains = NULL;

	if (device_open(&dev[0], a, DEVICE_QUIET))
		return false;
	if (!device_open(&dev[1], b, DEVICE_QUIET)) {
		relation = storage_relate(&dev[0], &dev[1], &chains);
		device_close(&dev[1]);
	}
	device_close(&dev[0]);
	free(chains);
	return relation == STORAGE_OVERLAP || relation == STORAGE_SAME_WWN;
}

static bool candidate(const struct search *s, const char *path, bool by_identity)
{
	struct device hdd;
	bool fits;

	if (device_open(&hdd, path, DEVICE_QUIET))
		return false;
	fits = hdd.devno != s->ssd->devno && hdd.bytes >= LC_MARK_BYTES &&
	       (!by_identity || backing_identity_matches(s->sb, &hdd.id)) &&
	       !backing_verify(s->sb, &hdd, true);
	device_close(&hdd);
	return fits;
}

/*
 * Fills fits[]; a disk that is held (a path below multipath) counts only if no other fits.
 * @below: only what is on the storage of this disk fits, or NULL.
 */
static void search(struct search *s, bool by_identity, const char *below)
{
	size_t i;

	s->nr_fits = 0;
	s->nr_free = 0;
	for (i = 0; s->paths[i]; i++) {
		s->fits[i] = candidate(s, s->paths[i], by_identity) &&
			     (!below || same_storage(s->paths[i], below));
		if (s->fits[i] && !held(s->paths[i]))
			s->nr_free++;
	}
	for (i = 0; s->paths[i]; i++) {
		if (!s->fits[i] || (s->nr_free && held(s->paths[i])))
			continue;
		s->nr_fits++;
		s->only = s->paths[i];
	}
}

/* Does it bear the mark of this cache, in whatever state? */
static bool bears_mark(const struct lc_sb *sb, const struct device *hdd)
{
	struct mark_pair marks;

	return sb->mark_offset != LC_NO_MARK && hdd->bytes >= LC_MARK_BYTES &&
	       !marks_read(&marks, hdd, sb->mark_offset) && marks_best(&marks) &&
	       mark_belongs(marks_best(&marks), sb);
}

/* A disk that has the identity or the mark but does not pass: say why, that is what helps. */
static void explain_none(const struct search *s)
{
	const struct lc_sb *sb = s->sb;
	struct device hdd;
	size_t i;

	for (i = 0; s->paths[i]; i++) {
		if (device_open(&hdd, s->paths[i], DEVICE_QUIET))
			continue;
		if (hdd.devno != s->ssd->devno &&
		    (backing_identity_matches(sb, &hdd.id) || bears_mark(sb, &hdd)))
			backing_verify(sb, &hdd, false);
		device_close(&hdd);
	}
	complain(s->ssd->path, "its hard disk was not found (%s%s%s%s%s%s%s%s%s); attach it, "
		 "or name it as the third argument", size_text(sb->backing_bytes),
		 sb->backing_serial[0] ? ", serial " : "", shown(sb->backing_serial),
		 sb->backing_wwn[0] ? ", WWN " : "", shown(sb->backing_wwn),
		 sb->backing_partuuid[0] ? ", PARTUUID " : "", shown(sb->backing_partuuid),
		 sb->backing_dm_uuid[0] ? ", DM UUID " : "", shown(sb->backing_dm_uuid));
}

/* As backing_find(), among the devices of @paths, ending in NULL. */
static char *find_among(const struct lc_sb *sb, const struct device *ssd, char **paths, bool quiet)
{
	bool has_mark = sb->mark_offset != LC_NO_MARK;
	struct search s = { .sb = sb, .ssd = ssd, .paths = paths };
	char *found = NULL;
	size_t i, nr = 0;

	while (paths[nr])
		nr++;
	s.fits = xcalloc(nr + 1, sizeof(*s.fits));
	if (backing_identity_known(sb))
		search(&s, true, NULL);
	if (!s.nr_fits && has_mark)
		search(&s, false, NULL);
	else if (!s.nr_free && has_mark)
		/* What is on the disk now, such as a multipath device, has another identity. */
		search(&s, false, s.only);
	if (s.nr_fits == 1) {
		found = xasprintf("%s", s.only);
	} else if (!s.nr_fits) {
		if (!quiet)
			explain_none(&s);
	} else if (!quiet) {
		for (i = 0; paths[i]; i++) {
			if (s.fits[i])
				complain(paths[i], "could be the hard disk of this cache");
		}
		complain(ssd->path, "more than one disk fits; name the right one as the third "
			 "argument (a copy of the disk must not be used)");
	}
	free(s.fits);
	return found;
}

char *backing_find(const struct lc_sb *sb, const struct device *ssd, bool quiet)
{
	char **paths = identity_list(), *found = find_among(sb, ssd, paths, quiet);

	identity_list_free(paths);
	return found;
}

char *backing_find_half(const struct lc_sb *sb, const struct device *ssd, bool quiet)
{
	char uuid[HALVES_UUID + 1], **paths, *found;
	struct halves halves;
	size_t i, nr = 0;

	/* A text of uuid_text() lasts for a few more calls only. */
	snprintf(uuid, sizeof(uuid), "%s", uuid_text(sb->cache_uuid));
	halves_find(&halves);
	paths = xcalloc(halves.nr + 1, sizeof(*paths));
	for (i = 0; i < halves.nr; i++) {
		if (!halves.list[i].cache && !strcmp(halves.list[i].uuid, uuid))
			paths[nr++] = halves.list[i].path;
	}
	found = find_among(sb, ssd, paths, quiet);
	free(paths);
	halves_free(&halves);
	return found;
}

/* --- the SSD -------------------------------------------------------------- */

/* How far the cache on a device has come. */
struct progress {
	bool fits;		/* its hard disk is there; looked for only if there is a choice */
	u64 epoch, sb_seq;
};

/* A copy that was left behind may have the higher epoch; the disk does not fit it then (T5). */
static int compare(const struct progress *a, const struct progress *b)
{
	if (a->fits != b->fits)
		return a->fits ? 1 : -1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return a->sb_seq < b->sb_seq ? -1 : a->sb_seq > b->sb_seq;
}

static bool read_progress(const char *path, bool choice, struct progress *progress)
{
	const struct lc_sb *sb = NULL;
	struct device dev;
	struct image img;
	char *hdd = NULL;

	if (device_open(&dev, path, DEVICE_QUIET))
		return false;
	if (!image_read(&img, &dev))
		sb = image_sb(&img);
	if (sb) {
		if (choice)
			hdd = backing_find_half(sb, &dev, true);
		progress->fits = hdd;
		free(hdd);
		progress->epoch = sb->epoch;
		progress->sb_seq = sb->sb_seq;
	}
	device_close(&dev);
	return sb;
}

/*
 * Of devices whose cache has come equally far: a device and one that is built on it are one
 * storage, and the upper one is free.  Return: the one to use, NULL if one is a copy.
 */
static const char *one_of(const char *a, const char *b)
{
	if (!same_storage(a, b))
		return NULL;
	return held(a) ? b : a;
}

static bool is_cache_of(const struct half *half, const char *uuid)
{
	return half->cache && !strcmp(half->uuid, uuid);
}

char *cache_find(const char *link, const char *uuid)
{
	const char *best = NULL, *rival = NULL, *path;
	struct progress far = { 0 }, got;
	struct halves halves;
	char *found = NULL;
	size_t i, nr = 0;
	int order;

	halves_find(&halves);
	for (i = 0; i < halves.nr; i++)
		nr += is_cache_of(&halves.list[i], uuid);
	for (i = 0; i < halves.nr; i++) {
		path = halves.list[i].path;
		if (!is_cache_of(&halves.list[i], uuid) || !read_progress(path, nr > 1, &got))
			continue;
		order = best ? compare(&got, &far) : 1;
		if (order > 0) {
			best = path;
			rival = NULL;
			far = got;
		} else if (!order && one_of(best, path)) {
			best = one_of(best, path);
		} else if (!order) {
			rival = path;
		}
	}
	if (rival)
		complain(rival, "holds the same cache as %s; one is a copy, which must not be used: "
			 "take it away, or name the SSD itself instead of %s", shown(best),
			 shown(link));
	else
		found = xasprintf("%s", best ? best : link);
	halves_free(&halves);
	return found;
}
