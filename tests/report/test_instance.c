/* SPDX-License-Identifier: MIT
 * test_instance.c: instances that are open at the same time take memory in proportion to their
 * number, and memory of those that were released is used again.
 */
#include "report/profile/instance.h"

#include <check.h>
#include <stdlib.h>

#define MANY 200000u

static bool is_dropped(void *context, struct instance *instance)
{
	(void)instance;
	++*(uint32_t *)context;
	return false;
}

START_TEST(many_at_the_same_time_take_memory_in_proportion)
{
	static struct instance *open[MANY];
	uint32_t dropped = 0;
	struct instances instances = { .final = is_dropped, .context = &dropped };
	size_t made;

	for (uint32_t i = 0; i < MANY; i++) {
		open[i] = instance_new(&instances, NULL, i + 1, i);
		ck_assert_uint_eq(open[i]->node, i + 1);
		ck_assert_ptr_null(open[i]->parent);
	}
	/* Launches whose GPU work is not known yet keep theirs open. */
	ck_assert_uint_lt(instances.made, MANY + 2048);
	ck_assert_uint_le(instances.reusable_room, 2 * instances.made);
	for (uint32_t i = 0; i < MANY; i++) {
		ck_assert_uint_eq(open[i]->begin_ns, i);
		instance_release(&instances, open[i]);
	}
	ck_assert_uint_eq(dropped, MANY);
	made = instances.made;
	for (uint32_t i = 0; i < MANY; i++)
		open[i] = instance_new(&instances, NULL, 1, 0);
	ck_assert_uint_eq(instances.made, made);
	instances_free_blocks(&instances);
}
END_TEST

static Suite *instance_suite(void)
{
	Suite *s = suite_create("instance");
	TCase *t = tcase_create("instance");

	tcase_add_test(t, many_at_the_same_time_take_memory_in_proportion);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(instance_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
