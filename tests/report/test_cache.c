/* SPDX-License-Identifier: MIT
 * test_cache.c: what is kept of a file between commands, and that nothing stale, damaged or foreign
 * is believed.
 */
#include "report/cache/cache.h"
#include "report/cache/cache_folder.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTENTS_BYTES 300u
#define KIND "test"

static char base[] = "/tmp/pperf-cache.XXXXXX";
static char file[64], folder[64], kept_in[128];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return cache_time_ns(&now);
}

static void write_file(const char *path, size_t bytes, char fill)
{
	char *text = malloc(bytes);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(text, fill, bytes);
	ck_assert(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes && close(fd) == 0);
	free(text);
}

/* Once for all tests: a file that was changed long enough ago. */
static void make_old_file(void)
{
	struct stat status;

	ck_assert_ptr_nonnull(mkdtemp(base));
	snprintf(file, sizeof file, "%s/file", base);
	write_file(file, CACHE_FILE_MIN, 'x');
	do {
		usleep(100000);
		ck_assert_int_eq(stat(file, &status), 0);
	} while (cache_time_ns(&status.st_ctim) + CACHE_AGE_MIN_NS > now_ns());
}

static void remove_all(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", base);
	ck_assert_int_eq(system(command), 0);
}

static void use_folder(void)
{
	snprintf(folder, sizeof folder, "%s/home-%ld", base, (long)getpid());
	snprintf(kept_in, sizeof kept_in, "%s/pperf", folder);
	setenv("XDG_CACHE_HOME", folder, 1);
	unsetenv("PPERF_CACHE");
	cache_allow(true);
}

static struct cache_key key_of(const char *path)
{
	const int fd = open(path, O_RDONLY);
	const struct cache_key key = cache_key_of(fd, path);

	close(fd);
	return key;
}

static int contents_file(size_t bytes)
{
	const int fd = open(base, O_TMPFILE | O_RDWR, 0600);

	char *text = malloc(bytes);

	ck_assert_int_ge(fd, 0);
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)(i * 7 + i / 256);
	ck_assert_int_eq(write(fd, text, bytes), (ssize_t)bytes);
	free(text);
	return fd;
}

static bool store(const struct cache_key *key, uint32_t number, size_t bytes)
{
	const struct cache_part part = { number, 3, 42, bytes };
	const int fd = contents_file(bytes);
	const bool stored = cache_store(key, KIND, &part, fd);

	close(fd);
	return stored;
}

/* Returns whether the entry is believed. It then has the right contents. */
static bool is_found(const struct cache_key *key, uint32_t number)
{
	struct cache_part part;
	const int fd = cache_open(key, KIND, number, &part);
	unsigned char byte;

	if (fd < 0)
		return false;
	ck_assert_uint_eq(part.tag, 42);
	ck_assert_uint_eq(part.count, 3);
	for (size_t i = 0; i < part.bytes; i += part.bytes / 300 + 1) {
		ck_assert_int_eq(pread(fd, &byte, 1, (off_t)i), 1);
		ck_assert_uint_eq(byte, (unsigned char)(i * 7 + i / 256));
	}
	close(fd);
	return true;
}

/* Returns the path of an entry, of several the first in the order of the folder. */
static const char *entry_path(void)
{
	static char path[512];
	DIR *entries = opendir(kept_in);
	struct dirent *entry;

	*path = '\0';
	while (entries && (entry = readdir(entries)))
		if (strstr(entry->d_name, CACHE_ENTRY_END))
			snprintf(path, sizeof path, "%s/%s", kept_in, entry->d_name);
	if (entries)
		closedir(entries);
	return path;
}

START_TEST(what_was_kept_is_found)
{
	const struct cache_key key = key_of(file);
	struct cache_key other = key;
	struct stat status;

	ck_assert(cache_key_is_set(&key));
	ck_assert(!is_found(&key, 0));
	ck_assert(store(&key, 0, CONTENTS_BYTES) && store(&key, 2, 3 << 20));
	ck_assert(is_found(&key, 0) && is_found(&key, 2) && !is_found(&key, 1));
	cache_key_add(&other, 5);
	ck_assert(!is_found(&other, 0));
	ck_assert(cache_key_is_current(&key, file) && cache_key_is_current(&other, file));
	ck_assert_int_eq(stat(kept_in, &status), 0);
	ck_assert_int_eq(status.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(entry_path(), &status), 0);
	ck_assert_int_eq(status.st_mode & 0777, 0600);
}
END_TEST

START_TEST(an_entry_with_any_byte_changed_is_not_believed)
{
	const struct cache_key key = key_of(file);
	struct stat status;
	unsigned char byte, changed;
	int fd;

	ck_assert(store(&key, 0, CONTENTS_BYTES));
	ck_assert_int_eq(stat(entry_path(), &status), 0);
	for (off_t at = 0; at < status.st_size; at++) {
		ck_assert(store(&key, 0, CONTENTS_BYTES));
		fd = open(entry_path(), O_RDWR);
		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		changed = (unsigned char)(byte ^ (1 << at % 8));
		ck_assert_int_eq(pwrite(fd, &changed, 1, at), 1);
		close(fd);
		ck_assert_msg(!is_found(&key, 0), "byte %ld", (long)at);
		ck_assert_str_eq(entry_path(), ""); /* and is removed */
	}
}
END_TEST

START_TEST(an_entry_that_is_cut_anywhere_is_not_believed)
{
	const struct cache_key key = key_of(file);
	struct stat status;
	int fd;

	ck_assert(store(&key, 0, CONTENTS_BYTES));
	ck_assert_int_eq(stat(entry_path(), &status), 0);
	for (off_t bytes = 0; bytes < status.st_size; bytes++) {
		ck_assert(store(&key, 0, CONTENTS_BYTES));
		ck_assert_int_eq(truncate(entry_path(), bytes), 0);
		ck_assert_msg(!is_found(&key, 0), "%ld bytes", (long)bytes);
	}
	ck_assert(store(&key, 0, CONTENTS_BYTES));
	fd = open(entry_path(), O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "", 1), 1);
	close(fd);
	ck_assert(!is_found(&key, 0));
}
END_TEST

START_TEST(what_others_may_have_written_is_not_believed)
{
	const struct cache_key key = key_of(file);
	char name[512], moved[512];

	ck_assert(store(&key, 0, CONTENTS_BYTES));
	ck_assert_int_eq(chmod(entry_path(), 0620), 0);
	ck_assert(!is_found(&key, 0));

	ck_assert(store(&key, 0, CONTENTS_BYTES));
	snprintf(name, sizeof name, "%s", entry_path());
	snprintf(moved, sizeof moved, "%s/moved", base);
	ck_assert_int_eq(rename(name, moved), 0);
	ck_assert_int_eq(symlink(moved, name), 0);
	ck_assert(!is_found(&key, 0));
	unlink(name);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	ck_assert(!is_found(&key, 0));

	if (geteuid() == 0) {
		ck_assert(store(&key, 0, CONTENTS_BYTES));
		ck_assert_int_eq(chown(entry_path(), 1, 1), 0);
		ck_assert(!is_found(&key, 0));
	}
	ck_assert(store(&key, 0, CONTENTS_BYTES));
	ck_assert_int_eq(chmod(kept_in, 0777), 0);
	ck_assert(!is_found(&key, 0) && !store(&key, 1, CONTENTS_BYTES));
	ck_assert_int_eq(chmod(kept_in, 0700), 0);
	ck_assert(is_found(&key, 0));
}
END_TEST

/* An entry of another file, under the name of the one that is looked for. */
START_TEST(an_entry_of_something_else_is_not_believed)
{
	const struct cache_key key = key_of(file);
	struct cache_key other = key;
	char name[512];

	cache_key_add(&other, 1);
	ck_assert(store(&key, 0, CONTENTS_BYTES));
	snprintf(name, sizeof name, "%s", entry_path());
	unlink(name);
	ck_assert(store(&other, 0, CONTENTS_BYTES));
	ck_assert_int_eq(rename(entry_path(), name), 0);
	ck_assert(!is_found(&key, 0));

	ck_assert(store(&key, 1, CONTENTS_BYTES));
	ck_assert_int_eq(rename(entry_path(), name), 0);
	ck_assert(!is_found(&key, 0));
}
END_TEST

START_TEST(a_changed_file_has_another_key)
{
	char copy[128];
	struct timespec times[2];
	struct cache_key key, again;
	struct stat status;
	int fd;

	snprintf(copy, sizeof copy, "%s-%ld", file, (long)getpid());
	write_file(copy, CACHE_FILE_MIN, 'x');
	key = key_of(copy);
	ck_assert(!cache_key_is_set(&key)); /* just written */
	usleep(2100000);
	key = key_of(copy);
	ck_assert(cache_key_is_set(&key) && cache_key_is_current(&key, copy));
	ck_assert_int_eq(stat(copy, &status), 0);
	times[0] = status.st_atim;
	times[1] = status.st_mtim;
	fd = open(copy, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "y", 1, 500000), 1);
	close(fd);
	ck_assert_int_eq(utimensat(AT_FDCWD, copy, times, 0), 0); /* the time of change remains */
	ck_assert(!cache_key_is_current(&key, copy));
	usleep(2100000);
	again = key_of(copy);
	ck_assert(cache_key_is_set(&again) && memcmp(&again, &key, sizeof key) != 0);
}
END_TEST

START_TEST(some_files_are_not_kept)
{
	struct cache_key key = key_of("/dev/zero");
	const int fd = open(base, O_TMPFILE | O_RDWR, 0600);

	ck_assert(!cache_key_is_set(&key));
	ck_assert_int_eq(ftruncate(fd, CACHE_FILE_MIN), 0);
	key = cache_key_of(fd, file); /* another file than the one at the path */
	ck_assert(!cache_key_is_set(&key) && !store(&key, 0, 1) && !is_found(&key, 0));
	close(fd);
}
END_TEST

START_TEST(it_can_be_off)
{
	struct cache_key key;

	cache_allow(false);
	key = key_of(file);
	ck_assert(!cache_key_is_set(&key));
	setenv("PPERF_CACHE", "0", 1);
	cache_allow(true);
	key = key_of(file);
	ck_assert(!cache_key_is_set(&key));
	setenv("PPERF_CACHE", "off", 1);
	cache_allow(true);
	key = key_of(file);
	ck_assert(!cache_key_is_set(&key));
	setenv("PPERF_CACHE", "7", 1);
	cache_allow(true);
	key = key_of(file);
	ck_assert(cache_key_is_set(&key));
}
END_TEST

START_TEST(without_a_folder_nothing_is_kept)
{
	const struct cache_key key = key_of(file);

	setenv("XDG_CACHE_HOME", "/proc/self", 1);
	ck_assert(!store(&key, 0, CONTENTS_BYTES) && !is_found(&key, 0));
	setenv("XDG_CACHE_HOME", "relative", 1);
	unsetenv("HOME");
	ck_assert(!store(&key, 0, CONTENTS_BYTES) && !is_found(&key, 0));
	ck_assert_int_ne(access("relative", F_OK), 0);
	mkdir(folder, 0700);
	setenv("HOME", folder, 1);
	ck_assert(store(&key, 0, CONTENTS_BYTES) && is_found(&key, 0));
}
END_TEST

static void set_used(const char *path, time_t seconds)
{
	const struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };

	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(the_entry_used_longest_ago_makes_room)
{
	const struct cache_key key = key_of(file);
	char left_behind[160];

	setenv("PPERF_CACHE", "1", 1); /* MiB */
	cache_allow(true);
	ck_assert(store(&key, 0, 400000));
	set_used(entry_path(), 1000);
	ck_assert(store(&key, 1, 400000));
	snprintf(left_behind, sizeof left_behind, "%s/x" CACHE_NEW_END, kept_in);
	write_file(left_behind, 10, 'x');
	set_used(left_behind, 1000);
	ck_assert(store(&key, 2, 400000));
	ck_assert(!is_found(&key, 0) && is_found(&key, 1) && is_found(&key, 2));
	ck_assert_int_ne(access(left_behind, F_OK), 0);
	/* those that this process uses stay, and what is half of the limit is not kept */
	ck_assert(!store(&key, 0, 400000) && is_found(&key, 1) && is_found(&key, 2));
	ck_assert(!store(&key, 0, 600000));
}
END_TEST

/* Each sees a whole entry or none. */
START_TEST(several_processes_keep_the_same)
{
	const struct cache_key key = key_of(file);
	int status;

	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int times = 0; times < 25; times++)
				if (!store(&key, 0, 5000) || !is_found(&key, 0))
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < 4; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache");
	TCase *all = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 30);
	tcase_add_unchecked_fixture(all, make_old_file, remove_all);
	tcase_add_checked_fixture(all, use_folder, NULL);
	tcase_add_test(all, what_was_kept_is_found);
	tcase_add_test(all, an_entry_with_any_byte_changed_is_not_believed);
	tcase_add_test(all, an_entry_that_is_cut_anywhere_is_not_believed);
	tcase_add_test(all, what_others_may_have_written_is_not_believed);
	tcase_add_test(all, an_entry_of_something_else_is_not_believed);
	tcase_add_test(all, a_changed_file_has_another_key);
	tcase_add_test(all, some_files_are_not_kept);
	tcase_add_test(all, it_can_be_off);
	tcase_add_test(all, without_a_folder_nothing_is_kept);
	tcase_add_test(all, the_entry_used_longest_ago_makes_room);
	tcase_add_test(all, several_processes_keep_the_same);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
