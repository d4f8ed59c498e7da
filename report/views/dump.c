/* SPDX-License-Identifier: MIT
 *
 * Merges two sources by time: the events of the threads and the GPU records.
 */
#include "report/views/views.h"

#include "report/views/dump_record.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/import/open_trace.h"
#include "report/run/options.h"
#include "report/trace/record_check.h"

#include <stdlib.h>
#include <string.h>

/* What is shown at the end of an open range and is not in its POP: what a trace_range record said
 * when it opened the range. */
struct dump_range {
	/* inline text, owned; NULL: the range has a name id, or neither */
	char *text;
	uint32_t length, name, domain;
	bool own; /* `name` and `domain` are valid, and replace those of the node */
};

/* The open ranges of a thread stream, by depth. It is attached as event.stream->user. */
struct dump_stack {
	struct dump_range *ranges;
	size_t room;
};

/* A START without an END yet. Kept by id in a hash table with open addressing. */
struct dump_start {
	uint64_t id, begin_ns; /* id 0: a free slot */
	struct dump_range range;
};

struct dump {
	struct trace_reader *reader;
	struct record_order *gpu;
	struct output *out;
	struct dump_start *starts;
	size_t start_count, start_room; /* start_room: a power of two */
	void (*write)(struct output *out, const struct dump_line *line);
	struct dump_line line;
	/* For programs (JSON, CSV): a line for each node before the first that refers to it, and
	 * begin_ns for whatever has a duration. */
	bool for_programs;
	uint8_t *is_node_written; /* by node */
	size_t node_room;
	uint32_t *new_nodes; /* those to be written, innermost first */
	size_t new_node_room;
};

static struct dump_range *range_at(struct trace_stream *stream, uint32_t depth)
{
	struct dump_stack *stack = stream->user;

	if (!stack)
		stack = stream->user = xcalloc(sizeof *stack);
	ARRAY_GROW(stack->ranges, stack->room, (size_t)depth + 1);
	return &stack->ranges[depth];
}

static void free_stack(struct trace_stream *stream)
{
	struct dump_stack *stack = stream->user;

	if (!stack)
		return;
	for (size_t i = 0; i < stack->room; i++)
		free(stack->ranges[i].text);
	free(stack->ranges);
	free(stack);
	stream->user = NULL;
}

static struct dump_range copy_range(const struct trace_range *record)
{
	struct dump_range range = { NULL, 0, record->name, record->domain, true };

	if (record->head.flags & TRACE_HAS_TEXT) {
		range.length = record->text_bytes;
		range.text = xcalloc(range.length);
		memcpy(range.text, record + 1, range.length);
	}
	return range;
}

static void range_names(struct dump *dump, const struct dump_range *range, uint32_t node)
{
	const struct trace_node_info *trace_node = reader_node(dump->reader, node);

	if (range->text)
		line_text(&dump->line, DUMP_name,
			(struct trace_text){ range->text, range->length, true });
	else
		line_text(&dump->line, DUMP_name,
			reader_name(dump->reader,
				range->own && range->name ? range->name : trace_node->name));
	line_text(&dump->line, DUMP_domain,
		reader_name(dump->reader, range->own ? range->domain : trace_node->domain));
}

static void describe_push(struct dump *dump, const struct trace_event *event)
{
	struct dump_range *range = range_at(event->stream, event->depth);

	free(range->text);
	*range = event->record ? copy_range(event->record) : (struct dump_range){ 0 };
	line_string(&dump->line, DUMP_kind, "push");
	range_names(dump, range, event->node);
	if (event->record)
		dump_range_line(&dump->line, event->record);
}

/* Describes a range that closes, is resumed, or never ends. */
static void other_range_event(struct dump *dump, const struct trace_event *event)
{
	struct dump_range *range = range_at(event->stream, event->depth);

	line_string(&dump->line, DUMP_kind, event_kind_name(event->kind));
	if (event->kind == EVENT_RESUMED) {
		free(range->text);
		*range = (struct dump_range){ 0 };
	}
	range_names(dump, range, event->node);
	if (event->kind == EVENT_POP)
		line_unsigned(&dump->line, DUMP_duration_ns, event->time_ns - event->begin_ns);
	else
		line_unsigned(&dump->line, DUMP_begin_ns, event->begin_ns);
	if (event->kind == EVENT_UNENDED || event->kind == EVENT_LEFT_OPEN)
		line_unsigned(&dump->line, DUMP_last_ns, event->last_ns);
}

/* Removes the range that closed, and moves those inside it one level out. Called after the line was
 * written. */
static void move_ranges_out(const struct trace_event *event)
{
	struct dump_stack *stack = event->stream->user;
	size_t after = event->depth + 1u;

	free(stack->ranges[event->depth].text);
	memmove(&stack->ranges[event->depth], &stack->ranges[after],
		(stack->room - after) * sizeof *stack->ranges);
	stack->ranges[stack->room - 1] = (struct dump_range){ 0 };
}

static struct dump_start *find_start(const struct dump *dump, uint64_t id)
{
	size_t mask = dump->start_room - 1,
	       at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;

	while (dump->starts[at].id && dump->starts[at].id != id)
		at = (at + 1) & mask;
	return &dump->starts[at];
}

static void grow_starts(struct dump *dump)
{
	struct dump_start *old = dump->starts;
	size_t old_room = dump->start_room;

	dump->start_room = old_room ? old_room * 2 : 64;
	dump->starts = xcalloc(dump->start_room * sizeof *dump->starts);
	for (size_t i = 0; i < old_room; i++)
		if (old[i].id)
			*find_start(dump, old[i].id) = old[i];
	free(old);
}

/* Removes an entry, and inserts the entries after it again so that probing still finds them. */
static void remove_start(struct dump *dump, struct dump_start *start)
{
	size_t mask = dump->start_room - 1;

	free(start->range.text);
	*start = (struct dump_start){ 0 };
	dump->start_count--;
	for (size_t at = (size_t)(start - dump->starts + 1) & mask; dump->starts[at].id;
		at = (at + 1) & mask) {
		struct dump_start moved = dump->starts[at];

		dump->starts[at] = (struct dump_start){ 0 };
		*find_start(dump, moved.id) = moved;
	}
}

static void describe_start(
	struct dump *dump, const struct trace_event *event, const struct trace_range *record)
{
	struct dump_start *entry;

	if (dump->start_count * 2 >= dump->start_room)
		grow_starts(dump);
	line_string(&dump->line, DUMP_kind, "start");
	line_id(&dump->line, DUMP_id, record->id);
	line_text(&dump->line, DUMP_name, reader_event_text(dump->reader, event));
	line_text(&dump->line, DUMP_domain, reader_name(dump->reader, record->domain));
	dump_range_line(&dump->line, record);
	if (record->id == 0)
		return;
	entry = find_start(dump, record->id);
	dump->start_count += entry->id == 0;
	free(entry->range.text);
	*entry = (struct dump_start){ record->id, event->time_ns, copy_range(record) };
}

static void describe_end(
	struct dump *dump, const struct trace_event *event, const struct trace_end *record)
{
	struct dump_start *entry = dump->start_room && record->id ? find_start(dump, record->id)
								  : NULL;

	line_string(&dump->line, DUMP_kind, "end");
	line_id(&dump->line, DUMP_id, record->id);
	line_null(&dump->line, DUMP_name);
	line_null(&dump->line, DUMP_domain);
	if (!entry || !entry->id)
		return;
	range_names(dump, &entry->range, 0);
	line_unsigned(&dump->line, DUMP_duration_ns, event->time_ns - entry->begin_ns);
}

/* Fills the line of a mark. A MARK record has the layout of a range. */
static void describe_mark(
	struct dump *dump, const struct trace_event *event, const struct trace_range *record)
{
	line_string(&dump->line, DUMP_kind, "mark");
	line_text(&dump->line, DUMP_name, reader_event_text(dump->reader, event));
	line_text(&dump->line, DUMP_domain, reader_name(dump->reader, record->domain));
	dump_range_line(&dump->line, record);
}

static void begin_event_line(struct dump *dump, uint64_t time_ns, uint32_t tid)
{
	line_begin(&dump->line);
	line_unsigned(&dump->line, DUMP_t_ns, time_ns);
	line_unsigned(&dump->line, DUMP_pid, reader_header(dump->reader)->pid);
	line_unsigned(&dump->line, DUMP_tid, tid);
}

static bool has_written_node(struct dump *dump, uint32_t node)
{
	if (!node || node >= reader_node_count(dump->reader))
		return true;
	ARRAY_GROW(dump->is_node_written, dump->node_room, (size_t)node + 1);
	return dump->is_node_written[node];
}

/* Writes a line for `node` and the nodes around it that have none yet, outermost first. */
static void write_nodes(struct dump *dump, uint64_t time_ns, uint32_t tid, uint32_t node)
{
	size_t count = 0;

	if (!dump->for_programs)
		return;
	for (; !has_written_node(dump, node); node = reader_node(dump->reader, node)->parent)
		*ARRAY_ADD(dump->new_nodes, dump->new_node_room, count) = node;
	while (count-- > 0) {
		begin_event_line(dump, time_ns, tid);
		dump_node_line(dump->reader, &dump->line, dump->new_nodes[count]);
		dump->write(dump->out, &dump->line);
		dump->is_node_written[dump->new_nodes[count]] = 1;
	}
}

/* Writes the line. GPU records begin at t_ns; what the host did ended then. */
static void write_line(struct dump *dump, uint64_t time_ns, bool is_gpu)
{
	struct dump_line *line = &dump->line;

	if (dump->for_programs && line->present[DUMP_duration_ns] && !line->present[DUMP_begin_ns])
		line_unsigned(line, DUMP_begin_ns,
			is_gpu ? time_ns
			       : time_ns - min_u64(time_ns,
						   line->values[DUMP_duration_ns].of.number));
	dump->write(dump->out, line);
}

static bool is_range_event(uint32_t kind)
{
	return kind == TRACE_PUSH || (kind >= EVENT_POP && kind <= EVENT_LEFT_OPEN);
}

/* Fills the line of an event. Handles kinds that are not in trace_format.h or need more than the
 * record. Returns false if the event is not shown. */
static bool describe_event(struct dump *dump, const struct trace_event *event)
{
	struct dump_line *line = &dump->line;

	switch (event->kind) {
	case TRACE_PUSH:
		describe_push(dump, event);
		break;
	case EVENT_POP:
	case EVENT_RESUMED:
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
		other_range_event(dump, event);
		break;
	case TRACE_START:
		describe_start(dump, event, event->record);
		break;
	case TRACE_END:
		describe_end(dump, event, event->record);
		break;
	case TRACE_MARK:
		describe_mark(dump, event, event->record);
		break;
	case EVENT_UNMATCHED:
		line_string(line, DUMP_kind, "pop");
		line_null(line, DUMP_name);
		line_null(line, DUMP_domain);
		return true;
	case EVENT_GAP:
		line_string(line, DUMP_kind, "gap");
		line_unsigned(line, DUMP_missing, event->missing);
		line_unsigned(line, DUMP_last_ns, event->last_ns);
		return true;
	default:
		return dump_record_line(dump->reader, event, line);
	}
	if (is_range_event(event->kind))
		line_unsigned(line, DUMP_depth, event->depth);
	if (event->node)
		line_unsigned(line, DUMP_node, event->node);
	return true;
}

static void write_gpu_entry(struct dump *dump, const struct gpu_record *entry)
{
	begin_event_line(dump, entry->time_ns, entry->tid);
	dump_gpu_line(dump->reader, entry, &dump->line);
	write_line(dump, entry->time_ns, true);
}

/* Writes the GPU records that come before (`time_ns`, `stream`). */
static void write_gpu_until(struct dump *dump, uint64_t time_ns, uint32_t stream)
{
	const struct gpu_record *entry;

	while ((entry = record_order_peek(dump->gpu)) &&
		(entry->time_ns < time_ns ||
			(entry->time_ns == time_ns && entry->stream < stream))) {
		write_gpu_entry(dump, entry);
		record_order_next(dump->gpu);
	}
}

static void dump_write_event(struct dump *dump, const struct trace_event *event)
{
	write_gpu_until(dump, event->time_ns, event->stream->stream);
	if (event->node)
		write_nodes(dump, event->time_ns, event->stream->tid, event->node);
	begin_event_line(dump, event->time_ns, event->stream->tid);
	if (describe_event(dump, event))
		write_line(dump, event->time_ns, false);
	if (event->kind == EVENT_POP || event->kind == EVENT_UNENDED ||
		event->kind == EVENT_LEFT_OPEN)
		move_ranges_out(event);
	else if (event->kind == TRACE_END && dump->start_room &&
		 ((const struct trace_end *)event->record)->id) {
		struct dump_start *entry = find_start(
			dump, ((const struct trace_end *)event->record)->id);

		if (entry->id)
			remove_start(dump, entry);
	} else if (event->kind == EVENT_STREAM_END)
		free_stack(event->stream);
}

static void free_dump(struct dump *dump)
{
	for (size_t i = 0; i < dump->start_room; i++)
		free(dump->starts[i].range.text);
	free(dump->starts);
	free(dump->is_node_written);
	free(dump->new_nodes);
	for (uint32_t i = 0; i < reader_stream_count(dump->reader); i++)
		free_stack(reader_stream(dump->reader, i));
	record_order_free(dump->gpu);
	reader_close(dump->reader);
}

static void write_sources(struct dump *dump)
{
	const struct trace_source *source;

	for (uint32_t i = 0; (source = reader_dictionary(dump->reader, TRACE_SOURCE, i)); i++) {
		begin_event_line(dump, 0, 0);
		dump_source_line(dump->reader, &dump->line, source);
		dump->write(dump->out, &dump->line);
	}
}

/* Returns false if the trace is incomplete. A trace that cannot be read ends the program. */
static bool dump_trace(struct dump *dump, const char *path)
{
	char error[READER_ERROR_BYTES];
	struct trace_event event;
	struct trace_text cut;
	bool complete;
	int status;

	dump->reader = import_open_trace(path, error);
	if (!dump->reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	cut = reader_meta(dump->reader, "warning.import_cut");
	if (cut.known)
		warn_user("%s: %.*s", path, (int)cut.length, cut.bytes);
	dump->gpu = record_order_read(dump->reader);
	write_sources(dump);
	while ((status = reader_next(dump->reader, &event)) > 0 && !dump->out->error)
		dump_write_event(dump, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(dump->reader));
	write_gpu_until(dump, UINT64_MAX, 0);
	complete = reader_integrity(dump->reader)->complete;
	free_dump(dump);
	return complete;
}

int dump_view(const struct options *options)
{
	struct output *out = output_open(options->output);
	bool complete = true;

	if (options->format == FORMAT_CSV)
		line_write_header(out);
	for (size_t i = 0; i < options->file_count; i++) {
		struct dump dump = { .out = out,
			.line.ascii = options->style.ascii,
			.for_programs = options->format != FORMAT_TEXT };

		dump.write = options->format == FORMAT_JSON  ? line_write_json
			     : options->format == FORMAT_CSV ? line_write_csv
							     : line_write_text;
		complete &= dump_trace(&dump, options->files[i]);
	}
	output_close(out, options->output);
	return options->strict && !complete ? STATUS_UNREADABLE : STATUS_OK;
}
