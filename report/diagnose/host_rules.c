/* SPDX-License-Identifier: MIT
 *
 * Rules about the first steps and the cost of profiling.
 */
#include "report/base/compare.h"
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
	struct cold_steps cold;
	bool overlap;

	if (!steps || steps->count < STEPS_COMPARED_MIN) {
		if (!diagnose_first_calls(diagnosis, finding))
			finding_set_unchecked(finding,
				steps && steps->count
					? "at least three steps are needed to detect slow first "
					  "steps"
					: NO_STEPS_FOUND);
		return;
	}
	cold = find_cold_steps(steps);
	overlap = steps_overlap(steps);
	if (!cold.warm_up || !cold.extra_ns) {
		diagnose_slow_launches(diagnosis, finding);
		return;
	}
	finding_set_found(finding, cold.usual >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "compared with %zu steady-state steps%s; steps found by %s",
		cold.usual, overlap ? " of the same thread" : "",
		steps->evidence[0]
			? diagnose_escaped(diagnosis, steps->evidence, strlen(steps->evidence))
			: "repetition");
	SET_TEXT(finding->sentence,
		"The first %s%s much slower than later ones: %s %s more than %zu "
		"steady-state step%s.",
		cold.warm_up == 1 ? "step" : "steps",
		cold.warm_up == 1 ? (overlap ? " of a thread is" : " is")
				  : (overlap ? " of a thread are" : " are"),
		cold.warm_up == 1 ? "it takes" : "they take",
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

/* Returns the overhead that CUPTI reported of the profiler, not of the driver, between the first
 * and the last operation of the GPUs. Reads the trace once more. */
static uint64_t overhead_in_span(const struct diagnosis *diagnosis)
{
	struct trace_reader *reader = diagnosis->process->reader;
	uint64_t first_ns = UINT64_MAX, last_ns = 0, inside_ns = 0;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(diagnosis->profile->timeline, &devices);
	struct trace_event event;

	for (size_t i = 0; i < count; i++) {
		first_ns = min_u64(first_ns, devices[i].all.first_ns);
		last_ns = max_u64(last_ns, devices[i].all.last_ns);
	}
	reader_rewind(reader);
	while (reader_next(reader, &event) > 0) {
		const struct trace_overhead *overhead = event.record;

		if (event.kind == TRACE_OVERHEAD && !trace_overhead_is_driver(overhead->type) &&
			overhead->start_ns < last_ns && overhead->end_ns > first_ns)
			inside_ns += min_u64(overhead->end_ns, last_ns) -
				     max_u64(overhead->start_ns, first_ns);
	}
	return inside_ns;
}

/* Says what the cost of the profiler makes longer: `inside_ns` of it may be in idle times. */
static void set_cost_sentence(struct diagnosis *diagnosis, struct finding *finding, uint64_t cost,
	uint64_t run_ns, uint64_t inside_ns)
{
	const char *share = diagnose_share(diagnosis, cost, run_ns);

	if (!diagnosis->facts.operations)
		SET_TEXT(finding->sentence,
			"Profiling took %s of the run's time: host figures are larger than without "
			"it.",
			share);
	else if (!inside_ns)
		SET_TEXT(finding->sentence,
			"Profiling took %s of the run's time, all of it before the first GPU "
			"operation or after the last: the start and the end of the run are longer, "
			"idle times of the GPU are not.",
			share);
	else if (inside_ns >= cost)
		SET_TEXT(finding->sentence,
			"Profiling took %s of the run's time: host figures and idle times are "
			"larger than without it.",
			share);
	else
		SET_TEXT(finding->sentence,
			"Profiling took %s of the run's time: %s before the first GPU operation or "
			"after the last, and %s between them, where host figures and idle times "
			"are larger than without it.",
			share, diagnose_time(diagnosis, cost - inside_ns),
			diagnose_time(diagnosis, inside_ns));
}

/* Says what of CUPTI's overhead is left out, because no profiler causes it. */
static void add_driver_cost(struct diagnosis *diagnosis, struct finding *finding)
{
	const uint64_t records = diagnosis->profile->counts.driver_overhead_records;
	const size_t used = strlen(finding->evidence);

	if (records)
		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"; %s of the driver in %s is left out: it loads and compiles kernels, and "
			"waits for room for commands, without a profiler, too",
			diagnose_time(diagnosis, diagnosis->profile->totals.driver_overhead_ns),
			diagnose_plural(diagnosis, records, "record"));
}

void diagnose_profiler_cost(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;
	const bool imported = process_meta(diagnosis->process, "import.format").known;
	uint64_t event_ns, inside;
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
	/* When pperf's own time was spent is not recorded. */
	inside = diagnosis->facts.operations
			 ? cost - totals->overhead_ns + overhead_in_span(diagnosis)
			 : 0;
	set_cost_sentence(diagnosis, finding, cost, run, inside);
	finding->last = !diagnose_is_share(inside, run, LIMIT_COST_FIRST);
	SET_TEXT(finding->evidence, "%s%s in %s%s%s%s%s, of %s",
		diagnose_time(diagnosis, totals->overhead_ns),
		imported ? " of the profiler" : " of CUPTI",
		diagnose_plural(diagnosis, diagnosis->profile->counts.overhead_records, "record"),
		imported ? "" : ", in pperf's own code ",
		imported ? "" : diagnose_time(diagnosis, totals->self_ns),
		recording ? ", recording events about " : "",
		recording ? diagnose_time(diagnosis, recording) : "",
		diagnose_time(diagnosis, run));
	add_driver_cost(diagnosis, finding);
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
