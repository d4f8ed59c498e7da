/* SPDX-License-Identifier: MIT
 *
 * https://graphviz.org: the call tree as boxes. A box has the amount of its node and of those below
 * it; the darker, the larger. At most DOT_NODES_MAX boxes are drawn. What is left out is a box of
 * its own in each node, so that the boxes of each level add up.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/escape.h"
#include "report/export/export.h"
#include "report/export/tree_frames.h"
#include "report/table/view.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOT_NODES_MAX 200u
#define DOT_NAME_BYTES 60u
#define DOT_MIN_PERCENT 1.0

struct dot {
	struct output *out;
	const struct options *options;
	const struct process *process;
	enum tree_amount amount;
	uint64_t *totals; /* by node: of the node and those below */
	uint64_t whole;
	bool *is_drawn;    /* by node */
	unsigned clusters; /* processes written so far */
};

/* Sets the totals, and returns the sum. */
static void sum_totals(struct dot *dot)
{
	const struct tree *tree = dot->process->profile->tree;

	dot->totals = tree_amounts_of(dot->process, dot->amount, &dot->whole);
	for (uint32_t id = tree->count; id-- > 1;)
		dot->totals[tree->nodes[id].parent] += dot->totals[id];
}

struct dot_node {
	uint64_t total;
	uint32_t node;
};

/* The largest first. Of equal ones the first, so that no node comes before its parent. */
static int by_total(const void *a, const void *b)
{
	const struct dot_node *left = a, *right = b;

	return left->total != right->total ? COMPARE(right->total, left->total)
					   : COMPARE(left->node, right->node);
}

/* Chooses the nodes to draw: the largest ones, those below --min-percent excluded. */
static void choose_nodes(struct dot *dot)
{
	const uint32_t count = dot->process->profile->tree->count;
	const double percent = dot->options->min_percent >= 0 ? dot->options->min_percent
							      : DOT_MIN_PERCENT;
	struct dot_node *nodes = xcalloc((count + 1) * sizeof *nodes);

	dot->is_drawn = xcalloc(count * sizeof *dot->is_drawn);
	for (uint32_t id = 1; id < count; id++)
		nodes[id - 1] = (struct dot_node){ dot->totals[id], id };
	qsort(nodes, count - 1, sizeof *nodes, by_total);
	for (uint32_t i = 0; i < count - 1 && i < DOT_NODES_MAX && nodes[i].total; i++)
		dot->is_drawn[nodes[i].node] = (double)nodes[i].total * 100 >=
					       (double)dot->whole * percent;
	free(nodes);
}

/* Writes a text between quotes, escaped. */
static void put_quoted(struct output *out, struct string_view text)
{
	for (uint32_t i = 0; i < text.length; i++) {
		if (text.bytes[i] == '"' || text.bytes[i] == '\\')
			output_char(out, '\\');
		output_char(out, text.bytes[i]);
	}
}

static void put_amount(struct dot *dot, uint64_t amount)
{
	const enum unit unit = dot->amount == AMOUNT_CALLS                ? UNIT_COUNT
			       : tree_amounts[dot->amount].unit[0] == 'b' ? UNIT_BYTES
									  : UNIT_TIME;
	char text[FORMAT_NUMBER_BYTES], share[32];

	format_with_unit(text, unit, clamp_to_i64(amount), dot->options->style.iec, false);
	snprintf(share, sizeof share, " (%.1f %%)",
		dot->whole ? 100 * (double)amount / (double)dot->whole : 0);
	output_string(dot->out, text);
	output_string(dot->out, share);
}

/* Writes the box `PROCESS.NODE`, its colour by its share. */
static void begin_box(struct dot *dot, uint32_t node, const char *suffix, uint64_t amount)
{
	const double share = dot->whole ? (double)amount / (double)dot->whole : 0;
	char text[96];

	snprintf(text, sizeof text, "\t\"%u.%u%s\" [fillcolor=\"0.07 %.3f 1.0\", label=\"",
		dot->clusters, node, suffix, 0.04 + 0.76 * share);
	output_string(dot->out, text);
}

static void end_box(struct dot *dot, uint32_t parent, uint32_t node, const char *suffix)
{
	char text[96];

	output_string(dot->out, "\"];\n");
	snprintf(text, sizeof text, "\t\"%u.%u\" -> \"%u.%u%s\";\n", dot->clusters, parent,
		dot->clusters, node, suffix);
	if (parent || *suffix)
		output_string(dot->out, text);
}

static void put_node(struct dot *dot, uint32_t node)
{
	struct string_view name = frame_name(dot->process, node);
	const uint32_t parent = dot->process->profile->tree->nodes[node].parent;
	char cut[DOT_NAME_BYTES * 6 + 1];

	snprintf(cut, sizeof cut, "%.*s", (int)name.length, name.bytes);
	name.length = (uint32_t)escaped_shorten(cut, sizeof cut, DOT_NAME_BYTES, false);
	name.bytes = cut;
	begin_box(dot, node, "", dot->totals[node]);
	put_quoted(dot->out, name);
	output_string(dot->out, "\\n");
	put_amount(dot, dot->totals[node]);
	end_box(dot, parent, node, "");
}

/* Writes a box of the children of `node` that are not drawn. */
static void put_others(struct dot *dot, uint32_t node)
{
	const struct tree *tree = dot->process->profile->tree;
	uint64_t others = 0;
	unsigned count = 0;
	char text[64];

	for (uint32_t id = tree->nodes[node].first_child; id; id = tree->nodes[id].next)
		if (!dot->is_drawn[id] && dot->totals[id]) {
			others += dot->totals[id];
			count++;
		}
	if (!others)
		return;
	begin_box(dot, node, ".others", others);
	snprintf(text, sizeof text, "%u more\\n", count);
	output_string(dot->out, text);
	put_amount(dot, others);
	if (node)
		end_box(dot, node, node, ".others");
	else
		output_string(dot->out, "\"];\n");
}

static void put_process(struct dot *dot)
{
	const uint32_t count = dot->process->profile->tree->count;

	sum_totals(dot);
	choose_nodes(dot);
	for (uint32_t id = 1; id < count; id++)
		if (dot->is_drawn[id])
			put_node(dot, id);
	for (uint32_t id = 0; id < count; id++)
		if (!id || dot->is_drawn[id])
			put_others(dot, id);
	free(dot->totals);
	free(dot->is_drawn);
	dot->clusters++;
}

void export_dot(const struct options *options, struct processes *processes, struct output *out)
{
	struct dot dot = { .out = out, .options = options };

	output_string(out, "digraph pperf {\n"
			   "\trankdir=LR;\n"
			   "\tnode [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", "
			   "fontsize=11];\n"
			   "\tedge [arrowsize=0.6, color=\"#777777\"];\n\tlabel=\"");
	dot.amount = frame_amount_of(options, &processes->all[0]);
	output_string(out, tree_amounts[dot.amount].title);
	output_string(out, " of ");
	put_quoted(out, (struct string_view){ processes->all[0].command,
				(uint32_t)strlen(processes->all[0].command) });
	output_string(out, "\";\n");
	for (size_t i = 0; i < processes->shown; i++) {
		dot.process = &processes->all[i];
		put_process(&dot);
	}
	output_string(out, "}\n");
}
