/* SPDX-License-Identifier: MIT */
#include "preload/cuda/driver_decode.h"

#include "preload/cuda/array_bytes.h"
#include "preload/cuda/driver_arguments.h"

#include <string.h>

/* ---- launches ---- */

static void set_launch_shape(struct driver_event *event, const uint32_t grid[3],
	const uint32_t block[3], uint32_t shared_bytes)
{
	memcpy(event->grid, grid, sizeof event->grid);
	memcpy(event->block, block, sizeof event->block);
	event->shared_bytes = shared_bytes;
}

DRIVER_READER(read_launch)
{
	const struct arguments_launch *launch = arguments;

	set_launch_shape(event, launch->grid, launch->block, launch->shared_bytes);
	event->object = launch->function;
	event->stream = launch->stream;
}

DRIVER_READER(read_launch_ex)
{
	const struct arguments_launch_ex *launch = arguments;

	event->object = launch->function;
	if (!launch->config)
		return;
	set_launch_shape(
		event, launch->config->grid, launch->config->block, launch->config->shared_bytes);
	event->stream = launch->config->stream;
}

/* For the obsolete cuLaunch functions and the launch on several devices: GPU records say what they
 * launch. */
DRIVER_READER(read_nothing)
{
}

DRIVER_READER(read_graph_launch)
{
	const struct arguments_graph_launch *launch = arguments;

	event->object = launch->exec;
	event->stream = launch->stream;
}

/* ---- copies ---- */

DRIVER_READER(read_copy)
{
	const struct arguments_copy *copy = arguments;

	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

DRIVER_READER(read_copy_array)
{
	const struct arguments_copy_array *copy = arguments;

	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

DRIVER_READER(read_copy_arrays)
{
	const struct arguments_copy_arrays *copy = arguments;

	event->bytes = copy->bytes;
}

DRIVER_READER(read_copy_peer)
{
	const struct arguments_copy_peer *copy = arguments;

	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

/* Returns the enum trace_copy_kind of a copy between two CUmemorytype. It is unknown if either type
 * may be anything. */
static uint32_t copy_kind_between(uint32_t source, uint32_t target)
{
	static const uint8_t kinds[4][4] = {
		[MEMORY_HOST] = { [MEMORY_HOST] = TRACE_COPY_HTOH,
			[MEMORY_DEVICE] = TRACE_COPY_HTOD,
			[MEMORY_ARRAY] = TRACE_COPY_HTOA },
		[MEMORY_DEVICE] = { [MEMORY_HOST] = TRACE_COPY_DTOH,
			[MEMORY_DEVICE] = TRACE_COPY_DTOD,
			[MEMORY_ARRAY] = TRACE_COPY_DTOA },
		[MEMORY_ARRAY] = { [MEMORY_HOST] = TRACE_COPY_ATOH,
			[MEMORY_DEVICE] = TRACE_COPY_ATOD,
			[MEMORY_ARRAY] = TRACE_COPY_ATOA },
	};

	return source < 4 && target < 4 ? kinds[source][target] : (uint32_t)TRACE_COPY_UNKNOWN;
}

DRIVER_READER(read_copy_2d)
{
	const struct arguments_copy_shape *copy = arguments;
	const struct copy_2d *shape = copy->shape;

	if (call->streamed)
		event->stream = copy->stream;
	if (!shape)
		return;
	event->bytes = volume_bytes(shape->width_bytes, shape->height, 1);
	event->detail = copy_kind_between(shape->source_type, shape->target_type);
}

DRIVER_READER(read_copy_3d)
{
	const struct arguments_copy_shape *copy = arguments;
	const struct copy_3d *shape = copy->shape;

	if (call->streamed)
		event->stream = copy->stream;
	if (!shape)
		return;
	event->bytes = volume_bytes(shape->width_bytes, shape->height, shape->depth);
	if (call->detail == TRACE_COPY_UNKNOWN)
		event->detail = copy_kind_between(shape->source_type, shape->target_type);
}

static uint64_t sum_bytes(const size_t *bytes, uint64_t count)
{
	uint64_t all = 0;

	for (uint64_t i = 0; bytes && i < count; i++)
		all += bytes[i];
	return all;
}

DRIVER_READER(read_copy_batch)
{
	const struct arguments_copy_batch *copy = arguments;

	event->bytes = sum_bytes(copy->bytes, copy->count);
	event->stream = copy->stream;
}

DRIVER_READER(read_copy_batch_1)
{
	const struct arguments_copy_batch_1 *copy = arguments;

	event->bytes = sum_bytes(copy->bytes, copy->count);
	event->stream = copy->stream;
}

DRIVER_READER(read_copy_3d_batch)
{
	event->stream = ((const struct arguments_copy_3d_batch *)arguments)->stream;
}

DRIVER_READER(read_copy_3d_batch_1)
{
	event->stream = ((const struct arguments_copy_3d_batch_1 *)arguments)->stream;
}

DRIVER_READER(read_copy_attributes)
{
	const struct arguments_copy_attributes *copy = arguments;

	event->bytes = copy->bytes;
	event->stream = copy->stream;
}

DRIVER_READER(read_copy_3d_attributes)
{
	event->stream = ((const struct arguments_copy_3d_attributes *)arguments)->stream;
}

/* ---- memsets ---- */

/* Returns the value of a memset, which is `width` bytes wide. The arguments are little-endian, so
 * these are the low bytes. */
static uint32_t memset_value(uint32_t value, unsigned width)
{
	return width == 4 ? value : value & ((1u << 8 * width) - 1);
}

/* As in read_memset_2d, `call->flags` is the width of a value in bytes. */
DRIVER_READER(read_memset)
{
	const struct arguments_memset *set = arguments;

	event->detail = memset_value(set->value, call->flags);
	event->bytes = volume_bytes(set->count, call->flags, 1);
	if (call->streamed)
		event->stream = set->stream;
}

DRIVER_READER(read_memset_2d)
{
	const struct arguments_memset_2d *set = arguments;

	event->detail = memset_value(set->value, call->flags);
	event->bytes = volume_bytes(set->width, set->height, call->flags);
	if (call->streamed)
		event->stream = set->stream;
}

/* ---- memory ---- */

DRIVER_READER(read_alloc)
{
	const struct arguments_alloc *alloc = arguments;

	event->bytes = alloc->bytes;
	event->object = done ? *alloc->address : 0;
	if (call->streamed)
		event->stream = alloc->stream;
}

DRIVER_READER(read_alloc_pitch)
{
	const struct arguments_alloc_pitch *alloc = arguments;

	event->bytes = volume_bytes(done ? *alloc->pitch : alloc->width_bytes, alloc->height, 1);
	event->object = done ? *alloc->address : 0;
}

DRIVER_READER(read_alloc_pool)
{
	const struct arguments_alloc_pool *alloc = arguments;

	event->bytes = alloc->bytes;
	event->object = done ? *alloc->address : 0;
	event->stream = alloc->stream;
}

DRIVER_READER(read_register)
{
	const struct arguments_register *memory = arguments;

	event->bytes = memory->bytes;
	event->object = done ? memory->address : 0;
}

DRIVER_READER(read_free)
{
	const struct arguments_free *memory = arguments;

	event->object = memory->address;
	if (call->streamed)
		event->stream = memory->stream;
}

/* Converts a CUarray_format to the runtime's texel. All members are 0 if the format is unknown. */
static struct cuda_channels texel_of(uint32_t format, uint32_t channels)
{
	/* Bits per texel of CU_AD_FORMAT_UNORM_INT8X1, 8X2, 8X4, 16X1, 16X2, 16X4. */
	static const uint8_t normalized[] = { 8, 16, 32, 16, 32, 64 };
	struct cuda_channels texel = { 0, 0, 0, 0, 0 };

	if (format == 0x01 || format == 0x08) /* 8 bits, unsigned and signed */
		texel.x = (int)(8 * channels);
	else if (format == 0x02 || format == 0x09 || format == 0x10) /* 16 bits */
		texel.x = (int)(16 * channels);
	else if (format == 0x03 || format == 0x0a || format == 0x20) /* ..._INT32, FLOAT */
		texel.x = (int)(32 * channels);
	else if (format >= 0xc0 && format <= 0xcb) /* UNORM..., SNORM... */
		texel.x = normalized[(format - 0xc0) % 6];
	else if (format >= 0x91 && format <= 0x9e) /* BC1 to BC7, in the runtime's order */
		texel.kind = CUDA_FORMAT_BLOCKS_FIRST + (int)(format - 0x91);
	else if (format == 0xb0)
		texel.kind = CUDA_FORMAT_NV12;
	else if (format == 0x50)
		texel.kind = CUDA_FORMAT_1010102;
	return texel;
}

DRIVER_READER(read_array)
{
	const struct arguments_array *array = arguments;
	const struct array_2d *shape = array->shape;

	event->object = done ? *array->array : 0;
	if (shape) {
		struct cuda_channels texel = texel_of(shape->format, shape->channels);

		event->bytes = array_bytes(
			&texel, (struct cuda_extent){ shape->width, shape->height, 0 }, 1, 0);
	}
}

static void read_array_levels(
	struct driver_event *event, const struct arguments_array *array, bool done, uint32_t levels)
{
	const struct array_3d *shape = array->shape;

	event->object = done ? *array->array : 0;
	if (shape) {
		struct cuda_channels texel = texel_of(shape->format, shape->channels);

		event->bytes = array_bytes(&texel,
			(struct cuda_extent){ shape->width, shape->height, shape->depth }, levels,
			shape->flags);
	}
}

DRIVER_READER(read_array_3d)
{
	read_array_levels(event, arguments, done, 1);
}

DRIVER_READER(read_array_mipmapped)
{
	const struct arguments_array *array = arguments;

	read_array_levels(event, array, done, array->levels);
}

/* Physical memory, identified by its handle. MAPPING records say where it is mapped. */
DRIVER_READER(read_physical)
{
	const struct arguments_physical *memory = arguments;

	event->bytes = memory->bytes;
	event->object = done ? *memory->handle : 0;
	if (memory->properties && memory->properties->location_type > 1)
		event->detail = TRACE_MEMORY_PINNED;
}

DRIVER_READER(read_memory_query)
{
	const struct arguments_memory_query *query = arguments;

	if (!done || !query->free_bytes || !query->total_bytes)
		return;
	event->bytes = *query->free_bytes;
	event->total = *query->total_bytes;
}

/* ---- virtual memory ---- */

DRIVER_READER(read_reserve)
{
	const struct arguments_reserve *range = arguments;

	event->bytes = range->bytes;
	event->object = done ? *range->address : 0;
}

DRIVER_READER(read_range)
{
	const struct arguments_range *range = arguments;

	event->bytes = range->bytes;
	event->object = range->address;
}

DRIVER_READER(read_map)
{
	const struct arguments_map *map = arguments;

	event->bytes = map->bytes;
	event->object = map->address;
	event->handle = map->handle;
}

DRIVER_READER(read_handle)
{
	const struct arguments_handle *memory = arguments;

	event->handle = done ? *memory->handle : 0;
	if (call->detail == TRACE_MAPPING_RETAIN)
		event->object = memory->address;
}

DRIVER_READER(read_stream)
{
	event->stream = ((const struct arguments_stream *)arguments)->stream;
}

DRIVER_READER(read_event)
{
	const struct arguments_event *wait = arguments;

	event->object = wait->event;
	if (call->streamed)
		event->stream = wait->stream;
}

DRIVER_READER(read_wait)
{
	const struct arguments_wait *wait = arguments;

	event->stream = wait->stream;
	event->object = wait->event;
}
