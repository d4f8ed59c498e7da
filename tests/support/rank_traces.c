/* SPDX-License-Identifier: MIT */
#include "tests/support/rank_traces.h"
#include "tests/support/large_training_trace.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_NS UINT64_C(4400000) /* of the first collective, in a step */
#define APART_NS 80000u

uint64_t rank_traces_delay(uint32_t rank, uint32_t straggler)
{
	return rank == straggler ? RANK_TRACES_LATE_NS : rank * UINT64_C(1000);
}

void rank_traces_write(uint32_t ranks, uint32_t steps, uint32_t straggler)
{
	const size_t count = (size_t)steps * LOAD_LAYERS;
	static const uint8_t groups[LOAD_LAYERS];
	uint64_t *begins = calloc(count, sizeof *begins), *ends = calloc(count, sizeof *ends);
	uint64_t latest = 0;

	if (!begins || !ends)
		abort();
	for (uint32_t rank = 0; rank < ranks; rank++)
		if (rank_traces_delay(rank, straggler) > latest)
			latest = rank_traces_delay(rank, straggler);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		char path[32];
		const struct load_rank of = { .number = rank,
			.pid = 1000 + rank,
			.run_id = 1,
			.unix_ns = UINT64_C(1700000000000000000) + rank * 1000000u,
			.groups = groups,
			.begins = begins,
			.ends = ends,
			.group_names = { "all" },
			.hang_step = UINT32_MAX };

		for (size_t i = 0; i < count; i++) {
			const uint64_t at = FIRST_NS + i / LOAD_LAYERS * LOAD_STEP_NS +
					    i % LOAD_LAYERS * APART_NS;

			begins[i] = at + rank_traces_delay(rank, straggler);
			ends[i] = at + latest + RANK_TRACES_TRANSFER_NS;
		}
		snprintf(path, sizeof path, "rank%u.bin", rank);
		load_write_rank(path, steps, &of);
	}
	free(begins);
	free(ends);
}
