/* SPDX-License-Identifier: MIT
 *
 * A thread that is in an operator reads its Python frames itself when the operator ends. That
 * record comes after the samples for which it holds, so samples in ranges wait for it.
 */
#include "report/analysis/sample_cells.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

struct pending_sample {
	uint64_t at_ns;
	struct sample_cell cell;
};

struct pending_samples {
	struct pending_sample *samples;
	size_t count, room;
};

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
	return (uint32_t)cells->count - 1;
}

static void add_to_cell(
	struct sample_cells *cells, const struct sample_cell *sample, uint64_t at_ns)
{
	const uint32_t cell = find_cell(cells, sample);

	if (cells->visit) {
		cells->visit(cells->context, cell, &sample->sums, at_ns);
		return;
	}
	sample_sums_add(&cells->cells[cell].sums, &sample->sums);
	sample_sums_add(&cells->sums, &sample->sums);
	count_marks(cells, sample);
}

static struct pending_samples *pending_of(struct sample_cells *cells, uint32_t thread)
{
	if (thread >= cells->pending_count) {
		ARRAY_GROW(cells->pending, cells->pending_room, thread + 1u);
		cells->pending_count = thread + 1u;
	}
	return &cells->pending[thread];
}

/* Counts the oldest `count` samples, whose Python frames stay as they are. */
static void count_oldest(struct sample_cells *cells, struct pending_samples *pending, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_to_cell(cells, &pending->samples[i].cell, pending->samples[i].at_ns);
	pending->count -= count;
	for (size_t i = 0; i < pending->count; i++)
		pending->samples[i] = pending->samples[count + i];
}

static void set_sums(struct sample_cell *cell, uint32_t weight)
{
	const uint64_t ns = (uint64_t)weight * TRACE_SAMPLE_WEIGHT_NS;

	if (cell->state == TRACE_SAMPLE_WAITS_FOR_CORE)
		cell->sums.waits_ns = ns;
	else if (cell->state == TRACE_SAMPLE_BLOCKED)
		cell->sums.blocked_ns = ns;
	else
		cell->sums = (struct sample_sums){ .samples = 1, .cpu_ns = ns };
}

static void observe_own_sample(struct sample_cells *cells, const struct observed_sample *observed)
{
	const struct trace_sample *sample = observed->event->record;
	struct pending_samples *pending = pending_of(cells, observed->thread);
	struct sample_cell cell = { .node = observed->owner,
		.thread = observed->thread,
		.leaf = sample->pc ? sample_function_at(&cells->functions, sample->pc) : 0,
		.native = sample_frame_number(&cells->functions, sample->native),
		.python = sample_frame_number(&cells->functions, sample->python),
		.flags = (uint16_t)(sample->head.flags & ~(unsigned)TRACE_SAMPLE_HAS_NODE),
		.state = (uint16_t)sample->state };

	set_sums(&cell, sample->weight);
	if (!observed->node) {
		add_to_cell(cells, &cell, observed->event->time_ns);
		return;
	}
	if (pending->count == SAMPLES_PENDING)
		count_oldest(cells, pending, SAMPLES_PENDING / 2);
	*ARRAY_ADD(pending->samples, pending->room, pending->count) = (struct pending_sample){
		.at_ns = observed->event->time_ns, .cell = cell
	};
}

static uint32_t count_frames(const struct sample_functions *functions, uint32_t number)
{
	uint32_t count = 0;

	for (; number; number = functions->frames[number].parent)
		count++;
	return count;
}

/* Whether the sampler found frames that the record does not have: the operator called Python. */
static bool is_below(const struct sample_cells *cells, const struct sample_cell *sample,
	uint32_t python)
{
	return !(sample->flags & TRACE_SAMPLE_MOVED) && sample->python != python &&
	       count_frames(&cells->functions, sample->python) >
		       count_frames(&cells->functions, python);
}

/* Gives the thread's samples since `since` their Python frames. */
static void observe_python(struct sample_cells *cells, const struct observed_sample *observed)
{
	const struct trace_sample_python *record = observed->event->record;
	const uint64_t since = reader_time(cells->process->reader, record->since);
	const uint32_t python = sample_frame_number(&cells->functions, record->python);
	struct pending_samples *pending = pending_of(cells, observed->thread);
	size_t kept = 0;

	for (size_t i = 0; i < pending->count; i++) {
		struct pending_sample *sample = &pending->samples[i];

		if (sample->at_ns < since) {
			pending->samples[kept++] = *sample;
			continue;
		}
		if (!is_below(cells, &sample->cell, python)) {
			sample->cell.python = python;
			sample->cell.flags &= (uint16_t) ~(
				TRACE_SAMPLE_MOVED | TRACE_SAMPLE_NO_PYTHON | TRACE_SAMPLE_UNEQUAL);
		}
		add_to_cell(cells, &sample->cell, sample->at_ns);
	}
	pending->count = kept;
}

static void observe_sample(void *context, const struct observed_sample *observed)
{
	struct sample_cells *cells = context;
	const struct trace_cpu_sample *imported = observed->event->record;

	if (observed->event->kind == TRACE_SAMPLE_PYTHON) {
		observe_python(cells, observed);
		return;
	}
	if (!observed->counts)
		return;
	if (observed->event->kind == TRACE_SAMPLE) {
		observe_own_sample(cells, observed);
		return;
	}
	add_to_cell(cells,
		&(struct sample_cell){ .node = observed->owner,
			.thread = observed->thread,
			.leaf = sample_function_named(
				&cells->functions, imported->function, imported->module),
			.state = TRACE_SAMPLE_ON_CPU,
			.sums.samples = 1 },
		observed->event->time_ns);
}

static void clear_pending(struct sample_cells *cells)
{
	for (size_t i = 0; i < cells->pending_count; i++)
		free(cells->pending[i].samples);
	free(cells->pending);
	cells->pending = NULL;
	cells->pending_count = cells->pending_room = 0;
}

static void release_cells(void *data)
{
	struct sample_cells *cells = data;

	clear_pending(cells);
	sample_functions_free(&cells->functions);
	hash_index_free(&cells->index);
	free(cells->cells);
	free(cells);
}

static void restart_cells(void *context)
{
	struct sample_cells *cells = context, empty = { .process = cells->process };

	clear_pending(cells);
	if (cells->visit)
		return;
	hash_index_free(&cells->index);
	free(cells->cells);
	empty.functions = cells->functions;
	*cells = empty;
}

/* Passes all samples of the process through the cells. */
static void pass_samples(struct sample_cells *cells)
{
	struct process *process = cells->process;
	const struct profile_observer observer = {
		.context = cells, .restart = restart_cells, .sample = observe_sample
	};
	const struct profile_options wanted = profile_options_for_observer(
		process->profile, &observer);

	profile_free(profile_build(process->reader, process->texts, &wanted));
	for (uint32_t i = 0; i < cells->pending_count; i++)
		count_oldest(cells, &cells->pending[i], cells->pending[i].count);
	clear_pending(cells);
}

static struct sample_cells *read_cells(struct process *process)
{
	struct sample_cells *cells = xcalloc(sizeof *cells);

	cells->process = process;
	sample_functions_begin(&cells->functions, process);
	pass_samples(cells);
	return cells;
}

void sample_cells_visit(struct sample_cells *cells,
	void (*visit)(void *context, uint32_t cell, const struct sample_sums *sums, uint64_t at_ns),
	void *context)
{
	cells->visit = visit;
	cells->context = context;
	pass_samples(cells);
	cells->visit = NULL;
}

struct sample_cells *sample_cells_of(struct process *process)
{
	static const char key;
	struct sample_cells *cells = process_attached(process, &key);

	if (cells || !process_has_samples(process))
		return cells;
	cells = read_cells(process);
	process_attach(process, &key, cells, release_cells);
	return cells;
}
