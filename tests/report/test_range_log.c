/* SPDX-License-Identifier: MIT
 * test_range_log.c: the innermost range of a thread at each time, and where parts end, are those
 * that a search of all ranges finds.
 */
#include "report/analysis/critical_path/range_log.h"
#include "report/base/compare.h"

#include <check.h>
#include <stdlib.h>

#define TIMES 200u
#define RANGES_MAX 64u
#define THREADS 3u
#define ROUNDS 2000u

struct known_range {
	uint32_t tid, node;
	uint64_t begin_ns, end_ns;
};

struct known_ranges {
	struct known_range all[RANGES_MAX];
	uint32_t count;
};

struct part {
	uint32_t node;
	uint64_t from_ns, to_ns;
};

struct parts {
	struct part all[TIMES];
	uint32_t count;
};

/* Whether `a` is inside `b`, if both are open. The one that was added last is the outer one of two
 * equal ones. */
static bool is_inside(const struct known_range *a, const struct known_range *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns > b->begin_ns;
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a < b;
}

static const struct known_range *innermost_at(
	const struct known_ranges *ranges, uint32_t tid, uint64_t at_ns)
{
	const struct known_range *found = NULL;

	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct known_range *range = &ranges->all[i];

		if (range->tid == tid && range->begin_ns <= at_ns && range->end_ns > at_ns &&
			(!found || is_inside(range, found)))
			found = range;
	}
	return found;
}

static uint64_t part_end(const struct known_ranges *ranges, const struct known_range *inner,
	uint64_t at_ns, uint64_t to_ns)
{
	uint64_t end_ns = inner ? min_u64(to_ns, inner->end_ns) : to_ns;

	for (uint32_t i = 0; i < ranges->count; i++)
		if (ranges->all[i].begin_ns > at_ns)
			end_ns = min_u64(end_ns, ranges->all[i].begin_ns);
	return end_ns;
}

/* The parts of an interval, the first one first. */
static struct parts search_parts(const struct known_ranges *ranges, uint32_t tid, uint32_t other,
	uint64_t from_ns, uint64_t to_ns)
{
	struct parts parts = { .count = 0 };

	for (uint64_t now = from_ns; now < to_ns; now = parts.all[parts.count++].to_ns) {
		const struct known_range *inner = innermost_at(ranges, tid, now);

		if (!inner)
			inner = innermost_at(ranges, other, now);
		parts.all[parts.count] = (struct part){ .node = inner ? inner->node : 0,
			.from_ns = now,
			.to_ns = part_end(ranges, inner, now, to_ns) };
	}
	return parts;
}

static void add_part(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	struct parts *parts = context;

	parts->all[parts->count++] = (struct part){
		.node = node, .from_ns = from_ns, .to_ns = to_ns
	};
}

static uint64_t random_below(uint64_t limit)
{
	return (uint64_t)random() % limit;
}

/* Ranges in any order of ends, some of them without a duration. */
static struct known_ranges random_ranges(bool in_order)
{
	struct known_ranges ranges = { .count = (uint32_t)random_below(RANGES_MAX) };
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < ranges.count; i++) {
		end_ns = in_order || random_below(4) ? min_u64(end_ns + random_below(9), TIMES - 1)
						     : random_below(TIMES);
		ranges.all[i] = (struct known_range){ .tid = (uint32_t)random_below(THREADS),
			.node = i + 1,
			.begin_ns = random_below(end_ns + 1),
			.end_ns = end_ns };
	}
	return ranges;
}

static void add_ranges(struct range_log *log, struct known_ranges *ranges)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct known_range range = ranges->all[i];

		range_log_add(log, range.tid, range.node, range.begin_ns, range.end_ns);
		if (range.end_ns > range.begin_ns)
			ranges->all[kept++] = range;
	}
	ranges->count = kept;
	range_log_rewind(log);
}

static void expect_parts(
	struct range_log *log, const struct known_ranges *ranges, uint64_t from_ns, uint64_t to_ns)
{
	const uint32_t tid = (uint32_t)random_below(THREADS + 1),
		       other = (uint32_t)random_below(THREADS + 1);
	const struct parts expected = search_parts(ranges, tid, other, from_ns, to_ns);
	struct parts parts = { .count = 0 };

	range_log_within(log, tid, other, from_ns, to_ns, add_part, &parts);
	ck_assert_uint_eq(parts.count, expected.count);
	for (uint32_t i = 0; i < parts.count; i++) {
		const struct part *part = &parts.all[parts.count - 1 - i];

		ck_assert_uint_eq(part->node, expected.all[i].node);
		ck_assert_uint_eq(part->from_ns, expected.all[i].from_ns);
		ck_assert_uint_eq(part->to_ns, expected.all[i].to_ns);
	}
}

static void check_random_ranges(bool in_order)
{
	srandom(1);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct range_log *log = range_log_new();
		struct known_ranges ranges = random_ranges(in_order);

		add_ranges(log, &ranges);
		for (uint64_t to_ns = TIMES; to_ns;) {
			const uint64_t from_ns = random_below(to_ns);

			expect_parts(log, &ranges, from_ns, to_ns);
			to_ns = from_ns - min_u64(from_ns, random_below(5));
		}
		range_log_free(log);
	}
}

START_TEST(ranges_in_the_order_of_their_ends_are_found)
{
	check_random_ranges(true);
}
END_TEST

START_TEST(ranges_that_end_before_an_earlier_one_are_found)
{
	check_random_ranges(false);
}
END_TEST

START_TEST(a_log_begins_again_with_the_pass)
{
	struct range_log *log = range_log_new();
	const struct profile_observer observer = range_log_observer(log);
	struct parts parts = { .count = 0 };

	range_log_add(log, 1, 7, 0, 50);
	range_log_add(log, 2, 8, 0, 40);
	observer.restart(observer.context);
	range_log_add(log, 2, 9, 10, 20);
	range_log_rewind(log);
	range_log_within(log, 1, 1, 0, 50, add_part, &parts);
	ck_assert_uint_eq(parts.count, 2);
	ck_assert_uint_eq(parts.all[0].node, 0);
	ck_assert_uint_eq(parts.all[0].from_ns, 10);
	range_log_free(log);
	range_log_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("range_log");
	TCase *cases = tcase_create("ranges");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, ranges_in_the_order_of_their_ends_are_found);
	tcase_add_test(cases, ranges_that_end_before_an_earlier_one_are_found);
	tcase_add_test(cases, a_log_begins_again_with_the_pass);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
