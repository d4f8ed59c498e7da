/* SPDX-License-Identifier: MIT
 * A thread may be halted for any time wherever it reads the clock: by SIGSTOP, by a machine with
 * too much to do, with the machine. Here the clock is ours.
 */
#include "tests/support/collector_fixture.h"

#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"

#include <check.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 20u
#define HALT_NS 300000000u /* longer than a short form can say */
#define READINGS 12u       /* of the clock, that one event may take */
#define AGAIN \
	37u /* the same until it is halted once more, which may be within the end of a payload */
#define ROUNDS 50000u /* many payloads */
#define SLACK_NS 1000u

static uint64_t present_ns;             /* 0: the system's clock */
static unsigned until_halt, until_next; /* readings, and from there on; 0: none is to come */

/* The collector's, too: what a program defines comes before the C library's. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	if (!present_ns)
		return (int)syscall(SYS_clock_gettime, id, now);
	present_ns += TICK_NS;
	if (until_halt && --until_halt == 0) {
		present_ns += HALT_NS;
		until_halt = until_next;
		until_next = 0;
	}
	*now = (struct timespec){ .tv_sec = (time_t)(present_ns / 1000000000u),
		.tv_nsec = (long)(present_ns % 1000000000u) };
	return 0;
}

static struct moment {
	uint64_t before, after;
} moments[4 * ROUNDS + 1];

/* The i-th event; the halts, if there are any, are somewhere in it. */
static void event(unsigned i, unsigned halted_at, unsigned again_after)
{
	moments[i].before = present_ns;
	until_halt = halted_at;
	until_next = again_after;
	if (i % 4 < 2)
		range_push(0, i % 4 ? "inner" : "outer", NULL);
	else
		range_pop(0);
	until_halt = until_next = 0;
	moments[i].after = present_ns;
}

/* Here both clocks are the same. */
static void expect_one_moment(const struct trace_clock_record *clock)
{
	uint64_t off = clock->stamp > clock->monotonic_ns ? clock->stamp - clock->monotonic_ns
							  : clock->monotonic_ns - clock->stamp;

	ck_assert_msg(off <= SLACK_NS, "the clocks are noted %lu ns apart", (unsigned long)off);
}

static void expect_moments(struct trace_reader *reader, unsigned count)
{
	struct trace_event found;
	uint64_t zero = 0;
	unsigned seen = 0;

	while (reader_next(reader, &found) > 0) {
		if (found.kind == TRACE_CLOCK)
			expect_one_moment(found.record);
		if (found.kind != TRACE_PUSH && found.kind != EVENT_POP)
			continue;
		if (seen == 0)
			zero = moments[0].after - found.time_ns;
		ck_assert_uint_lt(seen, count);
		ck_assert_msg(found.time_ns + zero + SLACK_NS >= moments[seen].before &&
				      found.time_ns + zero <= moments[seen].after + SLACK_NS,
			"event %u lies %ld ns from when it came", seen,
			(long)(found.time_ns + zero - moments[seen].before));
		seen++;
	}
	ck_assert_uint_eq(seen, count);
}

START_TEST(an_event_in_which_a_thread_is_halted_anywhere_keeps_its_time)
{
	struct trace_reader *reader;
	const struct trace_integrity *integrity;

	collector_start(0);
	present_ns = 1000000000;
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0,
		0); /* while the trace is made, so that the clock is one that we set */
	event(0, 0, 0);
	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	for (unsigned i = 1; i < 4 * ROUNDS; i++)
		event(i, i % 3 ? 0 : i % 7 ? 1 : i / 7 % READINGS + 1, i / 3 % AGAIN);
	present_ns = 0;
	reader = collector_open_trace();
	expect_moments(reader, 4 * ROUNDS);
	integrity = reader_integrity(reader);
	ck_assert_uint_eq(integrity->unended + integrity->resumed + integrity->clock_violations, 0);
	ck_assert_uint_eq(integrity->lost_events, 0);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("halts");
	TCase *tests = tcase_create("halts");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_test(tests, an_event_in_which_a_thread_is_halted_anywhere_keeps_its_time);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
