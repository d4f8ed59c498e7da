/* SPDX-License-Identifier: MIT
 *
 * The rule about backward passes that are out of proportion to their forward passes.
 *
 * Compared are operators whose backward is known: rows `X (bwd)` of the call tree with X beside
 * them. Work without a link between the two passes says nothing about their ratio: kernels without
 * a launch in the trace, evaluation, optimizers, and backward passes that a pipeline schedule runs
 * between the forward passes of other micro-batches.
 */
#include "report/base/alloc.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>

/* GPU time of operators that ran forward and backward. Communication is left out, because it
 * waits for other ranks. */
struct linked_passes {
	uint64_t forward_ns, backward_ns, recompute_ns;
	uint64_t all_backward_ns; /* with or without a link */
	uint32_t node;            /* the row `X (bwd)` with the most time; 0: none */
	uint64_t node_ns;
	uint64_t operators; /* rows `X (bwd)` */
};

/* Computes, for each node, the GPU time of communication kernels in it. The caller frees it. */
static uint64_t *communication_by_node(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t *of_node = xcalloc(tree->count * sizeof *of_node);

	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];

		if (node->kind == NODE_KERNEL && node->gpu && !node->captured &&
			diagnose_is_communication(diagnosis, node->name))
			of_node[id] += node->gpu->self_ns;
		of_node[node->parent] += of_node[id];
	}
	return of_node;
}

static uint64_t without(uint64_t whole_ns, uint64_t communication_ns)
{
	return whole_ns > communication_ns ? whole_ns - communication_ns : 0;
}

static void add_linked_row(struct linked_passes *passes, const struct tree *tree, uint32_t row,
	const uint64_t *communication, bool *seen)
{
	const struct node *node = &tree->nodes[row], *forward = &tree->nodes[node->forward_node];
	const uint64_t backward_ns = without(node->gpu->part_ns[PART_BACKWARD], communication[row]);

	passes->backward_ns += backward_ns;
	passes->recompute_ns += node->gpu->part_ns[PART_RECOMPUTE];
	passes->operators++;
	if (!seen[node->forward_node] && forward->gpu)
		passes->forward_ns += without(
			forward->gpu->part_ns[PART_FORWARD], communication[node->forward_node]);
	seen[node->forward_node] = true;
	if (backward_ns > passes->node_ns) {
		passes->node_ns = backward_ns;
		passes->node = row;
	}
}

static struct linked_passes linked_passes_of(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t *communication = communication_by_node(diagnosis);
	bool *seen = xcalloc(tree->count * sizeof *seen);
	struct linked_passes passes = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (!node->gpu)
			continue;
		if (node_kind_class(node->kind) == NODE_WORK && !node->captured &&
			!(node->kind == NODE_KERNEL &&
				diagnose_is_communication(diagnosis, node->name)))
			passes.all_backward_ns += node->gpu->part_ns[PART_BACKWARD];
		if (node->forward_node)
			add_linked_row(&passes, tree, id, communication, seen);
	}
	free(communication);
	free(seen);
	return passes;
}

/* GPU work of the pass that takes too long, of operators that ran forward and backward. */
struct slow_pass {
	const struct tree *tree;
	bool *selected; /* by node: its work is of that pass */
};

static struct slow_pass slow_pass_of(const struct tree *tree, bool backward)
{
	struct slow_pass pass = { tree, xcalloc(tree->count * sizeof *pass.selected) };

	for (uint32_t id = 1; id < tree->count; id++)
		if (tree->nodes[id].forward_node)
			pass.selected[backward ? id : tree->nodes[id].forward_node] = true;
	for (uint32_t id = 1; id < tree->count; id++)
		if (backward || !tree->nodes[id].forward_node)
			pass.selected[id] |= pass.selected[tree->nodes[id].parent];
	return pass;
}

static bool is_of_slow_pass(const struct path_node *work, void *context)
{
	const struct slow_pass *pass = context;

	return work->owner < pass->tree->count && pass->selected[work->owner] &&
	       !work->communicates;
}

/* Sets what is gained if the slow pass takes as long as is usual. */
static void set_gain_of_ratio(
	struct diagnosis *diagnosis, struct finding *finding, const struct linked_passes *passes)
{
	const bool backward = passes->backward_ns > passes->forward_ns;
	const double slow = (double)(backward ? passes->backward_ns : passes->forward_ns);
	struct slow_pass pass = slow_pass_of(diagnosis->profile->tree, backward);

	finding_set_gain(
		diagnosis, finding, 1 - (double)finding->impact_ns / slow, is_of_slow_pass, &pass);
	free(pass.selected);
}

static void report_ratio(
	struct diagnosis *diagnosis, struct finding *finding, const struct linked_passes *passes)
{
	const uint64_t forward = passes->forward_ns, backward = passes->backward_ns;

	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "in typical models backward takes about twice as long as "
				  "forward; communication and recomputation are excluded");
	SET_TEXT(finding->sentence,
		"Backward takes %.1f times as long as the forward pass of the same operators on "
		"the GPU; about 2 is usual.",
		(double)backward / (double)forward);
	SET_TEXT(finding->evidence,
		"%s with both passes: forward %s, backward %s; recomputation %s",
		diagnose_plural(diagnosis, passes->operators, "operator"),
		diagnose_time(diagnosis, forward), diagnose_time(diagnosis, backward),
		diagnose_time(diagnosis, passes->recompute_ns));
	if (backward > forward)
		SET_TEXT(finding->next, "Find the operator whose backward is unusually slow: "
					"scatter with atomics (index, embedding), "
					"deterministic algorithms, layouts that force copies.");
	else
		SET_TEXT(finding->next, "Find the operator whose forward pass is unusually slow: "
					"layouts that force copies, a fallback to another "
					"algorithm, work that could be computed once.");
	SET_TEXT(finding->view, "tree --columns gpu_total_ns,gpu_forward_ns,gpu_backward_ns");
	finding_set_impact(finding, passes->node, passes->operators,
		backward > forward ? backward - 2 * forward : forward - backward / 2);
	set_gain_of_ratio(diagnosis, finding, passes);
}

void diagnose_forward_backward(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct linked_passes passes = linked_passes_of(diagnosis);

	if (!passes.all_backward_ns) {
		finding_set_unchecked(finding, "the trace has no backward pass");
		return;
	}
	if (diagnose_hides_work(diagnosis)) {
		finding_set_unchecked(finding, "for much of the time the trace does not show what "
					       "the GPU did");
		return;
	}
	if (!passes.forward_ns ||
		!diagnose_is_share(passes.backward_ns, passes.all_backward_ns, LIMIT_LINKED)) {
		finding_set_unchecked(finding, "the trace does not link most of its backward pass "
					       "to the operators of the forward pass");
		return;
	}
	if (!diagnose_is_share(passes.backward_ns, diagnosis->facts.span_ns, LIMIT_WORTH) ||
		(diagnose_is_share(passes.backward_ns, passes.forward_ns, LIMIT_BACKWARD_MIN) &&
			!diagnose_is_share(
				passes.backward_ns, passes.forward_ns, LIMIT_BACKWARD_MAX)))
		return;
	report_ratio(diagnosis, finding, &passes);
}
