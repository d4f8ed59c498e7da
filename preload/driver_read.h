/* SPDX-License-Identifier: MIT
 * driver_read.h: what the arguments of the driver's functions say, a reader for each shape of
 * arguments. For driver_calls.c only.
 */
#ifndef PPERF_DRIVER_READ_H
#define PPERF_DRIVER_READ_H

#include "driver_calls.h"

/* As driver_call.read. */
#define DRIVER_READER(name) \
	void name(struct driver_event *event, const struct driver_call *call, const void *arguments, bool done)

DRIVER_READER(read_launch);
DRIVER_READER(read_launch_ex);
DRIVER_READER(read_nothing);
DRIVER_READER(read_graph_launch);
DRIVER_READER(read_copy);
DRIVER_READER(read_copy_array);
DRIVER_READER(read_copy_arrays);
DRIVER_READER(read_copy_peer);
DRIVER_READER(read_copy_2d);
DRIVER_READER(read_copy_3d);
DRIVER_READER(read_copy_batch);
DRIVER_READER(read_copy_batch_1);
DRIVER_READER(read_copy_3d_batch);
DRIVER_READER(read_copy_3d_batch_1);
DRIVER_READER(read_copy_attributes);
DRIVER_READER(read_copy_3d_attributes);
DRIVER_READER(read_set_8);
DRIVER_READER(read_set_16);
DRIVER_READER(read_set_32);
DRIVER_READER(read_set_2d);
DRIVER_READER(read_alloc);
DRIVER_READER(read_alloc_pitch);
DRIVER_READER(read_alloc_pool);
DRIVER_READER(read_register);
DRIVER_READER(read_free);
DRIVER_READER(read_array);
DRIVER_READER(read_array_3d);
DRIVER_READER(read_array_mipmapped);
DRIVER_READER(read_physical);
DRIVER_READER(read_stream);
DRIVER_READER(read_event);
DRIVER_READER(read_wait);

#endif
