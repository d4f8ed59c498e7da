/* SPDX-License-Identifier: MIT
 *
 * The part of the rule `cold-start` for processes without steps to compare: long gaps in first
 * calls, and kernels that the driver compiled or loaded at their first use; and for those with
 * steps of which none is slow: single launches that take much longer than the others.
 */
#include "report/base/alloc.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

void first_call_gap_add(
	struct diagnosis *diagnosis, const struct row *row, uint64_t at_ns, uint64_t length_ns)
{
	struct first_call_gaps *first = &diagnosis->facts.first;
	const struct first_calls *calls = first_calls_of(diagnosis->process);
	const struct first_call *call = first_calls_find(
		calls, (uint32_t)computed_row_number(row, "thread"), at_ns, at_ns + length_ns);

	occurrences_add(&first->gaps, row->node, call ? call->name : 0, at_ns, length_ns);
	if (!call)
		return;
	if (!first->idle_ns)
		first->idle_ns = xcalloc(calls->count * sizeof *first->idle_ns);
	first->idle_ns[call - calls->calls] += length_ns;
}

/* The time in which the driver compiled or loaded kernels at their first use, as CUPTI reports it.
 */
struct first_use {
	uint64_t ns, records;
	/* long gaps that are in no first call that later ones can be compared with, but in which
	 * the driver compiled or loaded kernels on the launching thread */
	uint64_t further_gaps;
	bool *in_gap; /* by index in facts->long_gaps */
};

/* Notes the long gaps that a record of the driver is in. */
static void add_first_use_in_gaps(const struct diagnosis *diagnosis, struct first_use *use,
	const struct trace_overhead *overhead)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	uint64_t begin_ns, end_ns;

	reader_gpu_times(diagnosis->process->reader, overhead->start_ns, overhead->end_ns,
		&begin_ns, &end_ns);
	for (size_t i = 0; i < facts->long_gap_count; i++) {
		const struct long_launch_gap *gap = &facts->long_gaps[i];

		if (use->in_gap[i] || end_ns <= gap->at_ns ||
			begin_ns >= gap->at_ns + gap->length_ns ||
			(overhead->tid && overhead->tid != gap->tid))
			continue;
		use->in_gap[i] = true;
		use->further_gaps++;
	}
}

/* Reads the trace once more. The caller frees in_gap. */
static struct first_use read_first_use(const struct diagnosis *diagnosis)
{
	struct trace_reader *reader = diagnosis->process->reader;
	struct first_use use = { .ns = 0 };
	struct trace_event event;

	if (!diagnosis->profile->counts.driver_overhead_records)
		return use;
	use.in_gap = xcalloc(diagnosis->facts.long_gap_count + 1);
	reader_rewind(reader);
	while (reader_next(reader, &event) > 0) {
		const struct trace_overhead *overhead = event.record;

		if (event.kind != TRACE_OVERHEAD || !trace_overhead_is_first_use(overhead->type))
			continue;
		use.records++;
		use.ns += overhead->end_ns > overhead->start_ns
				  ? overhead->end_ns - overhead->start_ns
				  : 0;
		add_first_use_in_gaps(diagnosis, &use, overhead);
	}
	return use;
}

static void list_first_call(struct diagnosis *diagnosis, struct finding *finding,
	const struct first_call *call, uint64_t idle_ns)
{
	const size_t used = strlen(finding->evidence);

	finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
		"%s%s%s: idle for %s in the call of %s at %s%s, %s %s (median of %s)",
		used ? "; " : "", call->of_launches ? "launch of " : "",
		diagnose_name(diagnosis, call->name), diagnose_time(diagnosis, idle_ns),
		diagnose_time(diagnosis, call->end_ns - call->begin_ns),
		diagnose_time(diagnosis, call->begin_ns),
		call->is_outlier ? " (not its first launch)" : "",
		call->of_launches ? "other launches" : "later",
		diagnose_time(diagnosis, call->later_median_ns),
		diagnose_count(diagnosis, call->later));
}

/* Lists the first calls with the most idle time: each has that which is in no shorter one. */
static void list_first_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct first_calls *calls = first_calls_of(diagnosis->process);
	uint64_t *ns = diagnosis->facts.first.idle_ns;

	for (unsigned n = 0; ns && n < FIRST_CALLS_LISTED; n++) {
		size_t most = 0;

		for (size_t i = 1; i < calls->count; i++)
			most = ns[i] > ns[most] ? i : most;
		if (!diagnose_is_share(ns[most], finding->impact_ns, LIMIT_MINOR))
			return;
		list_first_call(diagnosis, finding, &calls->calls[most], ns[most]);
		ns[most] = 0;
	}
}

static void report_first_calls(
	struct diagnosis *diagnosis, struct finding *finding, const struct first_use *use)
{
	const struct occurrences *gaps = &diagnosis->facts.first.gaps;

	if (gaps->count)
		SET_TEXT(finding->sentence,
			"First calls take much longer than later ones: the GPU is idle for %s "
			"while the host is in them.",
			diagnose_time(diagnosis, finding->impact_ns));
	else
		SET_TEXT(finding->sentence,
			"The driver compiles or loads kernels at their first use, for %s.",
			diagnose_time(diagnosis, use->ns));
	if (gaps->count && use->further_gaps) {
		const size_t used = strlen(finding->sentence);

		finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
			" %s more in which the GPU waits for the host %s probably in first calls "
			"too: the driver loads or compiles kernels meanwhile, but no later call "
			"around shows it.",
			diagnose_plural(diagnosis, use->further_gaps, "long interval"),
			use->further_gaps == 1 ? "is" : "are");
	}
	list_first_calls(diagnosis, finding);
	if (use->records) {
		const size_t used = strlen(finding->evidence);

		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"%sthe driver compiled or loaded kernels for %s in %s", used ? "; " : "",
			diagnose_time(diagnosis, use->ns),
			diagnose_plural(diagnosis, use->records, "record"));
	}
}

/* Sets the cost and the place of idle time in first calls. Returns false if it is too little. */
static bool set_idle_in_first_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *gaps = &facts->first.gaps;

	if (!finding_set_class(
		    diagnosis, finding, BOUND_FIRST, facts->cause_ns[GAP_FIRST], LIMIT_LITTLE))
		return false;
	finding->upper_bound = false;
	finding->count = facts->cause_gaps[GAP_FIRST];
	finding_set_class_place_of(diagnosis, finding, BOUND_FIRST, gaps);
	occurrences_set_example(gaps, finding);
	return true;
}

/* Reports idle time in first calls, or else the time for which the driver compiled or loaded
 * kernels. Returns false if there is too little of that. */
static bool set_first_call_cost(
	struct diagnosis *diagnosis, struct finding *finding, const struct first_use *use)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	if (set_idle_in_first_calls(diagnosis, finding))
		return true;
	if (!diagnose_is_share(use->ns, facts->run_ns, LIMIT_WORTH))
		return false;
	finding->impact_ns = use->ns;
	finding->count = use->records;
	return true;
}

bool diagnose_first_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	struct first_use use = read_first_use(diagnosis);

	free(use.in_gap);
	use.in_gap = NULL;
	if (!set_first_call_cost(diagnosis, finding, &use))
		return false;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	report_first_calls(diagnosis, finding, &use);
	SET_TEXT(finding->reason, "no steps to compare: the first calls of each name, and on each "
				  "path, are compared with the median of the later ones");
	SET_TEXT(finding->next,
		"Warm up before recording, with the same shapes, or record longer. To shorten "
		"first calls: set CUDA_MODULE_LOADING=EAGER, keep compiler caches.");
	SET_TEXT(finding->view, "idle");
	return true;
}

void diagnose_slow_launches(struct diagnosis *diagnosis, struct finding *finding)
{
	if (!diagnosis->facts.first.gaps.count || !set_idle_in_first_calls(diagnosis, finding))
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->sentence,
		"Single launches take much longer than the others: the GPU is idle for %s while "
		"the host is in them.",
		diagnose_time(diagnosis, finding->impact_ns));
	list_first_calls(diagnosis, finding);
	SET_TEXT(finding->reason,
		"each launch is compared with the median of all; that they do not recur is seen "
		"in the steps, why they are slow is not in the trace");
	SET_TEXT(finding->next,
		"These launches do not recur, so they are no way to make each step faster. The "
		"first launch of a kernel loads it: run each kernel once before, or set "
		"CUDA_MODULE_LOADING=EAGER. For other launches look at what else the machine did "
		"at that time.");
	SET_TEXT(finding->view, "idle");
}
