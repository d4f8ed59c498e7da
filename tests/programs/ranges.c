/* SPDX-License-Identifier: MIT
 * ranges THREADS PAIRS [NAMES]: each thread opens and closes PAIRS nested ranges, five deep, with
 * NAMES different names (100).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <nvtx3/nvToolsExt.h>

enum { DEPTH = 5 };

static char (*names)[64];
static unsigned long pairs, name_count = 100;

static void *thread(void *unused)
{
	unsigned long name = 0;

	(void)unused;
	for (unsigned long done = 0; done < pairs; done += DEPTH) {
		for (int i = 0; i < DEPTH; i++, name = (name + 1) % name_count)
			nvtxRangePushA(names[name]);
		for (int i = 0; i < DEPTH; i++)
			nvtxRangePop();
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[64];
	int thread_count = count > 1 ? atoi(arguments[1]) : 1;

	pairs = count > 2 ? strtoul(arguments[2], NULL, 10) : 1000;
	name_count = count > 3 ? strtoul(arguments[3], NULL, 10) : name_count;
	names = calloc(name_count, sizeof *names);
	if (!names || thread_count < 1 || thread_count > 64)
		return 2;
	for (unsigned long i = 0; i < name_count; i++)
		snprintf(names[i], sizeof *names, "transformer.layer.%lu.attention_%lu", i / 10,
			i % 10);
	for (int i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL))
			return 2;
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
