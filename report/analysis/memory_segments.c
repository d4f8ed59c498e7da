/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_segments.h"
#include "report/base/address_map.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>

/* Index 0 of both arrays is unused, so that 0 ends the lists of unused entries. */
struct memory_segments {
	/* Values: indexes. unmapped_map: by key. */
	struct address_map segment_map, unmapped_map, block_map;
	struct address_map piece_map; /* mappings that are in a segment; values: unused */
	struct memory_segment *segments;
	struct memory_block *blocks;
	size_t segment_room, block_room;
	uint32_t segment_count, block_count;
	uint32_t unused_segment, unused_block; /* first of a list; 0: none */
	struct memory_device *devices;
	size_t device_count, device_room;
	uint64_t serial;
};

struct memory_segments *memory_segments_new(void)
{
	struct memory_segments *map = xcalloc_cache_aligned(sizeof *map);

	map->segment_count = map->block_count = 1;
	return map;
}

static void free_tables(struct memory_segments *map)
{
	address_map_free(&map->segment_map);
	address_map_free(&map->unmapped_map);
	address_map_free(&map->block_map);
	address_map_free(&map->piece_map);
	free(map->segments);
	free(map->blocks);
	free(map->devices);
}

void memory_segments_free(struct memory_segments *map)
{
	if (!map)
		return;
	free_tables(map);
	free(map);
}

void memory_segments_restart(struct memory_segments *map)
{
	free_tables(map);
	*map = (struct memory_segments){ .segment_count = 1, .block_count = 1 };
}

size_t memory_segments_bytes(const struct memory_segments *map)
{
	return sizeof *map + map->segment_map.bytes + map->unmapped_map.bytes +
	       map->block_map.bytes + map->piece_map.bytes +
	       map->segment_room * sizeof *map->segments + map->block_room * sizeof *map->blocks +
	       map->device_room * sizeof *map->devices;
}

static struct memory_device *device_totals(struct memory_segments *map, uint32_t device)
{
	for (size_t i = 0; i < map->device_count; i++)
		if (map->devices[i].device == device)
			return &map->devices[i];
	ARRAY_GROW(map->devices, map->device_room, map->device_count + 1);
	map->devices[map->device_count] = (struct memory_device){ .device = device };
	return &map->devices[map->device_count++];
}

const struct memory_device *memory_segments_device(
	const struct memory_segments *map, uint32_t device)
{
	for (size_t i = 0; i < map->device_count; i++)
		if (map->devices[i].device == device)
			return &map->devices[i];
	return NULL;
}

/* Returns the end of a range of addresses, which a damaged trace may put beyond the last one. */
static uint64_t range_end(uint64_t address, uint64_t bytes)
{
	return bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
}

/* Returns the segment that has the address. NULL: none is known. */
static struct memory_segment *segment_of_address(struct memory_segments *map, uint64_t address)
{
	uint32_t index;
	struct memory_segment *segment;

	if (!address_map_floor(&map->segment_map, address, &index))
		return NULL;
	segment = &map->segments[index];
	return address < range_end(segment->address, segment->bytes) ? segment : NULL;
}

/* ---- changes ---- */

static uint32_t take_segment(struct memory_segments *map)
{
	const uint32_t unused = map->unused_segment;

	if (unused) {
		map->unused_segment = map->segments[unused].next_unused;
		return unused;
	}
	ARRAY_GROW(map->segments, map->segment_room, (size_t)map->segment_count + 1);
	return map->segment_count++;
}

static uint32_t take_block(struct memory_segments *map)
{
	const uint32_t unused = map->unused_block;

	if (unused) {
		map->unused_block = map->blocks[unused].next_unused;
		return unused;
	}
	ARRAY_GROW(map->blocks, map->block_room, (size_t)map->block_count + 1);
	return map->block_count++;
}

/* Adds the time since the last change to the integral. */
static void pass_segment_time(struct memory_segment *segment, uint64_t now_ns)
{
	segment->byte_ns += (double)segment->occupied * (double)(now_ns - segment->changed_ns);
	segment->changed_ns = now_ns;
	if (segment->occupied >= segment->bytes / 2)
		segment->half_ns = now_ns;
}

static void add_segment(struct memory_segments *map, const struct observed_memory *seen)
{
	const struct trace_memory *record = seen->event->record;
	const uint32_t index = take_segment(map);
	struct memory_device *device = device_totals(map, seen->change->device);
	const bool is_unmapped = seen->change->address & PHYSICAL_KEY;

	map->segments[index] = (struct memory_segment){ .address = seen->change->address,
		.bytes = seen->change->allocated_bytes,
		.since_ns = seen->event->time_ns,
		.changed_ns = seen->event->time_ns,
		.serial = ++map->serial,
		.node = seen->change->node,
		.stack = record->call.stack,
		.device = seen->change->device,
		.for_stream = record->stream,
		.has_stream = record->flags & TRACE_MEMORY_FOR_STREAM,
		.for_capture = record->flags & TRACE_MEMORY_FOR_CAPTURE,
		.is_pool = record->flags & TRACE_MEMORY_POOL,
		.is_unmapped = is_unmapped };
	device->held += seen->change->allocated_bytes;
	device->changes++;
	address_map_insert(
		is_unmapped ? &map->unmapped_map : &map->segment_map, seen->change->address, index);
}

static void remove_segment(struct memory_segments *map, const struct memory_change *change)
{
	uint32_t index;
	struct memory_device *device = device_totals(map, change->freed_device);

	device->held -= change->freed_bytes;
	device->changes++;
	if (!address_map_remove(&map->segment_map, change->freed_address, &index) &&
		!address_map_remove(&map->unmapped_map, change->freed_address, &index))
		return;
	map->segments[index] = (struct memory_segment){ .next_unused = map->unused_segment };
	map->unused_segment = index;
}

static void add_block(struct memory_segments *map, const struct observed_memory *seen)
{
	const struct trace_tensor *record = seen->event->record;
	const uint32_t index = take_block(map);
	struct memory_segment *segment = segment_of_address(map, seen->change->address);
	struct memory_device *device;

	map->blocks[index] = (struct memory_block){ .address = seen->change->address,
		.bytes = seen->change->allocated_bytes,
		.since_ns = seen->event->time_ns,
		.serial = ++map->serial,
		.node = seen->change->node,
		.stack = record->stack,
		.device = seen->change->device };
	device = device_totals(map, seen->change->device);
	device->tensors += seen->change->allocated_bytes;
	device->blocks++;
	address_map_insert(&map->block_map, seen->change->address, index);
	if (!segment)
		return;
	pass_segment_time(segment, seen->event->time_ns);
	segment->occupied += seen->change->allocated_bytes;
	segment->blocks++;
	segment->ever++;
	if (segment->occupied > segment->occupied_most)
		segment->occupied_most = segment->occupied;
}

static void remove_block(
	struct memory_segments *map, const struct memory_change *change, uint64_t at_ns)
{
	struct memory_segment *segment = segment_of_address(map, change->address);
	struct memory_device *device = device_totals(map, change->freed_device);
	uint32_t index;

	device->tensors -= change->freed_bytes;
	device->blocks--;
	if (!address_map_remove(&map->block_map, change->address, &index))
		return;
	/* A block that is older than the segment was not counted there. */
	if (segment && segment->blocks && segment->serial < map->blocks[index].serial) {
		pass_segment_time(segment, at_ns);
		segment->occupied -= min_u64(segment->occupied, map->blocks[index].bytes);
		segment->emptied_ns = --segment->blocks ? segment->emptied_ns : at_ns;
	}
	map->blocks[index] = (struct memory_block){ .next_unused = map->unused_block };
	map->unused_block = index;
}

/* ---- mapped memory ---- */

/* Counts the blocks that begin in a segment. */
static void count_blocks(struct memory_segments *map, struct memory_segment *segment)
{
	struct address_cursor at = address_map_from(&map->block_map, segment->address);

	segment->occupied = 0;
	segment->blocks = 0;
	for (; !address_cursor_at_end(&at) &&
		address_cursor_key(&at) - segment->address < segment->bytes;
		address_cursor_next(&at)) {
		segment->occupied += map->blocks[address_cursor_value(&at)].bytes;
		segment->blocks++;
	}
	if (segment->ever < segment->blocks)
		segment->ever = segment->blocks;
	if (segment->occupied > segment->occupied_most)
		segment->occupied_most = segment->occupied;
}

/* Returns the segment of mapped memory that ends where `mapping` begins. NULL: there is none. */
static struct memory_segment *segment_before(
	struct memory_segments *map, const struct memory_mapping *mapping)
{
	struct memory_segment *segment = mapping->address
						 ? segment_of_address(map, mapping->address - 1)
						 : NULL;

	return segment && segment->reserved && segment->reserved == mapping->reserved &&
			       segment->address + segment->bytes == mapping->address
		       ? segment
		       : NULL;
}

static void unuse_segment(struct memory_segments *map, uint32_t index)
{
	map->segments[index] = (struct memory_segment){ .next_unused = map->unused_segment };
	map->unused_segment = index;
}

/* Joins a segment with the next one, if that begins where it ends, in the same reserved range. */
static void join_next(struct memory_segments *map, struct memory_segment *segment, uint64_t now_ns)
{
	const uint64_t end = range_end(segment->address, segment->bytes);
	struct memory_segment *next;
	uint32_t index;

	if (!address_map_floor(&map->segment_map, end, &index))
		return;
	next = &map->segments[index];
	if (next->address != end || !next->reserved || next->reserved != segment->reserved)
		return;
	pass_segment_time(segment, now_ns);
	pass_segment_time(next, now_ns);
	segment->bytes += next->bytes;
	segment->occupied += next->occupied;
	segment->occupied_most = max_u64(segment->occupied, segment->occupied_most);
	segment->byte_ns += next->byte_ns;
	segment->blocks += next->blocks;
	segment->ever += next->ever;
	segment->since_ns = min_u64(segment->since_ns, next->since_ns);
	segment->emptied_ns = max_u64(segment->emptied_ns, next->emptied_ns);
	address_map_remove(&map->segment_map, end, &index);
	unuse_segment(map, index);
}

/* Moves the bytes of a mapping from memory that is not mapped to the segment that it belongs to. */
static void begin_mapping(
	struct memory_segments *map, const struct memory_mapping *mapping, uint64_t now_ns)
{
	uint32_t unmapped, index;
	struct memory_segment *segment;

	if (!mapping->key || !address_map_floor(&map->unmapped_map, mapping->key, &unmapped) ||
		map->segments[unmapped].address != mapping->key ||
		map->segments[unmapped].bytes < mapping->bytes)
		return;
	index = take_segment(map);
	device_totals(map, map->segments[unmapped].device)->changes++;
	map->segments[unmapped].bytes -= mapping->bytes;
	address_map_insert(&map->piece_map, mapping->address, 0);
	map->segments[index] = (struct memory_segment){ .address = mapping->address,
		.bytes = mapping->bytes,
		.since_ns = map->segments[unmapped].since_ns,
		.changed_ns = now_ns,
		.node = map->segments[unmapped].node,
		.stack = map->segments[unmapped].stack,
		.device = map->segments[unmapped].device,
		.reserved = mapping->reserved };
	count_blocks(map, &map->segments[index]);
	address_map_insert(&map->segment_map, mapping->address, index);
	join_next(map, &map->segments[index], now_ns);
	segment = segment_before(map, mapping);
	if (segment)
		join_next(map, segment, now_ns);
}

/* Makes the part of a segment from `address` on a segment of its own. */
static void split_segment(struct memory_segments *map, uint64_t address, uint64_t now_ns)
{
	const uint32_t index = take_segment(map);
	struct memory_segment *segment = segment_of_address(map, address), *part;

	part = &map->segments[index];
	pass_segment_time(segment, now_ns);
	*part = *segment;
	part->address = address;
	part->bytes = segment->address + segment->bytes - address;
	part->byte_ns = 0;
	segment->bytes -= part->bytes;
	count_blocks(map, part);
	segment->occupied -= min_u64(segment->occupied, part->occupied);
	segment->blocks -= part->blocks < segment->blocks ? part->blocks : segment->blocks;
	address_map_insert(&map->segment_map, address, index);
}

/* Takes the bytes of a mapping out of its segment. Returns them. */
static uint64_t cut_mapping(
	struct memory_segments *map, const struct memory_mapping *mapping, uint64_t now_ns)
{
	struct memory_segment *segment = segment_of_address(map, mapping->address);
	uint64_t bytes;
	uint32_t index;

	if (!segment || !segment->reserved)
		return 0;
	if (segment->address != mapping->address)
		split_segment(map, mapping->address, now_ns);
	segment = segment_of_address(map, mapping->address);
	if (segment->bytes > mapping->bytes)
		split_segment(map, mapping->address + mapping->bytes, now_ns);
	address_map_remove(&map->segment_map, mapping->address, &index);
	bytes = map->segments[index].bytes;
	unuse_segment(map, index);
	return bytes;
}

static void end_mapping(
	struct memory_segments *map, const struct memory_mapping *mapping, uint64_t now_ns)
{
	uint32_t unmapped, unused;
	uint64_t bytes;

	if (!address_map_remove(&map->piece_map, mapping->address, &unused))
		return;
	if (!address_map_floor(&map->unmapped_map, mapping->key, &unmapped) ||
		map->segments[unmapped].address != mapping->key)
		return;
	device_totals(map, map->segments[unmapped].device)->changes++;
	bytes = cut_mapping(map, mapping, now_ns); /* may move the array */
	map->segments[unmapped].bytes += bytes;
}

void memory_segments_map(struct memory_segments *map, const struct observed_mapping *seen)
{
	if (seen->ends)
		end_mapping(map, seen->mapping, seen->event->time_ns);
	else
		begin_mapping(map, seen->mapping, seen->event->time_ns);
}

/* Forgets the blocks: which of them are still held is not known. */
static void forget_blocks(struct memory_segments *map)
{
	struct address_cursor at = address_map_from(&map->segment_map, 0);

	for (; !address_cursor_at_end(&at); address_cursor_next(&at)) {
		struct memory_segment *segment = &map->segments[address_cursor_value(&at)];

		segment->occupied = segment->blocks = 0;
		segment->ever = 0;
	}
	address_map_free(&map->block_map);
	free(map->blocks);
	map->blocks = NULL;
	map->block_room = map->unused_block = 0;
	map->block_count = 1;
	for (size_t i = 0; i < map->device_count; i++)
		map->devices[i].tensors = map->devices[i].blocks = 0;
}

static void note_allocator_totals(struct memory_segments *map, const struct trace_tensor *record)
{
	struct memory_device *device = device_totals(map, record->device);

	device->has_tensors = true;
	device->reported_allocated = record->allocated;
	device->reported_reserved = record->reserved;
}

void memory_segments_change(struct memory_segments *map, const struct observed_memory *seen)
{
	const struct memory_change *change = seen->change;
	const bool of_tensor = seen->event->kind == TRACE_TENSOR;

	if (of_tensor)
		note_allocator_totals(map, seen->event->record);
	/* An address that is allocated again frees what was there. */
	if (change->freed_bytes && change->freed_kind == MEMORY_TENSOR)
		remove_block(map, change, seen->event->time_ns);
	else if (change->freed_bytes && memory_is_device(change->freed_kind))
		remove_segment(map, change);
	if (change->allocated_bytes && of_tensor)
		add_block(map, seen);
	else if (change->allocated_bytes && memory_is_device(change->kind))
		add_segment(map, seen);
}

void memory_segments_mark(struct memory_segments *map, const struct trace_event *event)
{
	if (event->kind == TRACE_WINDOW) {
		forget_blocks(map);
	} else if (event->kind == TRACE_TENSOR_OOM) {
		note_allocator_totals(map, event->record);
		device_totals(map, ((const struct trace_tensor *)event->record)->device)->changes++;
	} else if (event->kind == TRACE_ALLOC) {
		const struct trace_memory *record = event->record;

		if (memory_is_device(record->memory_kind))
			device_totals(map, record->call.device)->changes++;
	}
}

/* ---- the map at a moment ---- */

struct segment_sweep {
	const struct memory_segments *map;
	const struct segment_visitor *visitor;
	struct segment_parts parts;
	uint64_t position, end; /* of the current segment: up to where it is known; its end */
};

static void pass_gap(struct segment_sweep *sweep, uint64_t until)
{
	const uint64_t bytes = until - sweep->position;

	if (!bytes)
		return;
	sweep->parts.gaps++;
	sweep->parts.in_gaps += bytes;
	if (bytes > sweep->parts.largest_gap)
		sweep->parts.largest_gap = bytes;
	if (sweep->visitor->gap)
		sweep->visitor->gap(sweep->visitor->context, sweep->position, bytes);
	sweep->position = until;
}

static void pass_block(struct segment_sweep *sweep, const struct memory_block *block)
{
	uint64_t end = range_end(block->address, block->bytes), bytes;

	if (block->address > sweep->position)
		pass_gap(sweep, block->address);
	end = end < sweep->end ? end : sweep->end;
	bytes = end > sweep->position ? end - sweep->position : 0;
	sweep->position += bytes;
	sweep->parts.in_blocks += bytes;
	sweep->parts.blocks++;
	if (sweep->visitor->block)
		sweep->visitor->block(sweep->visitor->context, block, bytes);
}

static void pass_segment(struct segment_sweep *sweep, const struct memory_segment *segment)
{
	struct address_cursor at;
	const uint64_t end = range_end(segment->address, segment->bytes);

	sweep->parts = (struct segment_parts){ .segment = segment,
		.has_blocks_known = segment->ever && !segment->is_unmapped };
	if (!sweep->parts.has_blocks_known)
		return;
	if (segment->address > sweep->position)
		sweep->position = segment->address;
	sweep->end = end > sweep->position ? end : sweep->position;
	sweep->parts.overlapped = segment->bytes - (sweep->end - sweep->position);
	for (at = address_map_from(&sweep->map->block_map, sweep->position);
		!address_cursor_at_end(&at) && address_cursor_key(&at) < sweep->end;
		address_cursor_next(&at))
		pass_block(sweep, &sweep->map->blocks[address_cursor_value(&at)]);
	pass_gap(sweep, sweep->end);
}

/* Visits the blocks of `device` that are in no segment whose blocks are known. */
static void visit_strays(
	const struct memory_segments *map, uint32_t device, const struct segment_visitor *visitor)
{
	struct address_cursor block_at = address_map_from(&map->block_map, 0),
			      at = address_map_from(&map->segment_map, 0);
	uint64_t known_until = 0;

	for (; !address_cursor_at_end(&block_at); address_cursor_next(&block_at)) {
		const struct memory_block *block = &map->blocks[address_cursor_value(&block_at)];

		for (; !address_cursor_at_end(&at) && address_cursor_key(&at) <= block->address;
			address_cursor_next(&at)) {
			const struct memory_segment *segment =
				&map->segments[address_cursor_value(&at)];
			const uint64_t end = range_end(segment->address, segment->bytes);

			if (segment->ever && segment->device == device && end > known_until)
				known_until = end;
		}
		if (block->device == device && block->address >= known_until)
			visitor->stray(visitor->context, block);
	}
}

static void visit_segments_of(
	struct segment_sweep *sweep, const struct address_map *of, uint32_t device)
{
	struct address_cursor at = address_map_from(of, 0);

	for (; !address_cursor_at_end(&at); address_cursor_next(&at)) {
		const struct memory_segment *segment =
			&sweep->map->segments[address_cursor_value(&at)];

		/* physical memory that is mapped as a whole */
		if (segment->device != device || (segment->is_unmapped && !segment->bytes))
			continue;
		pass_segment(sweep, segment);
		if (sweep->visitor->segment)
			sweep->visitor->segment(sweep->visitor->context, &sweep->parts);
	}
}

void memory_segments_visit(
	const struct memory_segments *map, uint32_t device, const struct segment_visitor *visitor)
{
	struct segment_sweep sweep = { .map = map, .visitor = visitor };

	visit_segments_of(&sweep, &map->segment_map, device);
	visit_segments_of(&sweep, &map->unmapped_map, device);
	if (visitor->stray)
		visit_strays(map, device, visitor);
}
