/* SPDX-License-Identifier: MIT
 * host ACTION...: what a program does with the client libraries.
 *   local LIB, global LIB   dlopen it so, and make its calls
 *   threads LIB N COUNT     N threads allocate COUNT times each
 *   fork LIB                allocate in the parent, in the child, and again in the parent
 *   ask                     is cudaMalloc there, and what does it answer?
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 64 };

static unsigned each;
static int (*allocate)(unsigned);

static void *find(const char *path, int flags, const char *name)
{
	void *library = dlopen(path, flags | RTLD_NOW),
	     *function = library ? dlsym(library, name) : NULL;

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return function;
}

static void *work(void *result)
{
	*(int *)result = allocate(each);
	return NULL;
}

static int threads(const char *path, int count)
{
	pthread_t ids[THREADS];
	int results[THREADS], bad = 0;

	*(void **)&allocate = find(path, RTLD_LOCAL, "client_allocate");
	for (int i = 0; i < count; i++)
		pthread_create(&ids[i], NULL, work, &results[i]);
	for (int i = 0; i < count; i++) {
		pthread_join(ids[i], NULL);
		bad |= results[i];
	}
	return bad;
}

static int forked(const char *path)
{
	int status = 1, bad;
	pid_t child;

	*(void **)&allocate = find(path, RTLD_LOCAL, "client_allocate");
	bad = allocate(10);
	child = fork();
	if (!child)
		exit(allocate(5));
	waitpid(child, &status, 0);
	return bad | status | allocate(20);
}

static int ask(void)
{
	int (*cuda_malloc)(void **, size_t);
	void *p = NULL;

	*(void **)&cuda_malloc = dlsym(RTLD_DEFAULT, "cudaMalloc");
	printf("cudaMalloc: %s, %d\n", cuda_malloc ? "there" : "not there",
		cuda_malloc ? cuda_malloc(&p, 8) : 0);
	return 0;
}

int main(int count, char **arguments)
{
	int bad = 0;

	for (int i = 1; i < count && !bad; i += 2) {
		int (*calls)(void);

		if (!strcmp(arguments[i], "ask"))
			return ask();
		if (i + 3 < count && !strcmp(arguments[i], "threads")) {
			each = (unsigned)atoi(arguments[i + 3]);
			return threads(arguments[i + 1], atoi(arguments[i + 2]));
		}
		if (!strcmp(arguments[i], "fork"))
			return forked(arguments[i + 1]);
		*(void **)&calls = find(arguments[i + 1],
			strcmp(arguments[i], "local") ? RTLD_GLOBAL : RTLD_LOCAL, "client_calls");
		printf("%s %s\n", arguments[i], arguments[i + 1]);
		bad = calls();
	}
	return bad;
}
