/* SPDX-License-Identifier: MIT */
#include "report/summary/sampled_line.h"
#include "report/analysis/sample_tree.h"
#include "report/views/functions_notes.h"
#include <stdlib.h>

#define HOTTEST 3u
#define HOTTEST_PERCENT_MIN 2u /* of the samples; a smaller share says nothing */

static uint64_t weight_of(const struct process *process, const struct node *node)
{
	if (!node->sampled)
		return 0;
	return process->profile->sampled.cpu_ns ? node->sampled->self.cpu_ns
						: node->sampled->self.samples;
}

/* Returns the node with the most samples except those that are `taken`, or 0. `*weight`: what it
 * has. */
static uint32_t next_hottest(const struct process *process, const struct tree *flat,
	const uint32_t *taken, unsigned count, uint64_t *weight)
{
	uint32_t most = 0;

	*weight = 0;
	for (uint32_t id = 1; id < flat->count; id++) {
		bool is_taken = false;

		for (unsigned i = 0; i < count; i++)
			is_taken |= taken[i] == id;
		if (!is_taken && weight_of(process, &flat->nodes[id]) > *weight) {
			*weight = weight_of(process, &flat->nodes[id]);
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

bool sampled_add_hottest(struct paragraph *line, struct process *process)
{
	const struct sample_sums *all = &process->profile->sampled;
	const uint64_t whole = all->cpu_ns ? all->cpu_ns : all->samples;
	struct sample_cells *cells = whole ? sample_cells_of(process) : NULL;
	uint32_t taken[HOTTEST];
	struct tree *flat;
	uint64_t weight;

	if (!cells)
		return false;
	flat = sample_tree_flat(cells, BY_LINE, SAMPLE_FRAMES_MERGED);
	for (unsigned i = 0; i < HOTTEST; i++) {
		taken[i] = next_hottest(process, flat, taken, i, &weight);
		if (!taken[i] || (i && weight * 100 < whole * HOTTEST_PERCENT_MIN))
			break;
		paragraph_add(line, i ? ", " : "");
		paragraph_percent(line, weight, whole);
		if (!i)
			paragraph_add(line, " of the %s is",
				all->cpu_ns ? "sampled CPU time" : "CPU samples");
		paragraph_add(line, " in ");
		add_function(line, process, &flat->nodes[taken[i]]);
	}
	tree_free(flat);
	return true;
}

void sampled_line_put(struct process *process, bool is_verdict, const struct style *style)
{
	struct paragraph line = { .style = style };

	if (!sample_cells_of(process))
		return;
	functions_add_count(&line, process);
	functions_add_unsampled(&line, process);
	if (!is_verdict) {
		paragraph_add(&line, "; ");
		sampled_add_hottest(&line, process);
	}
	paragraph_print(&line, "sampled");
}
