/* SPDX-License-Identifier: MIT
 * Writes sorted runs to the file, packed (entry_pack.h), and merges them by a heap. If a second
 * thread may run (report/base/threads.h), it sorts and writes a run while the next one is
 * collected, and merges a batch of entries while the caller reads the one before.
 */
#include "report/base/external_sort.h"

#include "report/base/alloc.h"
#include "report/base/entry_pack.h"
#include "report/base/error.h"
#include "report/base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A run is packed in chunks of about this many bytes of entries. During the merge, one chunk of
 * each run that is being read is in memory. */
#define CHUNK_BYTES ((size_t)16 << 10)
/* Bytes of the file that are freed at once while it is read for the last time. */
#define FREED_BYTES ((off_t)64 << 10)
/* Bytes of a batch that the second thread merges ahead. */
#define BATCH_BYTES ((size_t)1 << 20)

struct sort_run {
	/* file offsets: of the run; of its first chunk not yet in memory; up to where the space was
	 * freed. begin -1: all is in memory */
	off_t begin, offset, freed;
	size_t entries_total, left; /* entries of the run; those not yet in memory */
	size_t first_chunk, chunk;  /* in chunk_bytes: of the run; the first not yet in memory */
	size_t at, count;           /* in `entries`: index of the next entry; number of entries */
	unsigned char *entries;     /* NULL: no chunk is in memory, and `first` is the next entry */
	unsigned char *first;       /* a copy of the first entry */
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
	unsigned char *held; /* the run being collected; NULL after the first rewind */
	size_t held_count, held_room;
	uint64_t total;
	FILE *file; /* NULL: everything fits in memory */
	off_t written;
	struct entry_packer *packer;
	unsigned char *packed; /* a chunk */
	size_t chunk_entries;
	uint32_t *chunk_bytes; /* of each chunk in the file, packed */
	size_t chunk_count, chunk_room;
	struct sort_run *runs;
	size_t run_room, run_total;
	struct sort_run **heap; /* the run of the smallest next entry is on top */
	size_t heap_count, heap_room;
	bool is_last_time; /* the file is read for the last time */
	/* The second thread. NULL: none. The spiller writes `spilled`, with `file` and what follows
	 * it. The merger uses `file` and what follows it, and fills the batch that is not read. */
	struct helper *spiller, *merger;
	unsigned char *spilled; /* the run being written */
	size_t spilled_count, spilled_room;
	struct sort_batch batches[2];
	size_t batch_max, batch_at; /* entries of a batch; index of the next entry */
	unsigned batch_read;        /* index of the batch being read */
};

struct external_sort *external_sort_new(
	size_t bytes, size_t held, int (*order)(const void *, const void *), const char *what)
{
	struct external_sort *sorter = xcalloc(sizeof *sorter);

	*sorter = (struct external_sort){
		.bytes = bytes, .held_max = held, .order = order, .what = what
	};
	sorter->chunk_entries = CHUNK_BYTES / bytes + 1;
	sorter->packer = entry_packer_new(bytes, ENTRY_NO_CLASS);
	return sorter;
}

void external_sort_set_class(struct external_sort *sorter, size_t class_at)
{
	entry_packer_free(sorter->packer);
	sorter->packer = entry_packer_new(sorter->bytes, class_at);
}

void external_sort_relate(struct external_sort *sorter, size_t at, size_t to)
{
	entry_packer_relate(sorter->packer, at, to);
}

static void add_sort_run(struct external_sort *sorter, struct sort_run run)
{
	*ARRAY_ADD(sorter->runs, sorter->run_room, sorter->run_total) = run;
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

static void write_packed(struct external_sort *sorter, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t written = pwrite(
			fileno(sorter->file), sorter->packed + done, bytes - done, sorter->written);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be written:", sorter->what);
		done += (size_t)written;
		sorter->written += written;
	}
}

/* Writes `count` entries from `from` on as one chunk. */
static void write_chunk(struct external_sort *sorter, const unsigned char *from, size_t count)
{
	size_t bytes = 0;

	if (!sorter->packed)
		sorter->packed = xcalloc(sorter->chunk_entries * entry_packed_max(sorter->packer));
	entry_packer_restart(sorter->packer);
	for (size_t i = 0; i < count; i++)
		bytes += entry_pack(
			sorter->packer, from + i * sorter->bytes, sorter->packed + bytes);
	write_packed(sorter, bytes);
	*ARRAY_ADD(sorter->chunk_bytes, sorter->chunk_room, sorter->chunk_count) = (uint32_t)bytes;
}

static void write_run(struct external_sort *sorter, unsigned char *entries, size_t count)
{
	struct sort_run run = {
		.begin = sorter->written, .entries_total = count, .first_chunk = sorter->chunk_count
	};

	if (!sorter->file && !(sorter->file = tmpfile()))
		fatal(STATUS_UNREADABLE,
			"no temporary file to sort %s in; set TMPDIR to a directory with free "
			"space:",
			sorter->what);
	sort_entries(sorter, entries, count);
	for (size_t at = 0; at < count; at += sorter->chunk_entries)
		write_chunk(sorter, entries + at * sorter->bytes,
			count - at < sorter->chunk_entries ? count - at : sorter->chunk_entries);
	run.first = xcalloc(sorter->bytes);
	memcpy(run.first, entries, sorter->bytes);
	add_sort_run(sorter, run);
}

static void write_spilled(void *context)
{
	struct external_sort *sorter = context;

	write_run(sorter, sorter->spilled, sorter->spilled_count);
}

/* Writes the entries collected as a run, and begins the next one. */
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
		write_run(sorter, sorter->held, sorter->held_count);
	}
	sorter->held_count = 0;
}

/* Waits until all runs are written. */
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

	if (sorter->held_count == sorter->held_max)
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

static const void *run_next_entry(const struct external_sort *sorter, const struct sort_run *run)
{
	return run->entries ? run->entries + run->at * sorter->bytes : run->first;
}

static bool run_comes_first(
	const struct external_sort *sorter, const struct sort_run *a, const struct sort_run *b)
{
	return sorter->order(run_next_entry(sorter, a), run_next_entry(sorter, b)) < 0;
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

static void read_packed(struct external_sort *sorter, off_t at, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t got = pread(fileno(sorter->file), sorter->packed + done, bytes - done,
			at + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be read:", sorter->what);
		done += (size_t)got;
	}
}

/* Frees the space of what was read, if the file system can. */
static void free_read_space(struct external_sort *sorter, struct sort_run *run)
{
	if (!sorter->is_last_time || (run->left && run->offset - run->freed < FREED_BYTES))
		return;
	(void)fallocate(fileno(sorter->file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		run->freed, run->offset - run->freed);
	run->freed = run->offset;
}

/* Reads the next chunk of a run, once the entries in memory are used up. */
static void refill_run(struct external_sort *sorter, struct sort_run *run)
{
	const size_t count = run->left < sorter->chunk_entries ? run->left : sorter->chunk_entries,
		     bytes = count ? sorter->chunk_bytes[run->chunk++] : 0;
	const unsigned char *from = sorter->packed;

	run->at = 0;
	run->count = count;
	run->left -= count;
	if (!run->entries)
		run->entries = xcalloc(sorter->chunk_entries * sorter->bytes);
	read_packed(sorter, run->offset, bytes);
	run->offset += (off_t)bytes;
	entry_packer_restart(sorter->packer);
	for (size_t i = 0; i < count; i++)
		from += entry_unpack(sorter->packer, from, run->entries + i * sorter->bytes);
	free_read_space(sorter, run);
}

/* Ends the collection. The entries in memory become the last run and stay in memory. */
static void finish_adding(struct external_sort *sorter)
{
	end_spilling(sorter);
	if (!sorter->held_count)
		return;
	sort_entries(sorter, sorter->held, sorter->held_count);
	add_sort_run(sorter, (struct sort_run){ .begin = -1,
				     .entries_total = sorter->held_count,
				     .entries = sorter->held });
	sorter->held = NULL;
	sorter->held_count = sorter->held_room = 0;
}

/* Frees what a run that was read to its end has in memory, but not the run that never was in the
 * file. */
static void end_run(struct external_sort *sorter)
{
	struct sort_run *run = sorter->heap[0];

	if (run->begin >= 0) {
		free(run->entries);
		run->entries = NULL;
	}
	sorter->heap[0] = sorter->heap[--sorter->heap_count];
}

/* Advances the merge by an entry. */
static void merge_next(struct external_sort *sorter)
{
	struct sort_run *run = sorter->heap[0];

	if (!run->entries)
		refill_run(sorter, run);
	if (++run->at == run->count && run->begin >= 0 && run->left)
		refill_run(sorter, run);
	if (run->at >= run->count)
		end_run(sorter);
	sift_run_down(sorter, 0);
}

/* Fills the batch that is not read. */
static void merge_batch(void *context)
{
	struct external_sort *sorter = context;
	struct sort_batch *batch = &sorter->batches[!sorter->batch_read];

	for (batch->count = 0; batch->count < sorter->batch_max && sorter->heap_count;
		batch->count++) {
		memcpy(batch->entries + batch->count * sorter->bytes,
			run_next_entry(sorter, sorter->heap[0]), sorter->bytes);
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
		struct sort_run *run = &sorter->runs[i];

		*ARRAY_ADD(sorter->heap, sorter->heap_room, sorter->heap_count) = run;
		run->at = 0;
		run->count = run->entries_total;
		if (run->begin < 0)
			continue;
		free(run->entries);
		run->entries = NULL;
		run->count = 0;
		run->chunk = run->first_chunk;
		run->offset = run->freed = run->begin;
		run->left = run->entries_total;
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
	return sorter->heap_count ? run_next_entry(sorter, sorter->heap[0]) : NULL;
}

void external_sort_next(struct external_sort *sorter)
{
	if (!sorter->merger)
		merge_next(sorter);
	else if (++sorter->batch_at == sorter->batches[sorter->batch_read].count)
		take_batch(sorter);
}

void external_sort_clear(struct external_sort *sorter)
{
	end_merging(sorter);
	end_spilling(sorter);
	for (size_t i = 0; i < sorter->run_total; i++) {
		free(sorter->runs[i].entries);
		free(sorter->runs[i].first);
	}
	if (sorter->file)
		fclose(sorter->file);
	sorter->file = NULL;
	sorter->written = 0;
	sorter->run_total = sorter->heap_count = sorter->held_count = sorter->chunk_count = 0;
	sorter->total = 0;
	sorter->is_last_time = false;
}

void external_sort_free(struct external_sort *sorter)
{
	if (!sorter)
		return;
	external_sort_clear(sorter);
	entry_packer_free(sorter->packer);
	free(sorter->packed);
	free(sorter->chunk_bytes);
	free(sorter->runs);
	free(sorter->heap);
	free(sorter->held);
	free(sorter);
}
