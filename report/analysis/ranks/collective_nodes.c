/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/collective_nodes.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include <stdlib.h>

COMPARE_BY_TWO(by_arrival, struct collective_arrival, at_ns, collective)

/* Returns the collectives by launch or request time. The caller frees the array. */
static struct collective_arrival *collectives_by_time(
	const struct collectives *collectives, bool launched)
{
	struct collective_arrival *arrivals = xcalloc((collectives->count + 1) * sizeof *arrivals);

	for (size_t i = 0; i < collectives->count; i++)
		arrivals[i] = (struct collective_arrival){
			launched ? collectives->all[i].launched_ns
				 : collectives->all[i].requested_ns,
			i
		};
	qsort(arrivals, collectives->count, sizeof *arrivals, by_arrival);
	return arrivals;
}

struct collective_arrival *collectives_by_request(const struct collectives *collectives)
{
	return collectives_by_time(collectives, false);
}

struct collective_nodes collective_nodes_new(const struct collectives *collectives)
{
	return (struct collective_nodes){ .collectives = collectives,
		.launched = collectives_by_time(collectives, true),
		.leaves = xcalloc((collectives->count + 1) * sizeof(uint32_t)) };
}

void collective_nodes_free(struct collective_nodes *nodes)
{
	free(nodes->launched);
	free(nodes->leaves);
}

struct profile_options collective_nodes_options(
	const struct process *process, const struct options *given)
{
	struct profile_options options = process_profile_options(process, given);

	options.metric = METRIC_CPU;
	options.pick_metric = false;
	options.counter = NULL;
	options.found_steps = NULL;
	options.timeline = NULL;
	options.no_timeline = true;
	return options;
}

DEFINE_COUNT_WHILE(launched_before, struct collective_arrival, item->at_ns < limit)

void collective_nodes_add(struct collective_nodes *nodes, uint32_t leaf, uint64_t at_ns)
{
	const size_t count = nodes->collectives->count;

	for (size_t i = launched_before(nodes->launched, count, at_ns);
		i < count && nodes->launched[i].at_ns == at_ns; i++)
		nodes->leaves[nodes->launched[i].collective] = leaf;
}

bool collective_nodes_is_communication(const struct profile *profile, uint32_t node)
{
	return node_names_is_communication(profile->names, profile->tree->nodes[node].name);
}

uint32_t collective_node_of(
	const struct collective_nodes *nodes, const struct profile *profile, size_t collective)
{
	const uint32_t leaf = nodes->leaves[collective];

	return leaf && collective_nodes_is_communication(profile, leaf)
		       ? profile->tree->nodes[leaf].parent
		       : 0;
}
