/* SPDX-License-Identifier: MIT
 * Which name a new trace gets, and what happens to what had it.
 */
#include "collector/file/output_path.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/pperf-name-XXXXXX", path[4096];

static void enter_folder(void)
{
	strcpy(folder, "/tmp/pperf-name-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static void remove_folder(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static struct trace_header header_of(uint64_t run, uint32_t pid, uint32_t flags)
{
	struct trace_header header = { .version = TRACE_VERSION,
		.endian = TRACE_ENDIAN,
		.header_bytes = 4096,
		.run_id = run,
		.pid = pid,
		.flags = flags };

	memcpy(header.magic, TRACE_MAGIC, sizeof header.magic);
	return header;
}

/* Makes a trace under `output`; its name without the folder. */
static const char *make(const char *output, uint64_t run)
{
	struct trace_header header = header_of(run, (uint32_t)getpid(), 0);
	int fd;

	header.start.raw = (uint64_t)clock();
	fd = output_create(output, &header, path);
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}

static uint64_t run_of(const char *name)
{
	struct trace_header header;
	int fd = open(name, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, &header, sizeof header), (ssize_t)sizeof header);
	close(fd);
	return header.run_id;
}

static void put_trace(const char *name, struct trace_header header)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_eq(write(fd, &header, sizeof header), (ssize_t)sizeof header);
	close(fd);
}

START_TEST(the_first_of_a_run_gets_the_plain_name_and_the_next_ones_their_pid)
{
	char wanted[64];

	ck_assert_str_eq(make("trace.bin", 1), "trace.bin");
	snprintf(wanted, sizeof wanted, "trace.%d.bin", (int)getpid());
	ck_assert_str_eq(make("trace.bin", 1), wanted);
	snprintf(wanted, sizeof wanted, "trace.%d.2.bin", (int)getpid());
	ck_assert_str_eq(make("trace.bin", 1), wanted);
	snprintf(wanted, sizeof wanted, "a.b/plain.%d", (int)getpid());
	ck_assert_int_eq(mkdir("a.b", 0700), 0);
	ck_assert_str_eq(make("a.b/plain", 1), "a.b/plain");
	ck_assert_str_eq(make("a.b/plain", 1), wanted);
}
END_TEST

/* With a folder in its name it is made without one; else under another. */
START_TEST(a_trace_is_the_users_alone_whatever_the_umask)
{
	static const char *const names[] = { "a.bin", "./b.bin" };
	static const mode_t masks[] = { 0, 022, 077 };
	struct stat st;

	for (size_t i = 0; i < 6; i++) {
		const char *name = names[i % 2];
		mode_t before = umask(masks[i / 2]);

		ck_assert_str_eq(make(name, 1), name);
		umask(before);
		ck_assert_int_eq(stat(name, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0600);
		ck_assert_uint_eq(st.st_nlink, 1);
		ck_assert_int_eq(unlink(name), 0);
	}
}
END_TEST

START_TEST(a_finished_trace_of_another_run_becomes_old)
{
	put_trace("trace.bin", header_of(1, (uint32_t)getpid(), TRACE_ENDED));
	ck_assert_str_eq(make("trace.bin", 2), "trace.bin");
	ck_assert_uint_eq(run_of("trace.bin.old"), 1);
	put_trace("other.bin", header_of(1, 0x3FFFFFFF, 0)); /* killed: no such process */
	ck_assert_str_eq(make("other.bin", 3), "other.bin");
	ck_assert_uint_eq(run_of("other.bin.old"), 1);
}
END_TEST

START_TEST(a_live_trace_of_another_run_stays)
{
	char wanted[64];

	put_trace("trace.bin", header_of(1, (uint32_t)getppid(), 0));
	snprintf(wanted, sizeof wanted, "trace.%d.bin", (int)getpid());
	ck_assert_str_eq(make("trace.bin", 2), wanted);
	ck_assert_uint_eq(run_of("trace.bin"), 1);
}
END_TEST

/* Its pid says nothing here: the writer is on another machine, or in another container. */
START_TEST(a_trace_that_its_writer_has_locked_is_live_wherever_that_is)
{
	struct trace_header header = header_of(1, 0x3FFFFFFF, TRACE_ENDED);
	int ready[2];
	char byte;
	pid_t writer;

	ck_assert_int_eq(pipe(ready), 0);
	writer = fork();
	if (!writer) {
		int fd = output_create("trace.bin", &header, path);

		_exit(fd < 0 || write(ready[1], "r", 1) != 1 || pause());
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert_str_ne(make("trace.bin", 2), "trace.bin");
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	ck_assert_str_eq(make("trace.bin", 3), "trace.bin");
	ck_assert_uint_eq(run_of("trace.bin.old"), 1);
}
END_TEST

START_TEST(in_a_container_the_pid_of_the_last_one_is_our_own)
{
	put_trace("trace.bin", header_of(1, (uint32_t)getpid(), 0));
	ck_assert_str_eq(make("trace.bin", 2), "trace.bin");
	ck_assert_uint_eq(run_of("trace.bin.old"), 1);
}
END_TEST

static int no_link, no_rename; /* errno of what the file system does not know */

/* Instead of the C library's. */
int link(const char *from, const char *to)
{
	errno = no_link;
	return no_link ? -1 : linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
	errno = no_rename;
	return no_rename ? -1
			 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

START_TEST(names_are_given_where_there_are_no_links)
{
	char wanted[64];

	no_link = EPERM;
	for (int rename_too = 0; rename_too < 2; rename_too++) {
		no_rename = rename_too ? EINVAL : 0;
		ck_assert_str_eq(make(rename_too ? "second.bin" : "first.bin", 1),
			rename_too ? "second.bin" : "first.bin");
		snprintf(wanted, sizeof wanted, rename_too ? "second.%d.bin" : "first.%d.bin",
			(int)getpid());
		ck_assert_str_eq(make(rename_too ? "second.bin" : "first.bin", 1), wanted);
		ck_assert_uint_eq(run_of(wanted), 1);
	}
	ck_assert_int_eq(system("test $(ls | wc -l) = 4"), 0);
}
END_TEST

START_TEST(without_a_descriptor_to_keep_nothing_is_left)
{
	int next = dup(0);
	struct rlimit limit = { (rlim_t)next + 1, (rlim_t)next + 1 };

	close(next);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_ptr_null(make("trace.bin", 1));
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(access("trace.bin", F_OK), -1);
}
END_TEST

START_TEST(what_is_no_trace_is_never_touched)
{
	char wanted[64], text[16] = "";
	int fd = open("trace.bin", O_RDWR | O_CREAT, 0600);

	ck_assert_int_eq(write(fd, "mine", 4), 4);
	snprintf(wanted, sizeof wanted, "trace.%d.bin", (int)getpid());
	ck_assert_str_eq(make("trace.bin", 2), wanted);
	ck_assert_int_eq(pread(fd, text, sizeof text, 0), 4);
	ck_assert_str_eq(text, "mine");
	ck_assert_int_eq(mkfifo("fifo.bin", 0600), 0);
	ck_assert_ptr_null(make("fifo.bin", 2)); /* and does not hang */
	ck_assert_int_eq(mkdir("folder", 0700), 0);
	ck_assert_ptr_null(make("folder", 2));
	ck_assert_ptr_null(make("/dev/null", 2));
	ck_assert_int_eq(system("test $(ls -d f* /dev/null* | wc -l) = 3"), 0);
	ck_assert_int_eq(symlink("trace.bin", "link.bin"), 0);
	ck_assert_int_ne(strcmp(make("link.bin", 2), "link.bin"), 0);
}
END_TEST

START_TEST(fields_are_filled_in)
{
	char wanted[64];

	snprintf(wanted, sizeof wanted, "t.%d.bin", (int)getpid());
	ck_assert_str_eq(make("t.%p.bin", 1), wanted);
	ck_assert_str_eq(make("n.%n.bin", 1), "n.0.bin");
	ck_assert_str_eq(make("n.%n.bin", 1), "n.1.bin");
	ck_assert_str_eq(make("100%%.bin", 1), "100%.bin");
}
END_TEST

START_TEST(nothing_is_left_where_nothing_can_be_made)
{
	ck_assert_ptr_null(make("missing/trace.bin", 1));
	ck_assert_int_eq(access("missing", F_OK), -1);
}
END_TEST

START_TEST(descriptors_lie_high_and_close_on_exec_and_files_are_private)
{
	struct trace_header header = header_of(1, 1, 0);
	int fd = output_create("trace.bin", &header, path);
	struct stat st;

	ck_assert_int_ge(fd, 64);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_uint_eq(st.st_nlink, 1);
}
END_TEST

START_TEST(processes_that_start_at_once_each_get_a_file_and_one_old_trace_survives)
{
	int good = 0, status;

	put_trace("trace.bin", header_of(1, 0x3FFFFFFF, 0));
	for (int i = 0; i < 16; i++)
		if (!fork())
			_exit(make("trace.bin", 2) == NULL);
	while (wait(&status) > 0)
		good += status == 0;
	ck_assert_int_eq(good, 16);
	ck_assert_uint_eq(run_of("trace.bin"), 2);
	ck_assert_uint_eq(run_of("trace.bin.old"), 1);
	ck_assert_int_eq(system("test $(ls | grep -c part) = 0 && test $(ls | wc -l) = 17"), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace_name");
	TCase *tests = tcase_create("trace_name");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, enter_folder, remove_folder);
	tcase_add_test(tests, the_first_of_a_run_gets_the_plain_name_and_the_next_ones_their_pid);
	tcase_add_test(tests, a_trace_is_the_users_alone_whatever_the_umask);
	tcase_add_test(tests, a_finished_trace_of_another_run_becomes_old);
	tcase_add_test(tests, a_live_trace_of_another_run_stays);
	tcase_add_test(tests, a_trace_that_its_writer_has_locked_is_live_wherever_that_is);
	tcase_add_test(tests, in_a_container_the_pid_of_the_last_one_is_our_own);
	tcase_add_test(tests, names_are_given_where_there_are_no_links);
	tcase_add_test(tests, without_a_descriptor_to_keep_nothing_is_left);
	tcase_add_test(tests, what_is_no_trace_is_never_touched);
	tcase_add_test(tests, fields_are_filled_in);
	tcase_add_test(tests, nothing_is_left_where_nothing_can_be_made);
	tcase_add_test(tests, descriptors_lie_high_and_close_on_exec_and_files_are_private);
	tcase_add_test(
		tests, processes_that_start_at_once_each_get_a_file_and_one_old_trace_survives);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
