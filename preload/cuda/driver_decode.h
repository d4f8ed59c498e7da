/* SPDX-License-Identifier: MIT
 * Decodes the arguments of the driver's functions: one reader per layout of arguments. Only for
 * driver_functions.c.
 */
#ifndef PPERF_PRELOAD_CUDA_DRIVER_DECODE_H
#define PPERF_PRELOAD_CUDA_DRIVER_DECODE_H

#include "preload/cuda/driver_functions.h"

/* Declares a reader, as driver_function.read describes it. No parameter is used by all of them. */
#define UNUSED __attribute__((unused))
#define DRIVER_READER(name)                                                                     \
	void name(struct driver_event *event UNUSED, const struct driver_function *call UNUSED, \
		const void *arguments UNUSED, bool done UNUSED)

#define DRIVER_READERS(X)          \
	X(read_launch)             \
	X(read_launch_ex)          \
	X(read_nothing)            \
	X(read_graph_launch)       \
	X(read_copy)               \
	X(read_copy_array)         \
	X(read_copy_arrays)        \
	X(read_copy_peer)          \
	X(read_copy_2d)            \
	X(read_copy_3d)            \
	X(read_copy_batch)         \
	X(read_copy_batch_1)       \
	X(read_copy_3d_batch)      \
	X(read_copy_3d_batch_1)    \
	X(read_copy_attributes)    \
	X(read_copy_3d_attributes) \
	X(read_memset)             \
	X(read_memset_2d)          \
	X(read_alloc)              \
	X(read_alloc_pitch)        \
	X(read_alloc_pool)         \
	X(read_register)           \
	X(read_free)               \
	X(read_array)              \
	X(read_array_3d)           \
	X(read_array_mipmapped)    \
	X(read_physical)           \
	X(read_reserve)            \
	X(read_range)              \
	X(read_map)                \
	X(read_handle)             \
	X(read_memory_query)       \
	X(read_stream)             \
	X(read_event)              \
	X(read_wait)

#define X(name) DRIVER_READER(name);
DRIVER_READERS(X)
#undef X

#endif
