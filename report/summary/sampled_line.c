/* SPDX-License-Identifier: MIT */
#include "report/summary/sampled_line.h"
#include "report/analysis/own_lines.h"
#include "report/analysis/sample_tree.h"
#include "report/base/compare.h"
#include "report/views/functions_notes.h"
#include <stdlib.h>

#define HOTTEST 3u
#define INNERMOST 2u /* functions named after lines */
#define SAMPLES_FEW 30u
#define WAIT_PERCENT_MIN 10u   /* of the time in which the thread was blocked */
#define HOTTEST_PERCENT_MIN 2u /* of the samples; a smaller share says nothing */

static const char *whole_name(const struct sample_cells *cells)
{
	return cells->process->profile->sampled.cpu_ns ? "sampled CPU time" : "CPU samples";
}

/* Returns CPU time, or the number of samples if they have none, as imported ones. */
static uint64_t weight_of(const struct process *process, const struct sample_sums *sums)
{
	return process->profile->sampled.cpu_ns ? sums->cpu_ns : sums->samples;
}

/* ---- lines of the program's own files ---- */

static void add_line(
	struct paragraph *text, const struct sample_cells *cells, const struct own_line *line)
{
	const struct sample_function *function = &cells->functions.all[line->function];
	const struct string_view name = string_table_get(cells->process->texts, function->name),
				 file = string_table_get(cells->process->texts, function->library);

	paragraph_name(text, name.bytes, name.length);
	paragraph_add(text, " [");
	paragraph_text(text, file.bytes, file.length);
	paragraph_add(text, ":%u]", line->line);
}

static const struct sample_cells *compared_cells; /* for compare_lines */

/* Orders lines by their CPU time, then by their place in the program. */
static int compare_lines(const void *left, const void *right)
{
	const struct own_line *a = left, *b = right;
	const uint64_t of_a = weight_of(compared_cells->process, &a->sums),
		       of_b = weight_of(compared_cells->process, &b->sums);

	return of_a != of_b                 ? COMPARE(of_b, of_a)
	       : a->function != b->function ? COMPARE(a->function, b->function)
					    : COMPARE(a->line, b->line);
}

/* Adds the program's own lines with most samples. Returns false if no sample is in one. */
static bool add_own_lines(struct paragraph *text, struct sample_cells *cells, uint64_t whole)
{
	struct own_lines own = own_lines_of(cells, false);
	bool any = false;

	compared_cells = cells;
	if (own.count)
		qsort(own.lines, own.count, sizeof *own.lines, compare_lines);
	for (size_t i = 0; i < own.count && i < HOTTEST; i++) {
		const uint64_t weight = weight_of(cells->process, &own.lines[i].sums);

		if (!weight || (i && weight * 100 < whole * HOTTEST_PERCENT_MIN))
			break;
		paragraph_add(text, i ? ", " : "");
		paragraph_percent(text, weight, whole);
		paragraph_add(text, i ? " in " : " of the %s is in ", whole_name(cells));
		add_line(text, cells, &own.lines[i]);
		paragraph_add(text, i ? "" : " and what it calls");
		any = true;
	}
	own_lines_free(&own);
	return any;
}

/* ---- lines that wait ---- */

/* Returns the line that waited longest in one thread, of those in the thread `main` or of those in
 * others. NULL: there is none. */
static const struct own_line *longest_wait(const struct own_lines *own, uint32_t main, bool in_main)
{
	const struct own_line *longest = NULL;

	for (size_t i = 0; i < own->count; i++)
		if ((own->lines[i].thread == main) == in_main && own->lines[i].sums.blocked_ns &&
			(!longest || own->lines[i].sums.blocked_ns > longest->sums.blocked_ns))
			longest = &own->lines[i];
	return longest;
}

/* Adds `; <module> [a.py:27] waits for 3.1 s of the 4.3 s of its thread` for the line of the thread
 * with most CPU time that was blocked for longest, then for one of the other threads. */
static void add_waits(struct paragraph *text, struct sample_cells *cells)
{
	const struct profile *profile = cells->process->profile;
	struct own_lines own = own_lines_of(cells, true);
	uint32_t main = 0;

	for (uint32_t i = 1; i < profile->sampled_thread_count; i++)
		if (profile->sampled_threads[i].sums.cpu_ns >
			profile->sampled_threads[main].sums.cpu_ns)
			main = i;
	for (int others = 0; others < 2; others++) {
		const struct own_line *line = longest_wait(&own, main, !others);
		const struct sample_sums *all = line ? &profile->sampled_threads[line->thread].sums
						     : NULL;

		if (!line || line->sums.blocked_ns * 100 < all->blocked_ns * WAIT_PERCENT_MIN)
			continue;
		paragraph_add(text, others ? "; in another thread, " : "; ");
		add_line(text, cells, line);
		paragraph_add(text, " waits for ");
		paragraph_value(text, UNIT_TIME, line->sums.blocked_ns);
		paragraph_add(text, " of the ");
		paragraph_value(text, UNIT_TIME, all->cpu_ns + all->waits_ns + all->blocked_ns);
		paragraph_add(text, others ? "" : " of its thread");
	}
	own_lines_free(&own);
}

/* ---- innermost functions ---- */

/* Returns the node with the most samples except those that are `taken`, or 0. `*weight`: what it
 * has. `native_only`: without functions of Python. */
static uint32_t next_hottest(const struct process *process, const struct tree *flat,
	const uint32_t *taken, unsigned count, bool native_only, uint64_t *weight)
{
	uint32_t most = 0;

	*weight = 0;
	for (uint32_t id = 1; id < flat->count; id++) {
		const struct node_sampled *sampled = flat->nodes[id].sampled;
		bool is_left_out = native_only && flat->nodes[id].kind == NODE_PYTHON;

		for (unsigned i = 0; i < count; i++)
			is_left_out |= taken[i] == id;
		if (sampled && !is_left_out && weight_of(process, &sampled->self) > *weight) {
			*weight = weight_of(process, &sampled->self);
			most = id;
		}
	}
	return most;
}

static void add_function(
	struct paragraph *line, const struct process *process, const struct node *node)
{
	const struct string_view name = string_table_get(process->texts, node->name),
				 library = string_table_get(process->texts, node->domain);

	paragraph_name(line, name.bytes, name.length);
	if (!node->domain)
		return;
	paragraph_add(line, " [");
	paragraph_text(line, library.bytes, library.length);
	paragraph_add(line, "]");
}

/* Adds the functions and lines with most samples of their own. `after_own`: the program's lines
 * are already named. */
static void add_innermost(
	struct paragraph *line, struct sample_cells *cells, uint64_t whole, bool after_own)
{
	struct tree *flat = sample_tree_flat(
		cells, after_own ? BY_FUNCTION : BY_LINE, SAMPLE_FRAMES_MERGED);
	uint32_t taken[HOTTEST];
	uint64_t weight;

	for (unsigned i = 0; i < (after_own ? INNERMOST : HOTTEST); i++) {
		taken[i] = next_hottest(cells->process, flat, taken, i, after_own, &weight);
		if (!taken[i] || ((i || after_own) && weight * 100 < whole * HOTTEST_PERCENT_MIN))
			break;
		paragraph_add(line, i ? ", " : after_own ? "; innermost: " : "");
		paragraph_percent(line, weight, whole);
		paragraph_add(
			line, i || after_own ? " in " : " of the %s is in ", whole_name(cells));
		add_function(line, cells->process, &flat->nodes[taken[i]]);
	}
	tree_free(flat);
}

bool sampled_add_hottest(struct paragraph *line, struct process *process)
{
	const struct sample_sums *all = &process->profile->sampled;
	const uint64_t whole = all->cpu_ns ? all->cpu_ns : all->samples;
	struct sample_cells *cells = whole ? sample_cells_of(process) : NULL;

	if (!cells)
		return false;
	add_innermost(line, cells, whole, add_own_lines(line, cells, whole));
	if (all->samples < SAMPLES_FEW)
		paragraph_add(line, "; the shares are rough: there are only %llu samples",
			(unsigned long long)all->samples);
	add_waits(line, cells);
	return true;
}

void sampled_line_put(struct process *process, bool is_verdict, const struct style *style)
{
	struct paragraph line = { .style = style };

	if (!sample_cells_of(process))
		return;
	functions_add_count(&line, process);
	if (!is_verdict) {
		paragraph_add(&line, "; ");
		sampled_add_hottest(&line, process);
	}
	paragraph_print(&line, "sampled");
}
