/* SPDX-License-Identifier: MIT */
#include "report/page/page_memory_map.h"
#include "report/base/alloc.h"
#include "report/page/flame_data.h"
#include "report/page/page_table.h"
#include "report/print/next_command.h"
#include "report/views/memory_moment.h"
#include "report/views/views.h"
#include <stdio.h>
#include <stdlib.h>

#define TIMES 4u             /* moments at equal distances, beside the peak and the end */
#define TIMES_MIN_NS 100000u /* of a shorter run, times would be too close */
#define LIST_BYTES 160u

/* Adjacent blocks that are written as one. */
struct block_run {
	uint64_t begin, bytes, since_ns;
	uint32_t node, count;
};

struct map_writer {
	struct json_writer *json;
	struct process *process;
	uint32_t *holder_of; /* by node: number in `holders`; 0: none yet */
	uint32_t *holders;   /* by number - 1: the node */
	size_t holder_count, holder_room;
	size_t left; /* blocks that may still be written of the moment */
};

/* ---- blocks ---- */

static uint32_t holder_number(struct map_writer *writer, uint32_t node)
{
	if (!writer->holder_of[node]) {
		*ARRAY_ADD(writer->holders, writer->holder_room, writer->holder_count) = node;
		writer->holder_of[node] = (uint32_t)writer->holder_count;
	}
	return writer->holder_of[node];
}

/* Lists the blocks of a segment, or with `merges` the stretches that they occupy without a gap. The
 * caller frees the array. */
static struct block_run *list_runs(const struct memory_moment *moment,
	const struct moment_segment *segment, bool merges, size_t *count)
{
	struct block_run *runs = xcalloc((segment->block_count + 1) * sizeof *runs);

	*count = 0;
	for (size_t i = 0; i < segment->block_count; i++) {
		const struct memory_block *block = &moment->blocks[segment->first_block + i];
		const uint64_t begin = block->address - segment->segment.address;
		struct block_run *last = *count ? &runs[*count - 1] : NULL;

		if (merges && last && last->begin + last->bytes == begin) {
			last->bytes += block->bytes;
			last->count++;
			last->since_ns = last->since_ns < block->since_ns ? last->since_ns
									  : block->since_ns;
			continue;
		}
		runs[(*count)++] = (struct block_run){ .begin = begin,
			.bytes = block->bytes,
			.since_ns = block->since_ns,
			.node = block->node,
			.count = 1 };
	}
	return runs;
}

enum run_field { RUN_BEGIN, RUN_BYTES, RUN_SINCE, RUN_HOLDER, RUN_COUNT, RUN_FIELDS };

static uint64_t run_value(
	struct map_writer *writer, const struct block_run *runs, size_t i, enum run_field field)
{
	switch (field) {
	case RUN_BEGIN:
		return runs[i].begin - (i ? runs[i - 1].begin + runs[i - 1].bytes : 0);
	case RUN_BYTES:
		return runs[i].bytes;
	case RUN_SINCE:
		return runs[i].since_ns;
	case RUN_HOLDER:
		return runs[i].count > 1 ? 0 : holder_number(writer, runs[i].node);
	default:
		return runs[i].count;
	}
}

static void write_runs(struct map_writer *writer, const struct block_run *runs, size_t count)
{
	static const char *const keys[RUN_FIELDS] = { "begin", "bytes", "since_ns", "holder",
		"count" };
	struct json_writer *json = writer->json;

	json_write_begin(json, '{');
	for (enum run_field field = 0; field < RUN_FIELDS; field++) {
		json_put_begin(json, keys[field], '[');
		for (size_t i = 0; i < count; i++)
			json_write_unsigned(json, run_value(writer, runs, i, field));
		json_write_end(json, ']');
	}
	json_write_end(json, '}');
}

static void write_cells(struct json_writer *json, const struct memory_moment *moment,
	const struct moment_segment *segment)
{
	uint64_t occupied[MAP_CELLS] = { 0 };

	for (size_t i = 0; i < segment->block_count; i++)
		memory_map_add_to_cells(
			occupied, MAP_CELLS, segment, &moment->blocks[segment->first_block + i]);
	json_write_begin(json, '{');
	json_put_begin(json, "cells", '[');
	for (size_t i = 0; i < MAP_CELLS; i++)
		json_write_unsigned(json, occupied[i]);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_segment(struct map_writer *writer, const struct memory_moment *moment,
	const struct moment_segment *segment)
{
	size_t count;
	struct block_run *runs = list_runs(
		moment, segment, moment->block_count > MAP_BLOCKS, &count);

	if (count > writer->left) {
		write_cells(writer->json, moment, segment);
	} else {
		write_runs(writer, runs, count);
		writer->left -= count;
	}
	free(runs);
}

/* Whether the blocks of a segment are written: those that overlap would be drawn twice. */
static bool has_blocks(const struct moment_segment *segment)
{
	return segment->has_blocks_known && segment->block_count && !segment->overlapped;
}

static void write_moment(struct map_writer *writer, const struct memory_moment *moment)
{
	struct json_writer *json = writer->json;
	size_t *order = memory_map_order(moment);
	const size_t count = moment->segment_count < MAP_SEGMENTS ? moment->segment_count
								  : MAP_SEGMENTS;

	writer->left = MAP_BLOCKS;
	json_write_begin(json, '{');
	json_put_begin(json, "address", '[');
	for (size_t i = 0; i < count; i++)
		if (has_blocks(&moment->segments[order[i]]))
			json_write_unsigned(json, moment->segments[order[i]].segment.address);
	json_write_end(json, ']');
	json_put_begin(json, "blocks", '[');
	for (size_t i = 0; i < count; i++)
		if (has_blocks(&moment->segments[order[i]]))
			write_segment(writer, moment, &moment->segments[order[i]]);
	json_write_end(json, ']');
	json_write_end(json, '}');
	free(order);
}

static void write_holders(struct map_writer *writer)
{
	json_put_begin(writer->json, "holders", '[');
	json_write_string(writer->json, "");
	for (size_t i = 0; i < writer->holder_count; i++) {
		const struct memory_group group = { .key = writer->holders[i] };

		json_write_text(writer->json, memory_group_name(writer->process, &group, BY_PATH));
	}
	json_write_end(writer->json, ']');
}

static void write_blocks(
	struct json_writer *json, struct process *process, const struct memory_moments *moments)
{
	struct map_writer writer = { .json = json,
		.process = process,
		.holder_of = xcalloc(
			(process->profile->tree->count + 1) * sizeof *writer.holder_of) };

	json_put_begin(json, "moments", '[');
	for (size_t i = 0; i < moments->count; i++)
		write_moment(&writer, &moments->moments[i]);
	json_write_end(json, ']');
	write_holders(&writer);
	free(writer.holder_of);
	free(writer.holders);
}

/* ---- the rows of the views ---- */

static void write_tables(
	struct json_writer *json, const struct options *options, struct processes *processes)
{
	static const struct page_table history = { .view = "memory",
		.key = "memory_history",
		.arrange = arrange_memory_history,
		.columns = "device at_ns reserved_bytes tensor_bytes free_inside_bytes "
			   "largest_gap_bytes fragmentation free_share segments gaps empty_bytes "
			   "unknown_bytes outside_bytes",
		.most = 1000 };
	static const struct page_table map = { .view = "memory",
		.key = "memory_map",
		.arrange = arrange_memory_map,
		.columns = "device at_ns reserved_bytes tensor_bytes free_inside_bytes "
			   "fragmentation segments requested_bytes bytes address fill tensors gaps "
			   "largest_gap_bytes since_ns emptied_ns used_share holder holder_bytes "
			   "line",
		.most = 1000 };
	struct options wanted = *options;

	wanted.top = MAP_HISTORY_ROWS;
	page_table_write(json, &history, &wanted, processes);
	wanted.top = MAP_SEGMENTS;
	wanted.depth = 2;
	page_table_write(json, &map, &wanted, processes);
}

static void put_command(struct json_writer *json, const struct options *options, const char *list)
{
	struct shell_command command = { .ascii = false };

	next_command_begin(&command, "memory");
	text_add(&command.built, " --map --at %s", list);
	next_command_add_files(&command, options);
	page_put_text(json, "command", command.built.text, command.built.used);
	free(command.built.text);
}

/* Writes the words of --at: the peak, when memory ran out, the end, and times between them. */
static void list_moments(const struct process *process, char list[LIST_BYTES])
{
	const uint64_t end_ns = memory_end_ns(process);
	int used = snprintf(list, LIST_BYTES, "peak,oom,end");

	for (uint64_t i = 1; i <= TIMES && end_ns > TIMES_MIN_NS; i++)
		used += snprintf(list + used, LIST_BYTES - (size_t)used, ",%.3fms",
			(double)(end_ns / (TIMES + 1) * i) / 1e6);
}

static bool knows_blocks(const struct memory_moments *moments)
{
	for (size_t i = 0; i < moments->count; i++)
		for (size_t k = 0; k < moments->moments[i].segment_count; k++)
			if (moments->moments[i].segments[k].has_blocks_known)
				return true;
	return false;
}

void page_memory_map_write(
	struct json_writer *json, const struct options *options, struct processes *processes)
{
	struct process *process = &processes->all[0];
	char list[LIST_BYTES];
	struct options wanted = *options;
	const struct memory_moments *moments;

	list_moments(process, list);
	wanted.at = list;
	wanted.by = BY_PATH;
	moments = process_moments(process, &wanted);
	if (!knows_blocks(moments))
		return;
	json_put_begin(json, "memory_map", '{');
	write_tables(json, &wanted, processes);
	put_command(json, options, list);
	write_blocks(json, process, moments);
	json_write_end(json, '}');
}
