/* SPDX-License-Identifier: MIT
 * test_joined_observers.c: one pass serves several observers.
 */
#include "report/profile/joined_observers.h"

#include <check.h>

struct counts {
	unsigned restarts, calls, levels;
	struct counts *before; /* who is called before this one */
};

static void count_restart(void *context)
{
	((struct counts *)context)->restarts++;
}

static void count_call(void *context, const struct observed_call *call)
{
	struct counts *counts = context;

	ck_assert_uint_eq(call->node, 7);
	counts->calls++;
	if (counts->before)
		ck_assert_uint_eq(counts->before->calls, counts->calls);
}

static void count_level(void *context, uint64_t at_ns, int64_t allocated, int64_t reserved)
{
	ck_assert_uint_eq(at_ns, 1);
	ck_assert_int_eq(allocated, 2);
	ck_assert_int_eq(reserved, -3);
	((struct counts *)context)->levels++;
}

static void ignore_instance(void *context, const struct observed_instance *instance)
{
	ck_assert_ptr_nonnull(context);
	ck_assert_ptr_nonnull(instance);
}

START_TEST(each_gets_what_it_has_a_callback_for)
{
	static const uint8_t nodes[3] = { 0, 1, 0 };
	struct counts first = { .before = NULL }, second = { .before = &first };
	const struct profile_observer one = { .context = &first,
		.restart = count_restart,
		.call = count_call },
				      other = { .context = &second,
					      .call = count_call,
					      .level = count_level,
					      .closed = ignore_instance,
					      .closed_nodes = nodes,
					      .closed_node_count = 3 };
	struct joined_observers joined = { .observers = { &one, &other }, .count = 2 };
	const struct profile_observer all = observers_join(&joined);

	ck_assert(!all.work);
	ck_assert(!all.segment);
	ck_assert(!all.counting);
	ck_assert_ptr_eq(all.closed_nodes, nodes);
	ck_assert_uint_eq(all.closed_node_count, 3);
	all.restart(all.context);
	all.call(all.context, &(struct observed_call){ .node = 7 });
	all.level(all.context, 1, 2, -3);
	all.closed(all.context, &(struct observed_instance){ .node = 1 });
	ck_assert_uint_eq(first.restarts, 1);
	ck_assert_uint_eq(second.restarts, 0);
	ck_assert_uint_eq(first.calls, 1);
	ck_assert_uint_eq(second.calls, 1);
	ck_assert_uint_eq(first.levels, 0);
	ck_assert_uint_eq(second.levels, 1);
}
END_TEST

static void count_closed(void *context, const struct observed_instance *instance)
{
	((unsigned *)context)[instance->node]++;
}

static void ignore_memory(void *context, const struct observed_memory *memory)
{
	ck_assert_ptr_nonnull(context);
	ck_assert_ptr_nonnull(memory);
}

/* One that must see memory at once makes all see it at once. One without it does not matter. */
START_TEST(memory_may_be_later_if_all_can_wait)
{
	const struct profile_observer can_wait = { .memory = ignore_memory,
		.memory_may_be_later = true },
				      at_once = { .memory = ignore_memory },
				      without = { .level = count_level };
	struct joined_observers joined = { .observers = { &can_wait, &without, &can_wait },
		.count = 3 };

	ck_assert(observers_join(&joined).memory_may_be_later);
	joined.observers[2] = &at_once;
	ck_assert(!observers_join(&joined).memory_may_be_later);
}
END_TEST

START_TEST(each_gets_the_ranges_of_its_own_nodes)
{
	static const uint8_t nodes[3] = { 0, 1, 0 };
	unsigned some[8] = { 0 }, every[8] = { 0 };
	const struct profile_observer one = { .context = some,
		.closed = count_closed,
		.closed_nodes = nodes,
		.closed_node_count = 3 },
				      other = { .context = every, .closed = count_closed };
	struct joined_observers joined = { .observers = { &one, &other }, .count = 2 };
	const struct profile_observer all = observers_join(&joined);

	ck_assert_ptr_null(all.closed_nodes);
	for (uint32_t node = 0; node < 8; node++)
		all.closed(all.context, &(struct observed_instance){ .node = node });
	for (uint32_t node = 0; node < 8; node++) {
		ck_assert_uint_eq(some[node], node == 1);
		ck_assert_uint_eq(every[node], 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("joined_observers");
	TCase *joining = tcase_create("joining");
	SRunner *runner;
	int failed;

	tcase_add_test(joining, each_gets_what_it_has_a_callback_for);
	tcase_add_test(joining, each_gets_the_ranges_of_its_own_nodes);
	tcase_add_test(joining, memory_may_be_later_if_all_can_wait);
	suite_add_tcase(suite, joining);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
