/* SPDX-License-Identifier: MIT
 * test_function_parts.c: the second part of a function is found by the jumps between the parts, and
 * what only looks like one is not. The functions are never executed.
 */
#include "collector/sample/function_parts.h"

#include <check.h>
#include <stdlib.h>

#ifdef __x86_64__

/* A conditional jump and an unconditional one, both with 32 bits of distance, to a label + offset.
 * The assembler would choose short ones. */
#define JUMPS_IF(to) ".byte 0x0f, 0x84\n.long " to " - . - 4\n"
#define JUMPS(to) ".byte 0xe9\n.long " to " - . - 4\n"
#define TWICE(text) text text
#define FUNCTION(name, body)                                                                \
	".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\nnop\n" body \
	"ret\n.cfi_endproc\n.size " name ", . - " name "\n"

__asm__(".text\n"
	/* four jumps in each direction, as GCC makes them */
	FUNCTION("parted", TWICE(JUMPS_IF("parted_cold+1")) TWICE(JUMPS("parted_cold+2"))) FUNCTION(
		"unrelated", "nop\n") FUNCTION("parted_cold", TWICE(TWICE(JUMPS("parted+1"))))
	/* only the first instruction of the other function is jumped to: a call at the end */
	FUNCTION("calls", TWICE(TWICE(JUMPS("called"))))
		FUNCTION("called", TWICE(TWICE(JUMPS("calls"))))
	/* no jumps back */
	FUNCTION("enters", TWICE(TWICE(JUMPS("entered+1")))) FUNCTION("entered", "nop\n")
	/* too few jumps */
	FUNCTION("rarely", TWICE(JUMPS("rarely_cold+1")) JUMPS("rarely_cold+1"))
		FUNCTION("rarely_cold", TWICE(TWICE(JUMPS("rarely+1")))));

#define ENTRY(name)                                                             \
	(__extension__({                                                        \
		extern const char name[] __attribute__((visibility("hidden"))); \
		(uint64_t)(uintptr_t) name;                                     \
	}))

static struct unwinder *u;

static void open_unwinder(void)
{
	u = unwinder_open();
	ck_assert_ptr_nonnull(u);
	unwinder_update(u);
}

static void close_unwinder(void)
{
	unwinder_close(u);
}

START_TEST(a_second_part_is_found)
{
	struct function_parts parts;

	ck_assert(function_parts_find(u, ENTRY(parted), &parts));
	ck_assert_uint_eq(parts.all[0].begin, ENTRY(parted));
	ck_assert_uint_eq(parts.all[0].end, ENTRY(unrelated));
	ck_assert_uint_eq(parts.all[1].begin, ENTRY(parted_cold));
	ck_assert_uint_eq(parts.all[1].end, ENTRY(calls));
}
END_TEST

START_TEST(other_functions_are_no_part)
{
	const uint64_t entries[] = { ENTRY(unrelated), ENTRY(calls), ENTRY(called), ENTRY(enters),
		ENTRY(rarely) };
	struct function_parts parts;

	ck_assert(function_parts_find(u, entries[_i], &parts));
	ck_assert_uint_eq(parts.all[0].begin, entries[_i]);
	ck_assert_uint_eq(parts.all[1].end, 0);
}
END_TEST

START_TEST(what_is_no_entry_is_refused)
{
	static const char data[1];
	const uint64_t addresses[] = { ENTRY(parted) + 1, (uint64_t)(uintptr_t)data, 0, 1,
		UINT64_MAX };
	struct function_parts parts;

	ck_assert(!function_parts_find(u, addresses[_i], &parts));
}
END_TEST

START_TEST(frames_of_both_parts_count)
{
	static struct unwind_stack stack;
	struct function_parts parts;

	ck_assert(function_parts_find(u, ENTRY(parted), &parts));
	/* The innermost address is of an instruction, and the others are behind a call. */
	stack.address[stack.frames++] = ENTRY(parted);
	stack.address[stack.frames++] = ENTRY(parted);
	stack.address[stack.frames++] = ENTRY(unrelated);
	stack.address[stack.frames++] = ENTRY(parted_cold) + 3;
	stack.address[stack.frames++] = ENTRY(calls);
	stack.address[stack.frames++] = ENTRY(unrelated) + 1;
	ck_assert_uint_eq(function_parts_count_frames(&parts, &stack, 0), 4);
}
END_TEST

#endif

static Suite *function_parts_suite(void)
{
	Suite *s = suite_create("function_parts");
	TCase *t = tcase_create("function_parts");

#ifdef __x86_64__ /* there are no unwind rules on other processors */
	tcase_add_checked_fixture(t, open_unwinder, close_unwinder);
	tcase_add_test(t, a_second_part_is_found);
	tcase_add_loop_test(t, other_functions_are_no_part, 0, 5);
	tcase_add_loop_test(t, what_is_no_entry_is_refused, 0, 5);
	tcase_add_test(t, frames_of_both_parts_count);
#endif
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(function_parts_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
