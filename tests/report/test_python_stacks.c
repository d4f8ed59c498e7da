/* SPDX-License-Identifier: MIT
 * test_python_stacks.c: call stacks of Python and the places of the program's own files, as each view shows them.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct trace_python_frame frame(
	struct trace_builder *builder, const char *file, uint32_t line, const char *function)
{
	return (struct trace_python_frame){ build_name(builder, function),
		build_name(builder, file), line, 0 };
}

/* Stack 7: `outer` called `inner`. */
static void build_stack(struct trace_builder *builder)
{
	const struct trace_python_frame inner = frame(
						builder, "/home/me/net\x1b.py", 12, "Net.forward"),
					outer = frame(builder, "/home/me/train.py", 40, "<module>");
	struct trace_python_stack *stack = build_dictionary(
		builder, TRACE_PYTHON_STACK, sizeof *stack + 2 * sizeof inner);

	stack->stack = 7;
	stack->frames = 2;
	memcpy(stack + 1, &inner, sizeof inner);
	memcpy((char *)(stack + 1) + sizeof inner, &outer, sizeof outer);
}

static void build_source(struct trace_builder *builder, uint32_t node, const char *file,
	uint32_t line, const char *function)
{
	const struct trace_python_frame at = frame(builder, file, line, function);
	struct trace_source *source = build_dictionary(builder, TRACE_SOURCE, sizeof *source);

	source->head.node = node;
	source->at = at;
}

/* A module with an allocation and a launch, both with stacks. */
static struct trace_builder *traced(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t node = build_place(builder, 0, "net", TRACE_NODE_MODULE, 0, "Net");

	build_stack(builder);
	build_source(builder, node, "/home/me/train.py", 41, "main");
	build_source(builder, node, "/home/me/later.py", 1, "main"); /* the first one counts */
	build_push_node(builder, 1, 100, node);
	build_memory(builder, 1, 200, TRACE_ALLOC, 0x1000, 4096, 3, 0)->call.stack = 7;
	build_launch(builder, 1, 300, 0)->call.stack = 7;
	build_pop(builder, 1, 1000);
	build_seal(builder, 1, SEAL_WHOLE);
	return builder;
}

static void has(const struct screen *screen, const char *text)
{
	ck_assert_str_eq(screen->err, "");
	ck_assert_int_eq(screen->status, 0);
	ck_assert_msg(strstr(screen->out, text) != NULL, "`%s` is not in:\n%s", text, screen->out);
}

#define FRAMES                                                                 \
	"\"python_stack\":[{\"function\":\"Net.forward\",\"file\":\"/home/me/" \
	"net\\u001b.py\",\"line\":12},"                                        \
	"{\"function\":\"<module>\",\"file\":\"/home/me/train.py\",\"line\":40}]"

START_TEST(dump_has_sources_first_and_the_stack_of_each_call)
{
	const struct screen json = screen_show(traced(), "dump trace.bin -f json");
	struct screen other;

	has(&json, "{\"t_ns\":0,\"pid\":100,\"tid\":0,\"kind\":\"source\",\"name\":\"net\","
		   "\"node\":1,\"python_stack\":[{\"function\":"
		   "\"main\",\"file\":\"/home/me/train.py\",\"line\":41}]}\n");
	has(&json, "\"stack\":7," FRAMES);
	ck_assert_ptr_nonnull(strstr(strstr(json.out, FRAMES) + 1, FRAMES));
	ck_assert_ptr_eq(strstr(json.out, "\"source\""), strstr(json.out, "\"kind\":") + 7);
	other = screen_show(traced(), "dump trace.bin");
	has(&other,
		"python_stack=/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
	other = screen_show(traced(), "dump trace.bin -f csv");
	has(&other, "/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
}
END_TEST

START_TEST(memory_shows_who_took_it)
{
	struct screen screen = screen_show(traced(), "memory trace.bin -f json");

	has(&screen, "\"stack\": [\"/home/me/net\\u001b.py:12 Net.forward\", "
		     "\"/home/me/train.py:40 <module>\"]");
	screen = screen_show(traced(), "memory trace.bin --width 160");
	has(&screen, "net < net\\x1b.py:12 Net.forward");
	has(&screen, "net\\x1b.py:12 Net.forward < train.py:40 <module>");
	screen = screen_show(traced(), "memory trace.bin -f csv");
	has(&screen, "/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
}
END_TEST

START_TEST(a_modules_row_says_where_it_was_first_called)
{
	struct screen screen = screen_show(traced(), "tree trace.bin -f json");

	has(&screen, "\"source\": \"/home/me/train.py:41 main\"");
	screen = screen_show(traced(), "critical trace.bin -m cpu -f json");
	has(&screen, "\"source\": \"/home/me/train.py:41 main\"");
	screen = screen_show(traced(), "tree trace.bin -f csv");
	has(&screen, "/home/me/train.py:41 main");
	screen = screen_show(traced(), "tree trace.bin --sources --width 60");
	has(&screen, "train.py:41 main");
	ck_assert_ptr_null(strstr(screen.out, "/home"));
	screen = screen_show(traced(), "tree trace.bin --width 200");
	ck_assert_ptr_null(strstr(screen.out, "train.py"));
}
END_TEST

START_TEST(no_source_and_no_stack_are_nothing)
{
	struct trace_builder *builder = builder_new();
	struct screen screen;

	build_push(builder, 1, 100, "plain");
	build_memory(builder, 1, 200, TRACE_ALLOC, 0x1000, 4096, 3, 0)->call.stack =
		9; /* there is none of that id */
	build_pop(builder, 1, 1000);
	builder_write(builder, "kept.bin");
	builder_free(builder);
	screen = screen_show(NULL, "tree kept.bin --sources -f json");
	has(&screen, "\"plain\"");
	ck_assert_ptr_null(strstr(screen.out, "\"source\": "));
	screen = screen_show(NULL, "tree kept.bin --sources");
	ck_assert_ptr_null(strstr(screen.out, "source"));
	screen = screen_show(NULL, "dump kept.bin -f json");
	has(&screen, "\"stack\":9,");
	ck_assert_ptr_null(strstr(screen.out, "python_stack"));
	screen = screen_show(NULL, "memory kept.bin -f json");
	has(&screen, "\"stack\": []");
}
END_TEST

START_TEST(they_are_counted_and_nothing_is_missing)
{
	const struct screen screen = screen_show(traced(), "info trace.bin -f json");

	has(&screen, "\"stacks\":0,\"python_stacks\":1,\"sources\":2");
	has(&screen, "\"unknown_kinds\": 0");
	has(&screen, "\"complete\": true");
}
END_TEST

START_TEST(a_stack_that_announces_more_than_it_holds_is_damage)
{
	struct trace_builder *builder = traced();
	struct trace_python_stack *stack = build_dictionary(
		builder, TRACE_PYTHON_STACK, sizeof *stack + 16);
	struct screen screen;

	stack->stack = 8;
	stack->frames = 2;
	screen = screen_show(builder, "info trace.bin -f json");
	has(&screen, "\"python_stacks\":1,");
	has(&screen, "\"complete\": false");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("python_stacks");
	TCase *views = tcase_create("views");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(views, screen_enter, screen_leave);
	tcase_add_test(views, dump_has_sources_first_and_the_stack_of_each_call);
	tcase_add_test(views, memory_shows_who_took_it);
	tcase_add_test(views, a_modules_row_says_where_it_was_first_called);
	tcase_add_test(views, no_source_and_no_stack_are_nothing);
	tcase_add_test(views, they_are_counted_and_nothing_is_missing);
	tcase_add_test(views, a_stack_that_announces_more_than_it_holds_is_damage);
	suite_add_tcase(suite, views);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
