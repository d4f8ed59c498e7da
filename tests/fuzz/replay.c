/* SPDX-License-Identifier: MIT
 * replay.c: a harness without libFuzzer: replay_X [--changes N] FILE|FOLDER... calls it for each
 * input, and N changed ones of each, the same every time, each in a process of its own with a limit
 * in time. Prints a line for each that is a find, and how many there were; exits with 1 if any.
 */
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MOST 20 /* of processor time: many times what any takes, under a sanitizer too */

#define ROOM (1u << 20)

static unsigned inputs, finds, changes;

/* Harnesses whose inputs need no care have none. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(
	uint8_t *data, size_t bytes, size_t room, unsigned seed);

/* What a harness falls back to: a byte or two are others. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room)
{
	static struct dice dice;

	(void)room;
	for (size_t times = 1 + dice_below(&dice, 3); times && bytes; times--)
		data[dice_below(&dice, bytes)] = (uint8_t)dice_below(&dice, 256);
	return bytes;
}

static unsigned char *contents(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	unsigned char *all;

	if (!file || fstat(fileno(file), &status) || !(all = malloc((size_t)status.st_size + 1))) {
		perror(path);
		exit(2);
	}
	*bytes = fread(all, 1, (size_t)status.st_size, file);
	fclose(file);
	return all;
}

/* change 0: as it is. */
static size_t changed(unsigned char *bytes, size_t count, unsigned change)
{
	if (!change || !count)
		return count;
	return LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(bytes, count, ROOM, change)
				       : LLVMFuzzerMutate(bytes, count, ROOM);
}

static void try(const char *path, unsigned char *bytes, size_t count, unsigned change)
{
	const struct rlimit limit = { SECONDS_MOST, SECONDS_MOST };
	int status;
	pid_t child;

	inputs++;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CPU, &limit);
		LLVMFuzzerTestOneInput(bytes, count);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		exit(2);
	}
	if (status == 0)
		return;
	finds++;
	if (WIFSIGNALED(status))
		printf("%s, change %u: %s\n", path, change, strsignal(WTERMSIG(status)));
	else
		printf("%s, change %u: ended with %d\n", path, change, WEXITSTATUS(status));
}

static void one(const char *path)
{
	unsigned char *bytes, *copy = malloc(ROOM);
	size_t count;

	bytes = contents(path, &count);
	if (!copy || count > ROOM) {
		fprintf(stderr, "%s: larger than any input\n", path);
		exit(2);
	}
	for (unsigned change = 0; change <= changes; change++) {
		memcpy(copy, bytes, count);
		try(path, copy, changed(copy, count, change), change);
	}
	free(copy);
	free(bytes);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void all(const char *path)
{
	struct dirent **entries;
	char inner[4096];
	const int count = scandir(path, &entries, is_input, alphasort);

	if (count < 0) {
		one(path);
		return;
	}
	for (int i = 0; i < count; i++) {
		snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
		all(inner);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	const bool changing = argc > 2 && !strcmp(argv[1], "--changes");

	changes = changing ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	for (int i = changing ? 3 : 1; i < argc; i++)
		all(argv[i]);
	printf("%u inputs, %u finds\n", inputs, finds);
	return finds ? 1 : 0;
}
