/*
 * What streams do. Work takes effect on memory when it is submitted (the program's order is one of
 * those that the device may choose), and is reported with the times that the cost model gives it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

#define START_NS 1000u  /* from submission to the start on an idle device */
#define KERNEL_NS 2000u /* the least a kernel takes */
#define WAVE_NS 3000u   /* for each time that all SMs are filled */
#define COPY_NS 1500u
#define SET_NS 1000u
#define SM_COUNT 132u
#define NEVER_NS UINT64_C(1000000000000000)
#define GRID_X_MAX 2147483647u
#define GRID_YZ_MAX 65535u

static uint64_t threads_of(struct sim_dim block)
{
	return (uint64_t)block.x * block.y * block.z;
}

static uint64_t blocks_of(struct sim_dim grid)
{
	return (uint64_t)grid.x * grid.y * grid.z;
}

/* As the real driver judges a launch; the runtime calls some of it an invalid configuration. */
CUresult kernel_check(const struct op_kernel *k)
{
	uint64_t threads = threads_of(k->block), blocks = blocks_of(k->grid);
	int fit;

	if (!kernel_valid(k->kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	kernel_learn(k->kernel);
	if (k->block.x > 1024 || k->block.y > 1024 || k->block.z > 64 || threads == 0 ||
		threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (k->grid.x > GRID_X_MAX || k->grid.y > GRID_YZ_MAX || k->grid.z > GRID_YZ_MAX ||
		blocks == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (k->dynamic_shared > __atomic_load_n(&k->kernel->max_dynamic, __ATOMIC_RELAXED))
		return CUDA_ERROR_INVALID_VALUE;
	fit = kernel_occupancy(k->kernel, (int)threads, k->dynamic_shared);
	if (fit == 0)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (k->cooperative && blocks > (uint64_t)fit * SM_COUNT)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

static uint64_t kernel_cost(const struct op_kernel *k)
{
	uint64_t resident, waves;

	if (settings()->kernel_ns)
		return settings()->kernel_ns;
	resident = SM_COUNT * (uint64_t)kernel_occupancy(
				      k->kernel, (int)threads_of(k->block), k->dynamic_shared);
	waves = (blocks_of(k->grid) + resident - 1) / resident;
	return KERNEL_NS + waves * WAVE_NS + k->kernel->registers * 10u;
}

static uint64_t copy_bytes(const struct op_copy *copy)
{
	return (uint64_t)copy->width * copy->rows * copy->slices;
}

/* Bytes in a microsecond, roughly those of a PCIe 5 machine with HBM. */
static uint64_t copy_speed(const struct op_copy *copy)
{
	bool pageable = copy->target_memory == SIM_MEMORY_PAGEABLE ||
			copy->source_memory == SIM_MEMORY_PAGEABLE;

	switch (copy->kind) {
	case SIM_COPY_DTOD:
	case SIM_COPY_ATOA:
	case SIM_COPY_ATOD:
	case SIM_COPY_DTOA:
		return 1500000;
	case SIM_COPY_PTOP:
		return 300000;
	default:
		return pageable ? 12000 : 50000;
	}
}

uint64_t op_cost_ns(const struct op *op)
{
	switch (op->kind) {
	case SIM_KERNEL:
		return kernel_cost(&op->kernel);
	case SIM_COPY:
		return COPY_NS + copy_bytes(&op->copy) * 1000 / copy_speed(&op->copy);
	case SIM_SET:
		return SET_NS + (uint64_t)op->set.width * op->set.element * op->set.rows / 2500;
	default:
		return 0;
	}
}

static bool on_device(enum sim_memory_kind kind)
{
	return kind != SIM_MEMORY_PAGEABLE && kind != SIM_MEMORY_PINNED;
}

static enum sim_memory_kind memory_at(const void *address, bool array, int *device)
{
	struct block block;

	*device = 0;
	if (!block_find(address, &block))
		return SIM_MEMORY_PAGEABLE;
	*device = block.device;
	return array ? SIM_MEMORY_ARRAY : block.kind;
}

static enum sim_copy_kind direction(const struct op_copy *copy)
{
	bool to = on_device(copy->target_memory), from = on_device(copy->source_memory);

	if (!to && !from)
		return SIM_COPY_HTOH;
	if (!from)
		return copy->target_array ? SIM_COPY_HTOA : SIM_COPY_HTOD;
	if (!to)
		return copy->source_array ? SIM_COPY_ATOH : SIM_COPY_DTOH;
	if (copy->target_device != copy->source_device)
		return SIM_COPY_PTOP;
	if (copy->target_array)
		return copy->source_array ? SIM_COPY_ATOA : SIM_COPY_DTOA;
	return copy->source_array ? SIM_COPY_ATOD : SIM_COPY_DTOD;
}

/* From the first byte to the last of a box. */
static size_t span(size_t width, size_t rows, size_t slices, size_t pitch, size_t slice)
{
	return (slices - 1) * slice + (rows - 1) * pitch + width;
}

CUresult copy_classify(struct op_copy *copy)
{
	size_t target, source;

	copy->target_memory = memory_at(copy->target, copy->target_array, &copy->target_device);
	copy->source_memory = memory_at(copy->source, copy->source_array, &copy->source_device);
	copy->kind = direction(copy);
	if (copy_bytes(copy) == 0)
		return CUDA_SUCCESS;
	if (!copy->target || !copy->source || copy->width > SIZE_MAX / 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->rows > 1 &&
		(copy->target_pitch < copy->width || copy->source_pitch < copy->width))
		return CUDA_ERROR_INVALID_VALUE;
	target = span(
		copy->width, copy->rows, copy->slices, copy->target_pitch, copy->target_slice);
	source = span(
		copy->width, copy->rows, copy->slices, copy->source_pitch, copy->source_slice);
	return range_valid(copy->target, target) && range_valid(copy->source, source)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_classify(struct op_set *set)
{
	int device;
	size_t width = set->width * set->element;

	if (width == 0 || set->rows == 0)
		return CUDA_SUCCESS;
	set->target_memory = memory_at(set->target, false, &device);
	if (set->target_memory == SIM_MEMORY_PAGEABLE || (set->rows > 1 && set->pitch < width) ||
		(uintptr_t)set->target % set->element != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return range_valid(set->target, (set->rows - 1) * set->pitch + width)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static void copy_rows(const struct op_copy *copy)
{
	for (size_t z = 0; z < copy->slices; z++)
		for (size_t y = 0; y < copy->rows; y++)
			values_copy(copy->target + z * copy->target_slice + y * copy->target_pitch,
				copy->target_memory,
				copy->source + z * copy->source_slice + y * copy->source_pitch,
				copy->source_memory, copy->width);
}

static void set_row(char *row, const struct op_set *set)
{
	if (set->value == 0) {
		memory_zero(row, set->width * set->element);
		return;
	}
	if (set->element == 1) {
		memset(row, (int)set->value, set->width);
		return;
	}
	for (size_t i = 0; i < set->width; i++)
		memcpy(row + i * set->element, &set->value, set->element);
}

static void set_rows(const struct op_set *set)
{
	for (size_t y = 0; y < set->rows; y++) {
		set_row(set->target + y * set->pitch, set);
		values_write(set->target + y * set->pitch, set->width * set->element);
	}
}

/* What the kernel would write is not known any longer. */
static void forget_results(const struct op_kernel *k)
{
	if (k->touched)
		values_touch(k->touched->addresses, k->touched->count);
	else
		arguments_touch(k);
}

static void describe_kernel(struct sim_work *work, const struct op_kernel *k)
{
	work->name = k->kernel->name;
	work->grid = k->grid;
	work->block = k->block;
	work->cluster = k->cluster;
	work->static_shared = k->kernel->static_shared;
	work->dynamic_shared = (uint32_t)k->dynamic_shared;
	work->registers = k->kernel->registers;
	work->local_bytes = k->kernel->local_bytes;
	work->cooperative = k->cooperative;
}

static void describe_copy(struct sim_work *work, const struct op_copy *copy)
{
	work->bytes = copy_bytes(copy);
	work->copy_kind = copy->kind;
	work->source_memory = copy->source_memory;
	work->target_memory = copy->target_memory;
	work->source_device = (uint32_t)copy->source_device;
	work->target_device = (uint32_t)copy->target_device;
	work->async = copy->async;
}

static void describe_set(struct sim_work *work, const struct op_set *set)
{
	work->bytes = (uint64_t)set->width * set->element * set->rows;
	work->target_memory = set->target_memory;
	work->value = set->value;
	work->async = set->async;
}

static void log_work(const struct sim_work *work)
{
	static const char *const names[] = { "kernel", "copy", "set", "host" };

	log_line("%s stream=%u ns=%llu grid=%u,%u,%u block=%u,%u,%u shared=%u bytes=%llu kind=%d "
		 "%s\n",
		names[work->kind], work->stream,
		(unsigned long long)(work->end_ns - work->start_ns), work->grid.x, work->grid.y,
		work->grid.z, work->block.x, work->block.y, work->block.z, work->dynamic_shared,
		(unsigned long long)work->bytes, (int)work->copy_kind,
		work->name ? work->name : "");
}

void perform(const struct op *op, const struct sim_work *placed)
{
	struct sim_work work = *placed;

	work.kind = op->kind;
	switch (op->kind) {
	case SIM_KERNEL:
		module_touch(op->kernel.kernel->module);
		forget_results(&op->kernel);
		describe_kernel(&work, &op->kernel);
		break;
	case SIM_COPY:
		copy_rows(&op->copy);
		describe_copy(&work, &op->copy);
		break;
	case SIM_SET:
		set_rows(&op->set);
		describe_set(&work, &op->set);
		break;
	case SIM_HOST_FUNCTION:
		break;
	case SIM_EMPTY:
		return;
	}
	log_work(&work);
	tell_work(&work);
}

struct sim_work work_in(const struct sim_stream *stream, uint64_t start_ns, uint64_t end_ns)
{
	return (struct sim_work){
		.correlation = current_correlation(),
		.device = (uint32_t)stream->context->device,
		.context = stream->context->id,
		.stream = stream->id,
		.stream_priority = stream->priority,
		.start_ns = start_ns,
		.end_ns = end_ns,
	};
}

/* Places the operation on the stream's time line; the launcher may go on at *room. The lock must be
 * held. */
static struct sim_work schedule(struct sim_stream *stream, const struct op *op, uint64_t *room)
{
	uint64_t start = stream_ready(stream, sim_time_ns() + START_NS);
	uint64_t end = start + op_cost_ns(op);

	*room = stream_push(stream, end);
	if (op->kind == SIM_HOST_FUNCTION)
		stream->host_ns = start;
	return work_in(stream, start, end);
}

/* SIM_FAULT: the kernel never ends by itself. Calls fail from when it would have ended. */
static void maybe_fault(struct sim_stream *stream, const struct op *op, struct sim_work *work)
{
	static _Atomic uint64_t kernels;

	if (op->kind != SIM_KERNEL || ++kernels != settings()->fault)
		return;
	stream->context->fault_ns = work->end_ns;
	work->end_ns += NEVER_NS;
}

static bool is_nothing(const struct op *op)
{
	return (op->kind == SIM_COPY && copy_bytes(&op->copy) == 0) ||
	       (op->kind == SIM_SET && (op->set.width == 0 || op->set.rows == 0));
}

CUresult submit(struct sim_stream *stream, const struct op *op)
{
	struct sim_node *node = NULL;
	struct sim_work work = { 0 };
	uint64_t room = 0;
	CUresult result;

	if (is_nothing(op))
		return CUDA_SUCCESS;
	core_lock();
	if (stream->capture)
		result = capture_add(stream, op, &node);
	else if ((result = capture_permits_legacy(stream)) == CUDA_SUCCESS)
		work = schedule(stream, op, &room);
	if (result == CUDA_SUCCESS && !stream->capture)
		maybe_fault(stream, op, &work);
	core_unlock();
	if (result != CUDA_SUCCESS)
		return result;
	if (node) {
		tell_node(SIM_NODE_CREATED, node);
		return CUDA_SUCCESS;
	}
	wait_until(room);
	if (op->kind == SIM_HOST_FUNCTION)
		host_enqueue(&op->host, work.start_ns);
	perform(op, &work);
	return CUDA_SUCCESS;
}
