/* SPDX-License-Identifier: MIT
 *
 * Says in words what bounds a run.
 */
#include "report/diagnose/run_bound.h"
#include "report/analysis/tree_categories.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

/* The verdict in words: what bounds the run, and what the GPU does. %s: share of the time. */
static const char *const sentences[BOUND_COUNT] = {
	[BOUND_COMPUTE] = "The run is bound by the GPU's kernels, which compute for %s of the time",
	[BOUND_BANDWIDTH] = "The run is bound by the GPU's memory bandwidth: kernels run for %s of "
			    "the time, and memory limits most of them",
	[BOUND_COMMUNICATION] = "The run is bound by exposed communication: for %s of the time the "
				"GPU communicates and computes nothing",
	[BOUND_COPIES] = "The run is bound by copies: for %s of the time the GPU only copies, or "
			 "waits for a copy call of the host",
	[BOUND_COPY_CALLS] =
		"The run is bound by copy calls: for %s of the time the GPU waits for a "
		"copy call of the host, or only copies",
	[BOUND_LAUNCH] = "The run is launch-bound: for %s of the time the GPU is idle because the "
			 "host has not launched its next operation",
	[BOUND_HOST] = "The run is host-bound: for %s of the time the GPU waits for the host "
		       "program",
	[BOUND_GAPS] = "The run is bound by gaps between kernels: for %s of the time the GPU is "
		       "idle for microseconds between operations that were launched in time",
	[BOUND_DATA] = "The run is bound by data loading: for %s of the time the GPU is idle while "
		       "the next batch is fetched",
	[BOUND_COMPILATION] = "The run is bound by compilation: for %s of the time the GPU is idle "
			      "while the host compiles",
	[BOUND_ALLOCATION] = "The run is bound by allocation: for %s of the time the GPU is idle "
			     "while the host allocates or frees memory",
	[BOUND_SYNC] = "The run is bound by synchronisation: for %s of the time the GPU is idle, "
		       "as the host had waited for it before it launched more",
	[BOUND_WAITING] = "Launched work does not start for %s of the time: it waits for an event, "
			  "for something that the trace does not show, or for another process",
	[BOUND_UNKNOWN] = "What bounds the run cannot be said: for %s of the time the trace does "
			  "not show what the GPU did, or why it was idle",
	[BOUND_NOTHING] = "Nothing in particular bounds the run; the kernels compute for %s of the "
			  "time",
};

/* Words of the command that shows more, between `pperf-report` and the trace. */
static const char *const views[BOUND_COUNT] = { [BOUND_COMPUTE] = "categories",
	[BOUND_BANDWIDTH] = "roofline",
	[BOUND_COMMUNICATION] = "overlap",
	[BOUND_COPIES] = "overlap",
	[BOUND_COPY_CALLS] = "idle",
	[BOUND_LAUNCH] = "idle",
	[BOUND_HOST] = "idle -s gap_ns --top 20",
	[BOUND_GAPS] = "idle",
	[BOUND_DATA] = "idle",
	[BOUND_COMPILATION] = "idle",
	[BOUND_ALLOCATION] = "api",
	[BOUND_SYNC] = "idle",
	[BOUND_WAITING] = "queue",
	[BOUND_UNKNOWN] = "idle",
	[BOUND_NOTHING] = "categories",
	[BOUND_UNJUDGED] = "info" };

/* Writes the shares of all classes with 1 % or more, the largest first. */
static void list_shares(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	bool listed[BOUND_CLASSES] = { false };
	size_t used = strlen(text->evidence);

	for (unsigned n = 0; n < BOUND_CLASSES; n++) {
		enum bound most = BOUND_COUNT;

		for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
			if (!listed[class] &&
				run_bound_is_percent(bound->ns[class], bound->whole_ns, 1) &&
				(most == BOUND_COUNT || bound->ns[class] > bound->ns[most]))
				most = class;
		if (most == BOUND_COUNT)
			return;
		listed[most] = true;
		finding_set_text(text->evidence + used, sizeof text->evidence - used, "%s%s %s",
			n ? ", " : "", bound_name(most),
			diagnose_share(diagnosis, bound->ns[most], bound->whole_ns));
		used += strlen(text->evidence + used);
	}
}

#define CATEGORIES_LISTED 3u

/* Adds the categories of kernels with most GPU time: what a run that is bound by kernels is bound
 * by. */
static void list_categories(struct diagnosis *diagnosis, struct finding *text)
{
	const struct profile *profile = diagnosis->profile;
	const struct categories *categories = diagnosis->process->categories;
	uint8_t *of_node = categories_of_tree(categories, profile->tree, diagnosis->process->texts);
	uint64_t ns[CATEGORIES_MAX] = { 0 };
	size_t used = strlen(text->evidence);

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];

		if (node->kind == NODE_KERNEL && node->gpu && !node->captured &&
			of_node[id] != CATEGORY_OTHER)
			ns[of_node[id]] += node->gpu->self_ns;
	}
	for (unsigned n = 0; n < CATEGORIES_LISTED; n++) {
		unsigned most = 0;

		for (unsigned category = 1; category < CATEGORIES_MAX; category++)
			most = ns[category] > ns[most] ? category : most;
		if (!run_bound_is_percent(ns[most], profile->totals.gpu_sum_ns, 5))
			break;
		finding_set_text(text->evidence + used, sizeof text->evidence - used, "%s%s %s",
			n ? ", " : "; of all GPU time: ", categories_name(categories, most),
			diagnose_share(diagnosis, ns[most], profile->totals.gpu_sum_ns));
		used += strlen(text->evidence + used);
		ns[most] = 0;
	}
	free(of_node);
}

static void explain_confidence(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (bound->bound == BOUND_BANDWIDTH)
		SET_TEXT(text->reason,
			"modelled: of %s in operators whose operations and bytes are known, %s are "
			"limited by memory bandwidth",
			diagnose_time(diagnosis, bound->modelled_ns),
			diagnose_time(diagnosis, bound->memory_limited_ns));
	else if (bound->bound == BOUND_NOTHING)
		SET_TEXT(text->reason, "no class takes %u %% of the time", BOUND_SHARE_MIN);
	else if (bound->bound == BOUND_COMPUTE && bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(text->reason, "measured; the other classes take more than 30 %% together");
	else if (bound->bound == BOUND_UNKNOWN)
		SET_TEXT(text->reason, "the trace lacks most of what would show it");
	else if (bound->bound == BOUND_WAITING)
		SET_TEXT(text->reason, "measured, but the trace may not show what was waited for");
	else if (bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(text->reason, "measured: the largest class besides compute, but less than "
				       "half of the time");
	else
		SET_TEXT(text->reason,
			"measured: each nanosecond of the GPUs' time is in one class");
}

/* Returns true if the run is bound by something that takes less time than the kernels do. */
static bool kernels_take_more(const struct run_bound *bound)
{
	return bound->bound != BOUND_UNKNOWN && bound->bound < BOUND_CLASSES &&
	       run_bound_ns(bound, bound->bound) < bound->ns[BOUND_COMPUTE];
}

/* Appends how many gaps of a host-bound run are long, and the longest. */
static void add_long_gaps(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const size_t used = strlen(text->sentence);

	finding_set_text(text->sentence + used, sizeof text->sentence - used,
		", most of it in %s of %s or more (the longest %s)",
		diagnose_plural(diagnosis, bound->long_gaps, "gap"),
		diagnose_time(diagnosis, LIMIT_LONG_GAP_NS),
		diagnose_time(diagnosis, bound->longest_gap_ns));
}

void run_bound_explain(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const enum bound shown = bound->bound == BOUND_NOTHING ? BOUND_COMPUTE : bound->bound;

	SET_TEXT(text->view, "%s", views[bound->bound]);
	if (bound->bound == BOUND_UNJUDGED) {
		SET_TEXT(text->sentence, "There is too little GPU work in the trace to say what "
					 "bounds the run.");
		SET_TEXT(text->reason, "%s; at least %u are needed",
			diagnose_plural(diagnosis, bound->operations, "GPU operation"),
			BOUND_OPERATIONS_MIN);
		return;
	}
	finding_set_text(text->sentence, sizeof text->sentence, sentences[bound->bound],
		diagnose_share(diagnosis, run_bound_ns(bound, shown), bound->whole_ns));
	if (bound->bound == BOUND_HOST)
		add_long_gaps(diagnosis, bound, text);
	strncat(text->sentence,
		kernels_take_more(bound) ? ", which no faster kernel shortens." : ".",
		sizeof text->sentence - strlen(text->sentence) - 1);
	if (bound->steps)
		SET_TEXT(text->evidence, "%s in %s: ", diagnose_time(diagnosis, bound->whole_ns),
			bound->steps == 1
				? "1 step"
				: diagnose_plural(diagnosis, bound->steps, "steady-state step"));
	else if (run_bound_is_percent(bound->whole_ns, diagnosis->facts.run_ns, 90))
		SET_TEXT(text->evidence, "%s from the first GPU operation to the last: ",
			diagnose_time(diagnosis, bound->whole_ns));
	else
		SET_TEXT(text->evidence,
			"%s from the first GPU operation to the last, of a run of %s: ",
			diagnose_time(diagnosis, bound->whole_ns),
			diagnose_time(diagnosis, diagnosis->facts.run_ns));
	list_shares(diagnosis, bound, text);
	if (shown == BOUND_COMPUTE || shown == BOUND_BANDWIDTH)
		list_categories(diagnosis, text);
	explain_confidence(diagnosis, bound, text);
}
