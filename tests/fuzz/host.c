/* SPDX-License-Identifier: MIT
 * host.c: see host.h. The linker hands us what the report calls: exit, malloc and its like, fopen,
 * opendir (--wrap).
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/printed.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGUMENTS_MOST 32
#define DESCRIPTORS_FROM 20        /* those of the harness and of libFuzzer lie below */
#define ALLOCATION_MOST (1u << 28) /* more at once, for inputs of some kilobytes, is a find */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_mremap(void *memory, size_t before, size_t bytes, int flags);
int __real_munmap(void *memory, size_t bytes);
char *__real_strdup(const char *text);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__real_fdopen(int fd, const char *mode);
FILE *__real_tmpfile(void);
int __real_fclose(FILE *file);
DIR *__real_opendir(const char *path);
int __real_closedir(DIR *folder);
_Noreturn void __real_exit(int status);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mremap(void *memory, size_t before, size_t bytes, int flags);
int __wrap_munmap(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
FILE *__wrap_tmpfile(void);
int __wrap_fclose(FILE *file);
DIR *__wrap_opendir(const char *path);
int __wrap_closedir(DIR *folder);
_Noreturn void __wrap_exit(int status);

int report_main(int argc, char **argv);

/* What was had in this call and not given back: a hash table of pointers, and how to give each
 * back. */
enum had { HAD_NOTHING, HAD_MEMORY, HAD_MAPPING, HAD_FILE, HAD_FOLDER, HAD_GONE };
static struct had_thing {
	void *thing;
	size_t bytes; /* of a mapping */
	enum had had;
} * things;
static size_t thing_count, thing_room;

static bool inside;
static sigjmp_buf way_out;
static int ended_with;
static int printed_fd = -1, said_fd = -1, own_out = -1;
static FILE *said, *own_err;
static char *printed;
static size_t printed_bytes;
static char folder[64];

static size_t slot_of(const void *thing)
{
	uint64_t hash = (uint64_t)(uintptr_t)thing * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 20) & (thing_room - 1);
}

static void put_thing(void *thing, size_t bytes, enum had had)
{
	size_t at = slot_of(thing);

	while (things[at].had != HAD_NOTHING &&
		!(things[at].had == HAD_GONE && things[at].thing == thing))
		at = (at + 1) & (thing_room - 1);
	thing_count += things[at].had == HAD_NOTHING;
	things[at] = (struct had_thing){ thing, bytes, had };
}

static void more_room(void)
{
	struct had_thing *old = things;
	const size_t old_room = thing_room;

	thing_room = thing_room ? thing_room * 2 : 1u << 12;
	thing_count = 0;
	things = __real_calloc(thing_room, sizeof *things);
	if (!things)
		abort();
	for (size_t i = 0; i < old_room; i++)
		if (old[i].had != HAD_NOTHING && old[i].had != HAD_GONE)
			put_thing(old[i].thing, old[i].bytes, old[i].had);
	__real_free(old);
}

static void had_bytes(void *thing, size_t bytes, enum had what)
{
	if (!inside || !thing)
		return;
	if (thing_count + 1 > thing_room / 2)
		more_room();
	put_thing(thing, bytes, what);
}

static void had(void *thing, enum had what)
{
	had_bytes(thing, 0, what);
}

static void gave_back(const void *thing)
{
	if (!thing || !thing_room)
		return;
	for (size_t at = slot_of(thing); things[at].had != HAD_NOTHING;
		at = (at + 1) & (thing_room - 1))
		if (things[at].thing == thing && things[at].had != HAD_GONE) {
			things[at].had = HAD_GONE;
			return;
		}
}

static void check_amount(size_t bytes)
{
	if (!inside || bytes <= ALLOCATION_MOST)
		return;
	fprintf(own_err, "find: %zu bytes asked for at once\n", bytes);
	abort();
}

void *__wrap_malloc(size_t bytes)
{
	void *memory;

	check_amount(bytes);
	memory = __real_malloc(bytes);
	had(memory, HAD_MEMORY);
	return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	void *memory;

	check_amount(bytes && count > SIZE_MAX / bytes ? SIZE_MAX : count * bytes);
	memory = __real_calloc(count, bytes);
	had(memory, HAD_MEMORY);
	return memory;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	void *moved;

	check_amount(bytes);
	gave_back(memory);
	moved = __real_realloc(memory, bytes);
	had(moved ? moved : memory, HAD_MEMORY);
	return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	void *memory;

	check_amount(bytes);
	memory = __real_aligned_alloc(alignment, bytes);
	had(memory, HAD_MEMORY);
	return memory;
}

void __wrap_free(void *memory)
{
	gave_back(memory);
	__real_free(memory);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *memory;

	check_amount(bytes);
	memory = __real_mmap(at, bytes, protection, flags, fd, offset);
	had_bytes(memory == MAP_FAILED ? NULL : memory, bytes, HAD_MAPPING);
	return memory;
}

/* The report grows mappings, and gives no address. */
void *__wrap_mremap(void *memory, size_t before, size_t bytes, int flags)
{
	void *moved;

	check_amount(bytes);
	moved = __real_mremap(memory, before, bytes, flags);
	if (moved == MAP_FAILED)
		return moved;
	gave_back(memory);
	had_bytes(moved, bytes, HAD_MAPPING);
	return moved;
}

int __wrap_munmap(void *memory, size_t bytes)
{
	gave_back(memory);
	return __real_munmap(memory, bytes);
}

char *__wrap_strdup(const char *text)
{
	char *copy = __real_strdup(text);

	had(copy, HAD_MEMORY);
	return copy;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	FILE *file = __real_fopen(path, mode);

	had(file, HAD_FILE);
	return file;
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	FILE *file = __real_fdopen(fd, mode);

	had(file, HAD_FILE);
	return file;
}

FILE *__wrap_tmpfile(void)
{
	FILE *file = __real_tmpfile();

	had(file, HAD_FILE);
	return file;
}

int __wrap_fclose(FILE *file)
{
	gave_back(file);
	return __real_fclose(file);
}

DIR *__wrap_opendir(const char *path)
{
	DIR *entries = __real_opendir(path);

	had(entries, HAD_FOLDER);
	return entries;
}

int __wrap_closedir(DIR *entries)
{
	gave_back(entries);
	return __real_closedir(entries);
}

_Noreturn void __wrap_exit(int status)
{
	if (!inside)
		__real_exit(status);
	ended_with = status;
	siglongjmp(way_out, 1);
}

static void give_all_back(void)
{
	for (size_t i = 0; i < thing_room; i++) {
		switch (things[i].had) {
		case HAD_MEMORY:
			__real_free(things[i].thing);
			break;
		case HAD_MAPPING:
			__real_munmap(things[i].thing, things[i].bytes);
			break;
		case HAD_FILE:
			__real_fclose(things[i].thing);
			break;
		case HAD_FOLDER:
			__real_closedir(things[i].thing);
			break;
		default:
			break;
		}
		things[i].had = HAD_NOTHING;
	}
	thing_count = 0;
	if (thing_room > 1u << 16) {
		__real_free(things);
		things = NULL;
		thing_room = 0;
	}
}

/* The report's variables, which the makefile has put into sections of their own. Where it has not,
 * each process may call once (replay.c). */
extern char __start_report_data[] __attribute__((weak)), __stop_report_data[] __attribute__((weak));
extern char __start_report_bss[] __attribute__((weak)), __stop_report_bss[] __attribute__((weak));
static char *kept_data;

/* Between variables lies what the sanitizer forbids to touch, and memcpy would be watched: so the
 * compiler may not make one of this. */
struct chunk {
	uint64_t words[8];
};

__attribute__((no_sanitize("address", "undefined"))) static void copy_all(
	char *to, const char *from, size_t bytes)
{
	size_t at = 0;

	for (; at + sizeof(struct chunk) <= bytes; at += sizeof(struct chunk)) {
		*(struct chunk *)(void *)(to + at) = *(
			const struct chunk *)(const void *)(from + at);
		__asm__ volatile("" ::: "memory");
	}
	for (; at < bytes; at++)
		((volatile char *)to)[at] = from[at];
}

__attribute__((no_sanitize("address", "undefined"))) static void zero_all(char *to, size_t bytes)
{
	static const struct chunk zero;
	size_t at = 0;

	for (; at + sizeof zero <= bytes; at += sizeof zero) {
		*(struct chunk *)(void *)(to + at) = zero;
		__asm__ volatile("" ::: "memory");
	}
	for (; at < bytes; at++)
		((volatile char *)to)[at] = 0;
}

/* Before the first call. */
static void keep_variables(void)
{
	const size_t bytes = (size_t)(__stop_report_data - __start_report_data);

	if (!__start_report_data)
		return;
	kept_data = __real_malloc(bytes);
	if (!kept_data)
		abort();
	copy_all(kept_data, __start_report_data, bytes);
}

static void restore_variables(void)
{
	if (!__start_report_data)
		return;
	copy_all(
		__start_report_data, kept_data, (size_t)(__stop_report_data - __start_report_data));
	zero_all(__start_report_bss, (size_t)(__stop_report_bss - __start_report_bss));
}

static void remove_folder(void)
{
	DIR *entries = __real_opendir(folder);
	struct dirent *entry;
	char path[400];

	while (entries && (entry = readdir(entries))) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (entries)
		__real_closedir(entries);
	rmdir(folder);
}

const char *host_folder(void)
{
	const char *where = getenv("TMPDIR");

	if (*folder)
		return folder;
	if (snprintf(folder, sizeof folder, "%s/pperf-fuzz-XXXXXX",
		    where && *where ? where : "/dev/shm") >= (int)sizeof folder)
		snprintf(folder, sizeof folder, "/tmp/pperf-fuzz-XXXXXX");
	if (!mkdtemp(folder)) {
		perror("fuzz: a folder for inputs");
		abort();
	}
	atexit(remove_folder);
	return folder;
}

const char *host_file(const char *name, const void *bytes, size_t count)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	int fd;

	snprintf(path, sizeof *paths, "%s/%s", host_folder(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, count) != (ssize_t)count || close(fd)) {
		perror("fuzz: an input cannot be written");
		abort();
	}
	return path;
}

static void begin(void)
{
	host_folder();
	own_err = stderr;
	own_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	printed_fd = memfd_create("printed", MFD_CLOEXEC);
	said_fd = memfd_create("said", MFD_CLOEXEC);
	said = fdopen(said_fd, "w+");
	if (printed_fd < 0 || !said || own_out < 0)
		abort();
	/* Nothing of the machine changes what is printed. */
	setenv("TMPDIR", folder, 1);
	setenv("TERM", "dumb", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("PPERF_PAGER");
	unsetenv("FORCE_COLOR");
	keep_variables();
}

static char *contents(int fd, size_t *bytes)
{
	struct stat status;
	char *text;

	*bytes = fstat(fd, &status) ? 0 : (size_t)status.st_size;
	text = __real_malloc(*bytes + 1);
	if (!text || pread(fd, text, *bytes, 0) != (ssize_t)*bytes)
		abort();
	text[*bytes] = '\0';
	return text;
}

static void check_said(void)
{
	size_t bytes;
	char *text;

	fflush(said);
	text = contents(said_fd, &bytes);
	host_check_shown(text, bytes);
	__real_free(text);
}

int host_call(int (*body)(void *context), void *context)
{
	volatile int status = 0;

	if (printed_fd < 0)
		begin();
	if (ftruncate(printed_fd, 0) || lseek(printed_fd, 0, SEEK_SET) || ftruncate(said_fd, 0))
		abort();
	rewind(said);
	dup2(printed_fd, STDOUT_FILENO);
	stderr = said;
	inside = true;
	if (sigsetjmp(way_out, 0) == 0)
		status = body(context);
	else
		status = HOST_ENDED_EARLY + ended_with;
	fflush(stdout);
	inside = false;
	stderr = own_err;
	dup2(own_out, STDOUT_FILENO);
	give_all_back();
	close_range(DESCRIPTORS_FROM, ~0u, 0);
	restore_variables();
	__real_free(printed);
	printed = contents(printed_fd, &printed_bytes);
	check_said();
	return status;
}

const char *host_printed(size_t *bytes)
{
	*bytes = printed_bytes;
	return printed;
}

struct arguments {
	int count;
	char *all[ARGUMENTS_MOST + 2];
};

static int call_report(void *context)
{
	struct arguments *arguments = context;

	optind = 0;
	return report_main(arguments->count, arguments->all);
}

static void complain(const char *what, const struct arguments *arguments, size_t at)
{
	fprintf(stderr, "find: %s at byte %zu of what this printed:", what, at);
	for (int i = 0; i < arguments->count; i++)
		fprintf(stderr, " %s", arguments->all[i]);
	fprintf(stderr, "\n%.*s\n", 400, printed + (at > 200 ? at - 200 : 0));
	abort();
}

void host_check_shown(const char *text, size_t bytes)
{
	const size_t at = printed_unsafe(text, bytes);

	if (at == bytes)
		return;
	fprintf(own_err ? own_err : stderr, "find: byte %zu of what is shown: %02x in: %.300s\n",
		at, (unsigned char)text[at], text);
	abort();
}

static bool is_value_of(const struct arguments *arguments, const char *option, const char *value)
{
	for (int i = 1; i + 1 < arguments->count; i++)
		if (!strcmp(arguments->all[i], option) && !strcmp(arguments->all[i + 1], value))
			return true;
	return false;
}

/* Whether the output is a file for another program. A terminal gets none of these. */
static bool is_for_a_program(const struct arguments *arguments)
{
	static const char *const views[] = { "html", "flame", "export" };

	for (int i = 1; i < arguments->count; i++)
		for (size_t k = 0; k < sizeof views / sizeof *views; k++)
			if (!strcmp(arguments->all[i], views[k]))
				return true;
	return false;
}

int host_report(const char *const *from, size_t count)
{
	struct arguments arguments = { .count = 1, .all = { (char *)(uintptr_t) "pperf-report" } };
	size_t at;
	int status;

	for (size_t i = 0; i < count && i < ARGUMENTS_MOST; i++)
		arguments.all[arguments.count++] = (char *)(uintptr_t)from[i];
	status = host_call(call_report, &arguments);
	if (!is_for_a_program(&arguments) &&
		(at = printed_unsafe(printed, printed_bytes)) < printed_bytes)
		complain("a terminal would be told something", &arguments, at);
	if (status >= HOST_ENDED_EARLY)
		return status; /* what a sentence cuts off need not be whole */
	if (is_value_of(&arguments, "-f", "json") &&
		(at = printed_bad_json(printed, printed_bytes)) < printed_bytes)
		complain("JSON that is none", &arguments, at);
	if (is_value_of(&arguments, "-f", "csv") &&
		(at = printed_bad_csv(printed, printed_bytes)) < printed_bytes)
		complain("a cell that is a formula", &arguments, at);
	return status;
}
