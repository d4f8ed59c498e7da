/* SPDX-License-Identifier: MIT */
#include "report/import/convert/split_processes.h"
#include "report/base/alloc.h"
#include <stdlib.h>

/* Whose a row is, of each type that has an owner. */
#define OF_THREAD(type)                                                                      \
	static uint32_t owner_of_##type(const struct kineto *kineto, const struct kineto_##type *row) \
	{                                                                                    \
		return kineto->threads[row->thread].process;                                 \
	}

OF_THREAD(range)
OF_THREAD(frame)
OF_THREAD(moment)
OF_THREAD(call)
OF_THREAD(memory)
OF_THREAD(flow)

#define OF_PROCESS(type)                                                                     \
	static uint32_t owner_of_##type(const struct kineto *kineto, const struct kineto_##type *row) \
	{                                                                                    \
		(void)kineto;                                                                \
		return row->process;                                                         \
	}

OF_PROCESS(gpu)
OF_PROCESS(sync)
OF_PROCESS(overhead)

#define OWNED(X)               \
	X(range, ranges)       \
	X(frame, frames)       \
	X(moment, moments)     \
	X(call, calls)         \
	X(memory, memories)    \
	X(flow, flows)         \
	X(gpu, gpus)           \
	X(sync, syncs)         \
	X(overhead, overheads)

uint32_t kineto_main_process(const struct kineto *kineto)
{
	size_t *rows;
	uint64_t *work;
	uint32_t best = 0;

	if (kineto->process_count < 2)
		return 0;
	rows = need(kineto->process_count * sizeof *rows);
	work = need(kineto->process_count * sizeof *work);
#define X(type, list)                                         \
	for (size_t i = 0; i < kineto->type##_count; i++) \
		rows[owner_of_##type(kineto, &kineto->list[i])]++;
	OWNED(X)
#undef X
	for (size_t i = 0; i < kineto->gpu_count; i++)
		work[kineto->gpus[i].process] += kineto->gpus[i].duration;
	for (uint32_t i = 1; i < kineto->process_count; i++)
		if (work[i] > work[best] || (work[i] == work[best] && rows[i] > rows[best]))
			best = i;
	free(rows);
	free(work);
	return best;
}

struct kineto kineto_part(const struct kineto *all, uint32_t process)
{
	const bool is_main = process == kineto_main_process(all);
	struct kineto part = *all;

#define X(type, list)                                                                                      \
	part.list = need((all->type##_count + 1) * sizeof *part.list);                                     \
	part.type##_count = 0;                                                                             \
	for (size_t i = 0; i < all->type##_count; i++)                                                     \
		if (owner_of_##type(all, &all->list[i]) == process)                                        \
			part.list[part.type##_count++] = all->list[i];
	OWNED(X)
#undef X
	part.left_out_count = is_main ? all->left_out_count : 0;
	part.bad = is_main ? all->bad : 0;
	part.not_ended = is_main ? all->not_ended : 0;
	part.whole_graphs = is_main ? all->whole_graphs : 0;
	part.pid = all->process_count ? all->processes[process].pid : 0;
	return part;
}

void kineto_part_free(struct kineto *part)
{
#define X(type, list) free(part->list);
	OWNED(X)
#undef X
}
