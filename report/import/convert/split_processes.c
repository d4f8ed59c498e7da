/* SPDX-License-Identifier: MIT */
#include "report/import/convert/split_processes.h"
#include "report/base/alloc.h"
#include <stdlib.h>

/* The owner_of_* functions return the process of a row. */
#define DEFINE_OWNER_BY_THREAD(type)                                                  \
	static uint32_t owner_of_##type(                                              \
		const struct event_rows *imported, const struct imported_##type *row) \
	{                                                                             \
		return imported->threads[row->thread].process;                        \
	}

DEFINE_OWNER_BY_THREAD(range)
DEFINE_OWNER_BY_THREAD(frame)
DEFINE_OWNER_BY_THREAD(instant)
DEFINE_OWNER_BY_THREAD(call)
DEFINE_OWNER_BY_THREAD(memory)
DEFINE_OWNER_BY_THREAD(sample)
DEFINE_OWNER_BY_THREAD(flow)

#define DEFINE_OWNER_BY_PROCESS(type)                                                 \
	static uint32_t owner_of_##type(                                              \
		const struct event_rows *imported, const struct imported_##type *row) \
	{                                                                             \
		(void)imported;                                                       \
		return row->process;                                                  \
	}

DEFINE_OWNER_BY_PROCESS(gpu)
DEFINE_OWNER_BY_PROCESS(sync)
DEFINE_OWNER_BY_PROCESS(overhead)

#define OWNED_ROWS(X)        \
	X(range, ranges)     \
	X(frame, frames)     \
	X(instant, instants) \
	X(call, calls)       \
	X(memory, memories)  \
	X(sample, samples)   \
	X(flow, flows)       \
	X(gpu, gpus)         \
	X(sync, syncs)       \
	X(overhead, overheads)

uint32_t split_main_process(const struct event_rows *imported)
{
	size_t *rows;
	uint64_t *work;
	uint32_t best = 0;

	if (imported->process_count < 2)
		return 0;
	rows = xcalloc(imported->process_count * sizeof *rows);
	work = xcalloc(imported->process_count * sizeof *work);
#define X(type, list)                                       \
	for (size_t i = 0; i < imported->type##_count; i++) \
		rows[owner_of_##type(imported, &imported->list[i])]++;
	OWNED_ROWS(X)
#undef X
	for (size_t i = 0; i < imported->gpu_count; i++)
		work[imported->gpus[i].process] += imported->gpus[i].duration;
	for (uint32_t i = 1; i < imported->process_count; i++)
		if (work[i] > work[best] || (work[i] == work[best] && rows[i] > rows[best]))
			best = i;
	free(rows);
	free(work);
	return best;
}

struct event_rows split_process(const struct event_rows *all, uint32_t process)
{
	const bool is_main = process == split_main_process(all);
	struct event_rows part = *all;

#define X(type, list)                                                     \
	part.list = xcalloc((all->type##_count + 1) * sizeof *part.list); \
	part.type##_count = 0;                                            \
	for (size_t i = 0; i < all->type##_count; i++)                    \
		if (owner_of_##type(all, &all->list[i]) == process)       \
			part.list[part.type##_count++] = all->list[i];
	OWNED_ROWS(X)
#undef X
	part.skip_count = is_main ? all->skip_count : 0;
	part.unreadable = is_main ? all->unreadable : 0;
	part.unended = is_main ? all->unended : 0;
	part.unsplit_graphs = is_main ? all->unsplit_graphs : 0;
	part.pid = all->process_count ? all->processes[process].pid : 0;
	return part;
}

void split_process_free(struct event_rows *part)
{
#define X(type, list) free(part->list);
	OWNED_ROWS(X)
#undef X
}
