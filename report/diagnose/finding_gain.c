/* SPDX-License-Identifier: MIT
 *
 * Computes what a finding that shortens GPU work gains: by how much the critical path gets shorter.
 */
#include "report/analysis/step_idle.h"
#include "report/diagnose/diagnosis_internal.h"

struct shortened_work {
	bool in_steps; /* only that of steady-state steps */
	struct step_idle steps;
	bool (*selects)(const struct path_node *work, void *context);
	void *context;
};

static bool is_shortened(const struct path_node *node, void *context)
{
	const struct shortened_work *work = context;

	return path_is_work(node) && node->counts && work->selects(node, work->context) &&
	       (!work->in_steps || step_idle_counted(&work->steps, node->begin_ns, node->end_ns));
}

void finding_set_gain(struct diagnosis *diagnosis, struct finding *finding, double left,
	bool (*selects)(const struct path_node *work, void *context), void *context)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	struct shortened_work work = { .in_steps = bound->steps &&
						   finding->whole_ns == bound->whole_ns,
		.selects = selects,
		.context = context };

	if (!bound->path || bound->path->last == PATH_NONE)
		return;
	work.steps = step_idle_begin(diagnosis->process);
	finding->gain_ns = critical_path_graph_gain(bound->path, left, is_shortened, &work);
	finding->has_gain = true;
}
