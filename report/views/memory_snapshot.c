/* SPDX-License-Identifier: MIT
 *
 * The opcodes are those that Python's own pickle of such data has, because memory_viz reads no
 * others. Texts and frames are written once and taken from the memo afterwards.
 */
#include "report/views/memory_snapshot.h"
#include "report/analysis/memory_moments.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SEGMENT_BYTES (UINT64_C(2) << 20) /* what PyTorch reserves for small tensors */

struct memo_entry {
	uint64_t key;
	uint32_t number;
};

/* Entries of the pickle's memo, by a key of the writer. */
struct memo {
	struct memo_entry *entries;
	size_t count, room;
	struct hash_index index;
};

struct snapshot_writer {
	FILE *file;
	struct process *process;
	struct memo texts, frames; /* by text of process->texts; by node and stack */
	uint32_t memo_count;
	uint64_t end_ns;
	uint32_t device;
};

/* ---- the pickle ---- */

static void put_bytes(struct snapshot_writer *writer, const void *bytes, size_t count)
{
	fwrite(bytes, 1, count, writer->file);
}

static void put_opcode(struct snapshot_writer *writer, unsigned char opcode)
{
	putc(opcode, writer->file);
}

/* Writes the low `bytes` bytes of a number, little-endian. */
static void put_number(struct snapshot_writer *writer, uint64_t number, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		putc((int)(number >> 8 * i & 0xff), writer->file);
}

static void put_integer(struct snapshot_writer *writer, uint64_t number)
{
	if (number <= UINT8_MAX) {
		put_opcode(writer, 'K');
		put_number(writer, number, 1);
	} else if (number <= INT32_MAX) {
		put_opcode(writer, 'J');
		put_number(writer, number, 4);
	} else { /* the ninth byte is the sign */
		put_opcode(writer, 0x8a);
		put_number(writer, 9, 1);
		put_number(writer, number, 8);
		put_number(writer, 0, 1);
	}
}

/* Keeps what was written last in the memo. */
static uint32_t put_in_memo(struct snapshot_writer *writer)
{
	put_opcode(writer, 0x94);
	return writer->memo_count++;
}

static void get_from_memo(struct snapshot_writer *writer, uint32_t number)
{
	put_opcode(writer, 'j');
	put_number(writer, number, 4);
}

/* Writes what is in the memo under `key`, and returns true; else false. */
static bool put_known(struct snapshot_writer *writer, struct memo *memo, uint64_t key)
{
	struct hash_slot *slot;

	hash_index_reserve(&memo->index);
	for (slot = hash_index_first(&memo->index, hash_u64(key)); slot->number;
		slot = hash_index_next(&memo->index, slot))
		if (memo->entries[slot->number - 1].key == key) {
			get_from_memo(writer, memo->entries[slot->number - 1].number);
			return true;
		}
	return false;
}

/* Adds what was written last to the memo under `key`. */
static void keep_known(struct snapshot_writer *writer, struct memo *memo, uint64_t key)
{
	struct hash_slot *slot;

	*ARRAY_ADD(memo->entries, memo->room, memo->count) = (struct memo_entry){ key,
		put_in_memo(writer) };
	hash_index_reserve(&memo->index);
	slot = hash_index_first(&memo->index, hash_u64(key));
	while (slot->number)
		slot = hash_index_next(&memo->index, slot);
	hash_index_add(&memo->index, slot, hash_u64(key), (uint32_t)memo->count);
}

static void put_text_id(struct snapshot_writer *writer, uint32_t text)
{
	const struct string_view view = string_table_get(writer->process->texts, text);

	if (put_known(writer, &writer->texts, text))
		return;
	put_opcode(writer, 'X');
	put_number(writer, view.length, 4);
	put_bytes(writer, view.bytes, view.length);
	keep_known(writer, &writer->texts, text);
}

static void put_text(struct snapshot_writer *writer, const char *text)
{
	put_text_id(writer, string_table_intern(writer->process->texts, text, strlen(text)));
}

static void put_entry(struct snapshot_writer *writer, const char *key, uint64_t number)
{
	put_text(writer, key);
	put_integer(writer, number);
}

static void put_text_entry(struct snapshot_writer *writer, const char *key, const char *text)
{
	put_text(writer, key);
	put_text(writer, text);
}

static void begin_dictionary(struct snapshot_writer *writer)
{
	put_bytes(writer, "}(", 2);
}

static void begin_list(struct snapshot_writer *writer)
{
	put_bytes(writer, "](", 2);
}

static void end_dictionary(struct snapshot_writer *writer)
{
	put_opcode(writer, 'u');
}

static void end_list(struct snapshot_writer *writer)
{
	put_opcode(writer, 'e');
}

/* ---- frames ---- */

/* Returns the text as valid UTF-8, which Python needs: other bytes become `?`. */
static uint32_t printable(struct process *process, const char *bytes, size_t length)
{
	char *copy = xcalloc(length + 1);
	uint32_t text;

	for (size_t i = 0; i < length; i++)
		copy[i] = (signed char)bytes[i] > 0 ? bytes[i] : '?';
	text = string_table_intern(process->texts, copy, length);
	free(copy);
	return text;
}

static void put_frame(struct snapshot_writer *writer, struct trace_text name,
	struct trace_text file, uint64_t line)
{
	begin_dictionary(writer);
	put_text(writer, "name");
	put_text_id(writer, printable(writer->process, name.bytes, name.length));
	put_text(writer, "filename");
	put_text_id(writer, printable(writer->process, file.bytes, file.length));
	put_entry(writer, "line", line);
	end_dictionary(writer);
}

static void put_python_frames(struct snapshot_writer *writer, uint32_t stack)
{
	struct trace_reader *reader = writer->process->reader;
	const struct trace_python_stack *python = reader_python_stack(reader, stack);
	struct trace_python_frame frame;

	for (uint32_t i = 0; stack && python && i < python->frames; i++) {
		memcpy(&frame, (const char *)(python + 1) + i * sizeof frame, sizeof frame);
		put_frame(writer, reader_name(reader, frame.function),
			reader_name(reader, frame.file), frame.line);
	}
}

static void put_frames(struct snapshot_writer *writer, uint32_t node, uint32_t stack)
{
	const struct tree *tree = writer->process->profile->tree;
	const uint64_t key = (uint64_t)stack << 32 | node;

	put_text(writer, "frames");
	if (put_known(writer, &writer->frames, key))
		return;
	begin_list(writer);
	put_python_frames(writer, stack);
	for (; node; node = tree->nodes[node].parent) {
		const struct string_view name = string_table_get(
			writer->process->texts, tree->nodes[node].name);

		put_frame(writer, (struct trace_text){ name.bytes, name.length, true },
			(struct trace_text){ "pperf", 5, true }, 0);
	}
	end_list(writer);
	keep_known(writer, &writer->frames, key);
}

/* ---- segments ---- */

static void put_block(struct snapshot_writer *writer, uint64_t address, uint64_t bytes,
	const struct memory_block *block)
{
	begin_dictionary(writer);
	put_entry(writer, "address", address);
	put_entry(writer, "size", bytes);
	put_entry(writer, "requested_size", block ? bytes : 0);
	put_text_entry(writer, "state", block ? "active_allocated" : "inactive");
	if (block)
		put_frames(writer, block->node, block->stack);
	end_dictionary(writer);
}

/* Writes the tensors and gaps of a segment in order of addresses. What is in a segment without
 * tensors is not known. It is written as one tensor, so that it is not taken for free. */
static void put_blocks(struct snapshot_writer *writer, const struct memory_moment *moment,
	const struct moment_segment *segment)
{
	const struct memory_block *block = &moment->blocks[segment->first_block],
				  *last = block + segment->block_count,
				  whole = { .node = segment->segment.node,
					  .stack = segment->segment.stack };
	const struct moment_gap *gap = &moment->gaps[segment->first_gap],
				*last_gap = gap + segment->gap_count;

	put_text(writer, "blocks");
	begin_list(writer);
	while (block < last || gap < last_gap)
		if (gap == last_gap || (block < last && block->address < gap->address)) {
			put_block(writer, block->address, block->bytes, block);
			block++;
		} else {
			put_block(writer, gap->address, gap->bytes, NULL);
			gap++;
		}
	if (!segment->has_blocks_known)
		put_block(writer, segment->segment.address, segment->segment.bytes, &whole);
	end_list(writer);
}

static void put_segment(struct snapshot_writer *writer, const struct memory_moment *moment,
	const struct moment_segment *segment)
{
	const uint64_t bytes = segment->segment.bytes,
		       used = segment->has_blocks_known ? segment->in_blocks : bytes;

	begin_dictionary(writer);
	put_entry(writer, "device", moment->device);
	put_entry(writer, "address", segment->segment.address);
	put_entry(writer, "total_size", bytes);
	put_entry(writer, "allocated_size", used);
	put_entry(writer, "active_size", used);
	put_entry(writer, "requested_size", used);
	put_entry(writer, "stream", segment->segment.has_stream ? segment->segment.for_stream : 0);
	put_text_entry(writer, "segment_type", bytes <= SMALL_SEGMENT_BYTES ? "small" : "large");
	put_text(writer, "segment_pool_id");
	put_bytes(writer, "K\0K\0\x86", 5);
	put_text(writer, "is_expandable");
	put_opcode(writer, segment->segment.reserved ? 0x88 : 0x89);
	put_frames(writer, segment->segment.node, segment->segment.stack);
	put_blocks(writer, moment, segment);
	end_dictionary(writer);
}

static void put_segments(struct snapshot_writer *writer, const struct memory_moments *moments)
{
	put_text(writer, "segments");
	begin_list(writer);
	for (size_t i = 0; i < moments->count; i++)
		for (size_t j = 0; j < moments->moments[i].segment_count; j++)
			if (!moments->moments[i].segments[j].segment.is_unmapped)
				put_segment(writer, &moments->moments[i],
					&moments->moments[i].segments[j]);
	end_list(writer);
}

/* ---- events ---- */

/* What happened to memory. */
struct snapshot_event {
	const char *action;
	uint64_t at_ns, address, bytes;
	uint32_t node, stack;
};

static void put_event(struct snapshot_writer *writer, const struct snapshot_event *event)
{
	if (event->at_ns > writer->end_ns)
		return;
	begin_dictionary(writer);
	put_text_entry(writer, "action", event->action);
	put_entry(writer, "addr", event->address);
	put_entry(writer, "size", event->bytes);
	put_entry(writer, "stream", 0);
	put_entry(writer, "time_us", (writer->process->start_unix_ns + event->at_ns) / 1000);
	put_frames(writer, event->node, event->stack);
	end_dictionary(writer);
}

static void put_allocation(struct snapshot_writer *writer, const struct observed_memory *seen)
{
	const struct memory_change *change = seen->change;
	const bool of_tensor = change->kind == MEMORY_TENSOR;

	if (!change->allocated_bytes || change->device != writer->device ||
		(!of_tensor && !memory_is_device(change->kind)))
		return;
	put_event(writer,
		&(struct snapshot_event){ .action = of_tensor ? "alloc" : "segment_alloc",
			.at_ns = seen->event->time_ns,
			.address = change->address,
			.bytes = change->allocated_bytes,
			.node = change->node,
			.stack = of_tensor
					 ? ((const struct trace_tensor *)seen->event->record)->stack
					 : ((const struct trace_memory *)seen->event->record)
						   ->call.stack });
}

static void put_release(struct snapshot_writer *writer, const struct observed_memory *seen)
{
	const struct memory_change *change = seen->change;
	const bool of_tensor = change->freed_kind == MEMORY_TENSOR;
	struct snapshot_event event = { .action = of_tensor ? "free_requested" : "segment_free",
		.at_ns = seen->event->time_ns,
		.address = change->address,
		.bytes = change->freed_bytes,
		.node = change->freed_node };

	if (!change->freed_bytes || change->freed_device != writer->device ||
		(!of_tensor && !memory_is_device(change->freed_kind)))
		return;
	put_event(writer, &event);
	if (!of_tensor)
		return;
	event.action = "free_completed";
	put_event(writer, &event);
}

static void put_change(void *context, const struct observed_memory *seen)
{
	put_release(context, seen);
	put_allocation(context, seen);
}

static void put_mark(void *context, const struct trace_event *event)
{
	struct snapshot_writer *writer = context;
	const struct trace_tensor *record = event->record;

	if (event->kind == TRACE_TENSOR_OOM && record->device == writer->device)
		put_event(writer, &(struct snapshot_event){ .action = "oom",
					  .at_ns = event->time_ns,
					  .bytes = record->bytes > 0 ? (uint64_t)record->bytes : 0,
					  .stack = record->stack });
}

/* Writes the events of each device up to the last one that has memory. */
static void put_traces(struct snapshot_writer *writer, const struct memory_moments *moments)
{
	const struct profile_observer observer = {
		.context = writer, .memory = put_change, .memory_mark = put_mark
	};
	const struct profile_options options = profile_options_for_observer(
		writer->process->profile, &observer);
	uint32_t devices = 0;

	for (size_t i = 0; i < moments->count; i++)
		if (moments->moments[i].device >= devices)
			devices = moments->moments[i].device + 1;
	put_text(writer, "device_traces");
	begin_list(writer);
	for (writer->device = 0; writer->device < devices; writer->device++) {
		begin_list(writer);
		profile_free(
			profile_build(writer->process->reader, writer->process->texts, &options));
		end_list(writer);
	}
	end_list(writer);
}

static void put_snapshot(struct snapshot_writer *writer, const struct memory_moments *moments)
{
	put_bytes(writer, "\x80\4", 2);
	begin_dictionary(writer);
	put_segments(writer, moments);
	put_traces(writer, moments);
	put_text(writer, "allocator_settings");
	begin_dictionary(writer);
	end_dictionary(writer);
	put_text(writer, "external_annotations");
	begin_list(writer);
	end_list(writer);
	end_dictionary(writer);
	put_opcode(writer, '.');
}

void memory_snapshot_write(const struct options *options, struct process *process)
{
	struct snapshot_writer writer = { .process = process,
		.file = fopen(options->snapshot, "wb"),
		.end_ns = memory_end_ns(process) };
	struct memory_moments moments = { .count = 0 };
	bool failed;

	if (!writer.file)
		fatal(STATUS_UNREADABLE, "cannot write `%s`:", options->snapshot);
	memory_moments_add(&moments, options, process, "end", 3);
	memory_moments_take(&moments, process, options, true);
	put_snapshot(&writer, &moments);
	failed = ferror(writer.file);
	if (fclose(writer.file) || failed)
		fatal(STATUS_UNREADABLE, "cannot write `%s`:", options->snapshot);
	memory_moments_free(&moments);
	hash_index_free(&writer.texts.index);
	hash_index_free(&writer.frames.index);
	free(writer.texts.entries);
	free(writer.frames.entries);
}
