/* SPDX-License-Identifier: MIT */
#include "report/analysis/sample_cells.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

bool process_has_samples(const struct process *process)
{
	const struct sample_sums *sums = &process->profile->sampled;

	return sums->samples || sums->waits_ns || sums->blocked_ns;
}

static uint64_t hash_cell(const struct sample_cell *cell)
{
	uint64_t hash = hash_u64((uint64_t)cell->node << 32 | cell->thread);

	hash = hash_u64(hash ^ ((uint64_t)cell->native << 32 | cell->python));
	return hash_u64(
		hash ^ ((uint64_t)cell->leaf << 32 | (uint32_t)cell->flags << 16 | cell->state));
}

static bool is_same_place(const struct sample_cell *a, const struct sample_cell *b)
{
	return a->node == b->node && a->thread == b->thread && a->leaf == b->leaf &&
	       a->native == b->native && a->python == b->python && a->flags == b->flags &&
	       a->state == b->state;
}

static void count_marks(struct sample_cells *cells, const struct sample_cell *cell)
{
	const uint64_t samples = cell->sums.samples;

	cells->guessed += cell->flags & TRACE_SAMPLE_GUESSED ? samples : 0;
	cells->cut += cell->flags & TRACE_SAMPLE_CUT ? samples : 0;
	cells->moved += cell->flags & TRACE_SAMPLE_MOVED ? samples : 0;
	cells->unequal += cell->flags & TRACE_SAMPLE_UNEQUAL ? samples : 0;
	cells->no_python += cell->flags & TRACE_SAMPLE_NO_PYTHON ? samples : 0;
	cells->native += cell->native || cell->leaf ? samples : 0;
	cells->python += cell->python ? samples : 0;
}

/* Returns the index of the cell of a sample, without sums if it is new. */
static uint32_t find_cell(struct sample_cells *cells, const struct sample_cell *sample)
{
	const uint64_t hash = hash_cell(sample);
	struct hash_slot *slot;

	hash_index_reserve(&cells->index);
	for (slot = hash_index_first(&cells->index, hash); slot->number;
		slot = hash_index_next(&cells->index, slot))
		if (is_same_place(&cells->cells[slot->number - 1], sample))
			return slot->number - 1;
	*ARRAY_ADD(cells->cells, cells->room, cells->count) = *sample;
	cells->cells[cells->count - 1].sums = (struct sample_sums){ .samples = 0 };
	hash_index_add(&cells->index, slot, hash, (uint32_t)cells->count);
	cells->cells[cells->count - 1].innermost = sample->leaf
							   ? sample_frame_in(&cells->functions,
								     sample->native, sample->leaf)
							   : sample->native;
	return (uint32_t)cells->count - 1;
}

static struct sample_cell cell_of_place(
	struct sample_functions *functions, const struct sample_place *place)
{
	if (place->is_named)
		return (struct sample_cell){ .leaf = sample_function_named(functions,
						     sample_place_function(place),
						     sample_place_module(place)) };
	return (struct sample_cell){
		.leaf = place->pc ? sample_function_at(functions, place->pc) : 0,
		.native = sample_frame_number(functions, place->native),
		.python = sample_frame_number(functions, place->python),
	};
}

/* Numbers the functions in the order in which they were seen, then makes cells in the order in
 * which the first samples of places counted. */
static void make_cells(struct sample_cells *cells, const struct sample_places *places)
{
	struct sample_cell *found = xcalloc((places->count + 1) * sizeof *found);

	cells->of_place = xcalloc((places->count + 1) * sizeof *cells->of_place);
	for (size_t i = 0; i < places->count; i++)
		found[i] = cell_of_place(&cells->functions, &places->all[i].place);
	for (size_t i = 0; i < places->counted_count; i++) {
		const uint32_t index = places->counted[i];
		const struct sample_place *place = &places->all[index].place;
		struct sample_cell *cell = &found[index];

		cell->node = place->node;
		cell->thread = place->thread;
		cell->flags = place->flags;
		cell->state = place->state;
		cell->sums = placed_sums(&places->all[index]);
		cells->of_place[index] = find_cell(cells, cell);
		sample_sums_add(&cells->cells[cells->of_place[index]].sums, &cell->sums);
		sample_sums_add(&cells->sums, &cell->sums);
		count_marks(cells, cell);
	}
	free(found);
	hash_index_free(&cells->index);
}

static void release_cells(void *data)
{
	struct sample_cells *cells = data;

	sample_functions_free(&cells->functions);
	free(cells->of_place);
	free(cells->cells);
	free(cells);
}

/* Makes one more pass over the trace, for the samples alone. The caller frees it. */
static struct profile *pass_samples(struct process *process, const struct sample_visitor *visitor)
{
	const struct profile_observer none = { .context = NULL };
	struct profile_options wanted = profile_options_for_observer(process->profile, &none);

	wanted.no_samples = false;
	wanted.sample_places = true;
	wanted.sample_visitor = visitor;
	return profile_build(process->reader, process->texts, &wanted);
}

/* Returns the places of the process's profile, which is made without them for views that usually
 * show no functions. */
static const struct sample_places *places_of(struct process *process)
{
	struct profile *pass;

	if (process->profile->sample_places)
		return process->profile->sample_places;
	pass = pass_samples(process, NULL);
	/* A kept profile may have counted samples that the trace does not have. */
	process->profile->sample_places = pass->sample_places ? pass->sample_places
							      : sample_places_new(NULL);
	pass->sample_places = NULL;
	profile_free(pass);
	return process->profile->sample_places;
}

struct cell_visitor {
	const struct sample_cells *cells;
	void (*visit)(void *context, uint32_t cell, uint64_t ns, uint64_t at_ns);
	void *context;
};

static void visit_place(void *context, uint32_t place, uint64_t ns, uint64_t at_ns)
{
	const struct cell_visitor *visitor = context;

	visitor->visit(visitor->context, visitor->cells->of_place[place], ns, at_ns);
}

void sample_cells_visit(struct sample_cells *cells,
	void (*visit)(void *context, uint32_t cell, uint64_t ns, uint64_t at_ns), void *context)
{
	struct cell_visitor visitor = { cells, visit, context };
	const struct sample_visitor of_places = { visit_place, &visitor };

	profile_free(pass_samples(cells->process, &of_places));
}

struct sample_cells *sample_cells_of(struct process *process)
{
	static const char key;
	struct sample_cells *cells = process_attached(process, &key);

	if (cells || !process_has_samples(process))
		return cells;
	cells = xcalloc(sizeof *cells);
	cells->process = process;
	sample_functions_begin(&cells->functions, process);
	make_cells(cells, places_of(process));
	process_attach(process, &key, cells, release_cells);
	return cells;
}
