/* SPDX-License-Identifier: MIT
 * test_tui.c: keys, and what is on the screen after them, without a terminal.
 */
#include "report/base/alloc.h"
#include "report/cli/command_line.h"
#include "report/tui/draw.h"
#include "report/base/escape.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAIN = 1, GPU = 2 }; /* streams */
enum { MOST_WIDTH = 200, MOST_HEIGHT = 100 };

/* What is on the screen: the bytes of each place. */
struct grid {
	unsigned width, height;
	char cells[MOST_HEIGHT][MOST_WIDTH][16];
	enum tui_paint paint[MOST_HEIGHT][MOST_WIDTH];
};

struct tui {
	struct options options;
	struct style style;
	struct tui_model *model;
	struct tui_state *state;
	char screen[MOST_HEIGHT * (MOST_WIDTH * 4 + 1)];
};

static struct grid grid;
static struct tui tui;

static void put(
	void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text, size_t bytes)
{
	size_t length;

	(void)context;
	for (size_t at = 0; at < bytes; at += length) {
		const uint32_t point = utf8_decode(text + at, bytes - at, &length);
		const size_t width = escaped_width(text + at, length);

		ck_assert_msg(point != UINT32_MAX && point >= ' ' && (point < 0x7f || point > 0x9f),
			"byte %02x is drawn", (unsigned char)text[at]);
		ck_assert_msg(y < grid.height && x + width <= grid.width,
			"drawn beyond the screen, at %u,%u: %.*s", y, x, (int)bytes, text);
		if (width == 0) {
			strncat(grid.cells[y][x ? x - 1 : 0], text + at, length);
			continue;
		}
		grid.paint[y][x] = paint;
		snprintf(grid.cells[y][x], sizeof grid.cells[y][x], "%.*s", (int)length, text + at);
		if (width == 2)
			grid.cells[y][x + 1][0] = '\0';
		x += (unsigned)width;
	}
}

/* The screen as lines, without blanks at their ends. */
static const char *screen(void)
{
	const struct tui_canvas canvas = { .put = put };
	size_t used = 0, start;

	grid.width = tui.state->width;
	grid.height = tui.state->height;
	for (unsigned y = 0; y < grid.height; y++)
		for (unsigned x = 0; x < grid.width; x++) {
			strcpy(grid.cells[y][x], " ");
			grid.paint[y][x] = TUI_PLAIN;
		}
	tui_draw(tui.state, &canvas);
	for (unsigned y = 0; y < grid.height; y++) {
		start = used;
		for (unsigned x = 0; x < grid.width; x++)
			used += (size_t)sprintf(tui.screen + used, "%s", grid.cells[y][x]);
		while (used > start && tui.screen[used - 1] == ' ')
			used--;
		tui.screen[used++] = '\n';
	}
	tui.screen[used] = '\0';
	return tui.screen;
}

static void open_arguments(char **arguments, int count, unsigned width, unsigned height)
{
	optind = 0;
	tui.options = command_line_parse(count, arguments);
	tui.style = (struct style){ .width = width };
	tui.model = tui.options.file_count == 2 ? tui_model_of_diff(&tui.options, &tui.style)
						: tui_model_of_trace(&tui.options, &tui.style);
	tui.state = tui_state_new(tui.model, width, height);
}

/* Writes what was built, frees it, opens it. */
static void open_built(struct trace_builder *builder, unsigned width, unsigned height)
{
	static char words[][16] = { "pperf-report", "tui", "trace.bin" };
	char *arguments[] = { words[0], words[1], words[2], NULL };

	builder_write(builder, "trace.bin");
	builder_free(builder);
	open_arguments(arguments, 3, width, height);
}

static void leave(void)
{
	tui_state_free(tui.state);
	tui_model_free(tui.model);
}

static void press(int key)
{
	tui_handle_key(tui.state, key);
	tui_run_pending(tui.state);
}

static void type(const char *keys)
{
	for (; *keys; keys++)
		press((unsigned char)*keys);
}

/* The name of the row under the cursor. */
static const char *here(void)
{
	static char *name;
	static size_t room;

	if (tui_cursor_item(tui.state) == TUI_NONE)
		return "(none)";
	name = name ? name : xcalloc(1);
	tui.model->kind->name(tui.model, tui_cursor_item(tui.state), true, &name, &room);
	return name;
}

static void has(const char *wanted)
{
	const char *text = screen();

	ck_assert_msg(strstr(text, wanted) != NULL, "`%s` is not in:\n%s", wanted, text);
}

static void has_not(const char *unwanted)
{
	const char *text = screen();

	ck_assert_msg(strstr(text, unwanted) == NULL, "`%s` is in:\n%s", unwanted, text);
}

static uint64_t correlation;

static void op(struct trace_builder *builder, uint64_t at, const char *name, const char *kernel,
	uint64_t took)
{
	build_push(builder, MAIN, at, name);
	build_launch(builder, MAIN, at + 10, ++correlation);
	build_kernel(builder, GPU, at + 20, correlation, kernel, at + 20, at + 20 + took);
	build_pop(builder, MAIN, at + 100);
}

/* Three turns of two parts; in the last, `scores` took much longer. */
static struct trace_builder *program(uint64_t slower)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	char name[32];

	build_device(builder, 0, "device");
	for (int turn = 0; turn < 3; turn++, at += 20000) {
		snprintf(name, sizeof name, "turn: %d", turn);
		build_push(builder, MAIN, at, name);
		build_push(builder, MAIN, at + 100, "forward");
		op(builder, at + 200, "scores", "gemm", turn == 2 ? 6000 + slower : 1000);
		op(builder, at + 9000, "softmax", "soft", 500);
		build_pop(builder, MAIN, at + 10000);
		build_push(builder, MAIN, at + 10100, "loss");
		build_alloc(builder, MAIN, at + 10200, 4096 + at, 1000);
		build_pop(builder, MAIN, at + 11000);
		build_pop(builder, MAIN, at + 12000);
	}
	return builder;
}

START_TEST(what_fits_is_open)
{
	open_built(program(0), 70, 16);
	ck_assert_str_eq(screen(),
		" trace.bin  metric gpu, by gpu                                   1/10\n"
		"name                                         gpu        cpu          %\n"
		"▾ turn: * ×3                             9.50 µs   36.00 µs    100.0 %\n"
		"  ▾ forward                              9.50 µs   29.70 µs    100.0 %\n"
		"    ▾ scores                             8.00 µs     300 ns     84.2 %\n"
		"        gemm                             8.00 µs                84.2 %\n"
		"        cudaLaunchKernel                              15 ns\n"
		"    ▾ softmax                            1.50 µs     300 ns     15.8 %\n"
		"        soft                             1.50 µs                15.8 %\n"
		"        cudaLaunchKernel                              15 ns\n"
		"  ▾ loss                                            2.70 µs\n"
		"      (allocation)                                     0 ns\n"
		"\n"
		"\n"
		"\n"
		"enter open  d details  / find  ? keys  q quit\n");
	leave();
}
END_TEST

START_TEST(arrows_open_and_close)
{
	open_built(program(0), 60, 8);
	ck_assert_str_eq(here(), "turn: * \xc3\x97"
				 "3");
	press(TUI_LEFT);
	ck_assert_uint_eq(tui.state->shown_count, 1);
	press('+');
	ck_assert_uint_eq(tui.state->shown_count, 5);
	press(TUI_RIGHT);
	ck_assert_str_eq(here(), "forward");
	press(TUI_RIGHT);
	ck_assert_str_eq(here(), "scores");
	press(TUI_LEFT); /* it is closed: to what it lies in */
	ck_assert_str_eq(here(), "forward");
	press('-');
	ck_assert_uint_eq(tui.state->shown_count, 3);
	press(TUI_ENTER);
	ck_assert_uint_eq(tui.state->shown_count, 5);
	leave();
}
END_TEST

START_TEST(a_star_opens_all_and_closes_it)
{
	open_built(program(0), 60, 30);
	press(TUI_LEFT);
	press('*');
	ck_assert_uint_eq(tui.state->shown_count, tui.model->count);
	press('*');
	ck_assert_uint_eq(tui.state->shown_count, 1);
	press(TUI_RIGHT);
	ck_assert_uint_eq(tui.state->shown_count, 3);
	leave();
}
END_TEST

START_TEST(closing_around_the_cursor_keeps_a_row_under_it)
{
	open_built(program(0), 60, 30);
	press('*');
	press('*');
	press('*');
	press(TUI_END);
	tui_set_open_all(tui.state, 0, false);
	tui_update_rows(tui.state, TUI_NONE);
	ck_assert_str_eq(here(), "turn: * \xc3\x97"
				 "3");
	press(TUI_END);
	press(TUI_DOWN);
	press(TUI_PAGE_DOWN);
	ck_assert_uint_eq(tui.state->cursor, 0);
	leave();
}
END_TEST

START_TEST(a_focus_and_back)
{
	open_built(program(0), 70, 20);
	type("j");
	ck_assert_str_eq(here(), "forward");
	press('f');
	ck_assert_uint_eq(tui.state->shown[0], tui_cursor_item(tui.state));
	has_not("turn:");
	has_not("loss");
	has("u: back");
	type("jf");
	ck_assert_str_eq(here(), "scores");
	has_not("softmax");
	press(TUI_BACKSPACE);
	ck_assert_str_eq(here(), "scores");
	has("softmax");
	press('u');
	ck_assert_str_eq(here(), "forward");
	has("loss");
	press('u');
	has("the whole tree is shown");
	press('j');
	has_not("the whole tree is shown");
	leave();
}
END_TEST

START_TEST(percents_are_of_the_whole_or_of_the_focus)
{
	open_built(program(0), 70, 20);
	type("%");
	has("  \xe2\x96\xbe forward                              100.0 %     82.5 %    100.0 %");
	type("jf");
	has("softmax                               15.8 %      1.0 %     15.8 %");
	type("%");
	has("softmax                              1.50 \xc2\xb5s     300 ns     15.8 %");
	leave();
}
END_TEST

START_TEST(a_search_goes_on_while_it_is_typed)
{
	open_built(program(0), 70, 20);
	press(TUI_LEFT);
	type("/s");
	ck_assert_int_eq(tui.state->mode, TUI_SEARCH);
	has("\n/s\n");
	type("oft");
	ck_assert_str_eq(here(), "softmax");
	press(TUI_ENTER);
	ck_assert_int_eq(tui.state->mode, TUI_TREE);
	press('n');
	ck_assert_str_eq(here(), "soft");
	press('n');
	ck_assert_str_eq(here(), "softmax");
	press('N');
	ck_assert_str_eq(here(), "soft");
	tui_set_open_all(tui.state, 0, false);
	tui_set_open(tui.state, 0, true);
	tui_update_rows(tui.state, 0);
	ck_assert_uint_eq(tui.state->shown_count, 3);
	type("/soft");
	ck_assert_uint_eq(tui.state->shown_count, 5); /* forward is open */
	type("x");
	ck_assert_uint_eq(tui.state->shown_count, 3); /* and closes again */
	press(TUI_ESCAPE);
	type("/soft");
	press(TUI_ENTER);
	press('n');
	ck_assert_str_eq(here(), "soft");
	type("/nobody");
	has("/nobody  no match");
	press(TUI_ESCAPE);
	ck_assert_str_eq(here(), "soft");
	press('n');
	has("no search text; press / first");
	type("/GEMM");
	has("no match"); /* capitals count */
	for (int i = 0; i < 4; i++)
		press(TUI_BACKSPACE);
	type("gem");
	ck_assert_str_eq(here(), "gemm");
	leave();
}
END_TEST

START_TEST(a_search_stays_in_the_focus)
{
	open_built(program(0), 70, 20);
	type("jf/loss");
	has("no match");
	ck_assert_str_eq(here(), "forward");
	leave();
}
END_TEST

START_TEST(order_by_another_column_keeps_the_selection)
{
	open_built(program(0), 100, 24);
	type("j");
	ck_assert_str_eq(here(), "forward");
	press('>');
	ck_assert_str_eq(tui.model->columns[tui.model->sort].key, "cpu_total_ns");
	ck_assert_str_eq(here(), "forward");
	has("by cpu");
	press('<');
	press('<');
	has("no more columns to the left");
	ck_assert_str_eq(tui.model->columns[tui.model->sort].key, "gpu_total_ns");
	type("s");
	has(" sort by");
	press(TUI_END);
	press(TUI_ENTER);
	ck_assert_int_eq(tui.state->mode, TUI_TREE);
	ck_assert_str_ne(tui.model->columns[tui.model->sort].key, "gpu_total_ns");
	ck_assert_str_eq(here(), "forward");
	leave();
}
END_TEST

START_TEST(columns_are_chosen)
{
	open_built(program(0), 100, 24);
	has("calls");
	type("c");
	has(" [x] gpu_total_ns");
	type("jjj ");
	has(" [ ] calls");
	type("q");
	has_not("calls");
	type("cjjj q");
	has("calls");
	type("]]");
	has_not(" cpu ");
	has(" gpu ");
	type("[[");
	has(" cpu ");
	leave();
}
END_TEST

static void choose_metric(const char *name)
{
	const char *keys[METRIC_COUNT];
	const uint32_t count = tui_list_metrics(tui.state, keys, METRIC_COUNT);
	uint32_t at = 0;

	while (at < count && strcmp(keys[at], name) != 0)
		at++;
	ck_assert_msg(at < count, "%s cannot be chosen", name);
	type("m");
	press(TUI_HOME);
	while (at--)
		press(TUI_DOWN);
	press(TUI_ENTER);
	ck_assert_str_eq(tui.model->metric, name);
}

START_TEST(another_metric_keeps_what_is_open)
{
	const char *keys[METRIC_COUNT];
	uint32_t rows;

	open_built(program(0), 100, 24);
	type("jj");
	rows = tui.state->shown_count;
	choose_metric("alloc");
	has("metric alloc, by alloc");
	has("3.00 kB");
	ck_assert_uint_eq(tui.state->shown_count, rows);
	choose_metric("cpu");
	has("metric cpu, by cpu");
	choose_metric("gpu");
	has("metric gpu, by gpu");
	for (uint32_t i = tui_list_metrics(tui.state, keys, METRIC_COUNT); i-- > 0;)
		ck_assert_str_ne(keys[i], "allocated"); /* no tensor is in the trace */
	leave();
}
END_TEST

START_TEST(the_critical_path_level_by_level)
{
	open_built(program(0), 80, 24);
	type("/loss");
	press(TUI_ENTER);
	press('w'); /* from a place that is not on it: to its beginning */
	ck_assert_str_eq(here(), "turn: * \xc3\x97"
				 "3");
	has("critical, level 1: turn: 2, 6.50 \xc2\xb5s; w: one level down");
	press('w');
	ck_assert_str_eq(here(), "forward");
	press('w');
	ck_assert_str_eq(here(), "scores");
	press(TUI_HOME);
	press(TUI_LEFT);
	press('W');
	ck_assert_str_eq(here(), "gemm");
	has("this is the last level");
	leave();
}
END_TEST

START_TEST(all_that_is_known_of_a_kernel)
{
	open_built(program(0), 90, 40);
	type("/gemm");
	press(TUI_ENTER);
	press(TUI_ENTER);
	ck_assert_int_eq(tui.state->mode, TUI_DETAILS);
	has("\n      gemm  <<<(64,1,1),(128,1,1)>>>\n");
	has("\n  registers              32\n");
	has("\n  occupancy_theoretical  100.0 %\n");
	has("\nlaunch configurations of this kernel, at all nodes: 1\n  calls 3, gpu 8.00 "
	    "\xc2\xb5s");
	press('q');
	ck_assert_int_eq(tui.state->mode, TUI_TREE);
	leave();
}
END_TEST

START_TEST(who_took_memory_there)
{
	open_built(program(0), 90, 60);
	type("/loss");
	press(TUI_ENTER);
	press('d');
	has("memory allocated directly here\n  device memory: 3.00 kB allocated in 3 allocations, "
	    "3.00 kB held at the end");
	leave();
}
END_TEST

START_TEST(help_and_remarks_are_scrolled)
{
	open_built(program(0), 60, 10);
	press('?');
	has("page up, page down");
	press(TUI_END);
	has("--legend explains them");
	press(TUI_UP);
	has_not("--legend explains them");
	press(TUI_HOME);
	has("\nmoving\n");
	press('q');
	press('!');
	has("no warnings");
	press(TUI_ESCAPE);
	ck_assert_int_eq(tui.state->mode, TUI_TREE);
	ck_assert(!tui.state->quit);
	press('q');
	ck_assert(tui.state->quit);
	leave();
}
END_TEST

START_TEST(on_a_narrow_screen_help_is_wrapped)
{
	open_built(program(0), 40, 60);
	press('?');
	has("up, down, k, j        move one row\n");
	has("page up, page down    one screen;\n    space too\n");
	has_not("\u2026");
	leave();
}
END_TEST

/* Short names stand where they belong as long as there is room for them. */
START_TEST(the_depth_is_a_number_only_where_a_name_has_no_room)
{
	struct trace_builder *builder = builder_new();
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g",
		"a name that is longer than that" };
	enum { NAMES = sizeof names / sizeof *names };

	for (uint64_t i = 0; i < NAMES; i++)
		build_push(builder, MAIN, 10 * i, names[i]);
	for (uint64_t i = 0; i < NAMES; i++)
		build_pop(builder, MAIN, 1000 + 10 * i);
	open_built(builder, 40, 20);
	press('*');
	press('*');
	has("\n            \u25be g ");
	has("\n(7)   a nam");
	leave();
}
END_TEST

START_TEST(every_size_is_drawn)
{
	static const char keys[] = "*?q!qsqcqmqdq/s";

	open_built(program(0), 80, 24);
	for (unsigned width = 1; width <= 130; width += 7)
		for (unsigned height = 1; height <= 30; height += 7) {
			tui_resize(tui.state, width, height);
			for (const char *key = keys; *key; key++) {
				press((unsigned char)*key);
				screen();
			}
			press(TUI_ESCAPE);
			ck_assert_int_eq(tui.state->mode, TUI_TREE);
			if (width >= 21 && (width < TUI_MIN_WIDTH || height < TUI_MIN_HEIGHT))
				ck_assert_str_eq(strtok(tui.screen, "\n"), "40x8 needed; q quits");
		}
	leave();
}
END_TEST

static struct trace_builder *hostile(void)
{
	static const char *const names[] = { "\033]0;owned\a",
		"\x9b"
		"31m",
		"a\r\nb\tc",
		"\xe2\x80\xae"
		"evil",
		"\xe6\xb7\xb1\xe5\xb1\xa4\xe5\xad\xa6\xe7\xbf\x92", "e\xcc\x81t\xc3\xa9", "",
		"\xff\xfe", "%s%n%d" };
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++, at += 1000) {
		build_push(builder, MAIN, at, names[i]);
		build_push(builder, MAIN, at + 10, names[(i + 1) % (sizeof names / sizeof *names)]);
		build_pop(builder, MAIN, at + 20);
		build_pop(builder, MAIN, at + 900 - i);
	}
	return builder;
}

START_TEST(hostile_names_are_drawn_as_what_they_are)
{
	open_built(hostile(), 60, 14);
	ck_assert_str_eq(screen(),
		" trace.bin  metric cpu, by cpu                         1/10\n"
		"name                               cpu          %      calls\n"
		"▾ \\x1b]0;owned\\x07              900 ns     11.2 %          1\n"
		"    \\x9b31m                      10 ns      0.1 %          1\n"
		"▸ \\x9b31m                       899 ns     11.1 %          1\n"
		"▸ a\\x0d\\x0ab\\x09c               898 ns     11.1 %          1\n"
		"▸ \\u202eevil                    897 ns     11.1 %          1\n"
		"▸ 深層学習                      896 ns     11.1 %          1\n"
		"▸ été                           895 ns     11.1 %          1\n"
		"▸ (no name)                     894 ns     11.1 %          1\n"
		"▸ \\xff\\xfe                      893 ns     11.1 %          1\n"
		"▸ %s%n%d                        892 ns     11.1 %          1\n"
		"\n"
		"enter open  d details  / find  ? keys  q quit\n");
	for (unsigned width = 40; width < 100; width++) { /* put() looks at every byte */
		tui_resize(tui.state, width, 30);
		type("*d");
		screen();
		type("q*");
	}
	tui.style.ascii = true;
	has("\\u6df1\\u5c64\\u5b66\\u7fd2");
	for (const char *at = screen(); *at; at++)
		ck_assert_int_gt(*at, 0);
	leave();
}
END_TEST

/* Builds a thread that was sampled once in `depth` nested Python functions, and nothing else. */
static struct trace_builder *only_a_deep_sample(uint32_t depth)
{
	struct trace_builder *builder = builder_new();
	struct trace_sample *sample;

	for (uint32_t id = 1; id <= depth; id++) {
		char function[16];
		struct trace_python_node *frame;
		uint32_t name, file = build_name(builder, "/home/u/job.py");

		snprintf(function, sizeof function, "f%u", id);
		name = build_name(builder, function);
		frame = build_dictionary(builder, TRACE_PYTHON_FRAME, sizeof *frame);
		frame->frame = id;
		frame->parent = id - 1;
		frame->at = (struct trace_python_frame){
			.function = name, .file = file, .line = id, .reserved = id == 1
		};
	}
	sample = build_record(builder, GPU, TRACE_SAMPLE, sizeof *sample, 10000000);
	sample->tid = 1000 + MAIN;
	sample->state = TRACE_SAMPLE_ON_CPU;
	sample->weight = 10000000 / TRACE_SAMPLE_WEIGHT_NS;
	sample->python = depth;
	return builder;
}

/* The rows are functions, which are more than the nodes of the call tree. */
START_TEST(functions_of_samples_open_and_close)
{
	open_built(only_a_deep_sample(40), 100, 60);
	ck_assert_uint_ge(tui.model->count, 40);
	for (uint32_t i = 0; i < tui.model->count; i++) {
		ck_assert_uint_lt(tui.model->items[i].key, tui.model->keys);
		ck_assert(i == 0 || tui.model->items[i].key != tui.model->items[i - 1].key);
	}
	ck_assert_ptr_nonnull(strstr(screen(), "f40"));
	tui_set_open_all(tui.state, 0, false);
	tui_update_rows(tui.state, TUI_NONE);
	ck_assert_ptr_null(strstr(screen(), "f40"));
	leave();
}
END_TEST

START_TEST(a_trace_without_rows)
{
	open_built(builder_new(), 60, 10);
	has("no rows");
	for (int key = ' '; key < 127; key++)
		if (key != 'q') {
			press(key);
			press(TUI_ENTER);
			press(TUI_ESCAPE);
			screen();
		}
	leave();
}
END_TEST

START_TEST(no_key_does_harm)
{
	static const int more[] = { TUI_UP, TUI_DOWN, TUI_LEFT, TUI_RIGHT, TUI_PAGE_UP,
		TUI_PAGE_DOWN, TUI_HOME, TUI_END, TUI_ENTER, TUI_ESCAPE, TUI_BACKSPACE, 0xe6, 0xb7,
		0xff };
	uint64_t seed = 1;

	open_built(program(0), 80, 24);
	for (int i = 0; i < 600; i++) {
		const unsigned most = 95 + sizeof more / sizeof *more;
		unsigned pick;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		pick = (unsigned)(seed >> 33) % most;
		press(pick < 95 ? (int)pick + ' ' : more[pick - 95]);
		if (i % 10 == 0)
			screen();
		tui.state->quit = false;
	}
	leave();
}
END_TEST

/* Keys, and how many of them in a second. */
START_TEST(twenty_thousand_nodes_stay_fluid)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	clock_t before;
	char name[32];

	for (int outer = 0; outer < 40; outer++) {
		snprintf(name, sizeof name, "outer_%d", outer);
		build_push(builder, MAIN, at, name);
		for (int inner = 0; inner < 500; inner++, at += 30) {
			snprintf(name, sizeof name, "inner_%d", inner);
			build_push(builder, MAIN, at + 1, name);
			build_pop(builder, MAIN, at + 20);
		}
		build_pop(builder, MAIN, at);
	}
	open_built(builder, 120, 50);
	ck_assert_uint_eq(tui.model->count, 20040);
	for (uint32_t i = 0; i < tui.model->count; i++)
		tui_set_open(tui.state, i, true);
	tui_update_rows(tui.state, TUI_NONE);
	ck_assert_uint_eq(tui.state->shown_count, 20040);
	before = clock();
	for (int i = 0; i < 20; i++) {
		press(TUI_PAGE_DOWN);
		screen();
		press(TUI_LEFT);
		screen();
	}
	/* 10 ms a key would be seen by nobody; time on the CPU, and ten times that, also of a build
	 * that is slower. */
	ck_assert_msg((double)(clock() - before) / CLOCKS_PER_SEC < 4, "%.2f s for 40 keys",
		(double)(clock() - before) / CLOCKS_PER_SEC);
	type("/inner_499");
	ck_assert_str_eq(here(), "inner_499");
	leave();
}
END_TEST

START_TEST(two_traces)
{
	static char words[][16] = { "pperf-report", "tui", "a.bin", "b.bin" };
	char *arguments[] = { words[0], words[1], words[2], words[3], NULL };
	struct trace_builder *builder;

	builder = program(0);
	builder_write(builder, "a.bin");
	builder_free(builder);
	builder = program(2000);
	builder_write(builder, "b.bin");
	builder_free(builder);
	open_arguments(arguments, 4, 90, 25);
	ck_assert_str_eq(screen(),
		" a.bin -> b.bin  metric gpu, by change"
		"                                                1/6\n"
		"name                 before      after     change          %  noise?  "
		"        p          n\n"
		"▾ turn: *           9.50 µs   11.50 µs   +2.00 µs    +21.1 %  within  "
		"   1.0000          3\n"
		"  ▾ forward         9.50 µs   11.50 µs   +2.00 µs    +21.1 %  within  "
		"   1.0000          3\n"
		"    ▾ scores        8.00 µs   10.00 µs   +2.00 µs    +25.0 %  within  "
		"   1.0000          3\n"
		"        gemm        8.00 µs   10.00 µs   +2.00 µs    +25.0 %  within  "
		"   1.0000          3\n"
		"    ▾ softmax       1.50 µs    1.50 µs       0 ns     +0.0 %  within  "
		"   1.0000          3\n"
		"        soft        1.50 µs    1.50 µs       0 ns     +0.0 %  within  "
		"   1.0000          3\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"enter open  d details  f focus  / find  s sort  m metric  w worst  ? keys  q\n");
	press('W');
	ck_assert_str_eq(here(), "gemm");
	press(TUI_ENTER);
	has("  before                 8.00 \xc2\xb5s");
	has("  after                  10.00 \xc2\xb5s");
	has("  calls                  3               3");
	type("q%");
	has("+21.1 %");
	choose_metric("cpu");
	ck_assert_uint_eq(tui.state->cursor, 0);
	has("metric cpu, by change");
	type("*>>sq?q/loss");
	ck_assert_str_eq(here(), "loss");
	leave();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tui");
	TCase *keys = tcase_create("keys");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(keys, run_report_setup, run_report_teardown);
	tcase_set_timeout(keys, 120);
	tcase_add_test(keys, what_fits_is_open);
	tcase_add_test(keys, arrows_open_and_close);
	tcase_add_test(keys, a_star_opens_all_and_closes_it);
	tcase_add_test(keys, closing_around_the_cursor_keeps_a_row_under_it);
	tcase_add_test(keys, a_focus_and_back);
	tcase_add_test(keys, percents_are_of_the_whole_or_of_the_focus);
	tcase_add_test(keys, a_search_goes_on_while_it_is_typed);
	tcase_add_test(keys, a_search_stays_in_the_focus);
	tcase_add_test(keys, order_by_another_column_keeps_the_selection);
	tcase_add_test(keys, columns_are_chosen);
	tcase_add_test(keys, another_metric_keeps_what_is_open);
	tcase_add_test(keys, the_critical_path_level_by_level);
	tcase_add_test(keys, all_that_is_known_of_a_kernel);
	tcase_add_test(keys, who_took_memory_there);
	tcase_add_test(keys, help_and_remarks_are_scrolled);
	tcase_add_test(keys, on_a_narrow_screen_help_is_wrapped);
	tcase_add_test(keys, the_depth_is_a_number_only_where_a_name_has_no_room);
	tcase_add_test(keys, every_size_is_drawn);
	tcase_add_test(keys, hostile_names_are_drawn_as_what_they_are);
	tcase_add_test(keys, functions_of_samples_open_and_close);
	tcase_add_test(keys, a_trace_without_rows);
	tcase_add_test(keys, no_key_does_harm);
	tcase_add_test(keys, twenty_thousand_nodes_stay_fluid);
	tcase_add_test(keys, two_traces);
	suite_add_tcase(suite, keys);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
