/* SPDX-License-Identifier: MIT
 *
 * Finds where in the call tree the time of a finding is: at one node, or spread below one.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

/* Percent of the time that is below a node that is named. */
#define BELOW_MIN 80u

/* Returns the deepest node with BELOW_MIN percent of the time below it, but none at the top: all is
 * below these. Stores the time below it. */
static uint32_t common_node(const struct tree *tree, const uint64_t *ns, size_t room,
	uint64_t whole, uint64_t *below_ns)
{
	uint64_t *sums = xcalloc(tree->count * sizeof *sums);
	uint32_t common = 0;

	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];

		sums[id] += id < room ? ns[id] : 0;
		sums[node->parent] += sums[id];
		if (node->parent && run_bound_is_percent(sums[id], whole, BELOW_MIN) &&
			(!common || node->depth > tree->nodes[common].depth))
			common = id;
	}
	*below_ns = sums[common];
	free(sums);
	return common;
}

/* Says how much of the time is at no node, if that is more than at any of them: in steps before the
 * first GPU operation of a GPU and after its last. */
static void say_elsewhere(struct diagnosis *diagnosis, struct finding *finding, uint64_t placed_ns)
{
	const uint64_t elsewhere_ns = finding->places_ns - placed_ns;
	const size_t used = strlen(finding->sentence);

	finding->is_second_place = elsewhere_ns > finding->place_ns;
	if (finding->is_second_place)
		finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
			" The largest part (%s) is in no call path, but before the first GPU "
			"operation or after the last.",
			diagnose_share(diagnosis, elsewhere_ns, finding->places_ns));
}

void finding_set_place(
	struct diagnosis *diagnosis, struct finding *finding, const uint64_t *ns, size_t room)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t below_ns, sum_ns = room ? ns[0] : 0;
	uint32_t most = 0, common;
	size_t used;

	for (uint32_t id = 1; id < room && id < tree->count; id++) {
		sum_ns += ns[id];
		most = !most || ns[id] > ns[most] ? id : most;
	}
	finding->places_ns = sum_ns ? max_u64(sum_ns, finding->impact_ns) : 0;
	finding->node = most && ns[most] ? most : 0;
	finding->place_ns = finding->node ? ns[most] : 0;
	if (finding->places_ns)
		say_elsewhere(diagnosis, finding, sum_ns - ns[0]);
	used = strlen(finding->sentence);
	if (run_bound_is_percent(finding->place_ns, sum_ns, 50))
		return;
	common = common_node(tree, ns, room, sum_ns, &below_ns);
	if (common && common != most)
		finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
			" %s of this time is below %s.",
			diagnose_share(diagnosis, below_ns, finding->places_ns),
			diagnose_node(diagnosis, common));
}

void finding_set_class_place(struct diagnosis *diagnosis, struct finding *finding, enum bound class,
	const uint64_t *ns, size_t room)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	const bool is_of_verdict = finding->whole_ns == bound->whole_ns &&
				   finding->impact_ns == run_bound_ns(bound, class);

	if (is_of_verdict && bound->node_ns[class]) {
		finding_set_place(diagnosis, finding, bound->node_ns[class], bound->nodes);
		return;
	}
	finding_set_place(diagnosis, finding, ns, room);
	if (!is_of_verdict)
		finding->places_name = "in the whole trace";
}

void finding_set_class_place_of(struct diagnosis *diagnosis, struct finding *finding,
	enum bound class, const struct occurrences *occurrences)
{
	uint64_t *ns = xcalloc((occurrences->room + 1) * sizeof *ns);

	for (size_t id = 0; id < occurrences->room; id++)
		ns[id] = occurrences->of_node[id].total_ns;
	finding_set_class_place(diagnosis, finding, class, ns, occurrences->room);
	free(ns);
}
