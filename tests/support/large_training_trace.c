/* SPDX-License-Identifier: MIT */
#include "tests/support/large_training_trace.h"
#include "tests/support/block_writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAYERS = LOAD_LAYERS,
	OPS = 12,
	ATTENTION = 6,
	PENDING = 8192,
	BATCH = 480,
	NAMES = 128,
	MAIN = 1,
	AUTOGRAD,
	CUPTI,
	COMPUTE = 7,
	COPIES = 13,
	NCCL = 20,
	ADDRESSES = 2 * LAYERS * OPS
};

/* What the communicators of a job do. Group 0 is the only one of load_write. */
static const struct {
	const char *kernel, *range;
} collectives[LOAD_GROUPS] = {
	{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"nccl:all_reduce" },
	{ "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl:all_gather" },
	{ "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"nccl:reduce_scatter" },
};

static const struct {
	const char *outer, *inner, *kernel, *backward;
	uint32_t gpu_ns;
} ops[OPS] = {
	{ "aten::layer_norm", "aten::native_layer_norm",
		"void at::native::vectorized_layer_norm_kernel<float, float>(int, float)",
		"NativeLayerNormBackward0", 30 },
	{ "aten::linear", "aten::addmm",
		"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "AddmmBackward0",
		210 },
	{ "aten::transpose", "aten::contiguous",
		"void at::native::elementwise_kernel<128, 4, direct_copy>(int, direct_copy)",
		"TransposeBackward0", 20 },
	{ "aten::scaled_dot_product_attention", "aten::_flash_attention_forward",
		"void flash_fwd_kernel<Flash_fwd_traits<64, 128> >(Flash_fwd_params)",
		"ScaledDotProductFlashAttentionBackward0", 160 },
	{ "aten::linear", "aten::addmm", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32",
		"AddmmBackward0", 90 },
	{ "aten::add", "aten::add_",
		"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >(int, "
		"CUDAFunctor_add<float>)",
		"AddBackward0", 25 },
	{ "aten::layer_norm", "aten::native_layer_norm",
		"void at::native::vectorized_layer_norm_kernel<float, float>(int, float)",
		"NativeLayerNormBackward0", 30 },
	{ "aten::linear", "aten::addmm",
		"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize256x128x32", "AddmmBackward0",
		250 },
	{ "aten::gelu", "aten::gelu_out",
		"void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>(int, "
		"GeluCUDAKernelImpl)",
		"GeluBackward0", 40 },
	{ "aten::linear", "aten::addmm",
		"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "AddmmBackward0",
		240 },
	{ "aten::dropout", "aten::native_dropout",
		"void at::native::fused_dropout_kernel_vec<float, float, 4>(TensorInfo)",
		"NativeDropoutBackward0", 35 },
	{ "aten::add", "aten::add_",
		"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >(int, "
		"CUDAFunctor_add<float>)",
		"AddBackward0", 25 },
};

struct load {
	struct block_writer *writer;
	const struct load_rank *rank; /* NULL: not of a job */
	uint32_t step;
	struct load_event *events;
	size_t count;
	uint64_t stamp, last; /* last: stamp of the record before */
	uint64_t gpu_free[LOAD_STREAMS];
	uint64_t allocated;
	uint32_t names, nodes, correlation, noise, tensors;
	/* offset of the payload's full LAUNCH record, which TRACE_AGAIN refers to; 0: none yet */
	size_t whole;
	uint64_t whole_correlation;
	uint8_t thread; /* its stream in the trace */
	unsigned pending_count;
	bool dictionary;
	struct pending {
		uint64_t start, end;
		uint32_t correlation, name, stream, bytes, kind;
	} pending[PENDING];
	struct {
		uint64_t address;
		uint32_t bytes;
	} held[ADDRESSES];
	unsigned held_count;
};

/* The numbers of names and nodes: the program's, in the order of put_dictionary. */
struct step_nodes {
	uint32_t data, to, model, layer[LAYERS], half[LAYERS][2], outer[LAYERS][OPS],
		inner[LAYERS][OPS], engine[LAYERS][OPS], backward[LAYERS][OPS],
		gradient[LAYERS][OPS], reduce[LAYERS][LOAD_GROUPS], step, fused, item;
};

static struct step_nodes step_nodes;
static uint32_t api_launch, api_copy, api_set, api_wait, kernel_adam, kernel_nccl[LOAD_GROUPS],
	kernel_of[OPS], kernel_back[OPS][2];

/* ---- the dictionary ---- */

static uint32_t put_name(struct load *load, const char *text)
{
	struct trace_name *record;

	if (load->writer->used > BLOCK_WRITER_PAYLOAD - 512)
		block_writer_seal(load->writer, TRACE_DICT, 0);
	record = block_writer_record(load->writer, TRACE_NAME, sizeof *record + strlen(text));
	record->name = ++load->names;
	record->bytes = (uint32_t)strlen(text);
	memcpy(record + 1, text, strlen(text));
	return load->names;
}

static uint32_t put_node(struct load *load, uint32_t parent, uint32_t link,
	enum trace_node_kind kind, const char *text)
{
	const uint32_t name = put_name(load, text);
	struct trace_node *record = block_writer_record(load->writer, TRACE_NODE, sizeof *record);

	record->head.node = ++load->nodes;
	record->parent = parent;
	record->name = name;
	record->kind = kind;
	record->link = link;
	return load->nodes;
}

static void put_layer(struct load *load, uint32_t layer)
{
	char text[128];

	snprintf(text, sizeof text, "layers.%u", layer);
	step_nodes.layer[layer] = put_node(load, step_nodes.model, 0, TRACE_NODE_MODULE, text);
	step_nodes.half[layer][0] = put_node(
		load, step_nodes.layer[layer], 0, TRACE_NODE_MODULE, "attn");
	step_nodes.half[layer][1] = put_node(
		load, step_nodes.layer[layer], 0, TRACE_NODE_MODULE, "mlp");
	for (uint32_t op = 0; op < OPS; op++) {
		step_nodes.outer[layer][op] = put_node(load,
			step_nodes.half[layer][op >= ATTENTION], 0, TRACE_NODE_OP, ops[op].outer);
		step_nodes.inner[layer][op] = put_node(
			load, step_nodes.outer[layer][op], 0, TRACE_NODE_OP, ops[op].inner);
		snprintf(text, sizeof text, "autograd::engine::evaluate_function: %s",
			ops[op].backward);
		step_nodes.engine[layer][op] = put_node(
			load, 0, step_nodes.outer[layer][op], TRACE_NODE_OP, text);
		step_nodes.backward[layer][op] = put_node(load, step_nodes.engine[layer][op],
			step_nodes.outer[layer][op], TRACE_NODE_BACKWARD, ops[op].backward);
		step_nodes.gradient[layer][op] = put_node(
			load, step_nodes.backward[layer][op], 0, TRACE_NODE_OP, "aten::mm");
	}
	for (uint32_t group = 0; group < (load->rank ? LOAD_GROUPS : 1); group++)
		step_nodes.reduce[layer][group] = put_node(
			load, 0, 0, TRACE_NODE_OP, collectives[group].range);
}

static void put_meta(struct load *load, const char *key, const char *value)
{
	struct trace_meta *meta = block_writer_record(
		load->writer, TRACE_META, sizeof *meta + strlen(key) + strlen(value));

	meta->key_bytes = (uint32_t)strlen(key);
	meta->value_bytes = (uint32_t)strlen(value);
	memcpy(meta + 1, key, strlen(key));
	memcpy((char *)(meta + 1) + strlen(key), value, strlen(value));
}

static void put_rank(struct load *load)
{
	char text[32], key[32];

	snprintf(text, sizeof text, "%u", load->rank->number);
	put_meta(load, "rank", text);
	snprintf(text, sizeof text, "%u", load->rank->world_size);
	if (load->rank->world_size)
		put_meta(load, "distributed.world_size", text);
	put_meta(load, "command", "python train.py");
	for (uint32_t group = 0; group < LOAD_GROUPS; group++) {
		snprintf(key, sizeof key, "stream.0.%u.group", NCCL + group);
		if (load->rank->group_names[group])
			put_meta(load, key, load->rank->group_names[group]);
	}
}

static void put_dictionary(struct load *load)
{
	struct trace_device *device;
	char text[160];

	step_nodes.data = put_node(load, 0, 0, TRACE_NODE_RANGE,
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	step_nodes.to = put_node(load, step_nodes.data, 0, TRACE_NODE_OP, "aten::to");
	step_nodes.model = put_node(load, 0, 0, TRACE_NODE_MODULE, "Transformer");
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		put_layer(load, layer);
	step_nodes.step = put_node(load, 0, 0, TRACE_NODE_OPTIMIZER, "Optimizer.step#AdamW.step");
	step_nodes.fused = put_node(load, step_nodes.step, 0, TRACE_NODE_OP, "aten::_fused_adamw_");
	step_nodes.item = put_node(load, 0, 0, TRACE_NODE_OP, "aten::item");
	api_launch = put_name(load, "cudaLaunchKernel");
	api_copy = put_name(load, "cudaMemcpyAsync");
	api_set = put_name(load, "cudaMemsetAsync");
	api_wait = put_name(load, "cudaStreamSynchronize");
	kernel_adam = put_name(load,
		"void at::native::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4> "
		">(long)");
	for (uint32_t group = 0; group < (load->rank ? LOAD_GROUPS : 1); group++)
		kernel_nccl[group] = put_name(load, collectives[group].kernel);
	for (uint32_t op = 0; op < OPS; op++) {
		kernel_of[op] = put_name(load, ops[op].kernel);
		for (uint32_t half = 0; half < 2; half++) {
			snprintf(text, sizeof text, "%s_bwd_%s", ops[op].kernel,
				half ? "weight" : "data");
			kernel_back[op][half] = put_name(load, text);
		}
	}
	if (load->rank)
		put_rank(load);
	device = block_writer_record(load->writer, TRACE_DEVICE, sizeof *device);
	device->name = put_name(load, "a device for measurements");
	device->multiprocessors = 132;
	block_writer_seal(load->writer, TRACE_DICT, 0);
}

/* ---- what a thread records ---- */

static void add_event(struct load *load, enum load_kind kind, uint64_t stamp, uint64_t value,
	uint32_t id, uint32_t name)
{
	if (load->events)
		load->events[load->count] = (struct load_event){ .stamp = stamp,
			.value = value,
			.id = id,
			.name = name,
			.kind = (uint8_t)kind,
			.thread = load->thread == AUTOGRAD };
	load->count++;
}

/* Advances the time by 200 to 711 ns. */
static uint64_t pass(struct load *load)
{
	load->noise = load->noise * 1664525u + 1013904223u;
	return load->stamp += 200 + (load->noise >> 23);
}

static void put_word(struct load *load, uint32_t word)
{
	word |= (uint32_t)(load->stamp - load->last) << 2;
	memcpy(load->writer->payload + load->writer->used, &word, sizeof word);
	load->writer->used += sizeof word;
	load->last = load->stamp;
}

static void push(struct load *load, uint32_t node)
{
	pass(load);
	put_word(load, 1 | node << 16);
	add_event(load, LOAD_PUSH, load->stamp, 0, 0, node);
}

static void pop(struct load *load)
{
	pass(load);
	put_word(load, 2);
	add_event(load, LOAD_POP, load->stamp, 0, 0, 0);
}

static void begin(struct load *load, uint8_t thread)
{
	pass(load);
	load->thread = thread;
	load->last = load->stamp;
	load->whole = 0;
	block_writer_begin(load->writer, load->stamp);
}

static void end(struct load *load)
{
	if (load->writer->used > BLOCK_WRITER_PAYLOAD)
		abort();
	block_writer_seal(load->writer, TRACE_CHUNK, load->thread);
}

/* Returns a time of the job's clock on that of the trace. */
static uint64_t own_time(const struct load *load, uint64_t time_ns)
{
	return time_ns + (uint64_t)(int64_t)((double)time_ns * load->rank->ppm * 1e-6);
}

/* Enqueues collective `layer` of this step, whose times are known. One in which the job hangs never
 * ends. */
static void enqueue_collective(struct load *load, uint32_t layer, uint32_t group)
{
	const size_t index = (size_t)load->step * LAYERS + layer;

	if (load->step == load->rank->hang_step)
		return;
	if (load->pending_count == PENDING)
		abort();
	load->pending[load->pending_count++] = (struct pending){
		own_time(load, load->rank->begins[index]), own_time(load, load->rank->ends[index]),
		load->correlation, kernel_nccl[group], NCCL + group, 0, TRACE_KERNEL
	};
}

/* Enqueues the GPU work of a call at the present time. */
static void enqueue(struct load *load, enum trace_kind kind, uint32_t name, uint32_t stream,
	uint32_t gpu_ns, uint32_t bytes)
{
	const uint64_t now = load->stamp + 3000,
		       start = load->gpu_free[stream] > now ? load->gpu_free[stream] : now;

	if (load->pending_count == PENDING)
		abort();
	load->gpu_free[stream] = start + gpu_ns + (load->noise >> 25);
	load->pending[load->pending_count++] = (struct pending){ start, load->gpu_free[stream],
		load->correlation, name, stream, bytes, kind };
}

static void fill_call(struct load *load, struct trace_call *call, uint32_t node, uint32_t api)
{
	call->head.node = node;
	call->stamp = load->last = load->stamp;
	call->duration = 100;
	call->correlation = load->correlation;
	call->api = api;
}

static void call_launch(struct load *load, uint32_t node)
{
	struct trace_launch *whole;
	struct trace_again *again;

	pass(load);
	load->correlation += 1 + (load->noise >> 30);
	if (!load->whole) {
		whole = block_writer_record(load->writer, TRACE_LAUNCH, sizeof *whole);
		load->whole = (size_t)((unsigned char *)whole - load->writer->payload);
		load->whole_correlation = load->correlation;
		fill_call(load, &whole->call, node, api_launch);
		whole->grid[0] = whole->block[0] = 128;
	} else {
		again = block_writer_record(load->writer, TRACE_AGAIN, sizeof *again);
		again->head.node = node;
		again->stamp = load->last = load->stamp;
		again->duration = 100;
		again->of = (uint16_t)(load->whole / 8);
		again->correlation = (uint16_t)(load->correlation - load->whole_correlation);
	}
	add_event(load, LOAD_CALL, load->stamp, 100, load->correlation, api_launch);
}

static void launch(
	struct load *load, uint32_t node, uint32_t kernel, uint32_t stream, uint32_t gpu_ns)
{
	call_launch(load, node);
	enqueue(load, TRACE_KERNEL, kernel, stream, gpu_ns, 0);
}

static void copy(struct load *load, enum trace_kind kind, uint32_t node, uint32_t bytes)
{
	const bool set = kind == TRACE_SET;
	struct trace_copy *record;

	pass(load);
	load->correlation++;
	record = block_writer_record(load->writer, kind, sizeof *record);
	fill_call(load, &record->call, node, set ? api_set : api_copy);
	record->bytes = bytes;
	record->copy_kind = !set;
	add_event(load, LOAD_CALL, load->stamp, 100, load->correlation, set ? api_set : api_copy);
	enqueue(load, set ? TRACE_GPU_SET : TRACE_GPU_COPY, 0, COPIES, 900, bytes);
}

/* Waits until all work launched so far on the compute stream is done. */
static void wait_for_gpu(struct load *load, uint32_t node)
{
	struct trace_sync *record;
	const uint64_t before = load->stamp;

	if (load->gpu_free[COMPUTE] > load->stamp)
		load->stamp = load->gpu_free[COMPUTE];
	pass(load);
	record = block_writer_record(load->writer, TRACE_SYNC, sizeof *record);
	load->correlation++;
	fill_call(load, &record->call, node, api_wait);
	record->call.duration = load->stamp - before;
	record->type = TRACE_SYNC_STREAM;
	add_event(load, LOAD_WAIT, load->stamp, load->stamp - before, 0, api_wait);
}

/* One record of 64 is a whole one. */
static void tensor(struct load *load, uint32_t node, bool freed, uint64_t address, uint32_t bytes)
{
	pass(load);
	load->allocated += freed ? 0 - (uint64_t)bytes : bytes;
	if (load->tensors++ % TRACE_TENSOR_RUN == 0) {
		struct trace_tensor *record = block_writer_record(
			load->writer, TRACE_TENSOR, sizeof *record);

		record->head.node = node;
		record->stamp = load->last = load->stamp;
		record->address = address;
		record->bytes = freed ? -(int64_t)bytes : (int64_t)bytes;
		record->allocated = load->allocated;
		record->reserved = UINT64_C(8) << 30;
	} else {
		struct trace_tensor_next *record = block_writer_record(
			load->writer, TRACE_TENSOR_NEXT, sizeof *record);

		record->head.node = node;
		record->head.flags = freed ? TRACE_TENSOR_FREED : 0;
		record->stamp = load->last = load->stamp;
		record->block = address / TRACE_TENSOR_UNIT | (uint64_t)(bytes / TRACE_TENSOR_UNIT)
								      << TRACE_TENSOR_BYTES_BIT;
	}
	add_event(load, freed ? LOAD_FREE : LOAD_ALLOC, load->stamp, address, bytes, 0);
}

static void allocate_tensor(struct load *load, uint32_t node)
{
	const uint64_t address = (UINT64_C(1) << 32) + (uint64_t)load->held_count * 65536;
	const uint32_t bytes = 512 * (1 + load->held_count % 96);

	load->held[load->held_count].address = address;
	load->held[load->held_count++].bytes = bytes;
	tensor(load, node, false, address, bytes);
}

static void free_last_tensor(struct load *load, uint32_t node)
{
	load->held_count--;
	tensor(load, node, true, load->held[load->held_count].address,
		load->held[load->held_count].bytes);
}

/* ---- a step ---- */

static void forward(struct load *load)
{
	push(load, step_nodes.model);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		push(load, step_nodes.layer[layer]);
		for (uint32_t op = 0; op < OPS; op++) {
			if (op % ATTENTION == 0)
				push(load, step_nodes.half[layer][op >= ATTENTION]);
			push(load, step_nodes.outer[layer][op]);
			push(load, step_nodes.inner[layer][op]);
			allocate_tensor(load, step_nodes.inner[layer][op]);
			launch(load, step_nodes.inner[layer][op], kernel_of[op], COMPUTE,
				ops[op].gpu_ns * 30);
			pop(load);
			pop(load);
			if (op % ATTENTION == ATTENTION - 1)
				pop(load);
		}
		pop(load);
	}
	pop(load);
}

/* The collectives of a step are numbered in the order in which they are launched. */
static void reduce(struct load *load, uint32_t layer)
{
	const uint32_t number = LAYERS - 1 - layer,
		       group = load->rank ? load->rank->groups[number] : 0;

	push(load, step_nodes.reduce[layer][group]);
	if (load->rank) {
		call_launch(load, step_nodes.reduce[layer][group]);
		enqueue_collective(load, number, group);
	} else {
		launch(load, step_nodes.reduce[layer][0], kernel_nccl[0], NCCL, 40000);
	}
	pop(load);
}

static void backward(struct load *load)
{
	for (uint32_t layer = LAYERS; layer-- > 0;) {
		for (uint32_t op = OPS; op-- > 0;) {
			const uint32_t node = step_nodes.gradient[layer][op];

			push(load, step_nodes.engine[layer][op]);
			push(load, step_nodes.backward[layer][op]);
			push(load, node);
			allocate_tensor(load, node);
			launch(load, node, kernel_back[op][0], COMPUTE, ops[op].gpu_ns * 30);
			pop(load);
			launch(load, step_nodes.backward[layer][op], kernel_back[op][1], COMPUTE,
				ops[op].gpu_ns * 30);
			free_last_tensor(load, step_nodes.backward[layer][op]);
			pop(load);
			free_last_tensor(load, step_nodes.engine[layer][op]);
			pop(load);
		}
		reduce(load, layer);
	}
}

static void fetch(struct load *load)
{
	push(load, step_nodes.data);
	if (load->rank && load->step % 4)
		load->stamp += load->rank->delay_ns;
	push(load, step_nodes.to);
	copy(load, TRACE_COPY, step_nodes.to, 1 << 20);
	copy(load, TRACE_SET, step_nodes.to, 4096);
	pop(load);
	pop(load);
}

static void update(struct load *load)
{
	push(load, step_nodes.step);
	push(load, step_nodes.fused);
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		launch(load, step_nodes.fused, kernel_adam, COMPUTE, 6000);
	pop(load);
	pop(load);
	push(load, step_nodes.item);
	wait_for_gpu(load, step_nodes.item);
	pop(load);
}

/* ---- what CUPTI delivers ---- */

static int by_start(const void *a, const void *b)
{
	const struct pending *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

static void put_gpu(struct load *load, const struct pending *work)
{
	const bool kernel = work->kind == TRACE_KERNEL;
	struct trace_gpu *gpu = block_writer_record(load->writer, (enum trace_kind)work->kind,
		kernel ? sizeof(struct trace_kernel) : sizeof(struct trace_gpu_copy));

	gpu->start_ns = load->writer->unix_ns + work->start;
	gpu->end_ns = load->writer->unix_ns + work->end;
	gpu->correlation = work->correlation;
	gpu->context = 1;
	gpu->stream = work->stream;
	if (kernel) {
		struct trace_kernel *record = (struct trace_kernel *)(void *)gpu;

		record->name = work->name;
		record->registers = 32;
		record->grid[0] = 128 * (1 + work->name % 4);
		record->grid[1] = record->grid[2] = record->block[1] = record->block[2] = 1;
		record->block[0] = 128;
	} else {
		((struct trace_gpu_copy *)(void *)gpu)->bytes = work->bytes;
		((struct trace_gpu_copy *)(void *)gpu)->copy_kind = work->kind == TRACE_GPU_COPY;
	}
	add_event(load, LOAD_WORK, work->start, work->end - work->start, work->correlation,
		kernel ? work->name : work->kind + 1000u);
	if (load->events)
		load->events[load->count - 1].stream = (uint8_t)work->stream;
}

/* Writes all pending GPU records by start time, in blocks of the thread that reads CUPTI's
 * buffers. */
static void deliver(struct load *load)
{
	struct trace_gpu_batch *batch;

	if (load->pending_count)
		qsort(load->pending, load->pending_count, sizeof *load->pending, by_start);
	for (unsigned first = 0; first < load->pending_count; first += BATCH) {
		const unsigned count = load->pending_count - first < BATCH
					       ? load->pending_count - first
					       : BATCH;

		begin(load, CUPTI);
		batch = block_writer_record(load->writer, TRACE_GPU_BATCH, sizeof *batch);
		batch->stamp = load->stamp;
		batch->records = count;
		for (unsigned i = first; i < first + count; i++)
			put_gpu(load, &load->pending[i]);
		end(load);
	}
	load->pending_count = 0;
}

static void step(struct load *load)
{
	begin(load, MAIN);
	fetch(load);
	forward(load);
	end(load);
	begin(load, AUTOGRAD);
	backward(load);
	end(load);
	begin(load, MAIN);
	update(load);
	end(load);
	if (load->pending_count > PENDING - 1024)
		deliver(load);
}

/* The last step of a job that hangs, of which CUPTI delivers nothing. */
static void step_that_hangs(struct load *load)
{
	begin(load, MAIN);
	push(load, step_nodes.data);
	if (load->rank->absent) {
		push(load, step_nodes.to);
		end(load);
		return;
	}
	pop(load);
	forward(load);
	end(load);
	begin(load, AUTOGRAD);
	backward(load);
	end(load);
	begin(load, MAIN);
	push(load, step_nodes.item);
	end(load);
}

uint64_t load_write_rank(const char *path, uint32_t steps, const struct load_rank *rank)
{
	struct load *load = calloc(1, sizeof *load);
	uint64_t bytes;

	if (!load)
		abort();
	load->stamp = 1000;
	load->rank = rank;
	load->writer = block_writer_open(path);
	load->writer->unix_ns = rank->unix_ns;
	load->writer->run_id = rank->run_id;
	load->writer->pid = rank->pid;
	load->writer->killed = rank->hang_step != UINT32_MAX;
	put_dictionary(load);
	for (; load->step < steps && load->step != rank->hang_step; load->step++) {
		const uint64_t begins = own_time(load, 1000000 + load->step * LOAD_STEP_NS);

		load->stamp = load->stamp < begins ? begins : load->stamp;
		step(load);
	}
	deliver(load);
	if (load->step == rank->hang_step)
		step_that_hangs(load);
	bytes = block_writer_close(load->writer, CUPTI);
	free(load);
	return bytes;
}

uint64_t load_write(const char *path, uint32_t steps, struct load_event *events, size_t *count)
{
	struct load *load = calloc(1, sizeof *load);
	uint64_t bytes;

	if (!load)
		abort();
	load->stamp = 1000;
	load->events = events;
	load->writer = block_writer_open(path);
	put_dictionary(load);
	for (uint32_t i = 0; i < steps; i++)
		step(load);
	deliver(load);
	bytes = block_writer_close(load->writer, CUPTI);
	*count = load->count;
	free(load);
	return bytes;
}
