/* SPDX-License-Identifier: MIT
 * diagnose_host.c: rules about beginnings, compilers, and what measuring costs.
 */
#include "report/analysis/work_categories.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct steps *steps = diagnosis->process->steps;
	uint64_t extra = 0, longest = 0;

	if (steps->count < 3) {
		diagnose_lacks(finding, "it takes three steps to tell which are slower at the beginning");
		return;
	}
	for (size_t i = 0; i < steps->count; i++) {
		const uint64_t took = steps->steps[i].end_ns - steps->steps[i].begin_ns;

		if (steps->steps[i].kind != STEP_WARM_UP)
			continue;
		extra += took > steps->p50_ns ? took - steps->p50_ns : 0;
		if (took > longest) {
			longest = took;
			finding->example_ns = steps->steps[i].begin_ns;
		}
	}
	if (!steps->warm_up || !extra)
		return;
	finding->state = FINDING_FOUND;
	finding->confidence = steps_usual(steps) >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
	SAY(finding->why, "%zu usual steps to compare with; steps found by %s", steps_usual(steps),
		steps->evidence[0] ? diagnose_bytes_name(diagnosis, steps->evidence, strlen(steps->evidence)) : "what repeats");
	SAY(finding->sentence, "The first %s much slower than later ones: %s more than %zu usual step%s would have taken.",
		steps->warm_up == 1 ? "step is" : "steps are", diagnose_time(diagnosis, extra), steps->warm_up,
			steps->warm_up == 1 ? "" : "s");
	SAY(finding->evidence, "%zu of %zu steps, the longest %s; a usual one %s", steps->warm_up, steps->count,
		diagnose_time(diagnosis, longest),
		diagnose_time(diagnosis, steps->p50_ns));
	SAY(finding->next, "Leave these steps out of measurements (a schedule's warm-up). To shorten them: warm up with "
		"the real shapes before serving, "
			   "keep compiler caches, CUDA_MODULE_LOADING=EAGER where the first call of each kernel hurts.");
	SAY(finding->view, "steps");
	finding->count = steps->warm_up;
	finding->impact_ns = extra;
	finding->has_example = true;
}

static bool is_named(const struct diagnosis *diagnosis, uint32_t node, const char *pattern)
{
	const struct text name = text_of(diagnosis->process->texts, diagnosis->fold->tree->nodes[node].name);

	return node_kind_class(diagnosis->fold->tree->nodes[node].kind) == NODE_RANGES && category_matches(pattern, name.bytes, name.length);
}

/* What calling compiled code costs beside the code itself. */
struct compiled {
	uint64_t lookup_ns, wrapper_ns, region_ns, calls, lookups, most_ns;
	uint32_t node;
};

static struct compiled compiled_of(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->fold->tree;
	struct compiled compiled = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		uint64_t tax = 0;

		if (is_named(diagnosis, id, "TorchDynamo Cache Lookup*")) {
			compiled.lookup_ns += tax = node->total_ns;
			compiled.lookups += node->calls;
		} else if (is_named(diagnosis, id, "AOTDispatcher Runtime Wrapper*") || is_named(diagnosis, id, "Pregraph bytecode*")) {
			compiled.wrapper_ns += tax = node->self_ns;
		} else if (is_named(diagnosis, id, "Torch-Compiled Region*")) {
			compiled.wrapper_ns += tax = node->self_ns;
			compiled.region_ns += node->total_ns;
			compiled.calls += node->calls;
		}
		if (tax > compiled.most_ns) {
			compiled.most_ns = tax;
			compiled.node = id;
		}
	}
	return compiled;
}

void diagnose_compile_tax(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct compiled compiled = compiled_of(diagnosis);
	const uint64_t tax = compiled.lookup_ns + compiled.wrapper_ns, calls = compiled.calls > compiled.lookups ? compiled.calls : compiled.lookups,
		       wall = diagnosis->fold->totals.wall_ns;
	/* the host's time is nobody's loss where the GPU has enough to do */
	const bool hidden = diagnose_is_share(diagnosis->facts.busy_ns, diagnosis->facts.span_ns, LIMIT_BUSY);

	if (!calls || !diagnose_is_share(tax, compiled.region_ns + compiled.lookup_ns, LIMIT_COMPILE_SHARE) ||
		!diagnose_is_share(tax, wall, LIMIT_LITTLE))
		return;
	finding->state = hidden ? FINDING_NOTE : FINDING_FOUND;
	finding->confidence = diagnose_is_share(diagnosis->facts.idle_ns, diagnosis->facts.span_ns, LIMIT_LAUNCH_IDLE) ? CONFIDENCE_HIGH
														     : CONFIDENCE_MEDIUM;
	SAY(finding->why, hidden ? "measured on the host; the GPU is busy meanwhile, which hides it"
			  : finding->confidence == CONFIDENCE_HIGH ? "measured on the host, and the GPU waits"
								   : "measured on the host; the GPU may hide some of it");
	SAY(finding->sentence, "Each call of a compiled function pays %s before its kernels: guards, wrappers, bytecode around the graph.",
		diagnose_time(diagnosis, tax / calls));
	SAY(finding->evidence, "%s, %s beside the graphs themselves (cache lookups %s, wrappers %s) of %s in compiled regions",
		diagnose_counted(diagnosis, calls, "call"), diagnose_time(diagnosis, tax), diagnose_time(diagnosis, compiled.lookup_ns),
		diagnose_time(diagnosis, compiled.wrapper_ns), diagnose_time(diagnosis, compiled.region_ns));
	SAY(finding->next, "Compile larger pieces (fullgraph=True, no graph breaks, the whole step), "
		"mode=\"reduce-overhead\", fewer guards "
			   "(torch.compiler.set_stance, fixed attributes instead of globals).");
	SAY(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding->node = compiled.node;
	finding->count = calls;
	finding->impact_ns = tax;
	finding->upper_bound = true;
}

static bool is_compiling(const struct diagnosis *diagnosis, uint32_t node)
{
	static const char *const patterns[] = { "*compile_inner*", "*_compile.compile*", "*dynamo_timed*",
		"*compile_fx*", "*create_aot_dispatcher*",
		"*aot_module_simplified*", NULL };

	for (const char *const *pattern = patterns; *pattern; pattern++)
		if (is_named(diagnosis, node, *pattern))
			return true;
	return false;
}

struct recompiled {
	uint64_t total_ns, count, versions, longest_ns, longest_at_ns;
	uint32_t node;
};

/* Outermost places in which the compiler worked, by node; how many. */
static uint32_t find_compiling(const struct diagnosis *diagnosis, uint8_t *compiling)
{
	const struct tree *tree = diagnosis->fold->tree;
	uint32_t count = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		uint32_t around = tree->nodes[id].parent;

		if (!is_compiling(diagnosis, id))
			continue;
		while (around && !is_compiling(diagnosis, around))
			around = tree->nodes[around].parent;
		compiling[id] = !around;
		count += !around;
	}
	return count;
}

static void look_for_versions(const struct diagnosis *diagnosis, struct recompiled *recompiled)
{
	const struct tree *tree = diagnosis->fold->tree;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct text name = text_of(diagnosis->process->texts, tree->nodes[id].name);

		/* the version is the last number: `0/1` and `0/2` are `0/ *` */
		if (!is_named(diagnosis, id, "Torch-Compiled Region*") || name.bytes[name.length - 1] != '*' || tree->nodes[id].labels < 2)
			continue;
		recompiled->versions += tree->nodes[id].labels - 1;
		recompiled->node = recompiled->node ? recompiled->node : id;
	}
}

struct compiler_search {
	const struct diagnosis *diagnosis;
	struct recompiled *found;
	uint8_t *compiling, *seen; /* by node; seen: once already */
};

/* An instance of some range. Without steps, the first one at a place is what there must be. */
static void look_at_instance(void *context, const struct fold_seen_instance *instance)
{
	struct compiler_search *search = context;
	const struct steps *steps = search->diagnosis->process->steps;
	const uint64_t took = instance->end_ns - instance->begin_ns;
	bool again;

	if (instance->node >= search->diagnosis->fold->tree->count || !search->compiling[instance->node])
		return;
	again = search->seen[instance->node];
	search->seen[instance->node] = 1;
	if (search->diagnosis->facts.has_steps) {
		again = false;
		for (size_t i = 0; !again && i < steps->count; i++)
			again = steps->steps[i].kind == STEP_USUAL && instance->begin_ns >= steps->steps[i].begin_ns &&
				instance->begin_ns < steps->steps[i].end_ns;
	}
	if (!again)
		return;
	search->found->count++;
	search->found->total_ns += took;
	if (took < search->found->longest_ns)
		return;
	search->found->longest_ns = took;
	search->found->longest_at_ns = instance->begin_ns;
	search->found->node = instance->node;
}

/* Steps that are ranges of the program's own are one place, warm-up or not: so each instance is asked when it was. */
static void look_for_compiling(const struct diagnosis *diagnosis, struct recompiled *recompiled)
{
	struct compiler_search search = { .diagnosis = diagnosis, .found = recompiled,
		.compiling = need(diagnosis->fold->tree->count), .seen = need(diagnosis->fold->tree->count) };
	const struct fold_observer observer = { .context = &search, .closed = look_at_instance };
	const struct fold_options options = fold_options_telling(diagnosis->fold, &observer);

	if (find_compiling(diagnosis, search.compiling))
		fold_free(fold_run(diagnosis->process->reader, diagnosis->process->texts, &options));
	free(search.compiling);
	free(search.seen);
}

void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding)
{
	struct recompiled recompiled = { .node = 0 };

	look_for_versions(diagnosis, &recompiled);
	look_for_compiling(diagnosis, &recompiled);
	if (!recompiled.count && !recompiled.versions)
		return;
	finding->state = FINDING_FOUND;
	finding->confidence = recompiled.count && diagnosis->facts.has_steps ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
	SAY(finding->why, finding->confidence == CONFIDENCE_HIGH ? "the compiler ran in usual steps"
			: recompiled.count ? "no steps were found: each compilation but the first at a place counts"
					   : "several versions of a function were called; when they were compiled is not in the trace");
	SAY(finding->sentence, "torch.compile compiles again while the program runs%s.",
		recompiled.versions ? ", or switches between versions of one function" : "");
	SAY(finding->evidence, "%s, in %s, the longest %s; %s of compiled functions",
		diagnose_counted(diagnosis, recompiled.count, "compilation"), diagnose_time(diagnosis, recompiled.total_ns),
		diagnose_time(diagnosis, recompiled.longest_ns), diagnose_counted(diagnosis, recompiled.versions, "further version"));
	SAY(finding->next, "TORCH_LOGS=recompiles says which guard failed: mark changing sizes "
		"(torch._dynamo.mark_dynamic, dynamic=True), pad to a few "
			   "sizes, keep Python numbers and flags that change out of compiled functions.");
	SAY(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding->node = recompiled.node;
	finding->count = recompiled.count + recompiled.versions;
	finding->impact_ns = recompiled.total_ns;
	finding->upper_bound = !diagnosis->facts.has_steps;
	finding->has_example = recompiled.count > 0;
	finding->example_ns = recompiled.longest_at_ns;
}

void diagnose_cost(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct fold_totals *totals = &diagnosis->fold->totals;
	const bool imported = process_meta(diagnosis->process, "import.format").known;
	const uint64_t cost = totals->self_ns + totals->overhead_ns,
		       run = reader_duration_ns(diagnosis->process->reader); /* both are of all of it, whatever part is looked at */

	if (imported && !diagnosis->fold->counts.overhead_records) {
		diagnose_lacks(finding, "the file has no record of what profiling cost");
		return;
	}
	if (!diagnose_is_share(cost, run, LIMIT_COST))
		return;
	finding->state = FINDING_FOUND;
	finding->confidence = imported ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH;
	SAY(finding->why, imported ? "what the profiler says of itself; what Python stacks and shapes cost the host is not in it"
				   : "the recorder times itself; of all threads together");
	SAY(finding->sentence, "Measuring took %s of the run's time: figures of the host and idle times are larger than without it.",
		diagnose_share(diagnosis, cost, run));
	SAY(finding->evidence, "%s of CUPTI in %s%s%s, of %s", diagnose_time(diagnosis, totals->overhead_ns),
		diagnose_counted(diagnosis, diagnosis->fold->counts.overhead_records, "record"), imported ? "" : ", of pperf's own code ",
		imported ? "" : diagnose_time(diagnosis, totals->self_ns), diagnose_time(diagnosis, run));
	SAY(finding->next, imported ? "Leave its first steps out (schedule with warm-up), and record without with_stack "
		"and record_shapes to compare."
				    : "Record less to compare: PPERF_OPS=totals, no call stacks, only some steps (PPERF_SCHEDULE).");
	SAY(finding->view, "info");
	finding->count = diagnosis->fold->counts.overhead_records;
	finding->impact_ns = cost;
	finding->upper_bound = true;
}
