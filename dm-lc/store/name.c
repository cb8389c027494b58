// SPDX-License-Identifier: GPL-2.0-only
/*
 * The name of the volume.  See name.h.
 *
 * Teardown: the work is queued by lc_name_look_later() only.  lc_name_stop() comes when all bios
 * and workers of the volume have ended, so that nothing calls that any more.
 */
#include <linux/ctype.h>
#include <linux/device-mapper.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "store/name.h"

#undef DM_MSG_PREFIX
#define DM_MSG_PREFIX "lc"

/* @to: DM_NAME_LEN bytes.  What does not fit is left out. */
static void spell(char *to, const char *from)
{
	char *end = to + DM_NAME_LEN - 1;

	for (; *from; from++) {
		u8 c = *from;
		bool plain = isascii(c) && isgraph(c) && c != ',';

		if (end - to < (plain ? 1 : 4))
			break;
		if (plain)
			*to++ = c;
		else
			to += sprintf(to, "\\x%02x", c);
	}
	*to = '\0';
}

/* [look_lock] @old goes to the front, @new leaves the list, or else the oldest does. */
static void remember(struct lc_name *name, const char *old, const char *new)
{
	unsigned int i;

	lockdep_assert_held(&name->look_lock);
	for (i = 0; i < LC_FORMER_NAMES - 1; i++) {
		if (!strcmp(name->former[i], new))
			break;
	}
	memmove(name->former[1], name->former[0], i * DM_NAME_LEN);
	strscpy(name->former[0], old, DM_NAME_LEN);
}

void lc_say(struct lc_name *name, int level, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	char now[DM_NAME_LEN];
	unsigned long flags;
	va_list args;

	spin_lock_irqsave(&name->lock, flags);
	strscpy(now, name->now, sizeof(now));
	spin_unlock_irqrestore(&name->lock, flags);
	va_start(args, fmt);
	text.va = &args;
	if (level <= LOGLEVEL_ERR)
		DMERR("%s (%s): %pV", name->number, now, &text);
	else if (level <= LOGLEVEL_WARNING)
		DMWARN("%s (%s): %pV", name->number, now, &text);
	else
		DMINFO("%s (%s): %pV", name->number, now, &text);
	va_end(args);
}

void lc_name_look(struct lc_name *name)
{
	char raw[DM_NAME_LEN], now[DM_NAME_LEN], old[DM_NAME_LEN];

	mutex_lock(&name->look_lock);
	if (dm_copy_name_and_uuid(name->md, raw, NULL))
		goto unlock;
	spell(now, raw);
	if (!strcmp(name->now, now))
		goto unlock;
	strscpy(old, name->now, sizeof(old));
	if (old[0])
		remember(name, old, now);
	spin_lock_irq(&name->lock);
	strscpy(name->now, now, sizeof(name->now));
	spin_unlock_irq(&name->lock);
	if (old[0])
		lc_say(name, LOGLEVEL_INFO, "renamed, the name was %s", old);
unlock:
	mutex_unlock(&name->look_lock);
}

static void look_work(struct work_struct *work)
{
	lc_name_look(container_of(work, struct lc_name, work));
}

void lc_name_look_later(struct lc_name *name)
{
	schedule_work(&name->work);
}

void lc_name_init(struct lc_name *name, struct mapped_device *md, const char *number)
{
	name->md = md;
	mutex_init(&name->look_lock);
	spin_lock_init(&name->lock);
	INIT_WORK(&name->work, look_work);
	strscpy(name->number, number, sizeof(name->number));
}

void lc_name_stop(struct lc_name *name)
{
	cancel_work_sync(&name->work);
}

void lc_name_former(struct lc_name *name, char *text)
{
	unsigned int i, n = 0;

	mutex_lock(&name->look_lock);
	for (i = 0; i < LC_FORMER_NAMES && name->former[i][0]; i++)
		n += sprintf(text + n, "%s%s", i ? "," : "", name->former[i]);
	mutex_unlock(&name->look_lock);
	if (!n)
		strscpy(text, "-", DM_NAME_LEN);
}
