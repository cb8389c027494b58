// SPDX-License-Identifier: GPL-2.0-only
/* The mode of a volume: what leads to which, and in which order others are told (HE1 to HE3). */
#include <kunit/test.h>
#include <linux/string.h>

#include "../store/env.h"
#include "../store/health.h"

struct volume {
	struct lc_env env;
	struct lc_health health;
	struct lc_sb sb;
	char told[16];		/* a letter for each operation */
	u32 nr;
	enum lc_mode mode_then;	/* when flushes were refused first */
	const char *reason_then; /* when the SSD was given up */
};

static void note(struct lc_health *health, char what)
{
	struct volume *v = container_of(health, struct volume, health);

	if (v->nr < sizeof(v->told) - 1)
		v->told[v->nr++] = what;
}

static void refuse(struct lc_health *health)
{
	struct volume *v = container_of(health, struct volume, health);

	if (!strchr(v->told, 'r'))
		v->mode_then = lc_mode(health);
	note(health, 'r');
}

static void give_up(struct lc_health *health)
{
	container_of(health, struct volume, health)->reason_then = READ_ONCE(health->reason);
	note(health, 'g');
}

static void wake(struct lc_health *health)
{
	note(health, 'w');
}

static void tell(struct lc_health *health)
{
	note(health, 't');
}

static const struct lc_health_ops ops = {
	.refuse_flushes = refuse, .give_up_ssd = give_up, .wake = wake, .tell = tell,
};

static void stop_name(void *data)
{
	struct lc_env *env = data;

	lc_name_stop(&env->name);
}

static struct volume *create(struct kunit *test, u64 mark_offset)
{
	struct volume *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, v);
	v->sb.mark_offset = mark_offset;
	v->env.sb = &v->sb;
	v->env.health = &v->health;
	lc_name_init(&v->env.name, NULL, "kunit");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_name, &v->env), 0);
	lc_health_init(&v->health, &v->env, &ops);
	return v;
}

/* Flushes are refused while the mode is still RW (HE2); the second failure changes nothing. */
static void fails_once(struct kunit *test)
{
	struct volume *v = create(test, 0);

	lc_health_fail(&v->health, "first");
	KUNIT_EXPECT_EQ(test, v->mode_then, LC_MODE_RW);
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_FAIL);
	KUNIT_EXPECT_STREQ(test, v->told, "rwt");
	lc_health_fail(&v->health, "second");
	KUNIT_EXPECT_STREQ(test, v->told, "rwtr");
	KUNIT_EXPECT_STREQ(test, v->health.reason, "first");
}

/* The mode never gets better (HE1). */
static void gets_no_better(struct kunit *test)
{
	struct volume *v = create(test, 0);

	KUNIT_EXPECT_TRUE(test, lc_health_degrade(&v->health));
	KUNIT_EXPECT_FALSE(test, lc_health_degrade(&v->health));
	lc_health_fail(&v->health, "of a volume without its SSD");
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_DEGRADED);
	v->mode_then = LC_MODE_RW;
	memset(v->told, 0, sizeof(v->told));
	v->nr = 0;
	lc_health_hdd_failed(&v->health);
	KUNIT_EXPECT_EQ(test, v->mode_then, LC_MODE_DEGRADED);
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_FAIL);
	KUNIT_EXPECT_STREQ(test, v->told, "rt");
	KUNIT_EXPECT_FALSE(test, lc_health_degrade(&v->health));
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_FAIL);
}

/* The SSD is given up once, and its user may say why (HE3). */
static void gives_up_once(struct kunit *test)
{
	struct volume *v = create(test, 0);

	lc_health_ssd_failed(&v->health, "first");
	lc_health_ssd_failed(&v->health, "second");
	KUNIT_EXPECT_STREQ(test, v->told, "g");
	KUNIT_EXPECT_STREQ(test, v->reason_then, "first");
	KUNIT_EXPECT_TRUE(test, lc_ssd_failed(&v->health));
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_RW);
}

/* Without a mark there is nothing but mode fail. */
static void fails_without_a_mark(struct kunit *test)
{
	struct volume *v = create(test, LC_NO_MARK);

	lc_health_ssd_failed(&v->health, "the SSD");
	KUNIT_EXPECT_STREQ(test, v->told, "rwt");
	KUNIT_EXPECT_EQ(test, v->mode_then, LC_MODE_RW);
	KUNIT_EXPECT_EQ(test, lc_mode(&v->health), LC_MODE_FAIL);
}

static struct kunit_case health_cases[] = {
	KUNIT_CASE(fails_once),
	KUNIT_CASE(gets_no_better),
	KUNIT_CASE(gives_up_once),
	KUNIT_CASE(fails_without_a_mark),
	{}
};

static struct kunit_suite health_suite = {
	.name = "dm_lc_health",
	.test_cases = health_cases,
};

kunit_test_suite(health_suite);
