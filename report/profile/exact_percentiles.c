/* SPDX-License-Identifier: MIT
 * fold_refine.c: percentiles made exact in further passes, where the durations of all places did not fit into memory
 * at once.
 */
#include "report/base/alloc.h"
#include "report/profile/profile.h"
#include <stdlib.h>
#include <string.h>

/* What its values will take; 0: they are there, or are too many to be kept. */
static size_t wanted_bytes(const struct samples *samples, uint64_t calls, uint64_t longest_ns)
{
	if (!samples->histogram || calls > SAMPLES_EXACT)
		return 0;
	return 2 * calls * (longest_ns > UINT32_MAX ? sizeof(uint64_t) : sizeof(uint32_t)); /* room grows by doubling */
}

/* Marks as many as fit. Returns how many. */
static size_t choose(const struct fold *fold, struct fold_only *only)
{
	size_t room = SAMPLES_BYTES, count = 0;

	memset(only->nodes, 0, only->node_count);
	memset(only->kernels, 0, only->kernel_count);
	for (uint32_t id = 1; id < only->node_count; id++) {
		const struct node *node = &fold->tree->nodes[id];
		const size_t bytes = wanted_bytes(&node->samples, node->calls, node->max_ns);

		if (bytes && bytes <= room) {
			only->nodes[id] = 1;
			room -= bytes;
			count++;
		}
	}
	for (uint32_t i = 0; i < only->kernel_count; i++) {
		const struct kernel *kernel = &fold->kernels->kernels[i];
		const size_t bytes = wanted_bytes(&kernel->samples, kernel->calls, kernel->max_ns);

		if (bytes && bytes <= room) {
			only->kernels[i] = 1;
			room -= bytes;
			count++;
		}
	}
	return count;
}

static bool take_over(struct samples *samples, struct samples *exact)
{
	if (!samples_exact(exact))
		return false;
	samples_free(samples);
	*samples = *exact;
	*exact = (struct samples){ .used = 0 };
	return true;
}

void fold_refine(struct fold *fold)
{
	struct fold_only only = { .node_count = fold->tree->count, .kernel_count = fold->kernels->count };
	struct fold_options options = fold->options;
	bool progress = fold->tree->budget.early > 0;

	if (!progress)
		return;
	only.nodes = need(only.node_count);
	only.kernels = need(only.kernel_count);
	options.only = &only;
	options.no_owners = true;
	options.pick_metric = false;
	options.metric = METRIC_CPU;
	while (progress && choose(fold, &only)) {
		struct fold *again = fold_run(fold->reader, fold->texts, &options);

		progress = false;
		for (uint32_t id = 1; id < only.node_count && id < again->tree->count; id++)
			progress |= only.nodes[id] &&
				    take_over(&fold->tree->nodes[id].samples, &again->tree->nodes[id].samples);
		for (uint32_t i = 0; i < only.kernel_count && i < again->kernels->count; i++)
			progress |= only.kernels[i] &&
				    take_over(&fold->kernels->kernels[i].samples, &again->kernels->kernels[i].samples);
		fold_free(again);
	}
	free(only.nodes);
	free(only.kernels);
}
