/* SPDX-License-Identifier: MIT
 *
 * Rules about the first steps and the cost of profiling.
 */
#include "report/diagnose/diagnosis_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct steps *steps = diagnosis->process->steps;
	uint64_t extra = 0, longest = 0;

	if (steps->count < 3) {
		finding_set_unchecked(
			finding, "at least three steps are needed to detect slow first steps");
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
	finding_set_found(finding, steps_usual(steps) >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "compared with %zu steady-state steps; steps found by %s",
		steps_usual(steps),
		steps->evidence[0]
			? diagnose_escaped(diagnosis, steps->evidence, strlen(steps->evidence))
			: "repetition");
	SET_TEXT(finding->sentence,
		"The first %s much slower than later ones: they take %s more than %zu steady-state "
		"step%s.",
		steps->warm_up == 1 ? "step is" : "steps are", diagnose_time(diagnosis, extra),
		steps->warm_up, steps->warm_up == 1 ? "" : "s");
	SET_TEXT(finding->evidence, "%zu of %zu steps, the longest %s; a steady-state step %s",
		steps->warm_up, steps->count, diagnose_time(diagnosis, longest),
		diagnose_time(diagnosis, steps->p50_ns));
	SET_TEXT(finding->next,
		"Leave these steps out of measurements (warm-up in a schedule). To shorten them: "
		"warm up with the real shapes before serving, keep compiler caches, set "
		"CUDA_MODULE_LOADING=EAGER if the first call of each kernel is slow.");
	SET_TEXT(finding->view, "steps");
	finding->count = steps->warm_up;
	finding->impact_ns = extra;
	finding->has_example = true;
}

void diagnose_profiler_cost(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;
	const bool imported = process_meta(diagnosis->process, "import.format").known;
	uint64_t event_ns;
	const uint64_t recording = process_recording_ns(diagnosis->process, &event_ns),
		       cost = totals->self_ns + totals->overhead_ns + recording,
		       /* All cover the whole run, even if only some steps are examined. */
		run = reader_duration_ns(diagnosis->process->reader);

	if (imported && !diagnosis->profile->counts.overhead_records) {
		finding_set_unchecked(
			finding, "the file does not record the overhead of profiling");
		return;
	}
	if (!diagnose_is_share(cost, run, LIMIT_COST))
		return;
	finding_set_found(finding, imported ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH);
	SET_TEXT(finding->reason,
		imported ? "as reported by the profiler; the cost of Python stacks and shapes on "
			   "the host is not included"
			 : "the profiler's own measurement, the sum over all threads; recording is "
			   "estimated");
	SET_TEXT(finding->sentence,
		"Profiling took %s of the run's time: host figures and idle times are larger than "
		"without it.",
		diagnose_share(diagnosis, cost, run));
	SET_TEXT(finding->evidence, "%s of CUPTI in %s%s%s%s%s, of %s",
		diagnose_time(diagnosis, totals->overhead_ns),
		diagnose_plural(diagnosis, diagnosis->profile->counts.overhead_records, "record"),
		imported ? "" : ", in pperf's own code ",
		imported ? "" : diagnose_time(diagnosis, totals->self_ns),
		recording ? ", recording events about " : "",
		recording ? diagnose_time(diagnosis, recording) : "",
		diagnose_time(diagnosis, run));
	SET_TEXT(finding->next,
		imported ? "Skip the first steps of the profile (schedule with warm-up), and "
			   "record without with_stack and record_shapes for comparison."
			 : "Record less for comparison: PPERF_OPS=totals, no call stacks, only "
			   "some steps (PPERF_SCHEDULE).");
	SET_TEXT(finding->view, "info");
	finding->count = diagnosis->profile->counts.overhead_records;
	finding->impact_ns = cost;
	finding->upper_bound = true;
}
