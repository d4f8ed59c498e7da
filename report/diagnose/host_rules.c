/* SPDX-License-Identifier: MIT
 *
 * Rules about the first steps and the cost of profiling.
 */
#include "report/diagnose/diagnosis_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Warm-up steps, and how much longer they are than the usual ones. */
struct cold_steps {
	uint64_t extra_ns, longest_ns, longest_at_ns, usual_ns;
	size_t count, warm_up, usual;
};

static void add_cold_step(struct cold_steps *cold, const struct step *step)
{
	const uint64_t took = step->end_ns - step->begin_ns;

	cold->count++;
	cold->usual += step->kind == STEP_USUAL;
	if (step->kind != STEP_WARM_UP)
		return;
	cold->warm_up++;
	cold->extra_ns += took > cold->usual_ns ? took - cold->usual_ns : 0;
	if (took > cold->longest_ns) {
		cold->longest_ns = took;
		cold->longest_at_ns = step->begin_ns;
	}
}

/* If several threads have steps, returns those of the thread that lost most. The threads' sum would
 * count the same time several times. */
static struct cold_steps find_cold_steps(const struct steps *steps)
{
	struct cold_steps worst = { .usual_ns = steps->p50_ns };

	for (size_t i = 0; i < steps->count && !steps_overlap(steps); i++)
		add_cold_step(&worst, &steps->steps[i]);
	for (size_t i = 0; i < steps->thread_count; i++) {
		const struct steps_thread *thread = &steps->threads[i];
		struct cold_steps cold = { .usual_ns = thread->p50_ns };

		for (size_t at = thread->first; at < thread->first + thread->count; at++)
			add_cold_step(&cold, steps->by_thread[at]);
		if (cold.extra_ns > worst.extra_ns)
			worst = cold;
	}
	return worst;
}

void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct steps *steps = diagnosis->process->steps;
	const struct cold_steps cold = find_cold_steps(steps);
	const bool overlap = steps_overlap(steps);

	if (steps->count < 3) {
		finding_set_unchecked(
			finding, "at least three steps are needed to detect slow first steps");
		return;
	}
	if (!cold.warm_up || !cold.extra_ns)
		return;
	finding_set_found(finding, cold.usual >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "compared with %zu steady-state steps%s; steps found by %s",
		cold.usual, overlap ? " of the same thread" : "",
		steps->evidence[0]
			? diagnose_escaped(diagnosis, steps->evidence, strlen(steps->evidence))
			: "repetition");
	SET_TEXT(finding->sentence,
		"The first %s%s much slower than later ones: they take %s more than %zu "
		"steady-state step%s.",
		cold.warm_up == 1 ? "step" : "steps",
		cold.warm_up == 1 ? (overlap ? " of a thread is" : " is")
				  : (overlap ? " of a thread are" : " are"),
		diagnose_time(diagnosis, cold.extra_ns), cold.warm_up,
		cold.warm_up == 1 ? "" : "s");
	SET_TEXT(finding->evidence, "%zu of %zu steps, the longest %s; a steady-state step %s",
		cold.warm_up, cold.count, diagnose_time(diagnosis, cold.longest_ns),
		diagnose_time(diagnosis, cold.usual_ns));
	SET_TEXT(finding->next,
		"Leave these steps out of measurements (warm-up in a schedule). To shorten them: "
		"warm up with the real shapes before serving, keep compiler caches, set "
		"CUDA_MODULE_LOADING=EAGER if the first call of each kernel is slow.");
	SET_TEXT(finding->view, "steps");
	finding->count = cold.warm_up;
	finding->impact_ns = cold.extra_ns;
	finding->example_ns = cold.longest_at_ns;
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
		imported && !diagnose_traits(diagnosis).uses_pytorch
			? "Record less for comparison: fewer kinds of events, and not the start of "
			  "the program."
		: imported ? "Skip the first steps of the profile (schedule with warm-up), and "
			     "record without with_stack and record_shapes for comparison."
			   : "Record less for comparison: PPERF_OPS=totals, no call stacks, only "
			     "some steps (PPERF_SCHEDULE).");
	SET_TEXT(finding->view, "info");
	finding->count = diagnosis->profile->counts.overhead_records;
	finding->impact_ns = cost;
	finding->upper_bound = true;
}
