/* SPDX-License-Identifier: MIT
 * Makes percentiles exact in further passes, if the durations of all nodes did not fit into
 * memory.
 */
#include "report/base/alloc.h"
#include "report/profile/profile.h"
#include <stdlib.h>
#include <string.h>

/* Returns the bytes that exact values need. 0: they are there already, or are too many. */
static size_t exact_bytes(const struct percentiles *samples, uint64_t calls, uint64_t longest_ns)
{
	if (!samples->histogram || calls > PERCENTILES_EXACT_MAX)
		return 0;
	/* capacity grows by doubling */
	return 2 * calls * (longest_ns > UINT32_MAX ? sizeof(uint64_t) : sizeof(uint32_t));
}

/* Marks the nodes and kernels whose exact durations fit into PERCENTILES_BYTES_MAX together.
 * Returns their number. */
static size_t choose_samples_to_keep(
	const struct profile *profile, struct durations_kept *kept_durations)
{
	size_t room = PERCENTILES_BYTES_MAX, count = 0;

	memset(kept_durations->nodes, 0, kept_durations->node_count);
	memset(kept_durations->kernels, 0, kept_durations->kernel_count);
	for (uint32_t id = 1; id < kept_durations->node_count; id++) {
		const struct node *node = &profile->tree->nodes[id];
		const size_t bytes = exact_bytes(&node->samples, node->calls, node->max_ns);

		if (bytes && bytes <= room) {
			kept_durations->nodes[id] = 1;
			room -= bytes;
			count++;
		}
	}
	for (uint32_t i = 0; i < kept_durations->kernel_count; i++) {
		const struct launch_config *kernel = &profile->kernels->kernels[i];
		const size_t bytes = exact_bytes(&kernel->samples, kernel->calls, kernel->max_ns);

		if (bytes && bytes <= room) {
			kept_durations->kernels[i] = 1;
			room -= bytes;
			count++;
		}
	}
	return count;
}

static bool replace_by_exact(struct percentiles *samples, struct percentiles *exact)
{
	if (!percentiles_are_exact(exact))
		return false;
	percentiles_free(samples);
	*samples = *exact;
	*exact = (struct percentiles){ .used = 0 };
	return true;
}

void profile_refine_percentiles(struct profile *profile)
{
	struct durations_kept kept_durations = { .node_count = profile->tree->count,
		.kernel_count = profile->kernels->count };
	struct profile_options options = profile->options;
	bool progress = profile->tree->budget.early > 0;

	if (!progress)
		return;
	kept_durations.nodes = xcalloc(kept_durations.node_count);
	kept_durations.kernels = xcalloc(kept_durations.kernel_count);
	options.kept_durations = &kept_durations;
	options.no_owners_and_delays = true;
	options.pick_metric = false;
	options.metric = METRIC_CPU;
	while (progress && choose_samples_to_keep(profile, &kept_durations)) {
		struct profile *again = profile_build(profile->reader, profile->texts, &options);

		progress = false;
		for (uint32_t id = 1; id < kept_durations.node_count && id < again->tree->count;
			id++)
			progress |= kept_durations.nodes[id] &&
				    replace_by_exact(&profile->tree->nodes[id].samples,
					    &again->tree->nodes[id].samples);
		for (uint32_t i = 0; i < kept_durations.kernel_count && i < again->kernels->count;
			i++)
			progress |= kept_durations.kernels[i] &&
				    replace_by_exact(&profile->kernels->kernels[i].samples,
					    &again->kernels->kernels[i].samples);
		profile_free(again);
	}
	free(kept_durations.nodes);
	free(kept_durations.kernels);
}
