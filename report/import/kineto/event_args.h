/* SPDX-License-Identifier: MIT
 * Reads the arguments of an event that the importer uses. One list defines both the enumerators and
 * the keys.
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_EVENT_ARGS_H
#define PPERF_REPORT_IMPORT_KINETO_EVENT_ARGS_H

#include "report/text/json_keys.h"

#define KINETO_ARGS(X)                                        \
	X(EXTERNAL, "External id")                            \
	X(EXTERNAL_OLD, "external id")                        \
	X(SEQUENCE, "Sequence number")                        \
	X(SHAPES, "Input Dims")                               \
	X(SHAPES_OLD, "Input dims")                           \
	X(TYPES, "Input type")                                \
	X(VALUES, "Concrete Inputs")                          \
	X(FLOPS, "flops")                                     \
	X(STACK, "Call stack")                                \
	X(FORWARD, "Fwd thread id")                           \
	X(CORRELATION, "correlation")                         \
	X(DEVICE, "device")                                   \
	X(STREAM, "stream")                                   \
	X(CONTEXT, "context")                                 \
	X(GRID, "grid")                                       \
	X(BLOCK, "block")                                     \
	X(REGISTERS, "registers per thread")                  \
	X(SHARED, "shared memory")                            \
	X(BYTES, "bytes")                                     \
	X(GRAPH_NODE, "graph node id")                        \
	X(GRAPH, "graph id")                                  \
	X(ALLOC_BYTES, "Bytes")                               \
	X(ADDRESS, "Addr")                                    \
	X(ALLOCATED, "Total Allocated")                       \
	X(RESERVED, "Total Reserved")                         \
	X(DEVICE_ID, "Device Id")                             \
	X(DEVICE_TYPE, "Device Type")                         \
	X(WAITED_EVENT, "wait_on_cuda_event_id")              \
	X(WAITED_STREAM, "wait_on_stream")                    \
	X(WAITED_RECORD, "wait_on_cuda_event_record_corr_id") \
	X(GROUP, "Process Group Name")                        \
	X(GROUP_RANKS, "Process Group Ranks")                 \
	X(GROUP_SEQUENCE, "Seq")                              \
	X(COLLECTIVE, "Collective name")                      \
	X(ELEMENTS_IN, "In msg nelems")                       \
	X(ELEMENTS_OUT, "Out msg nelems")                     \
	X(ELEMENT_TYPE, "dtype")                              \
	X(GROUP_SIZE, "Group size")                           \
	X(KERNEL, "kernel")                                   \
	X(NAME, "name")                                       \
	X(LABELS, "labels")

enum kineto_arg {
#define X(arg, key) KINETO_##arg,
	KINETO_ARGS(X)
#undef X
		KINETO_ARG_COUNT
};

struct kineto_args {
	struct json_text values[KINETO_ARG_COUNT]; /* form 0: absent */
};

void kineto_args_clear(struct kineto_args *args);
/* Reads an object of arguments. A value that is not an object is skipped. `keys`: cache of the
 * key order, for events of one class. Returns false with scan->problem. */
bool kineto_args_read(struct json_scanner *scan, struct json_keys *keys, struct kineto_args *args);
/* Returns the enum kineto_arg of `key`, or KINETO_ARG_COUNT if it is not used. */
unsigned kineto_arg_of_key(const struct json_text *key);

/* Returns an argument as a number. Returns 0 if it is absent or not a number. */
uint64_t kineto_arg(const struct kineto_args *args, enum kineto_arg arg);
uint32_t kineto_arg32(const struct kineto_args *args, enum kineto_arg arg);
/* Reads the three numbers of `[4, 1, 1]` into `three`. Sets zeros for any other value. */
void kineto_arg_triple(const struct kineto_args *args, enum kineto_arg arg, uint32_t *three);

#endif
