/* SPDX-License-Identifier: MIT
 * Writes a thread's ranges, calls, memory events, instants and CPU samples in the order in which
 * pperf would have recorded them.
 *
 * A range is inside what was open when it began, even if that ends earlier. Ranges that only touch
 * are not nested. A call belongs to the innermost range open at its begin, including one that
 * begins at the same time. Its record is written when it returns.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>
#include <string.h>

/* Limits the cost of a range that ends: it is searched, and those inside it move out by one. */
#define DEPTH_MAX 4096u
/* Ranges that ended early and may still enclose a node. With more of them, only open ranges do. */
#define ENDED_EARLY_MAX 2u

struct converted_range {
	int64_t start, end;
	uint32_t range, node;
};

/* A call that has not returned. Calls that begin before it returns are inside it. */
struct pending_call {
	int64_t end;
	struct call_location location;
	uint32_t call, depth; /* depth: number of ranges around it */
	bool active;
};

struct thread_walk {
	struct conversion *conversion;
	struct converted_range *open;
	size_t room;
	uint32_t depth;
	/* ranges that ended before one inside them, since the stack was last empty */
	uint32_t ended_early;
	bool disordered; /* a range on the stack ends after an enclosing one */
	struct pending_call pending;
	struct converted_range last_closed; /* the range closed last */
	struct python_cursor python;
};

static uint64_t ns_since_start(const struct thread_walk *walk, int64_t time)
{
	return (uint64_t)(time - walk->conversion->first);
}

/* Writes the pending call if it has returned by `time`. Also writes it if `depth` or more ranges
 * are around it, because one of them ends now. */
static void emit_call(struct thread_walk *walk, int64_t time, uint32_t depth)
{
	const struct pending_call *call = &walk->pending;

	if (!call->active || (call->end > time && call->depth < depth))
		return;
	convert_call(walk->conversion, call->call, call->location,
		ns_since_start(walk, call->end < time ? call->end : time), false);
	walk->pending.active = false;
}

/* Returns the index of the range that ends first. Of ranges with equal ends, returns the
 * innermost. */
static uint32_t first_to_end(const struct thread_walk *walk)
{
	uint32_t best = walk->depth - 1;

	for (uint32_t i = best; walk->disordered && i-- > 0;)
		if (walk->open[i].end < walk->open[best].end)
			best = i;
	return best;
}

static void close_converted_range(struct thread_walk *walk, uint32_t index)
{
	const struct converted_range closed = walk->open[index];
	const uint32_t inside = walk->depth - 1 - index;

	emit_call(walk, closed.end, inside ? UINT32_MAX : walk->depth);
	writer_pop(walk->conversion->writer, ns_since_start(walk, closed.end), inside);
	memmove(&walk->open[index], &walk->open[index + 1], inside * sizeof *walk->open);
	walk->last_closed = closed;
	walk->depth--;
	walk->conversion->counts.overlapping += inside > 0;
	if (inside)
		walk->ended_early++;
	if (!walk->depth) {
		walk->disordered = false;
		walk->ended_early = 0;
	}
}

/* Closes the ranges that end by `time`. `keep_empty`: except those of length 0 at `time`. */
static void end_ranges_until(struct thread_walk *walk, int64_t time, bool keep_empty)
{
	while (walk->depth) {
		const uint32_t index = first_to_end(walk);
		const struct converted_range *range = &walk->open[index];

		if (range->end > time || (keep_empty && range->start == time && range->end == time))
			break;
		close_converted_range(walk, index);
	}
	emit_call(walk, time, UINT32_MAX);
}

/* Returns the node of a range inside the innermost open one. The parents include ranges that
 * ended early, up to ENDED_EARLY_MAX of them. */
static uint32_t node_of_range(
	struct thread_walk *walk, const struct imported_range *range, uint32_t link)
{
	uint32_t parent = walk->depth ? walk->open[walk->depth - 1].node : 0;

	if (walk->ended_early > ENDED_EARLY_MAX) {
		parent = 0;
		for (uint32_t i = 0; i < walk->depth; i++) {
			const struct imported_range *range_around =
				&walk->conversion->imported->ranges[walk->open[i].range];

			parent = convert_node(walk->conversion, parent, range_around, 0);
		}
	}
	return convert_node(walk->conversion, parent, range, link);
}

static void open_converted_range(struct thread_walk *walk, uint32_t number)
{
	struct conversion *conversion = walk->conversion;
	const struct imported_range *range = &conversion->imported->ranges[number];
	const uint32_t link = conversion->links[number]
				      ? conversion->range_nodes[conversion->links[number] - 1]
				      : 0;
	struct converted_range opened = { .start = range->start,
		.end = range->start + (int64_t)range->duration,
		.range = number };

	end_ranges_until(walk, range->start, false);
	if (walk->depth == DEPTH_MAX) {
		conversion->range_nodes[number] = walk->open[walk->depth - 1].node;
		conversion->counts.too_deep++;
		return;
	}
	opened.node = conversion->range_nodes[number] = node_of_range(walk, range, link);
	if (walk->depth && opened.end > walk->open[walk->depth - 1].end)
		walk->disordered = true;
	*ARRAY_ADD(walk->open, walk->room, walk->depth) = opened;
	writer_push(conversion->writer, ns_since_start(walk, range->start), opened.node);
}

static bool has_external_id(
	const struct thread_walk *walk, const struct converted_range *open, uint64_t external)
{
	const struct imported_range *range = &walk->conversion->imported->ranges[open->range];

	return range->external == external &&
	       (range->kind == TRACE_NODE_OP || range->kind == TRACE_NODE_BACKWARD);
}

/* Returns the Python stack at `time`, from the open functions, or from the innermost operator
 * that has a stack text. */
static uint32_t python_stack_at(struct thread_walk *walk, int64_t time)
{
	struct conversion *conversion = walk->conversion;
	const uint32_t stack = python_cursor_stack(conversion, &walk->python, time);

	for (uint32_t i = walk->depth; i-- > 0 && !stack;) {
		const uint32_t text = conversion->imported->ranges[walk->open[i].range].stack;

		if (text)
			return python_stack_of_text(conversion, text);
	}
	return stack;
}

/* Returns the node of a call. At the edge of an operator, times are ambiguous. There the
 * External id decides, if an operator that touches the call has the same one. */
static uint32_t call_node(struct thread_walk *walk, const struct imported_call *call)
{
	const struct converted_range *top = walk->depth ? &walk->open[walk->depth - 1] : NULL;
	const bool touches = walk->last_closed.node && walk->last_closed.end == call->start;

	if (!call->external || !(touches || (top && top->start == call->start)))
		return top ? top->node : 0;
	if (top && has_external_id(walk, top, call->external))
		return top->node;
	if (touches && has_external_id(walk, &walk->last_closed, call->external))
		return walk->last_closed.node;
	for (uint32_t i = walk->open ? walk->depth : 0; i-- > 0;)
		if (has_external_id(walk, &walk->open[i], call->external))
			return walk->open[i].node;
	return top ? top->node : 0;
}

/* Returns true for the second record of a call. Nsight Systems writes its own record around that
 * of CUPTI, with the same id and, except for the version suffix, the same name. */
static bool is_duplicate_call(const struct thread_walk *walk, const struct imported_call *call)
{
	const struct imported_call *around =
		walk->pending.active ? &walk->conversion->imported->calls[walk->pending.call]
				     : NULL;

	return around && call->correlation && call->correlation == around->correlation &&
	       call->name == around->name &&
	       (call->start > around->start || call->duration < around->duration);
}

static void begin_imported_call(struct thread_walk *walk, uint32_t number)
{
	const struct imported_call *call = &walk->conversion->imported->calls[number];
	struct call_location location;

	end_ranges_until(walk, call->start, true);
	if (is_duplicate_call(walk, call)) {
		struct correlation_owner *owner = convert_owner(
			walk->conversion, call->correlation);

		walk->conversion->counts.duplicates++;
		if (owner && owner->call == number + 1)
			owner->call = walk->pending.call + 1;
		return;
	}
	location = (struct call_location){ call_node(walk, call),
		call->stack ? python_stack_of_text(walk->conversion, call->stack)
			    : python_stack_at(walk, call->start) };
	if (walk->pending.active) {
		convert_call(walk->conversion, number, location, ns_since_start(walk, call->start),
			true);
		return;
	}
	walk->pending = (struct pending_call){ .end = call->start + (int64_t)call->duration,
		.call = number,
		.location = location,
		.depth = walk->depth,
		.active = true };
}

/* Writes an allocation or a free of device memory by PyTorch's allocator. */
static void emit_segment(struct thread_walk *walk, const struct imported_memory *memory,
	uint32_t node, uint32_t stack)
{
	const char *name = memory->bytes > 0 ? "cudaMalloc" : "cudaFree";
	struct trace_memory record = { .call.device = memory->device,
		.call.head.node = node,
		.call.stack = stack,
		.call.api = convert_name(walk->conversion,
			string_table_intern(walk->conversion->imported->texts, name, strlen(name))),
		.address = memory->address,
		.bytes = memory->bytes > 0 ? (uint64_t)memory->bytes : 0,
		.memory_kind = TRACE_MEMORY_DEVICE };

	writer_timed(walk->conversion->writer, ns_since_start(walk, memory->time),
		memory->bytes > 0 ? TRACE_ALLOC : TRACE_FREE, &record, sizeof record);
}

/* Returns the node of an allocator's event: that of the innermost open range, or one inside it. */
static uint32_t node_of_memory(const struct thread_walk *walk, const struct imported_memory *memory)
{
	const uint32_t open = walk->depth ? walk->open[walk->depth - 1].node : 0;
	const struct imported_range place = { .name = memory->place, .kind = TRACE_NODE_RANGE };

	return memory->place ? convert_node(walk->conversion, open, &place, 0) : open;
}

static void emit_memory_event(struct thread_walk *walk, uint32_t number)
{
	const struct imported_memory *memory = &walk->conversion->imported->memories[number];
	struct trace_tensor record = { .address = memory->address,
		.bytes = memory->bytes,
		.allocated = memory->allocated,
		.reserved = memory->reserved,
		.device = memory->device };

	end_ranges_until(walk, memory->time, false);
	record.head.node = node_of_memory(walk, memory);
	record.stack = memory->stack ? python_stack_of_text(walk->conversion, memory->stack)
				     : python_stack_at(walk, memory->time);
	if (memory->kind == IMPORTED_SEGMENT) {
		emit_segment(walk, memory, record.head.node, record.stack);
		return;
	}
	if (memory->kind == IMPORTED_OOM)
		record.address = 0;
	writer_timed(walk->conversion->writer, ns_since_start(walk, memory->time),
		memory->kind == IMPORTED_OOM ? TRACE_TENSOR_OOM : TRACE_TENSOR, &record,
		sizeof record);
}

/* Writes a mark, the begin or end of a start/end range, or the name of the thread (TRACE_OBJECT),
 * with the node of the innermost open range. */
static void emit_instant(struct thread_walk *walk, uint32_t number)
{
	struct conversion *conversion = walk->conversion;
	const struct imported_instant *instant = &conversion->imported->instants[number];
	const uint32_t name = convert_name(conversion, instant->name),
		       domain = convert_name(conversion,
			       convert_domain_name(conversion->imported, instant->domain));
	union {
		struct trace_range range;
		struct trace_end end;
		struct trace_object object;
	} record = { .range = { .id = instant->id } };
	size_t bytes = sizeof record.end;

	end_ranges_until(walk, instant->time, false);
	if (instant->kind == TRACE_OBJECT) {
		record.object = (struct trace_object){
			.object = event_rows_number(conversion->imported,
				conversion->imported->threads[instant->thread].tid),
			.type = TRACE_OBJECT_THREAD,
			.name = name
		};
		bytes = sizeof record.object;
	} else if (instant->kind != TRACE_END) {
		record.range.name = name;
		record.range.domain = domain;
		bytes = sizeof record.range;
	} else {
		record.end.id = instant->id;
	}
	record.range.head.node = walk->depth ? walk->open[walk->depth - 1].node : 0;
	writer_timed(conversion->writer, ns_since_start(walk, instant->time),
		(enum trace_kind)instant->kind, &record, bytes);
}

/* Writes a CPU sample with the node of the innermost open range. A sample outside of the trace's
 * time is counted, and left out. */
static void emit_sample(struct thread_walk *walk, uint32_t number)
{
	struct conversion *conversion = walk->conversion;
	const struct imported_sample *sample = &conversion->imported->samples[number];
	struct trace_cpu_sample record = { .function = 0 };

	if (sample->time < conversion->first || sample->time > conversion->last) {
		conversion->counts.outside_samples++;
		return;
	}
	end_ranges_until(walk, sample->time, false);
	record.head.node = walk->depth ? walk->open[walk->depth - 1].node : 0;
	record.function = convert_name(conversion, sample->function);
	record.module = convert_name(conversion, sample->module);
	record.head.flags = walk->pending.active ? TRACE_SAMPLE_IN_CALL : 0;
	writer_timed(conversion->writer, ns_since_start(walk, sample->time), TRACE_CPU_SAMPLE,
		&record, sizeof record);
}

/* A thread's rows of one type: those that come next. */
struct next_rows {
	size_t next, end;
	int64_t at; /* time of the first of them; INT64_MAX: there are none */
	void (*emit)(struct thread_walk *, uint32_t);
	const uint32_t *order;
};

enum { NEXT_RANGE, NEXT_CALL, NEXT_MEMORY, NEXT_INSTANT, NEXT_SAMPLE, NEXT_TYPES };

static void find_next_time(const struct event_rows *imported, struct next_rows *rows, unsigned type)
{
	const uint32_t row = rows->next < rows->end ? rows->order[rows->next] : 0;

	rows->at = rows->next == rows->end ? INT64_MAX
		   : type == NEXT_RANGE    ? imported->ranges[row].start
		   : type == NEXT_CALL     ? imported->calls[row].start
		   : type == NEXT_MEMORY   ? imported->memories[row].time
		   : type == NEXT_INSTANT  ? imported->instants[row].time
					   : imported->samples[row].time;
}

static struct next_rows rows_of_thread(const uint32_t *order, const size_t *begins, uint32_t thread,
	void (*emit)(struct thread_walk *, uint32_t))
{
	return (struct next_rows){
		.next = begins[thread], .end = begins[thread + 1], .emit = emit, .order = order
	};
}

/* Merges the rows of a thread by time. At equal times the order is: ranges, calls, memory
 * events, instants, samples. */
static void merge_thread_rows(struct thread_walk *walk, uint32_t thread)
{
	const struct conversion *all = walk->conversion;
	struct next_rows rows[NEXT_TYPES] = {
		[NEXT_RANGE] = rows_of_thread(
			all->order, all->thread_begin, thread, open_converted_range),
		[NEXT_CALL] = rows_of_thread(
			all->calls, all->call_begin, thread, begin_imported_call),
		[NEXT_MEMORY] = rows_of_thread(
			all->memories, all->memory_begin, thread, emit_memory_event),
		[NEXT_INSTANT] = rows_of_thread(
			all->instants, all->instant_begin, thread, emit_instant),
		[NEXT_SAMPLE] = rows_of_thread(
			all->samples, all->sample_begin, thread, emit_sample),
	};

	for (unsigned type = 0; type < NEXT_TYPES; type++)
		find_next_time(all->imported, &rows[type], type);
	for (;;) {
		unsigned first = NEXT_RANGE;

		for (unsigned type = NEXT_RANGE + 1; type < NEXT_TYPES; type++)
			if (rows[type].at < rows[first].at)
				first = type;
		if (rows[first].next == rows[first].end)
			break;
		rows[first].emit(walk, rows[first].order[rows[first].next++]);
		find_next_time(all->imported, &rows[first], first);
	}
}

void convert_thread(struct conversion *conversion, uint32_t thread)
{
	struct thread_walk walk = { .conversion = conversion,
		.python = { .next = conversion->python_call_begin[thread],
			.end = conversion->python_call_begin[thread + 1] } };

	writer_stream(conversion->writer,
		event_rows_number(conversion->imported, conversion->imported->threads[thread].tid));
	merge_thread_rows(&walk, thread);
	end_ranges_until(&walk, INT64_MAX, false);
	free(walk.open);
	free(walk.python.open);
}
