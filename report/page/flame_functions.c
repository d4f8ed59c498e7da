/* SPDX-License-Identifier: MIT */
#include "report/page/flame_functions.h"
#include "report/analysis/sample_tree.h"
#include "report/base/alloc.h"
#include "report/page/flame_build.h"
#include "report/page/flame_values.h"
#include "report/table/column.h"
#include <stdlib.h>

static uint32_t intern_view(struct flame *flame, struct string_view text)
{
	return string_table_intern(flame->texts, text.bytes, text.length);
}

/* Adds the CPU time of a node of functions to its frame, and that with the time of waiting. */
static void add_own_times(struct flame *flame, struct flame_tree *tree, uint32_t frame,
	const struct sample_sums *self, bool has_waits)
{
	long double *values = flame_values(tree, frame);

	values[flame_value_index(flame, FLAME_SAMPLED, 0)] += self->cpu_ns;
	if (has_waits)
		values[flame_value_index(flame, FLAME_SAMPLED_WALL, 0)] += self->cpu_ns +
									   self->waits_ns +
									   self->blocked_ns;
}

/* Makes a shape of a tree of functions. Frames have no node: they are not of the call tree. */
static void add_function_frames(struct flame *flame, struct process *process,
	const struct tree *functions, enum flame_shape shape)
{
	const struct sample_sums *all = &process->profile->sampled;
	struct flame_tree *tree = &flame->shapes[shape];
	uint32_t *frame_of = xcalloc((functions->count + 1) * sizeof *frame_of);

	for (uint32_t id = 0; id < functions->count; id++) {
		const struct node *node = &functions->nodes[id];
		const struct row row = tree_row(process, functions, id);

		if (id)
			frame_of[id] = flame_add(
				tree, &(struct flame_frame){ .parent = frame_of[node->parent],
					      .name = intern_view(flame, row_name(&row)),
					      .label = intern_view(flame, row_label(&row, false)),
					      .kind = (uint8_t)flame_kind_of(node) });
		if (node->sampled)
			add_own_times(flame, tree, frame_of[id], &node->sampled->self,
				all->waits_ns || all->blocked_ns);
	}
	flame->has_shape[shape] = true;
	free(frame_of);
}

void flame_add_functions(struct flame *flame, struct process *process)
{
	static const struct {
		enum flame_shape shape;
		enum sample_frames frames;
	} stacks[] = { { FLAME_PYTHON, SAMPLE_FRAMES_PYTHON },
		{ FLAME_NATIVE, SAMPLE_FRAMES_NATIVE }, { FLAME_ALL, SAMPLE_FRAMES_ALL } };
	struct sample_cells *cells = process->profile->sampled.cpu_ns ? sample_cells_of(process)
								      : NULL;
	struct tree *functions;

	if (!cells)
		return;
	functions = sample_tree_by_path(cells, NULL);
	add_function_frames(flame, process, functions, FLAME_FUNCTIONS);
	tree_free(functions);
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
		functions = sample_tree_of_functions(cells, stacks[i].frames);
		add_function_frames(flame, process, functions, stacks[i].shape);
		tree_free(functions);
	}
}
