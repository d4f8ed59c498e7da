/* SPDX-License-Identifier: MIT
 * job_load.c FOLDER RANKS STEPS [NAME=VALUE ...]: writes the traces of a job, rank00000.bin and so
 * on. The same arguments give the same bytes. Collectives end at one moment on all members, 40 us
 * after the last began. Rank r > 0 has a clock that is off by up to 10 ms and 20 ppm.
 *
 *	straggler=R     rank R is 0.4 ms late in three of four steps, in its data loader (none)
 *	groups=TxPxD    T neighbours, P blocks of these and D of those each have a communicator
 *	                (one of all ranks)
 *	named=0         the traces do not name the communicators (1)
 *	label=WORD      the end of their names (none)
 *	first=R count=N writes only ranks R to R + N - 1 (all)
 *	run=ID pid=N    of the header: the run, and the process of rank 0 (1, 1000)
 *	start=NS        CLOCK_REALTIME at the start of rank 0 (1700000000000000000)
 *	prefix=WORD     of the names of files (rank)
 *	world=N         the traces say that the job has N ranks (they do not say)
 *	seed=N          other delays and clocks (0)
 *	hang=S absent=R the job hangs in step S, because rank R does not leave its data loader
 */
#include "tests/support/large_training_trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFER_NS 40000u
#define LATE_NS 400000u

struct job {
	uint32_t ranks, steps, first, count, straggler, sizes[LOAD_GROUPS], pid, hang_step, absent,
		world_size;
	bool grouped, named;
	uint64_t run_id, start_ns;
	const char *folder, *prefix, *label;
	uint64_t *begins, *ends; /* by rank, step and collective */
};

static uint64_t seed;

static uint64_t mix(uint64_t x)
{
	x += seed << 48;
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* The communicator of a collective: of a step's 24, the first 16 are of T, 4 of P, 4 of D. */
static uint32_t group_of(const struct job *job, uint32_t layer)
{
	return !job->grouped || layer < 16 ? 0 : layer < 20 ? 1 : 2;
}

/* The first of the ranks that have this communicator with `rank`, and the distance between two. */
static uint32_t members_of(
	const struct job *job, uint32_t rank, uint32_t group, uint32_t *stride, uint32_t *count)
{
	*stride = 1;
	for (uint32_t i = 0; i < group; i++)
		*stride *= job->sizes[i];
	*count = job->sizes[group];
	return rank - rank / *stride % *count * *stride;
}

/* When a rank could begin a collective at the earliest. */
static uint64_t arrives(const struct job *job, uint32_t rank, uint32_t step, uint32_t layer)
{
	const uint64_t number = (uint64_t)step * LOAD_LAYERS + layer;

	return 1000000 + step * LOAD_STEP_NS + 3400000 + layer * 80000u +
	       mix((uint64_t)rank << 32 | number) % 8000 +
	       (layer ? 0 : mix(number + 7777777) % 200000) +
	       (rank == job->straggler && step % 4 ? LATE_NS : 0);
}

/* Computes the collectives of one number in a step. `free`: by rank, when the one before ended. */
static void schedule(struct job *job, uint32_t step, uint32_t layer, uint64_t *free_at)
{
	const size_t number = (size_t)step * LOAD_LAYERS + layer,
		     each = (size_t)job->steps * LOAD_LAYERS;
	uint32_t stride, count;

	for (uint32_t rank = 0; rank < job->ranks; rank++) {
		const uint64_t own = arrives(job, rank, step, layer),
			       after = free_at[rank] + 1000 +
				       mix((uint64_t)rank << 33 | number) % 500;

		job->begins[rank * each + number] = own > after ? own : after;
	}
	for (uint32_t rank = 0; rank < job->ranks; rank++) {
		const uint32_t first = members_of(job, rank, group_of(job, layer), &stride, &count);
		uint64_t last = 0;

		for (uint32_t m = 0; m < count && rank == first; m++)
			if (job->begins[(first + m * stride) * each + number] > last)
				last = job->begins[(first + m * stride) * each + number];
		for (uint32_t m = 0; m < count && rank == first; m++)
			free_at[first + m * stride] =
				job->ends[(first + m * stride) * each + number] = last +
										  TRANSFER_NS;
	}
}

static void write_rank(const struct job *job, uint32_t number, const uint8_t *groups)
{
	static const char *const words[LOAD_GROUPS] = { "tp", "pp", "dp" };
	const size_t each = (size_t)job->steps * LOAD_LAYERS;
	char names[LOAD_GROUPS][64], path[4096];
	struct load_rank rank = { .number = number,
		.pid = job->pid + number,
		.world_size = job->world_size,
		.run_id = job->run_id,
		.unix_ns = job->start_ns + (number ? mix(number) % 10000000 : 0),
		.ppm = number ? (double)(mix(number + 99) % 4000) / 100 - 20 : 0,
		.delay_ns = number == job->straggler ? LATE_NS : 0,
		.groups = groups,
		.begins = job->begins + number * each,
		.ends = job->ends + number * each,
		.hang_step = job->hang_step,
		.absent = number == job->absent };
	uint32_t stride, count;

	for (uint32_t group = 0; group < (job->grouped ? LOAD_GROUPS : 1); group++) {
		snprintf(names[group], sizeof names[group], "%s of %u%s",
			job->grouped ? words[group] : "all",
			members_of(job, number, group, &stride, &count), job->label);
		rank.group_names[group] = job->named ? names[group] : NULL;
	}
	snprintf(path, sizeof path, "%s/%s%05u.bin", job->folder, job->prefix, number);
	load_write_rank(path, job->steps, &rank);
}

static void set(struct job *job, const char *argument)
{
	const char *value = strchr(argument, '=');
	const struct {
		const char *name;
		uint32_t *number;
	} numbers[] = { { "straggler", &job->straggler }, { "first", &job->first },
		{ "count", &job->count }, { "pid", &job->pid }, { "hang", &job->hang_step },
		{ "absent", &job->absent }, { "world", &job->world_size } };

	if (!value)
		exit(2);
	value++;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strncmp(argument, numbers[i].name, (size_t)(value - argument - 1)))
			*numbers[i].number = (uint32_t)strtoul(value, NULL, 10);
	if (!strncmp(argument, "run=", 4))
		job->run_id = strtoull(value, NULL, 10);
	if (!strncmp(argument, "seed=", 5))
		seed = strtoull(value, NULL, 10);
	if (!strncmp(argument, "start=", 6))
		job->start_ns = strtoull(value, NULL, 10);
	if (!strncmp(argument, "prefix=", 7))
		job->prefix = value;
	if (!strncmp(argument, "label=", 6))
		job->label = value;
	if (!strncmp(argument, "named=", 6))
		job->named = *value != '0';
	if (!strncmp(argument, "groups=", 7))
		job->grouped = sscanf(value, "%ux%ux%u", &job->sizes[0], &job->sizes[1],
				       &job->sizes[2]) == 3;
}

int main(int count, char **arguments)
{
	struct job job = { .run_id = 1,
		.start_ns = UINT64_C(1700000000000000000),
		.pid = 1000,
		.straggler = UINT32_MAX,
		.hang_step = UINT32_MAX,
		.absent = UINT32_MAX,
		.count = UINT32_MAX,
		.named = true,
		.prefix = "rank",
		.label = "" };
	uint8_t groups[LOAD_LAYERS];
	uint64_t *free_at;
	size_t all;

	if (count < 4)
		return 2;
	job.folder = arguments[1];
	job.ranks = job.sizes[0] = (uint32_t)strtoul(arguments[2], NULL, 10);
	job.steps = (uint32_t)strtoul(arguments[3], NULL, 10);
	for (int i = 4; i < count; i++)
		set(&job, arguments[i]);
	if (job.grouped && job.sizes[0] * job.sizes[1] * job.sizes[2] != job.ranks)
		return 2;
	all = (size_t)job.ranks * job.steps * LOAD_LAYERS;
	free_at = calloc(job.ranks, sizeof *free_at);
	job.begins = calloc(all, sizeof *job.begins);
	job.ends = calloc(all, sizeof *job.ends);
	if (!free_at || !job.begins || !job.ends)
		return 2;
	for (uint32_t layer = 0; layer < LOAD_LAYERS; layer++)
		groups[layer] = (uint8_t)group_of(&job, layer);
	for (uint32_t step = 0; step < job.steps; step++)
		for (uint32_t layer = 0; layer < LOAD_LAYERS; layer++)
			schedule(&job, step, layer, free_at);
	for (uint32_t rank = job.first; rank < job.ranks && rank - job.first < job.count; rank++)
		write_rank(&job, rank, groups);
	free(free_at);
	free(job.begins);
	free(job.ends);
	return 0;
}
