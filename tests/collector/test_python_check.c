/* SPDX-License-Identifier: MIT
 * test_python_check.c: Python frames that are read after the thread has run on are those that it had
 * when it was sampled, or are left out.
 *
 * The stack is one of seven native frames, three of which are calls of the interpreter's function.
 * The Python chain has two frames in each of these.
 */
#include "tests/support/collector_fixture.h"

#include "collector/sample/frame_tree.h"
#include "collector/sample/python_check.h"
#include "collector/stream/stream.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 7, WORDS = 32, PER_CALL = 2 };

#define INTERPRETER UINT64_C(0x5000) /* of 256 bytes; the other frames are elsewhere */

static const struct function_parts interpreter = { .all = { { INTERPRETER, INTERPRETER + 256 } } };

/* Innermost first: C code, interpreter, C code, interpreter, C code, interpreter, C code. */
static const struct unwind_stack stack = { .frames = FRAMES,
	.address = { 0x100, INTERPRETER + 16, 0x200, INTERPRETER + 32, 0x300, INTERPRETER + 48,
		0x400 } };

static uint64_t words[WORDS]; /* the thread's stack */
static struct unwind_stack sampled;
static struct later_stack later;

static void set_up(void)
{
	collector_start(0);
	ck_assert(stream_enter());
	sampled = stack;
	for (uint32_t i = 1; i < FRAMES; i++) {
		words[4 * i] = stack.address[i];
		sampled.place[i] = (uint64_t)(uintptr_t)&words[4 * i];
	}
}

static void tear_down(void)
{
	stream_leave();
	collector_remove_folder();
}

/* Returns a chain of Python frames that `calls` calls of the interpreter's function run. Frames of
 * the same number have the same id in each chain. */
static uint32_t chain(uint32_t calls)
{
	struct trace_python_frame frames[16] = { 0 };
	const uint32_t count = calls * PER_CALL;

	for (uint32_t i = 0; i < count; i++) {
		struct trace_python_frame *outer = &frames[count - 1 - i];

		outer->function = i + 1;
		outer->reserved = i % PER_CALL == 0;
	}
	return frame_python_id(0, frames, count);
}

/* Checks a sample whose Python frames were read when the thread had the stack that is in `words`. */
static struct sample check(uint32_t python, uint8_t flags)
{
	const struct unwind_start start = {
		.registers = { .value = { [UNWIND_RSP] = (uint64_t)(uintptr_t)words } },
		.stack_bytes = sizeof words
	};
	struct sample sample = { .python = python, .flags = flags };

	later_stack_copy(&later, &start);
	ck_assert_uint_eq(later.bytes, sizeof words);
	python_check(&sample, &interpreter, &sampled, &later);
	return sample;
}

static void check_becomes(uint32_t python, uint32_t kept, uint8_t flags)
{
	const struct sample sample = check(python, 0);

	ck_assert_uint_eq(sample.python, kept);
	ck_assert_uint_eq(sample.flags, flags);
}

START_TEST(frames_of_a_thread_that_has_stayed_are_kept)
{
	check_becomes(chain(3), chain(3), 0);
}
END_TEST

/* The innermost function has returned. It is not one of the interpreter. */
START_TEST(frames_are_kept_while_the_interpreter_has_not_returned)
{
	words[4] = 0x999;
	check_becomes(chain(3), chain(3), 0);
}
END_TEST

/* The outer calls wait for the inner ones, so their frames have not changed. What the innermost of
 * those that are left does is not known. */
START_TEST(a_thread_that_has_returned_keeps_the_frames_that_wait)
{
	words[4 * 2] = 0x999; /* what the innermost call of the interpreter returned to */
	check_becomes(chain(2), chain(1), TRACE_SAMPLE_MOVED);
	words[4 * 4] = 0x999;
	check_becomes(chain(1), 0, TRACE_SAMPLE_MOVED);
}
END_TEST

/* It has as many frames as before, but of other calls. */
START_TEST(a_thread_that_has_returned_and_called_again_has_moved)
{
	words[4 * 2] = 0x999;
	check_becomes(chain(3), chain(1), TRACE_SAMPLE_MOVED);
}
END_TEST

/* What is below a return address that has changed may be as it was, by chance. */
START_TEST(inner_frames_are_over_when_an_outer_one_is)
{
	words[4 * 4] = 0x999;
	check_becomes(chain(3), 0, TRACE_SAMPLE_MOVED);
}
END_TEST

START_TEST(a_thread_that_has_called_more_keeps_the_frames_that_wait)
{
	words[4] = 0x999;
	check_becomes(chain(4), chain(2), TRACE_SAMPLE_MOVED);
}
END_TEST

/* The interpreter calls a function, and nothing above the place where it was tells. */
START_TEST(a_thread_that_was_in_the_interpreter_itself_may_have_moved)
{
	memmove(sampled.address, sampled.address + 1, (FRAMES - 1) * sizeof *sampled.address);
	memmove(sampled.place, sampled.place + 1, (FRAMES - 1) * sizeof *sampled.place);
	sampled.place[0] = 0;
	sampled.frames--;
	check_becomes(chain(4), chain(2), TRACE_SAMPLE_MOVED);
	check_becomes(chain(3), chain(3), 0);
}
END_TEST

START_TEST(other_frames_of_a_thread_that_has_stayed_are_left_out)
{
	check_becomes(chain(2), 0, TRACE_SAMPLE_UNEQUAL);
	check_becomes(chain(4), 0, TRACE_SAMPLE_UNEQUAL);
}
END_TEST

/* Frames that two reads had in common. Those of calls that are over are of another time. */
START_TEST(frames_that_moved_while_they_were_read_are_kept_while_their_calls_last)
{
	struct sample sample = check(chain(3), TRACE_SAMPLE_MOVED);

	ck_assert_uint_eq(sample.python, chain(3));
	words[4 * 2] = 0x999;
	sample = check(chain(3), TRACE_SAMPLE_MOVED);
	ck_assert_uint_eq(sample.python, chain(2));
	ck_assert_uint_eq(sample.flags, TRACE_SAMPLE_MOVED);
}
END_TEST

/* What is above the copy was read when the stack was unwound, after the Python frames. */
START_TEST(what_is_above_the_copy_has_not_changed)
{
	struct sample sample = { .python = chain(3) };

	words[4 * 2] = 0x999;
	later.from = (uint64_t)(uintptr_t)words;
	later.bytes = 4 * sizeof *words;
	memcpy(later.copy, words, later.bytes);
	python_check(&sample, &interpreter, &sampled, &later);
	ck_assert_uint_eq(sample.python, chain(3));
	ck_assert_uint_eq(sample.flags, 0);
}
END_TEST

static Suite *python_check_suite(void)
{
	Suite *s = suite_create("python_check");
	TCase *t = tcase_create("python_check");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_tags(t, "real-kernel"); /* emulators leave it out */
	tcase_add_test(t, frames_of_a_thread_that_has_stayed_are_kept);
	tcase_add_test(t, frames_are_kept_while_the_interpreter_has_not_returned);
	tcase_add_test(t, a_thread_that_has_returned_keeps_the_frames_that_wait);
	tcase_add_test(t, a_thread_that_has_returned_and_called_again_has_moved);
	tcase_add_test(t, inner_frames_are_over_when_an_outer_one_is);
	tcase_add_test(t, a_thread_that_has_called_more_keeps_the_frames_that_wait);
	tcase_add_test(t, a_thread_that_was_in_the_interpreter_itself_may_have_moved);
	tcase_add_test(t, other_frames_of_a_thread_that_has_stayed_are_left_out);
	tcase_add_test(t, frames_that_moved_while_they_were_read_are_kept_while_their_calls_last);
	tcase_add_test(t, what_is_above_the_copy_has_not_changed);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(python_check_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
