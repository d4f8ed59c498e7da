/* SPDX-License-Identifier: MIT
 * Writes sorted runs to the file and merges them by a heap.
 */
#include "report/base/external_sort.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* During the merge, some entries of each run are in memory: MERGE_BYTES in all, so that memory does
 * not grow with the number of runs. */
#define MERGE_BYTES ((size_t)2 << 20)
#define RUN_AHEAD_MIN 4u
#define RUN_AHEAD_MAX 512u

struct sort_run {
	/* file offsets: of the run; of its first entry not yet in memory. begin -1: all is in
	 * memory */
	off_t begin, offset;
	size_t entries_total, left; /* entries of the run; those not yet in memory */
	size_t at, count;           /* in `entries`: index of the next entry; number of entries */
	unsigned char *entries;
};

struct external_sort {
	size_t bytes, held_max;
	int (*order)(const void *, const void *);
	const char *what;
	unsigned char *held; /* the run being collected; NULL after the first rewind */
	size_t held_count, held_room;
	uint64_t total;
	FILE *file;       /* NULL: everything fits in memory */
	size_t run_ahead; /* entries of a run that are in memory during the merge */
	/* A heap of run_count runs, with the run of the smallest first entry on top. Exhausted
	 * runs follow, up to run_total. */
	struct sort_run *runs;
	size_t run_count, run_room, run_total;
};

struct external_sort *external_sort_new(
	size_t bytes, size_t held, int (*order)(const void *, const void *), const char *what)
{
	struct external_sort *sorter = xcalloc(sizeof *sorter);

	*sorter = (struct external_sort){
		.bytes = bytes, .held_max = held, .order = order, .what = what
	};
	return sorter;
}

static void add_sort_run(struct external_sort *sorter, struct sort_run run)
{
	*ARRAY_ADD(sorter->runs, sorter->run_room, sorter->run_total) = run;
}

/* Events come nearly in order, and many runs are in order already. */
static void sort_held_entries(struct external_sort *sorter)
{
	const unsigned char *last = sorter->held;
	size_t in_order = 1;

	for (; in_order < sorter->held_count; in_order++, last += sorter->bytes)
		if (sorter->order(last, last + sorter->bytes) > 0)
			break;
	if (in_order < sorter->held_count)
		qsort(sorter->held, sorter->held_count, sorter->bytes, sorter->order);
}

static void spill_held_entries(struct external_sort *sorter)
{
	struct sort_run run = { .entries_total = sorter->held_count };

	if (!sorter->file && !(sorter->file = tmpfile()))
		fatal(STATUS_UNREADABLE,
			"no temporary file to sort %s in; set TMPDIR to a directory with free "
			"space:",
			sorter->what);
	sort_held_entries(sorter);
	run.begin = ftello(sorter->file);
	if (run.begin < 0 ||
		fwrite(sorter->held, sorter->bytes, sorter->held_count, sorter->file) !=
			sorter->held_count ||
		fflush(sorter->file))
		fatal(STATUS_UNREADABLE,
			"the temporary file for %s cannot be written:", sorter->what);
	add_sort_run(sorter, run);
	sorter->held_count = 0;
}

void *external_sort_add(struct external_sort *sorter)
{
	void *entry;

	if (sorter->held_count == sorter->held_max)
		spill_held_entries(sorter);
	array_grow_zeroed(&sorter->held, &sorter->held_room, sorter->held_count + 1, sorter->bytes);
	entry = sorter->held + sorter->held_count++ * sorter->bytes;
	sorter->total++;
	return memset(entry, 0, sorter->bytes);
}

uint64_t external_sort_count(const struct external_sort *sorter)
{
	return sorter->total;
}

static const void *run_first_entry(const struct external_sort *sorter, const struct sort_run *run)
{
	return run->entries + run->at * sorter->bytes;
}

static bool run_comes_first(
	const struct external_sort *sorter, const struct sort_run *a, const struct sort_run *b)
{
	return sorter->order(run_first_entry(sorter, a), run_first_entry(sorter, b)) < 0;
}

static void sift_run_down(struct external_sort *sorter, size_t at)
{
	struct sort_run *runs = sorter->runs;

	for (size_t child; (child = 2 * at + 1) < sorter->run_count; at = child) {
		struct sort_run swapped = runs[at];

		if (child + 1 < sorter->run_count &&
			run_comes_first(sorter, &runs[child + 1], &runs[child]))
			child++;
		if (!run_comes_first(sorter, &runs[child], &runs[at]))
			return;
		runs[at] = runs[child];
		runs[child] = swapped;
	}
}

static void read_run(struct external_sort *sorter, struct sort_run *run, size_t bytes)
{
	const int fd = fileno(sorter->file);

	for (size_t done = 0; done < bytes;) {
		const ssize_t got = pread(fd, run->entries + done, bytes - done, run->offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be read:", sorter->what);
		done += (size_t)got;
		run->offset += got;
	}
}

/* Reads the next entries of a run, once those in memory are used up. */
static void refill_run(struct external_sort *sorter, struct sort_run *run)
{
	const size_t count = run->left < sorter->run_ahead ? run->left : sorter->run_ahead;

	run->at = 0;
	run->count = count;
	run->left -= count;
	if (count)
		read_run(sorter, run, count * sorter->bytes);
}

/* Ends the collection. The entries in memory become the last run and stay in memory. */
static void finish_adding(struct external_sort *sorter)
{
	if (!sorter->held_count)
		return;
	sort_held_entries(sorter);
	add_sort_run(sorter, (struct sort_run){ .begin = -1,
				     .entries_total = sorter->held_count,
				     .entries = sorter->held });
	sorter->held = NULL;
	sorter->held_count = sorter->held_room = 0;
}

static size_t entries_ahead(const struct external_sort *sorter)
{
	const size_t each = sorter->run_total ? MERGE_BYTES / sorter->run_total / sorter->bytes : 0;

	return each < RUN_AHEAD_MIN ? RUN_AHEAD_MIN : each < RUN_AHEAD_MAX ? each : RUN_AHEAD_MAX;
}

void external_sort_rewind(struct external_sort *sorter)
{
	finish_adding(sorter);
	sorter->run_ahead = entries_ahead(sorter);
	for (size_t i = 0; i < sorter->run_total; i++) {
		struct sort_run *run = &sorter->runs[i];

		run->at = 0;
		if (run->begin < 0) {
			run->count = run->entries_total;
			continue;
		}
		if (!run->entries)
			run->entries = xcalloc(sorter->run_ahead * sorter->bytes);
		run->offset = run->begin;
		run->left = run->entries_total;
		refill_run(sorter, run);
	}
	sorter->run_count = sorter->run_total;
	for (size_t i = sorter->run_count / 2; i-- > 0;)
		sift_run_down(sorter, i);
}

const void *external_sort_peek(const struct external_sort *sorter)
{
	return sorter->run_count ? run_first_entry(sorter, &sorter->runs[0]) : NULL;
}

void external_sort_next(struct external_sort *sorter)
{
	struct sort_run *run = &sorter->runs[0];

	if (++run->at == run->count && run->begin >= 0)
		refill_run(sorter, run);
	if (run->at >= run->count) { /* stays after the heap for the next rewind */
		const struct sort_run over = *run;

		*run = sorter->runs[--sorter->run_count];
		sorter->runs[sorter->run_count] = over;
	}
	sift_run_down(sorter, 0);
}

void external_sort_clear(struct external_sort *sorter)
{
	for (size_t i = 0; i < sorter->run_total; i++)
		free(sorter->runs[i].entries);
	if (sorter->file)
		fclose(sorter->file);
	sorter->file = NULL;
	sorter->run_total = sorter->run_count = sorter->held_count = 0;
	sorter->total = 0;
}

void external_sort_free(struct external_sort *sorter)
{
	if (!sorter)
		return;
	external_sort_clear(sorter);
	free(sorter->runs);
	free(sorter->held);
	free(sorter);
}
