/* SPDX-License-Identifier: MIT */
#include "report/profile/joined_observers.h"
#include <assert.h>
#include <string.h>

/* X(callback, parameters after the context, arguments) */
#define CALLBACKS(X)                                                                          \
	X(leaf, (uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns),          \
		(node, is_work, at_ns, duration_ns))                                          \
	X(instance, (uint32_t node, uint64_t at_ns, long double value), (node, at_ns, value)) \
	X(ended, (const struct observed_instance *instance), (instance))                      \
	X(segment, (const struct observed_segment *part), (part))                             \
	X(level, (uint64_t at_ns, int64_t allocated, int64_t reserved),                       \
		(at_ns, allocated, reserved))                                                 \
	X(memory, (const struct observed_memory *memory), (memory))                           \
	X(memory_record, (const struct observed_memory *memory), (memory))                    \
	X(call, (const struct observed_call *call), (call))                                   \
	X(work, (const struct observed_gpu_work *work), (work))                               \
	X(mapping, (const struct observed_mapping *seen), (seen))                             \
	X(memory_mark, (const struct trace_event *event), (event))                            \
	X(sample, (const struct observed_sample *sample), (sample))                           \
	X(record, (const struct trace_event *event), (event))                                 \
	X(counter, (const struct trace_event *event, uint32_t node, bool counts),             \
		(event, node, counts))                                                        \
	X(counting, (bool counts, uint64_t at_ns), (counts, at_ns))

enum {
#define X(callback, parameters, arguments) INDEX_OF_##callback,
	CALLBACKS(X)
#undef X
		INDEX_OF_closed,
	CALLBACK_COUNT
};

static_assert(CALLBACK_COUNT <= JOINED_CALLBACKS, "room for the observers of each callback");

#define WITHOUT_PARENTHESES(...) __VA_ARGS__
#define X(callback, parameters, arguments)                                                   \
	static void each_##callback(void *context, WITHOUT_PARENTHESES parameters)           \
	{                                                                                    \
		const struct joined_observers *joined = context;                             \
		const struct joined_callback *with = &joined->with[INDEX_OF_##callback];     \
                                                                                             \
		for (unsigned i = 0; i < with->count; i++)                                   \
			with->observers[i]->callback(                                        \
				with->observers[i]->context, WITHOUT_PARENTHESES arguments); \
	}
CALLBACKS(X)
#undef X

static void each_closed(void *context, const struct observed_instance *instance)
{
	const struct joined_observers *joined = context;
	const struct joined_callback *with = &joined->with[INDEX_OF_closed];

	for (unsigned i = 0; i < with->count; i++) {
		const struct profile_observer *one = with->observers[i];

		if (!one->closed_nodes || (instance->node < one->closed_node_count &&
						  one->closed_nodes[instance->node]))
			one->closed(one->context, instance);
	}
}

static void each_restart(void *context)
{
	const struct joined_observers *joined = context;

	for (unsigned i = 0; i < joined->count; i++)
		if (joined->observers[i]->restart)
			joined->observers[i]->restart(joined->observers[i]->context);
}

static void add_joined(struct joined_callback *with, const struct profile_observer *one)
{
	with->observers[with->count++] = one;
}

struct profile_observer observers_join(struct joined_observers *joined)
{
	struct profile_observer all = {
		.context = joined, .restart = each_restart, .memory_may_be_later = true
	};

	memset(joined->with, 0, sizeof joined->with);
	for (unsigned i = 0; i < joined->count; i++) {
		const struct profile_observer *one = joined->observers[i];

#define X(callback, parameters, arguments)                           \
	if (one->callback) {                                         \
		all.callback = each_##callback;                      \
		add_joined(&joined->with[INDEX_OF_##callback], one); \
	}
		CALLBACKS(X)
#undef X
		if (one->memory || one->memory_record)
			all.memory_may_be_later &= one->memory_may_be_later;
		all.closed_nodes = !all.closed && one->closed ? one->closed_nodes
				   : one->closed              ? NULL
							      : all.closed_nodes;
		all.closed_node_count = one->closed_node_count ? one->closed_node_count
							       : all.closed_node_count;
		if (one->closed) {
			all.closed = each_closed;
			add_joined(&joined->with[INDEX_OF_closed], one);
		}
	}
	return all;
}
