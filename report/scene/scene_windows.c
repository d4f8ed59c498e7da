/* SPDX-License-Identifier: MIT */
#include "report/scene/scene_windows.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/table/column.h"
#include "report/table/computed_row.h"
#include <stdlib.h>

#define AROUND_PERCENT 1u /* of the run, on each side of a moment */
#define FINDINGS_MAX 64u  /* bits of scene_window.findings */

bool scene_windows_add(struct scene_window_list *list, const struct scene_window *window)
{
	if (window->end_ns <= window->begin_ns)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		struct scene_window *same = &list->windows[i];

		if (same->begin_ns != window->begin_ns || same->end_ns != window->end_ns)
			continue;
		if (!same->step)
			same->step = window->step;
		same->kinds |= window->kinds;
		same->findings |= window->findings;
		return true;
	}
	if (list->count == SCENE_WINDOWS_MAX)
		return false;
	list->windows[list->count++] = *window;
	return true;
}

/* Returns the time of a step on the host and on the GPU. */
static struct scene_window step_window(const struct step *step, unsigned kinds)
{
	struct scene_window window = { .begin_ns = step->begin_ns,
		.end_ns = step->end_ns,
		.kinds = kinds,
		.step = step->number };

	if (step->window_end_ns > step->window_begin_ns) {
		window.begin_ns = min_u64(step->begin_ns, step->window_begin_ns);
		window.end_ns = max_u64(step->end_ns, step->window_end_ns);
	}
	return window;
}

static struct scene_window window_around(
	const struct process *process, uint64_t at_ns, unsigned kinds)
{
	const uint64_t run_ns = reader_duration_ns(process->reader),
		       side_ns = run_ns / 100 * AROUND_PERCENT + 1;

	return (struct scene_window){ .begin_ns = at_ns > side_ns ? at_ns - side_ns : 0,
		.end_ns = min_u64(at_ns + side_ns, max_u64(run_ns, at_ns + 1)),
		.kinds = kinds };
}

bool scene_windows_add_finding(struct scene_window_list *list, const struct process *process,
	unsigned index, uint64_t at_ns)
{
	const struct step *step = steps_step_at(process->steps, at_ns);
	struct scene_window window = step ? step_window(step, SCENE_FINDING)
					  : window_around(process, at_ns, SCENE_FINDING);

	if (index < FINDINGS_MAX)
		window.findings = UINT64_C(1) << index;
	return scene_windows_add(list, &window);
}

static int by_length(const void *a, const void *b)
{
	const struct step *left = *(const struct step *const *)a,
			  *right = *(const struct step *const *)b;
	const int order = COMPARE(left->end_ns - left->begin_ns, right->end_ns - right->begin_ns);

	return order ? order : COMPARE(left->begin_ns, right->begin_ns);
}

static void add_steps(struct scene_window_list *list, const struct process *process)
{
	const struct steps *steps = process->steps;
	const struct step **usual = xcalloc((steps->count + 1) * sizeof(struct step *));
	struct scene_window window;
	size_t count = 0;

	for (size_t i = 0; i < steps->count; i++)
		if (steps->steps[i].kind == STEP_USUAL)
			usual[count++] = &steps->steps[i];
	if (count) {
		window = step_window(usual[0], SCENE_FIRST_USUAL);
		scene_windows_add(list, &window);
		qsort(usual, count, sizeof(struct step *), by_length);
		window = step_window(usual[count - 1], SCENE_WORST_STEP);
		scene_windows_add(list, &window);
		window = step_window(usual[(count - 1) / 2], SCENE_MEDIAN_STEP);
		scene_windows_add(list, &window);
	}
	free(usual);
}

/* Adds the peak of tensors or, without tensors, of device memory: of the level with most bytes. */
static void add_peak(struct scene_window_list *list, const struct process *process)
{
	const struct memory_owners *memory = process->profile->memory;
	const bool tensors = process->profile->totals.has_tensors;
	const struct memory_level *most = NULL;
	struct scene_window window;

	for (uint32_t i = 0; i < memory->level_count; i++) {
		const struct memory_level *level = &memory->levels[i];

		if (tensors ? level->kind != MEMORY_TENSOR : !memory_is_device(level->kind))
			continue;
		if (level->flow.held_max && (!most || level->flow.at_peak > most->flow.at_peak))
			most = level;
	}
	if (!most)
		return;
	window = window_around(process, most->peak_ns, SCENE_MEMORY_PEAK);
	scene_windows_add(list, &window);
}

void scene_windows_add_usual(struct scene_window_list *list, const struct process *process)
{
	const struct memory_owners *memory = process->profile->memory;
	struct scene_window window;

	if (process->steps && process->steps->count)
		add_steps(list, process);
	add_peak(list, process);
	if (!memory->oom_count)
		return;
	window = window_around(
		process, memory->ooms[memory->oom_count - 1].time_ns, SCENE_OUT_OF_MEMORY);
	scene_windows_add(list, &window);
}

void scene_windows_add_findings(struct scene_window_list *list, const struct process *process,
	const struct rows *diagnose_rows)
{
	const struct column *start = column_find("start_ns", sizeof "start_ns" - 1);
	unsigned index = 0;

	for (size_t i = 0; i < diagnose_rows->count && index < SCENE_FINDINGS_MAX; i++) {
		const struct row *row = &diagnose_rows->rows[i];

		if (!computed_row_is(row, "kind", "finding"))
			continue;
		if (computed_row_cell(row->of.computed, start))
			scene_windows_add_finding(
				list, process, index, computed_row_number(row, "start_ns"));
		index++;
	}
}
