/* SPDX-License-Identifier: MIT
 * The callbacks run inside the program's operators, on any thread. They call nothing but the
 * collector and PyTorch's own getters, throw nothing and allocate nothing. Each scope has its
 * own set of callbacks, so that none has to query the scope. PyTorch copies their addresses into
 * every running operator, so they are also called after exit handlers have run, and in a forked
 * child.
 */
#include "preload/torch/operators.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "collector/file/trace_file.h"
#include "collector/stream/recording_switch.h"
#include "collector/stream/schedule.h"
#include "preload/torch/async_ranges.h"
#include "preload/torch/record_function_layout.h"
#include "preload/torch/libraries.h"
#include "preload/torch/autograd_sequence.h"
#include "preload/torch/input_shapes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The values of at::RecordScope that are used here. */
enum record_scope {
	SCOPE_FUNCTION = 0,
	SCOPE_BACKWARD = 1,
	SCOPE_TORCHSCRIPT = 2,
	SCOPE_USER = 7,
	SCOPES = 10
};

/* Mirrors at::RecordFunctionCallback. */
struct record_callback {
	void *(*start)(void **result, const void *record_function);
	void (*end)(const void *record_function, void *context);
	double sampling_probability;
	bool scopes[SCOPES];
	bool needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct record_callback) == 40, "as set in PyTorch");

/* Mangled names of PyTorch's functions. */
#define ADD_CALLBACK "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define NAME "_ZNK2at14RecordFunction4nameEv"
#define THREAD "_ZN2at14RecordFunction15currentThreadIdEv"
#define SEQUENCE "_ZN2at15sequence_number4peekEv"
#define REMOVE_CALLBACK "_ZN2at14removeCallbackEm"
#define GRAD_MODE "_ZN3c108GradMode10is_enabledEv"

static const char *(*record_function_name)(const void *record_function);
static uint64_t (*nodes_made)(void); /* NULL: unknown */
static bool (*grad_mode)(void);      /* NULL: unknown */

static bool wanted, with_shapes, in_children; /* wanted: false also if the library is disabled */
static bool counting; /* PPERF_OPS=totals: operators leave no records, ranges of the program do */
/* Set in a forked child without a file: nothing is recorded until another event creates the
 * file. */
static _Atomic bool deferred;
static _Atomic uint64_t unlinked; /* autograd nodes that have a number but no known operator */

bool torch_ops_configure(const char *what, bool shapes, bool children)
{
	const bool off = what && !strcmp(what, "off");

	wanted = !off;
	counting = what && !strcmp(what, "totals");
	with_shapes = shapes;
	in_children = children;
	if (off)
		meta_set("source.torch_ops", "off: PPERF_OPS=off (0)");
	return !what || off || !strcmp(what, "events") || !strcmp(what, "totals");
}

/* ---- fields of a RecordFunction ---- */

static inline unsigned layout_known(void)
{
	return atomic_load_explicit(&torch_layout_known, memory_order_acquire);
}

static inline int64_t sequence_of(const void *record_function)
{
	return *(const int64_t *)(const void *)((const char *)record_function +
						torch_layout.sequence);
}

static inline uint64_t forward_thread_of(const void *record_function)
{
	return *(const uint64_t *)(const void *)((const char *)record_function +
						 torch_layout.forward_thread);
}

/* Returns whether the range may end on another thread. Without a measured offset, the work of
 * communication libraries is recognised by its name. */
static bool is_async(const void *record_function, const char *name)
{
	static const char *const libraries[] = { "nccl:", "gloo:", "ucc:", "mpi:", "xccl:" };

	if (layout_known() & TORCH_KNOWS_ASYNC)
		return ((const uint8_t *)record_function)[torch_layout.asynchronous] == 1;
	for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
		if (!strncmp(name, libraries[i], strlen(libraries[i])))
			return true;
	return false;
}

/* ---- start callbacks ---- */

/* Returns whether the operator must be skipped in a forked child. A child that only computes,
 * such as a data loader worker, gets no file until it calls CUDA or NVTX. */
static bool is_operator_deferred(void)
{
	if (!trace_header())
		return true;
	atomic_store(&deferred, false);
	return false;
}

/* Handles the rare cases. Returns true if the operator must not be recorded. */
static inline bool skip_start(const void *record_function, const char *name, bool backward)
{
	if (__builtin_expect(layout_known() & TORCH_MEASURING, 0) &&
		torch_layout_watch(record_function, name, backward))
		return true;
	if (__builtin_expect(atomic_load_explicit(&deferred, memory_order_relaxed), 0) &&
		is_operator_deferred())
		return true;
	torch_async_close_ended(record_function);
	return false;
}

/* Removes the operators' callbacks if recording was paused before there was one, or while the
 * measurement still needed them. */
static __attribute__((noinline)) void remove_callbacks_while_paused(void)
{
	if (layout_known() & TORCH_MEASURING || !(layout_known() & TORCH_KNOWS_LINKS))
		return;
	torch_ops_record(false);
	if (!recording_is_paused()) /* resumed meanwhile */
		torch_ops_record(true);
}

static inline uint32_t open_operator_range(const void *record_function, const char *name,
	enum trace_node_kind kind, uint32_t link, uint32_t shapes)
{
	return counting ? range_open_counted(record_function, name, kind, link, shapes)
			: range_open(record_function, name, kind, link, shapes);
}

/* autograd's engine runs each function in a range of its own. In that range it also computes
 * sums of its own, over broadcast dimensions or of two gradients of one tensor. These have no
 * sequence number, so they are linked to the operator of that function.
 *
 * AccumulateGrad is linked to the operator of the function before it. The engine runs it
 * immediately after the last function that contributed to its gradient. */
#define ENGINE "autograd::engine::evaluate_function: "
#define ACCUMULATES ENGINE "torch::autograd::AccumulateGrad"

static _Thread_local struct {
	uint32_t node; /* of the last engine range on this thread */
	/* Operator of the function in that range (AccumulateGrad: in the range before).
	 * 0: unknown. */
	uint32_t link;
} engine __attribute__((tls_model("initial-exec")));

static inline bool is_engine_range(const char *name)
{
	return name[0] == 'a' && name[1] == 'u' && !strncmp(name, ENGINE, sizeof ENGINE - 1);
}

static void engine_begins(const char *name, uint32_t node)
{
	engine.node = node;
	if (strcmp(name, ACCUMULATES) != 0)
		engine.link = 0;
}

static inline bool in_engine(void)
{
	return engine.node && range_is_innermost(engine.node);
}

/* The last backward function that began on this thread.
 *
 * Activation checkpointing computes the forward pass again inside of a backward function, with
 * gradients enabled. The function itself runs without, unless create_graph is set. So operators
 * that a function calls after enabling gradients belong to the recomputation. */
static _Thread_local struct {
	uint32_t node; /* 0: none */
	/* Operator of the function. 0: unknown, or gradients are enabled. */
	uint32_t link;
} function __attribute__((tls_model("initial-exec")));

bool torch_ops_in_backward(void)
{
	return function.node && range_is_innermost(function.node);
}

/* Returns the operator to which an operator is linked, 0: none (struct trace_node). */
static inline uint32_t operator_link(void)
{
	if (engine.link && in_engine())
		return engine.link;
	if (__builtin_expect(function.link && torch_ops_in_backward(), 0) && grad_mode())
		return function.link;
	return 0;
}

static void *start_operator(void **result, const void *record_function)
{
	const char *name = record_function_name(record_function);
	uint32_t node, shapes = 0;
	int64_t sequence;

	*result = NULL;
	if (skip_start(record_function, name, false))
		return result;
	if (recording_is_paused())
		remove_callbacks_while_paused();
	if (__builtin_expect(with_shapes, 0) && layout_known() & TORCH_KNOWS_SHAPES)
		shapes = torch_shapes_name((const char *)record_function + torch_layout.inputs);
	node = open_operator_range(record_function, name, TRACE_NODE_OP, operator_link(), shapes);
	if (__builtin_expect(is_engine_range(name), 0))
		engine_begins(name, node);
	if (node && layout_known() & TORCH_KNOWS_LINKS) {
		sequence = sequence_of(record_function);
		if (sequence >= 0)
			torch_sequence_record((uint64_t)sequence, node);
	}
	return result;
}

/* Counts an autograd node without a known operator. META is written at powers of two, because
 * the process may be killed. */
static __attribute__((noinline)) void count_unlinked(void)
{
	uint64_t count = atomic_fetch_add(&unlinked, 1) + 1;
	char text[24];

	if (count & (count - 1))
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)count);
	meta_set("torch.unlinked", text);
}

/* Returns the node of the operator that created an autograd node, or 0 if it is unknown. Nodes
 * that accumulate gradients have no sequence number. */
static uint32_t backward_link(const void *record_function)
{
	int64_t sequence = layout_known() & TORCH_KNOWS_LINKS ? sequence_of(record_function) : -1;
	uint32_t link = sequence < 0 ? 0
				     : torch_sequence_node(forward_thread_of(record_function),
					       (uint64_t)sequence);

	if (sequence >= 0 && !link)
		count_unlinked();
	return link;
}

static void *start_backward(void **result, const void *record_function)
{
	const char *name = record_function_name(record_function);
	uint32_t link;

	*result = NULL;
	if (skip_start(record_function, name, true))
		return result;
	link = backward_link(record_function);
	if (in_engine())
		link = engine.link = link ? link : engine.link;
	function.node = open_operator_range(record_function, name, TRACE_NODE_BACKWARD, link, 0);
	function.link = grad_mode && !grad_mode() ? link : 0;
	return result;
}

static bool is_optimizer(const char *name)
{
	return name[0] == 'O' && (!strncmp(name, "Optimizer.step#", 15) ||
					 !strncmp(name, "Optimizer.zero_grad#", 20));
}

static void *start_user(void **result, const void *record_function)
{
	const char *name = record_function_name(record_function);
	bool step;

	*result = NULL;
	if (skip_start(record_function, name, false))
		return result;
	step = schedule_wanted && schedule_range_begins(name);
	if (is_async(record_function, name))
		torch_async_begin(record_function, name);
	else
		range_open(record_function, name,
			is_optimizer(name) ? TRACE_NODE_OPTIMIZER : TRACE_NODE_RANGE, 0, 0);
	if (step)
		schedule_range_opened((uintptr_t)record_function);
	return result;
}

/* ---- end callbacks ---- */

/* Handles the same rare cases as skip_start. A range that was skipped is not searched for,
 * because the search would create the thread's stream and the file. */
static inline bool skip_end(void)
{
	if (__builtin_expect(layout_known() & TORCH_MEASURING, 0) && torch_layout_is_ours())
		return true;
	return __builtin_expect(atomic_load_explicit(&deferred, memory_order_relaxed), 0);
}

static void end_operator(const void *record_function, void *context)
{
	(void)context;
	if (skip_end())
		return;
	if (counting)
		range_close_counted(record_function);
	else
		range_close(record_function);
}

static void end_user(const void *record_function, void *context)
{
	(void)context;
	if (skip_end())
		return;
	if (!range_close(record_function) && !torch_async_end(record_function))
		torch_async_ended_elsewhere(record_function);
	if (schedule_wanted)
		schedule_range_ended((uintptr_t)record_function);
}

/* ---- start ---- */

/* Whether a C function can be a `start` callback, which returns an object. On x86-64 the address
 * of such a result is passed as the first argument and returned. Elsewhere it is passed in a
 * register that C cannot read. */
#if defined(__x86_64__)
#define RESULTS_COME_BY_ARGUMENT true
#else
#define RESULTS_COME_BY_ARGUMENT false
#endif

enum { OPERATORS, BACKWARD, USER, CALLBACKS };

static const struct record_callback callbacks[CALLBACKS] = {
	[OPERATORS] = { .start = start_operator,
		.end = end_operator,
		.sampling_probability = 1.0,
		.scopes = { [SCOPE_FUNCTION] = true, [SCOPE_TORCHSCRIPT] = true } },
	[BACKWARD] = { .start = start_backward,
		.end = end_operator,
		.sampling_probability = 1.0,
		.scopes = { [SCOPE_BACKWARD] = true } },
	[USER] = { .start = start_user,
		.end = end_user,
		.sampling_probability = 1.0,
		.scopes = { [SCOPE_USER] = true } },
};

static uint64_t (*add_global_callback)(struct record_callback);
static void (*remove_callback)(uint64_t handle); /* NULL: unknown, the callbacks stay */
static _Atomic uint64_t handles[CALLBACKS];      /* 0: not registered */

/* The struct is passed by value, as its C++ twin is, because that is trivially copyable. */
static void add_callback(int which)
{
	struct record_callback callback = callbacks[which];

	callback.needs_inputs = with_shapes && callback.scopes[SCOPE_FUNCTION];
	atomic_store(&handles[which], add_global_callback(callback));
}

static bool add_callbacks(void)
{
	*(void **)&add_global_callback = torch_symbol(TORCH_CPU, ADD_CALLBACK);
	*(void **)&record_function_name = torch_symbol(TORCH_CPU, NAME);
	*(void **)&remove_callback = torch_symbol(TORCH_CPU, REMOVE_CALLBACK);
	*(void **)&nodes_made = torch_symbol(TORCH_CPU, SEQUENCE);
	*(void **)&grad_mode = torch_symbol(TORCH_C10, GRAD_MODE);
	if (!add_global_callback || !record_function_name || !RESULTS_COME_BY_ARGUMENT) {
		meta_set("source.torch_ops",
			RESULTS_COME_BY_ARGUMENT
				? "off: this PyTorch has no known callback interface (1)"
				: "off: not supported on this processor architecture (2)");
		return false;
	}
	for (int i = 0; i < CALLBACKS; i++)
		add_callback(i);
	return true;
}

/* PyTorch takes a lock for this, and calls no callback under it. */
void torch_ops_record(bool on)
{
	for (int i = 0; i < CALLBACKS; i++) {
		uint64_t handle = atomic_load(&handles[i]);

		if (i == USER || !remove_callback || !add_global_callback)
			continue;
		if (on && !handle)
			add_callback(i);
		else if (!on && handle && atomic_compare_exchange_strong(&handles[i], &handle, 0))
			remove_callback(handle);
	}
}

bool torch_ops_are_events(void)
{
	return !counting && !atomic_load(&deferred) && atomic_load(&handles[OPERATORS]);
}

uint64_t torch_ops_nodes(void)
{
	return nodes_made ? nodes_made() : 0;
}

/* Prepares the links of autograd nodes. Without them operators are still recorded. */
static void prepare_links(void)
{
	struct torch_number_functions numbers = { 0 };

	*(void **)&numbers.thread = torch_symbol(TORCH_CPU, THREAD);
	*(void **)&numbers.sequence = torch_symbol(TORCH_CPU, SEQUENCE);
	if (!numbers.thread || !numbers.sequence) {
		meta_set("source.torch_ops", "partial: backward is not linked to forward: this "
					     "PyTorch does not expose sequence numbers");
		return;
	}
	torch_sequence_configure(numbers.thread);
	torch_layout_configure(&numbers, with_shapes);
	meta_set("source.torch_ops",
		"partial: backward is not linked to forward: PyTorch was not imported completely");
}

bool torch_ops_start(void)
{
	/* 0: not started
	 * 1: one thread is registering
	 * 2: registered
	 * 3: impossible */
	static _Atomic int start_state;
	int saved = errno, before = 0;

	if (!wanted || !torch_library(TORCH_CPU))
		return false;
	if (atomic_compare_exchange_strong(&start_state, &before, 1)) {
		prepare_links();
		before = add_callbacks() ? 2 : 3;
		atomic_store(&start_state, before);
	}
	errno = saved;
	return before == 2;
}

void torch_ops_forked(void)
{
	if (wanted && !in_children)
		atomic_store(&deferred, true);
}

void torch_ops_finish(void)
{
	uint64_t count = atomic_load(&unlinked);
	char text[24];

	if (!count)
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)count);
	meta_set("torch.unlinked", text);
}
