/* SPDX-License-Identifier: MIT
 * test_regular_file.c: what is opened of the files that a trace, or who wrote into its folder,
 * names. The kernel is asked (inotify), since a pipe that is opened and closed again leaves nothing
 * to see.
 */
#include "report/base/error.h"
#include "report/base/regular_file.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAIN = 1 };

static int watch;

static void enter(void)
{
	run_report_setup();
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ck_assert_int_ge(watch, 0);
}

static void leave(void)
{
	close(watch);
	run_report_teardown();
}

static void watch_for_opens(const char *path)
{
	ck_assert_int_ge(inotify_add_watch(watch, path, IN_OPEN), 0);
}

/* How often what is watched was opened since this was asked. */
static unsigned opens(void)
{
	char events[4096] __attribute__((aligned(8)));
	unsigned count = 0;
	ssize_t got;

	while ((got = read(watch, events, sizeof events)) > 0)
		for (ssize_t at = 0; at < got; count++)
			at += (ssize_t)sizeof(struct inotify_event) +
			      (ssize_t)((struct inotify_event *)(void *)(events + at))->len;
	return count;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void make_socket(const char *path)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

static int error_of(const char *path, struct stat *status)
{
	const int fd = regular_file_open(path, status);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

START_TEST(a_regular_file_is_opened_through_links_too)
{
	struct stat status;

	write_text("file", "four");
	ck_assert_int_eq(symlink("file", "link"), 0);
	ck_assert_int_eq(symlink("link", "chain"), 0);
	ck_assert_int_eq(error_of("chain", &status), 0);
	ck_assert_int_eq(status.st_size, 4);
	ck_assert_int_eq(symlink("circle", "circle"), 0);
	ck_assert_int_eq(error_of("circle", &status), ELOOP);
	ck_assert_int_eq(error_of("nothing", &status), ENOENT);
	ck_assert_int_eq(status.st_mode, 0);
}
END_TEST

START_TEST(nothing_else_is_so_much_as_opened)
{
	static const char *const others[] = { "fifo", "socket", ".", "to_fifo", "/dev/null",
		"/dev/zero", "/proc/kmsg", "/proc/self/mem", "/proc/self/environ",
		"/sys/kernel/notes" };
	struct stat status;
	int fd;

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	make_socket("socket");
	ck_assert_int_eq(symlink("fifo", "to_fifo"), 0);
	watch_for_opens("fifo");
	watch_for_opens("/proc/self/environ");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!access(others[i], F_OK))
			ck_assert_msg(error_of(others[i], &status) == ENOTSUP, "%s", others[i]);
	ck_assert_uint_eq(opens(), 0);
	fd = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_uint_eq(opens(), 1); /* it would have been seen */
	close(fd);
}
END_TEST

static void build_names(struct trace_builder *builder)
{
	char folder[512], paths[3][600];
	const uint64_t address = 0x7f0000001020;
	struct trace_python_frame frame = { .function = build_name(builder, "f"), .line = 1 };
	struct trace_python_stack *python;
	struct trace_stack *stack;

	ck_assert_ptr_nonnull(getcwd(folder, sizeof folder));
	snprintf(paths[0], sizeof *paths, "%s/elsewhere/fifo", folder);
	snprintf(paths[1], sizeof *paths, "%s/elsewhere/train.py", folder);
	frame.file = build_name(builder, paths[1]);
	stack = build_dictionary(builder, TRACE_STACK, sizeof *stack + sizeof address);
	stack->stack = 1;
	stack->frames = 1;
	memcpy(stack + 1, &address, sizeof address);
	python = build_dictionary(builder, TRACE_PYTHON_STACK, sizeof *python + sizeof frame);
	python->stack = 2;
	python->frames = 1;
	memcpy(python + 1, &frame, sizeof frame);
	for (unsigned i = 0; i < 2; i++) { /* the same place: the second took the first's */
		const size_t length = strlen(paths[0]);
		struct trace_module *module = build_dictionary(
			builder, TRACE_MODULE, sizeof *module + (length + 20 + 7) / 8 * 8);

		module->start = module->bias = 0x7f0000000000;
		module->end = 0x7f0000100000;
		module->path_bytes = (uint16_t)length;
		module->build_id_bytes = 20;
		memcpy(module + 1, paths[0], length);
		memset((char *)(module + 1) + length, 'B', 20);
	}
}

/* Of a run, so that its folder is looked through. */
static void write_trace(void)
{
	struct trace_builder *builder = builder_new();

	builder_header(builder)->run_id = 7;
	build_names(builder);
	build_push(builder, MAIN, 10, "step");
	build_memory(builder, MAIN, 20, TRACE_ALLOC, 4096, 4096, TRACE_MEMORY_DEVICE, 0)
		->call.stack = 1;
	build_tensor(builder, MAIN, 25, 8192, 512, 512, 4096);
	build_launch(builder, MAIN, 30, 1)->call.stack = 1;
	build_launch(builder, MAIN, 40, 2)->call.stack = 2;
	build_pop(builder, MAIN, 100);
	ck_assert_int_eq(run_report(builder, "tree trace.bin").status, STATUS_OK);
}

START_TEST(a_trace_has_nothing_opened_that_is_none)
{
	static const char *const lines[] = { "summary", "tree --sources", "table --by stack",
		"memory --sources", "memory --columns name,stack", "dump", "info", "api",
		"critical", "idle", "tree -f json --sources" };
	char arguments[128];

	ck_assert_int_eq(mkdir("elsewhere", 0700), 0);
	ck_assert_int_eq(mkfifo("elsewhere/fifo", 0600), 0);
	make_socket("elsewhere/socket");
	write_text("elsewhere/train.py", "import secrets\n");
	write_trace();
	ck_assert_int_eq(symlink("elsewhere/fifo", "a.bin"), 0);
	ck_assert_int_eq(symlink("elsewhere/socket", "b.bin"), 0);
	ck_assert_int_eq(symlink("/proc/kmsg", "c.bin"), 0);
	ck_assert_int_eq(symlink("/dev/zero", "d.bin"), 0);
	ck_assert_int_eq(symlink("elsewhere", "e.bin"), 0);
	ck_assert_int_eq(mkfifo("f.bin", 0600), 0);
	watch_for_opens("elsewhere");
	watch_for_opens("f.bin");
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		snprintf(arguments, sizeof arguments, "%s trace.bin", lines[i]);
		ck_assert_msg(
			run_report(NULL, arguments).status <= STATUS_DIFFERENT, "%s", arguments);
	}
	ck_assert_uint_eq(opens(), 0);
	ck_assert_ptr_nonnull(
		strstr(run_report(NULL, "tree c.bin").err, "is a file of /proc or /sys"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regular_file");
	TCase *tests = tcase_create("regular_file");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, enter, leave);
	tcase_add_test(tests, a_regular_file_is_opened_through_links_too);
	tcase_add_test(tests, nothing_else_is_so_much_as_opened);
	tcase_add_test(tests, a_trace_has_nothing_opened_that_is_none);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
