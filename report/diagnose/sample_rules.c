/* SPDX-License-Identifier: MIT
 *
 * Rules about what samples of threads show: the language, the garbage collector, locks, cores, and
 * the kernel.
 */
#include "report/analysis/sample_stacks.h"
#include "report/base/alloc.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

/* The samples that a rule is about. */
struct sample_share {
	uint64_t ns, whole_ns, samples;
	uint32_t node;             /* the node of the call tree with most of them */
	uint64_t node_ns;          /* in one cell of that node */
	struct sample_frame frame; /* the innermost frame of the largest cell */
};

static uint64_t cell_ns(const struct sample_cell *cell)
{
	return cell->sums.cpu_ns + cell->sums.waits_ns + cell->sums.blocked_ns;
}

static void add_to_share(struct sample_share *share, const struct sample_cell *cell,
	const struct sample_frame *frame)
{
	share->ns += cell_ns(cell);
	share->samples += cell->sums.samples;
	if (cell_ns(cell) <= share->node_ns)
		return;
	share->node = cell->node;
	share->node_ns = cell_ns(cell);
	share->frame = *frame;
}

static bool has_name(const struct sample_cells *cells, uint32_t function, const char *start)
{
	const struct string_view name = string_table_get(
		cells->process->texts, cells->functions.all[function].name);

	return name.length >= strlen(start) && !memcmp(name.bytes, start, strlen(start));
}

/* The stacks with the interpreter's own functions, and for each of their frames whether it or one
 * of its callers has one of some names. NULL: no function has one, so no stacks were made. */
struct named_stacks {
	const struct sample_stacks *stacks;
	bool *named;
};

static bool has_one_of(
	const struct sample_cells *cells, uint32_t function, const char *const *names)
{
	for (; *names; names++)
		if (has_name(cells, function, *names))
			return true;
	return false;
}

static bool any_has_one_of(const struct sample_cells *cells, const char *const *names)
{
	for (uint32_t i = 1; i < cells->functions.count; i++)
		if (has_one_of(cells, i, names))
			return true;
	return false;
}

/* Finds functions whose names begin with one of `names`, which end with NULL. */
static struct named_stacks find_named(struct sample_cells *cells, const char *const *names)
{
	struct named_stacks found = { .named = NULL };
	bool *functions;

	if (!any_has_one_of(cells, names))
		return found;
	found.stacks = sample_stacks_of(cells, SAMPLE_FRAMES_ALL);
	found.named = xcalloc(found.stacks->count);
	functions = xcalloc(cells->functions.count);
	for (uint32_t i = 1; i < cells->functions.count; i++)
		functions[i] = has_one_of(cells, i, names);
	for (size_t at = 1; at < found.stacks->count; at++) {
		const struct stack_frame *frame = &found.stacks->all[at];

		found.named[at] = found.named[frame->caller] || functions[frame->frame.function];
	}
	free(functions);
	return found;
}

/* Returns the outermost frame of the stack of a cell with one of the names, or NULL. */
static const struct sample_frame *outermost(const struct named_stacks *found, size_t cell)
{
	const uint32_t innermost = found->named ? found->stacks->of_cell[cell] : 0;

	if (!innermost || !found->named[innermost])
		return NULL;
	return &found->stacks->all[stack_frame_at(found->stacks, innermost, 1)].frame;
}

static bool is_in_operator(const struct profile *profile, uint32_t node)
{
	while (node && profile->tree->nodes[node].kind != NODE_OP &&
		profile->tree->nodes[node].kind != NODE_BACKWARD)
		node = profile->tree->nodes[node].parent;
	return node != 0;
}

/* Returns the thread with most CPU time in its samples, by its index. */
static uint32_t busiest_thread(const struct profile *profile)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < profile->sampled_thread_count; i++)
		if (profile->sampled_threads[i].sums.cpu_ns >
			profile->sampled_threads[most].sums.cpu_ns)
			most = i;
	return most;
}

/* With 100 samples the 95 % interval of the share is a fifth of it wide on each side; with 10 it is
 * more than half. */
#define SAMPLES_FOR_HIGH 100u
#define SAMPLES_FOR_MEDIUM 10u

/* Sets what all of these rules set: what it cost, where, and how certain that is. */
static void set_share(struct finding *finding, const struct sample_share *share, const char *whole)
{
	finding->node = share->node;
	finding->count = share->samples;
	finding->impact_ns = share->ns;
	finding->whole_ns = share->whole_ns;
	finding->whole_name = whole;
	finding->concerned = true;
	SET_TEXT(finding->view, "table --by line");
	if (share->samples < SAMPLES_FOR_HIGH && finding->confidence == CONFIDENCE_HIGH)
		finding->confidence = CONFIDENCE_MEDIUM;
	if (share->samples < SAMPLES_FOR_MEDIUM)
		finding->confidence = CONFIDENCE_LOW;
	SET_TEXT(finding->reason, "counted in %llu samples", (unsigned long long)share->samples);
}

static const char *frame_text(struct diagnosis *diagnosis, const struct sample_cells *cells,
	const struct sample_frame *frame)
{
	static char text[512];
	const struct sample_function *function = &cells->functions.all[frame->function];

	if (!function->library)
		finding_set_text(text, sizeof text, "%s", diagnose_name(diagnosis, function->name));
	else if (!frame->line)
		finding_set_text(text, sizeof text, "%s [%s]",
			diagnose_name(diagnosis, function->name),
			diagnose_name(diagnosis, function->library));
	else
		finding_set_text(text, sizeof text, "%s [%s:%u]",
			diagnose_name(diagnosis, function->name),
			diagnose_name(diagnosis, function->library), frame->line);
	return text;
}

void diagnose_python_bound(struct diagnosis *diagnosis, struct finding *finding)
{
	struct sample_cells *cells = sample_cells_of(diagnosis->process);
	const uint32_t thread = busiest_thread(diagnosis->profile);
	struct sample_share share = {
		.whole_ns = diagnosis->profile->sampled_threads[thread].sums.cpu_ns
	};
	const struct sample_stacks *stacks;

	if (!cells->python) {
		finding_set_unchecked(finding, "the samples have no frames of Python");
		return;
	}
	stacks = sample_stacks_of(cells, SAMPLE_FRAMES_MERGED);
	for (size_t i = 0; i < cells->count; i++) {
		const struct sample_cell *cell = &cells->cells[i];
		const struct sample_frame *frame = &stacks->all[stacks->of_cell[i]].frame;

		if (cell->thread != thread || !cell->sums.cpu_ns ||
			is_in_operator(diagnosis->profile, cell->node))
			continue;
		if (cells->functions.all[frame->function].kind == SAMPLE_PYTHON)
			add_to_share(&share, cell, frame);
	}
	if (!diagnose_is_share(share.ns, share.whole_ns, LIMIT_PYTHON))
		return;
	finding_set_found(finding, cells->native ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	set_share(finding, &share, "the CPU time of the busiest thread");
	if (!cells->native)
		SET_TEXT(finding->reason, "samples without native frames: C functions that Python "
					  "calls count as well");
	SET_TEXT(finding->sentence,
		"The busiest thread spends %s of its CPU time in Python code outside of operators, "
		"most of it in %s.",
		diagnose_share(diagnosis, share.ns, share.whole_ns),
		frame_text(diagnosis, cells, &share.frame));
	SET_TEXT(finding->evidence, "%s of %s sampled CPU time of thread %u, %llu samples",
		diagnose_time(diagnosis, share.ns), diagnose_time(diagnosis, share.whole_ns),
		diagnosis->profile->sampled_threads[thread].tid, (unsigned long long)share.samples);
	SET_TEXT(finding->next,
		"Do less in Python there: use whole tensors or arrays in place of loops, move the "
		"work to other processes, or compile it.");
}

void diagnose_garbage_collection(struct diagnosis *diagnosis, struct finding *finding)
{
	static const char *const names[] = { "gc_collect", "_PyGC_Collect", "_PyGC_Run", NULL };
	struct sample_cells *cells = sample_cells_of(diagnosis->process);
	struct sample_share share = { .whole_ns = cells->sums.cpu_ns };
	struct named_stacks found;

	if (!cells->native) {
		finding_set_unchecked(finding, "the samples have no native frames");
		return;
	}
	found = find_named(cells, names);
	for (size_t i = 0; i < cells->count; i++) {
		const struct sample_frame *frame = outermost(&found, i);

		if (cells->cells[i].sums.cpu_ns && frame)
			add_to_share(&share, &cells->cells[i], frame);
	}
	free(found.named);
	if (!diagnose_is_share(share.ns, share.whole_ns, LIMIT_GARBAGE))
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	set_share(finding, &share, "the sampled CPU time");
	SET_TEXT(finding->sentence, "Python's garbage collector takes %s of the CPU time.",
		diagnose_share(diagnosis, share.ns, share.whole_ns));
	SET_TEXT(finding->evidence, "%s of %s sampled CPU time, %llu samples",
		diagnose_time(diagnosis, share.ns), diagnose_time(diagnosis, share.whole_ns),
		(unsigned long long)share.samples);
	SET_TEXT(finding->next,
		"Call gc.freeze() once the model is made, and raise gc.set_threshold(), or call "
		"gc.disable() and gc.collect() between steps.");
}

/* Returns the thread with most time in which it waited in one of the functions. */
static uint32_t waiting_thread(
	struct sample_cells *cells, const char *const *names, struct sample_share *most)
{
	struct named_stacks found = find_named(cells, names);
	uint32_t thread = 0;

	for (uint32_t i = 0; i < cells->process->profile->sampled_thread_count; i++) {
		const struct sample_sums *sums = &cells->process->profile->sampled_threads[i].sums;
		struct sample_share share = { .whole_ns = sums->cpu_ns + sums->waits_ns +
							  sums->blocked_ns };

		for (size_t at = 0; at < cells->count && sums->blocked_ns; at++) {
			const struct sample_cell *cell = &cells->cells[at];
			const struct sample_frame *frame = outermost(&found, at);

			if (cell->thread == i && cell->state == TRACE_SAMPLE_BLOCKED && frame)
				add_to_share(&share, cell, frame);
		}
		if (share.ns > most->ns) {
			*most = share;
			thread = i;
		}
	}
	free(found.named);
	return thread;
}

void diagnose_lock_wait(struct diagnosis *diagnosis, struct finding *finding)
{
	static const char *const names[] = { "take_gil", "PyEval_RestoreThread",
		"pthread_mutex_lock", "__lll_lock_wait", "___pthread_mutex_lock",
		"PyThread_acquire_lock", NULL };
	struct sample_cells *cells = sample_cells_of(diagnosis->process);
	struct sample_share share = { .ns = 0 };
	uint32_t thread;

	if (!cells->sums.blocked_ns) {
		finding_set_unchecked(
			finding, "blocked threads are sampled with PPERF_SAMPLE_CLOCK=wall only");
		return;
	}
	thread = waiting_thread(cells, names, &share);
	if (!diagnose_is_share(share.ns, share.whole_ns, LIMIT_LOCK))
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	set_share(finding, &share, "the time of that thread");
	SET_TEXT(finding->reason, "a thread that waits for work may wait in a lock, too");
	SET_TEXT(finding->sentence,
		"Thread %u waits for Python's interpreter lock or a mutex for %s of its time.",
		diagnosis->profile->sampled_threads[thread].tid,
		diagnose_share(diagnosis, share.ns, share.whole_ns));
	SET_TEXT(finding->evidence, "%s of %s", diagnose_time(diagnosis, share.ns),
		diagnose_time(diagnosis, share.whole_ns));
	SET_TEXT(finding->next,
		"See which threads hold the lock (table --by function --callers); "
		"move their work to other processes, or make what is locked shorter.");
}

void diagnose_oversubscribed(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct sample_sums *all = &diagnosis->profile->sampled;
	struct sample_cells *cells = sample_cells_of(diagnosis->process);
	struct sample_share share = { .whole_ns = all->cpu_ns + all->waits_ns };

	if (!all->waits_ns) {
		if (!all->blocked_ns)
			finding_set_unchecked(finding, "waiting for cores is sampled with "
						       "PPERF_SAMPLE_CLOCK=wall only");
		return;
	}
	for (size_t i = 0; i < cells->count; i++)
		if (cells->cells[i].sums.waits_ns)
			add_to_share(&share, &cells->cells[i], &(struct sample_frame){ 0 });
	if (!diagnose_is_share(share.ns, share.whole_ns, LIMIT_OVERSUBSCRIBED))
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "who had the cores meanwhile is not recorded");
	set_share(finding, &share, "the time in which threads could run");
	SET_TEXT(finding->sentence,
		"Threads that could run wait for a core in %s of that time: they, or other "
		"programs beside them, are more than the cores.",
		diagnose_share(diagnosis, share.ns, share.whole_ns));
	SET_TEXT(finding->evidence, "%s waiting beside %s of CPU time",
		diagnose_time(diagnosis, share.ns), diagnose_time(diagnosis, all->cpu_ns));
	SET_TEXT(finding->next, "See what else runs on these cores. Use fewer threads "
				"(OMP_NUM_THREADS, torch.set_num_threads, fewer data loader "
				"workers), or give the process more cores.");
}

void diagnose_kernel_time(struct diagnosis *diagnosis, struct finding *finding)
{
	struct sample_cells *cells = sample_cells_of(diagnosis->process);
	const struct trace_text source = process_meta(diagnosis->process, "sample.source");
	struct sample_share share = { .whole_ns = cells->sums.cpu_ns };

	for (size_t i = 0; i < cells->count; i++)
		if (cells->cells[i].state == TRACE_SAMPLE_KERNEL)
			add_to_share(&share, &cells->cells[i], &(struct sample_frame){ 0 });
	if (!share.ns && !(source.length == 4 && !memcmp(source.bytes, "perf", 4))) {
		finding_set_unchecked(finding, "these samples do not tell the kernel's time from "
					       "the program's");
		return;
	}
	if (!diagnose_is_share(share.ns, share.whole_ns, LIMIT_KERNEL))
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	set_share(finding, &share, "the sampled CPU time");
	SET_TEXT(finding->reason, "which of its tasks the kernel was busy with is not recorded");
	SET_TEXT(finding->sentence,
		"The kernel takes %s of the CPU time: page faults and system calls.",
		diagnose_share(diagnosis, share.ns, share.whole_ns));
	SET_TEXT(finding->evidence, "%s of %s sampled CPU time", diagnose_time(diagnosis, share.ns),
		diagnose_time(diagnosis, share.whole_ns));
	SET_TEXT(finding->next,
		"If the program allocates and frees large arrays, keep them: "
		"MALLOC_TRIM_THRESHOLD_=-1 with MALLOC_MMAP_THRESHOLD_=4294967296, or jemalloc.");
}
