/* SPDX-License-Identifier: MIT
 * Writes runs of sorted entries to a file, packed (entry_pack.h), and merges them by a heap.
 *
 * Entries mostly come in order, or are of a few sources each of which is in order. So up to
 * GROWING_MAX runs grow until the last entry is added: each entry is appended to the first one of
 * which the last entry is not larger. The last entries of these runs are then in descending order.
 * What is smaller than all of them is collected and sorted, and becomes a run that does not grow.
 *
 * If a second thread may run (report/base/threads.h), it writes a batch of entries while the next
 * one is collected, and merges a batch while the caller reads the one before.
 */
#include "report/base/external_sort.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/entry_pack.h"
#include "report/base/temporary_file.h"
#include "report/base/threads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GROWING_MAX 32u
/* A run is packed in chunks of this many bytes. A chunk of each run that is being read, or that
 * grows, is in memory. It is a multiple of a page, so that its space in the file can be freed. */
#define CHUNK_BYTES ((size_t)16 << 10)
/* Bytes of a batch that is written to the runs, or that the second thread merges ahead. */
#define WRITTEN_BYTES ((size_t)256 << 10)
#define BATCH_BYTES ((size_t)1 << 20)

struct sort_run {
	struct entry_packer *packer; /* with `packed`: NULL while the run is not in use */
	unsigned char *packed;       /* the chunk that is written or read */
	size_t at;                   /* in `packed`: bytes written or read */
	/* Positions of the chunks in the file, in CHUNK_BYTES. The last chunk may be shorter. */
	uint32_t *chunks;
	size_t chunk_count, chunk_room, chunk; /* chunk: the next one to read */
	uint64_t total, left;                  /* entries; those after `entry` */
	/* While the run grows, its last entry; then the next one. It is in the array of the run, or
	 * in `own`. */
	const unsigned char *entry;
	unsigned char *own;   /* room for an entry */
	unsigned char *first; /* a copy of the first entry */
	unsigned char *array; /* the entries of a run that is not in the file; else NULL */
};

/* Merged entries. */
struct sort_batch {
	unsigned char *entries;
	size_t count;
};

struct external_sort {
	size_t bytes, held_max;
	int (*order)(const void *, const void *);
	const char *what;
	unsigned char *held; /* the batch being collected; NULL after the first rewind */
	size_t held_count, held_room, batch_held; /* batch_held: how many make a batch */
	uint64_t total;
	struct temporary_file *file; /* NULL: everything fits in memory */
	uint32_t chunks;
	struct entry_packer *packer; /* of which those of the runs are copies */
	size_t chunk_limit;          /* a chunk with more bytes is full */
	struct sort_run **runs;
	size_t run_room, run_total;
	/* The runs that grow, by their last entries: the largest one is first. */
	struct sort_run *growing[GROWING_MAX];
	unsigned growing_count;
	unsigned char *rest; /* entries that fit to no run that grows */
	size_t rest_count, rest_room;
	struct sort_run **heap; /* the run of the smallest next entry is on top */
	size_t heap_count, heap_room;
	bool is_last_time; /* the file is read for the last time */
	/* The second thread. NULL: none. The spiller writes `spilled`, with `file` and what follows
	 * it. The merger uses `file` and what follows it, and fills the batch that is not read. */
	struct helper *spiller, *merger;
	unsigned char *spilled; /* the batch being written */
	size_t spilled_count, spilled_room;
	struct sort_batch batches[2];
	size_t batch_max, batch_at; /* entries of a batch; index of the next entry */
	unsigned batch_read;        /* index of the batch being read */
};

static void set_packer(struct external_sort *sorter, size_t class_at)
{
	entry_packer_free(sorter->packer);
	sorter->packer = entry_packer_new(sorter->bytes, class_at);
	sorter->chunk_limit = CHUNK_BYTES - entry_packed_max(sorter->packer);
}

struct external_sort *external_sort_new(
	size_t bytes, size_t held, int (*order)(const void *, const void *), const char *what)
{
	struct external_sort *sorter = xcalloc(sizeof *sorter);

	*sorter = (struct external_sort){
		.bytes = bytes, .held_max = held, .batch_held = held, .order = order, .what = what
	};
	set_packer(sorter, ENTRY_NO_CLASS);
	return sorter;
}

void external_sort_set_class(struct external_sort *sorter, size_t class_at)
{
	set_packer(sorter, class_at);
}

void external_sort_relate(struct external_sort *sorter, size_t at, size_t to)
{
	entry_packer_relate(sorter->packer, at, to);
}

void external_sort_follow(struct external_sort *sorter, size_t at)
{
	entry_packer_follow(sorter->packer, at);
}

/* Events come nearly in order, and many runs are in order already. */
static void sort_entries(const struct external_sort *sorter, unsigned char *entries, size_t count)
{
	const unsigned char *last = entries;
	size_t in_order = 1;

	for (; in_order < count; in_order++, last += sorter->bytes)
		if (sorter->order(last, last + sorter->bytes) > 0)
			break;
	if (in_order < count)
		qsort(entries, count, sorter->bytes, sorter->order);
}

static struct sort_run *add_sort_run(struct external_sort *sorter)
{
	struct sort_run *run = xcalloc(sizeof *run);

	*ARRAY_ADD(sorter->runs, sorter->run_room, sorter->run_total) = run;
	return run;
}

/* Begins to write or to read a run of the file. */
static void open_run(const struct external_sort *sorter, struct sort_run *run)
{
	run->packer = entry_packer_copy(sorter->packer);
	run->packed = xcalloc(CHUNK_BYTES);
	run->own = xcalloc(sorter->bytes);
	run->at = run->chunk = 0;
}

/* Frees what a run of the file needs in memory while it is written or read. */
static void close_run(struct sort_run *run)
{
	entry_packer_free(run->packer);
	free(run->packed);
	free(run->own);
	run->packer = NULL;
	run->packed = run->own = NULL;
}

/* Writes the chunk of a run. */
static void write_sort_chunk(struct external_sort *sorter, struct sort_run *run)
{
	if (!sorter->file)
		sorter->file = temporary_file_new(sorter->what);
	temporary_file_write(
		sorter->file, run->packed, run->at, (uint64_t)CHUNK_BYTES * sorter->chunks);
	*ARRAY_ADD(run->chunks, run->chunk_room, run->chunk_count) = sorter->chunks++;
	run->at = 0;
}

static void append_to_run(
	struct external_sort *sorter, struct sort_run *run, const unsigned char *entry)
{
	if (run->at > sorter->chunk_limit)
		write_sort_chunk(sorter, run);
	run->at += entry_pack(run->packer, entry, run->packed + run->at);
	run->entry = entry;
	run->total++;
}

/* Begins a run of the file with its first entry. */
static struct sort_run *begin_run(struct external_sort *sorter, const unsigned char *entry)
{
	struct sort_run *run = add_sort_run(sorter);

	open_run(sorter, run);
	run->first = xcalloc(sorter->bytes);
	memcpy(run->first, entry, sorter->bytes);
	append_to_run(sorter, run, entry);
	return run;
}

static void end_writing(struct external_sort *sorter, struct sort_run *run)
{
	write_sort_chunk(sorter, run);
	close_run(run);
}

/* Sorts the entries that fit to no run that grows, and makes a run of them. */
static void write_rest(struct external_sort *sorter)
{
	struct sort_run *run;

	sort_entries(sorter, sorter->rest, sorter->rest_count);
	run = begin_run(sorter, sorter->rest);
	for (size_t i = 1; i < sorter->rest_count; i++)
		append_to_run(sorter, run, sorter->rest + i * sorter->bytes);
	end_writing(sorter, run);
	sorter->rest_count = 0;
}

static void keep_rest(struct external_sort *sorter, const unsigned char *entry)
{
	if (sorter->rest_count == sorter->held_max)
		write_rest(sorter);
	if (sorter->rest_count == sorter->rest_room)
		array_grow(
			&sorter->rest, &sorter->rest_room, sorter->rest_count + 1, sorter->bytes);
	memcpy(sorter->rest + sorter->rest_count++ * sorter->bytes, entry, sorter->bytes);
}

/* Returns the number of runs that grow and of which the last entry is larger. */
static unsigned runs_beyond(const struct external_sort *sorter, const unsigned char *entry)
{
	unsigned low = 0, high = sorter->growing_count;

	if (high && sorter->order(sorter->growing[0]->entry, entry) <= 0)
		return 0;
	while (low < high) {
		const unsigned middle = (low + high) / 2;

		if (sorter->order(sorter->growing[middle]->entry, entry) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_to_runs(struct external_sort *sorter, const unsigned char *entry)
{
	const unsigned run = runs_beyond(sorter, entry);

	if (run < sorter->growing_count)
		append_to_run(sorter, sorter->growing[run], entry);
	else if (run < GROWING_MAX)
		sorter->growing[sorter->growing_count++] = begin_run(sorter, entry);
	else
		keep_rest(sorter, entry);
}

/* Adds a batch to the runs. The runs keep copies of their last entries. */
static void write_batch(struct external_sort *sorter, const unsigned char *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_to_runs(sorter, entries + i * sorter->bytes);
	for (unsigned i = 0; i < sorter->growing_count; i++) {
		struct sort_run *run = sorter->growing[i];

		if (run->entry != run->own)
			memcpy(run->own, run->entry, sorter->bytes);
		run->entry = run->own;
	}
}

static void write_spilled(void *context)
{
	struct external_sort *sorter = context;

	write_batch(sorter, sorter->spilled, sorter->spilled_count);
}

/* The batches after the first one are small, so that they stay in the cache until they are
 * written. */
static void shorten_batches(struct external_sort *sorter)
{
	const size_t count = WRITTEN_BYTES / sorter->bytes + 1;

	if (sorter->batch_held != sorter->held_max || count >= sorter->held_max)
		return;
	sorter->batch_held = count;
	free(sorter->held);
	sorter->held = NULL;
	sorter->held_room = 0;
}

/* Writes the entries collected, and begins the next batch. */
static void spill_held_entries(struct external_sort *sorter)
{
	unsigned char *free_entries = sorter->spilled;
	const size_t free_room = sorter->spilled_room;

	if (!sorter->spiller)
		sorter->spiller = helper_new(write_spilled, sorter);
	if (sorter->spiller) {
		helper_wait(sorter->spiller);
		sorter->spilled = sorter->held;
		sorter->spilled_room = sorter->held_room;
		sorter->spilled_count = sorter->held_count;
		helper_start(sorter->spiller);
		sorter->held = free_entries;
		sorter->held_room = free_room;
	} else {
		write_batch(sorter, sorter->held, sorter->held_count);
		shorten_batches(sorter);
	}
	sorter->held_count = 0;
}

/* Waits until all batches are written. */
static void end_spilling(struct external_sort *sorter)
{
	helper_free(sorter->spiller);
	free(sorter->spilled);
	sorter->spiller = NULL;
	sorter->spilled = NULL;
	sorter->spilled_count = sorter->spilled_room = 0;
}

void *external_sort_add(struct external_sort *sorter)
{
	void *entry;

	if (sorter->held_count == sorter->batch_held)
		spill_held_entries(sorter);
	if (sorter->held_count == sorter->held_room)
		array_grow(
			&sorter->held, &sorter->held_room, sorter->held_count + 1, sorter->bytes);
	entry = sorter->held + sorter->held_count++ * sorter->bytes;
	sorter->total++;
	return memset(entry, 0, sorter->bytes);
}

uint64_t external_sort_count(const struct external_sort *sorter)
{
	return sorter->total;
}

static bool run_comes_first(
	const struct external_sort *sorter, const struct sort_run *a, const struct sort_run *b)
{
	return sorter->order(a->entry, b->entry) < 0;
}

static void sift_run_down(struct external_sort *sorter, size_t at)
{
	struct sort_run **heap = sorter->heap;

	for (size_t child; (child = 2 * at + 1) < sorter->heap_count; at = child) {
		struct sort_run *swapped = heap[at];

		if (child + 1 < sorter->heap_count &&
			run_comes_first(sorter, heap[child + 1], heap[child]))
			child++;
		if (!run_comes_first(sorter, heap[child], heap[at]))
			return;
		heap[at] = heap[child];
		heap[child] = swapped;
	}
}

/* Frees the space of a chunk that was read, if the file system can. */
static void free_chunk(struct external_sort *sorter, uint32_t chunk)
{
	if (sorter->is_last_time)
		temporary_file_release(sorter->file, (uint64_t)CHUNK_BYTES * chunk, CHUNK_BYTES);
}

/* Reads the next chunk of a run. */
static void read_sort_chunk(struct external_sort *sorter, struct sort_run *run)
{
	const uint32_t chunk = run->chunks[run->chunk++];

	/* The last chunk of the file is shorter. */
	temporary_file_read_some(
		sorter->file, run->packed, CHUNK_BYTES, (uint64_t)CHUNK_BYTES * chunk);
	run->at = 0;
	free_chunk(sorter, chunk);
}

static void unpack_next(struct external_sort *sorter, struct sort_run *run)
{
	if (run->at > sorter->chunk_limit)
		read_sort_chunk(sorter, run);
	run->at += entry_unpack(run->packer, run->packed + run->at, run->own);
}

/* Begins to read a run of the file after its first entry. */
static void begin_run_reading(struct external_sort *sorter, struct sort_run *run)
{
	open_run(sorter, run);
	run->entry = run->own;
	read_sort_chunk(sorter, run);
	unpack_next(sorter, run);
}

static void advance_run(struct external_sort *sorter, struct sort_run *run)
{
	run->left--;
	if (run->array) {
		run->entry += sorter->bytes;
		return;
	}
	if (!run->packer)
		begin_run_reading(sorter, run);
	unpack_next(sorter, run);
}

/* Makes runs of what is in memory. Those of the file are complete. */
static void finish_runs(struct external_sort *sorter)
{
	unsigned char **left = &sorter->held;
	size_t count = sorter->held_count;
	struct sort_run *run;

	if (sorter->run_total) {
		write_batch(sorter, sorter->held, sorter->held_count);
		for (unsigned i = 0; i < sorter->growing_count; i++)
			end_writing(sorter, sorter->growing[i]);
		sorter->growing_count = 0;
		free(sorter->held);
		sorter->held = NULL;
		left = &sorter->rest;
		count = sorter->rest_count;
	}
	sorter->held_count = sorter->held_room = sorter->rest_count = sorter->rest_room = 0;
	if (!count)
		return;
	sort_entries(sorter, *left, count);
	run = add_sort_run(sorter);
	run->array = *left;
	run->total = count;
	*left = NULL;
}

/* Ends the collection. */
static void finish_adding(struct external_sort *sorter)
{
	end_spilling(sorter);
	if (sorter->held_count || sorter->rest_count || sorter->growing_count)
		finish_runs(sorter);
}

/* Advances the merge by an entry. */
static void merge_next(struct external_sort *sorter)
{
	struct sort_run *run = sorter->heap[0];

	if (run->left) {
		advance_run(sorter, run);
	} else {
		close_run(run);
		sorter->heap[0] = sorter->heap[--sorter->heap_count];
	}
	sift_run_down(sorter, 0);
}

/* Fills the batch that is not read. */
static void merge_batch(void *context)
{
	struct external_sort *sorter = context;
	struct sort_batch *batch = &sorter->batches[!sorter->batch_read];

	for (batch->count = 0; batch->count < sorter->batch_max && sorter->heap_count;
		batch->count++) {
		memcpy(batch->entries + batch->count * sorter->bytes, sorter->heap[0]->entry,
			sorter->bytes);
		merge_next(sorter);
	}
}

static void end_merging(struct external_sort *sorter)
{
	helper_free(sorter->merger);
	sorter->merger = NULL;
	for (unsigned i = 0; i < 2; i++) {
		free(sorter->batches[i].entries);
		sorter->batches[i].entries = NULL;
	}
}

/* Begins to read the batch that was merged, and to merge the next one. After the last batch, the
 * thread ends. */
static void take_batch(struct external_sort *sorter)
{
	helper_wait(sorter->merger);
	sorter->batch_read = !sorter->batch_read;
	sorter->batch_at = 0;
	if (sorter->batches[sorter->batch_read].count)
		helper_start(sorter->merger);
	else
		end_merging(sorter);
}

static void begin_merging(struct external_sort *sorter)
{
	if (!sorter->file || !(sorter->merger = helper_new(merge_batch, sorter)))
		return;
	sorter->batch_max = BATCH_BYTES / sorter->bytes + 1;
	for (unsigned i = 0; i < 2; i++)
		sorter->batches[i].entries = xcalloc(sorter->batch_max * sorter->bytes);
	helper_start(sorter->merger);
	take_batch(sorter);
}

static void rewind_runs(struct external_sort *sorter)
{
	sorter->heap_count = 0;
	for (size_t i = 0; i < sorter->run_total; i++) {
		struct sort_run *run = sorter->runs[i];

		*ARRAY_ADD(sorter->heap, sorter->heap_room, sorter->heap_count) = run;
		close_run(run);
		run->entry = run->array ? run->array : run->first;
		run->left = run->total - 1;
	}
	for (size_t i = sorter->heap_count / 2; i-- > 0;)
		sift_run_down(sorter, i);
}

static void begin_reading(struct external_sort *sorter, bool is_last_time)
{
	end_merging(sorter);
	finish_adding(sorter);
	rewind_runs(sorter);
	sorter->is_last_time = is_last_time;
	begin_merging(sorter);
}

void external_sort_rewind(struct external_sort *sorter)
{
	begin_reading(sorter, false);
}

void external_sort_rewind_last(struct external_sort *sorter)
{
	begin_reading(sorter, true);
}

const void *external_sort_peek(const struct external_sort *sorter)
{
	if (sorter->merger)
		return sorter->batches[sorter->batch_read].entries +
		       sorter->batch_at * sorter->bytes;
	return sorter->heap_count ? sorter->heap[0]->entry : NULL;
}

void external_sort_next(struct external_sort *sorter)
{
	if (!sorter->merger)
		merge_next(sorter);
	else if (++sorter->batch_at == sorter->batches[sorter->batch_read].count)
		take_batch(sorter);
}

static void free_run(struct sort_run *run)
{
	close_run(run);
	free(run->chunks);
	free(run->first);
	free(run->array);
	free(run);
}

void external_sort_clear(struct external_sort *sorter)
{
	end_merging(sorter);
	end_spilling(sorter);
	while (sorter->run_total)
		free_run(sorter->runs[--sorter->run_total]);
	free(sorter->rest);
	sorter->rest = NULL;
	temporary_file_free(sorter->file);
	sorter->file = NULL;
	sorter->chunks = sorter->growing_count = 0;
	sorter->heap_count = sorter->held_count = sorter->rest_count = sorter->rest_room = 0;
	sorter->batch_held = sorter->held_max;
	sorter->total = 0;
	sorter->is_last_time = false;
}

void external_sort_free(struct external_sort *sorter)
{
	if (!sorter)
		return;
	external_sort_clear(sorter);
	entry_packer_free(sorter->packer);
	free(sorter->runs);
	free(sorter->heap);
	free(sorter->held);
	free(sorter);
}
