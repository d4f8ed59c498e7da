/* SPDX-License-Identifier: MIT
 *
 * The part of the rule `cold-start` for processes without steps to compare: long gaps in first
 * calls, and kernels that the driver compiled or loaded at their first use.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

/* Keeps the longest first calls, the longest first, each once. */
static void keep_first_call(struct first_call_gaps *first, const struct first_call *call)
{
	size_t at = FIRST_CALLS_LISTED;

	for (size_t i = 0; i < FIRST_CALLS_LISTED; i++)
		if (first->longest[i].name && first->longest[i].begin_ns == call->begin_ns)
			return;
	while (at && call->end_ns - call->begin_ns >
			     first->longest[at - 1].end_ns - first->longest[at - 1].begin_ns)
		at--;
	if (at == FIRST_CALLS_LISTED)
		return;
	memmove(&first->longest[at + 1], &first->longest[at],
		(FIRST_CALLS_LISTED - 1 - at) * sizeof *first->longest);
	first->longest[at] = *call;
}

void first_call_gaps_read(struct diagnosis *diagnosis)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	const struct steps *steps = diagnosis->process->steps;
	struct first_calls calls;

	if (!facts->long_gap_count || (steps && steps->count >= STEPS_COMPARED_MIN))
		return;
	calls = first_calls_read(diagnosis->process);
	for (size_t i = 0; i < facts->long_gap_count; i++) {
		struct long_launch_gap *gap = &facts->long_gaps[i];
		const uint64_t end_ns = gap->at_ns + gap->length_ns;
		const struct first_call *call = first_calls_find(
			&calls, gap->tid, gap->at_ns, end_ns);

		if (!call)
			continue;
		occurrences_add(&facts->first.gaps, gap->node, call->name, gap->at_ns,
			first_call_excess(call, gap->at_ns, end_ns));
		keep_first_call(&facts->first, call);
		gap->in_first_call = true;
	}
	first_calls_free(&calls);
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

		if (gap->in_first_call || use->in_gap[i] || end_ns <= gap->at_ns ||
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

static void list_first_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct first_call_gaps *first = &diagnosis->facts.first;

	for (size_t i = 0; i < FIRST_CALLS_LISTED && first->longest[i].name; i++) {
		const struct first_call *call = &first->longest[i];
		const size_t used = strlen(finding->evidence);

		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"%s%s: %s at %s, later %s (mean of %s)", used ? "; " : "",
			diagnose_name(diagnosis, call->name),
			diagnose_time(diagnosis, call->end_ns - call->begin_ns),
			diagnose_time(diagnosis, call->begin_ns),
			diagnose_time(diagnosis, first_call_later_mean(call)),
			diagnose_count(diagnosis, call->later));
	}
}

static void report_first_calls(
	struct diagnosis *diagnosis, struct finding *finding, const struct first_use *use)
{
	const struct occurrences *gaps = &diagnosis->facts.first.gaps;
	const char *long_gaps = diagnose_plural(
		diagnosis, diagnosis->facts.long_gap_count, "long gap");

	if (gaps->count)
		SET_TEXT(finding->sentence,
			"First calls take much longer than later ones: %s of the %s in which the "
			"GPU waits for the host %s in first calls, which take %s longer.",
			diagnose_count(diagnosis, gaps->count), long_gaps,
			gaps->count == 1 ? "is" : "are", diagnose_time(diagnosis, gaps->total_ns));
	else
		SET_TEXT(finding->sentence,
			"The driver compiles or loads kernels at their first use, for %s.",
			diagnose_time(diagnosis, use->ns));
	if (gaps->count && use->further_gaps) {
		const size_t used = strlen(finding->sentence);

		finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
			" %s more %s probably in a first call too: the driver loads or compiles "
			"kernels in it, and there is no later call to compare with.",
			diagnose_count(diagnosis, use->further_gaps),
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

bool diagnose_first_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *gaps = &facts->first.gaps;
	struct first_use use = read_first_use(diagnosis);

	free(use.in_gap);
	use.in_gap = NULL;
	if (!diagnose_is_share(gaps->total_ns, facts->span_ns, LIMIT_LITTLE) &&
		!diagnose_is_share(use.ns, facts->run_ns, LIMIT_WORTH))
		return false;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	report_first_calls(diagnosis, finding, &use);
	SET_TEXT(finding->reason, "no steps to compare: the first call of each name, and on each "
				  "path, is compared with the later ones");
	SET_TEXT(finding->next,
		"Warm up before recording, with the same shapes, or record longer. To shorten "
		"first calls: set CUDA_MODULE_LOADING=EAGER, keep compiler caches.");
	SET_TEXT(finding->view, "idle");
	finding->count = gaps->count ? gaps->count : use.records;
	finding->impact_ns = gaps->count ? gaps->total_ns : use.ns;
	if (gaps->count) {
		finding->whole_ns = facts->span_ns;
		finding->whole_name = "the GPU span";
		occurrences_set_node(gaps, finding);
	}
	return true;
}
