/* SPDX-License-Identifier: MIT
 * replay.c: a harness without libFuzzer: replay_X FILE|FOLDER... calls it for each input, each in a process of its own,
 * with a limit in time and memory. Prints a line for each that is a find, and how many there were; exits with 1 if any.
 */
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

static unsigned inputs, finds;

/* A harness that changes inputs of itself links with this; nobody calls it here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room)
{
	(void)data;
	return bytes < room ? bytes : room;
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

static void one(const char *path)
{
	const struct rlimit limit = { SECONDS_MOST, SECONDS_MOST };
	unsigned char *bytes;
	size_t count;
	int status;
	pid_t child;

	inputs++;
	bytes = contents(path, &count);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CPU, &limit);
		LLVMFuzzerTestOneInput(bytes, count);
		exit(0);
	}
	free(bytes);
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		exit(2);
	}
	if (status == 0)
		return;
	finds++;
	if (WIFSIGNALED(status))
		printf("%s: %s\n", path, strsignal(WTERMSIG(status)));
	else
		printf("%s: ended with %d\n", path, WEXITSTATUS(status));
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
	for (int i = 1; i < argc; i++)
		all(argv[i]);
	printf("%u inputs, %u finds\n", inputs, finds);
	return finds ? 1 : 0;
}
