/* SPDX-License-Identifier: MIT
 * test_python_stacks.c: call stacks of Python and the places of the program's own files, as each
 * view shows them.
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
	const uint32_t node = build_linked_node(builder, 0, "net", TRACE_NODE_MODULE, 0, "Net");

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

static void has(const struct report_run *run, const char *text)
{
	ck_assert_str_eq(run->err, "");
	ck_assert_int_eq(run->status, 0);
	ck_assert_msg(strstr(run->out, text) != NULL, "`%s` is not in:\n%s", text, run->out);
}

#define FRAMES                                                                 \
	"\"python_stack\":[{\"function\":\"Net.forward\",\"file\":\"/home/me/" \
	"net\\u001b.py\",\"line\":12},"                                        \
	"{\"function\":\"<module>\",\"file\":\"/home/me/train.py\",\"line\":40}]"

START_TEST(dump_has_sources_first_and_the_stack_of_each_call)
{
	const struct report_run json = run_report(traced(), "dump trace.bin -f json");
	struct report_run other;

	has(&json, "{\"t_ns\":0,\"pid\":100,\"tid\":0,\"kind\":\"source\",\"name\":\"net\","
		   "\"node\":1,\"python_stack\":[{\"function\":"
		   "\"main\",\"file\":\"/home/me/train.py\",\"line\":41}]}\n");
	has(&json, "\"stack\":7," FRAMES);
	ck_assert_ptr_nonnull(strstr(strstr(json.out, FRAMES) + 1, FRAMES));
	ck_assert_ptr_eq(strstr(json.out, "\"source\""), strstr(json.out, "\"kind\":") + 7);
	other = run_report(traced(), "dump trace.bin");
	has(&other,
		"python_stack=/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
	other = run_report(traced(), "dump trace.bin -f csv");
	has(&other, "/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
}
END_TEST

START_TEST(memory_shows_who_took_it)
{
	struct report_run run = run_report(traced(), "memory trace.bin -f json");

	has(&run, "\"stack\": [\"/home/me/net\\u001b.py:12 Net.forward\", "
		  "\"/home/me/train.py:40 <module>\"]");
	run = run_report(traced(), "memory trace.bin --width 160");
	has(&run, "net < net\\x1b.py:12 Net.forward");
	has(&run, "net\\x1b.py:12 Net.forward < train.py:40 <module>");
	run = run_report(traced(), "memory trace.bin -f csv");
	has(&run, "/home/me/net\\x1b.py:12 Net.forward < /home/me/train.py:40 <module>");
}
END_TEST

/* A launch in a library that train.py called, by way of PyTorch. */
static struct trace_builder *in_a_library(void)
{
	struct trace_builder *builder = builder_new();
	const struct trace_python_frame frames[] = {
		frame(builder, "/usr/lib/python3/dist-packages/torch/nn/linear.py", 134,
			"Linear.forward"),
		frame(builder, "torch/nn/modules/module.py", 1784, "_call_impl"),
		frame(builder, "/home/me/train.py", 6, "Net.forward"),
		frame(builder, "/home/me/venv/lib/python3.11/site-packages/torch/nn/module.py",
			1784, "_call_impl"),
		frame(builder, "/home/me/train.py", 40, "<module>"),
	};
	struct trace_python_stack *stack = build_dictionary(
		builder, TRACE_PYTHON_STACK, sizeof *stack + sizeof frames);

	stack->stack = 7;
	stack->frames = sizeof frames / sizeof *frames;
	memcpy(stack + 1, frames, sizeof frames);
	build_push(builder, 1, 100, "step");
	build_memory(builder, 1, 200, TRACE_ALLOC, 0x1000, 4096, 3, 0)->call.stack = 7;
	build_launch(builder, 1, 300, 1)->call.stack = 7;
	build_pop(builder, 1, 1000);
	build_kernel(builder, 9, 2000, 1, "k", 400, 500);
	return builder;
}

/* As `traced`, but the allocation has a native stack and one line of Python. */
static struct trace_builder *with_a_line(void)
{
	struct trace_builder *builder = builder_new();
	const struct trace_python_frame line = frame(builder, "/home/me/train.py", 6, "Net.make");
	const uint64_t address = 0x7f0000001020;
	struct trace_stack *native = build_dictionary(
		builder, TRACE_STACK, sizeof *native + sizeof address);
	struct trace_python_stack *python;
	struct trace_mixed_stack *mixed;

	native->stack = 7;
	native->frames = 1;
	memcpy(native + 1, &address, sizeof address);
	python = build_dictionary(builder, TRACE_PYTHON_STACK, sizeof *python + sizeof line);
	python->stack = 8;
	python->frames = 1;
	memcpy(python + 1, &line, sizeof line);
	mixed = build_dictionary(builder, TRACE_MIXED_STACK, sizeof *mixed);
	mixed->stack = 9;
	mixed->native = 7;
	mixed->python = 8;
	build_push(builder, 1, 100, "step");
	build_memory(builder, 1, 200, TRACE_ALLOC, 0x1000, 4096, 3, 0)->call.stack = 9;
	build_pop(builder, 1, 1000);
	build_memory(builder, 1, 1200, TRACE_ALLOC, 0x2000, 4096, 3, 0)->call.stack = 9;
	return builder;
}

START_TEST(a_line_of_python_is_shown_beside_the_native_stack)
{
	struct report_run run = run_report(with_a_line(), "dump trace.bin -f json");

	has(&run, "\"stack\":9,\"python_stack\":[{\"function\":\"Net.make\",\"file\":"
		  "\"/home/me/train.py\",\"line\":6}]");
	run = run_report(NULL, "memory trace.bin -f json");
	has(&run, "\"stack\": [\"/home/me/train.py:6 Net.make\", \"0x7f0000001020\"]");
	run = run_report(NULL, "memory trace.bin --width 160");
	has(&run, "step < train.py:6 Net.make");
}
END_TEST

START_TEST(the_users_own_frame_comes_first)
{
	struct report_run run = run_report(in_a_library(), "table trace.bin --by stack");

	has(&run, "  train.py:6 Net.forward < module.py:1784 _call_impl < train.py:40 <module> "
		  "(through linear.py:134 Linear.forward < module.py:1784 _call_impl)\n");
	run = run_report(NULL, "memory trace.bin");
	has(&run, "step < train.py:6 Net.forward < train.py:40 <module>");
}
END_TEST

START_TEST(a_modules_row_says_where_it_was_first_called)
{
	struct report_run run = run_report(traced(), "tree trace.bin -f json");

	has(&run, "\"source\": \"/home/me/train.py:41 main\"");
	run = run_report(traced(), "critical trace.bin -m cpu -f json");
	has(&run, "\"source\": \"/home/me/train.py:41 main\"");
	run = run_report(traced(), "tree trace.bin -f csv");
	has(&run, "/home/me/train.py:41 main");
	run = run_report(traced(), "tree trace.bin --sources --width 60");
	has(&run, "train.py:41 main");
	ck_assert_ptr_null(strstr(run.out, "/home"));
	run = run_report(traced(), "tree trace.bin --width 200");
	ck_assert_ptr_null(strstr(run.out, "train.py"));
}
END_TEST

START_TEST(no_source_and_no_stack_are_nothing)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 100, "plain");
	build_memory(builder, 1, 200, TRACE_ALLOC, 0x1000, 4096, 3, 0)->call.stack =
		9; /* there is none of that id */
	build_pop(builder, 1, 1000);
	builder_write(builder, "kept.bin");
	builder_free(builder);
	run = run_report(NULL, "tree kept.bin --sources -f json");
	has(&run, "\"plain\"");
	ck_assert_ptr_null(strstr(run.out, "\"source\": "));
	run = run_report(NULL, "tree kept.bin --sources");
	ck_assert_ptr_null(strstr(run.out, "source"));
	run = run_report(NULL, "dump kept.bin -f json");
	has(&run, "\"stack\":9,");
	ck_assert_ptr_null(strstr(run.out, "python_stack"));
	run = run_report(NULL, "memory kept.bin -f json");
	has(&run, "\"stack\": []");
}
END_TEST

START_TEST(they_are_counted_and_nothing_is_missing)
{
	const struct report_run run = run_report(traced(), "info trace.bin -f json");

	has(&run, "\"stacks\":0,\"python_stacks\":1,\"sources\":2");
	has(&run, "\"unknown_kinds\": 0");
	has(&run, "\"complete\": true");
}
END_TEST

START_TEST(a_stack_that_announces_more_than_it_holds_is_damage)
{
	struct trace_builder *builder = traced();
	struct trace_python_stack *stack = build_dictionary(
		builder, TRACE_PYTHON_STACK, sizeof *stack + 16);
	struct report_run run;

	stack->stack = 8;
	stack->frames = 2;
	run = run_report(builder, "info trace.bin -f json");
	has(&run, "\"python_stacks\":1,");
	has(&run, "\"complete\": false");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("python_stacks");
	TCase *views = tcase_create("views");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(views, run_report_setup, run_report_teardown);
	tcase_add_test(views, dump_has_sources_first_and_the_stack_of_each_call);
	tcase_add_test(views, memory_shows_who_took_it);
	tcase_add_test(views, a_line_of_python_is_shown_beside_the_native_stack);
	tcase_add_test(views, the_users_own_frame_comes_first);
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
