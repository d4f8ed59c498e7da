/* SPDX-License-Identifier: MIT
 * Measures the offsets of fields in at::RecordFunction, the object of a running operator.
 * PyTorch has no getters for its sequence number, its forward thread, or whether it may end on
 * another thread. The offsets differ between releases and string ABIs.
 *
 * At the end of `import torch`, two threads of ours, one after the other, create one autograd
 * node each. We know the numbers of these nodes. A third thread runs the nodes directly, because
 * PyTorch's engine would start threads and initialise CUDA. The offset is where both objects
 * have the known number. Nothing is recorded and nothing stays behind: no thread, no random
 * number drawn, no sequence number of the program used.
 *
 * Before the measurement, or if it fails, torch_layout_known lacks the bits. META
 * source.torch_ops then says what is missing and why.
 */
#ifndef PPERF_PRELOAD_TORCH_RECORD_FUNCTION_LAYOUT_H
#define PPERF_PRELOAD_TORCH_RECORD_FUNCTION_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum torch_layout_known {
	TORCH_KNOWS_LINKS = 1,  /* sequence and forward_thread are valid */
	TORCH_KNOWS_ASYNC = 2,  /* asynchronous is valid */
	TORCH_KNOWS_SHAPES = 4, /* inputs and the offsets of input_shapes.c are valid */
	TORCH_MEASURING = 8,    /* the measurement is running: callbacks call torch_layout_watch */
};
/* bits of the enum; stored with release, after the offsets */
extern _Atomic unsigned torch_layout_known;

/* Byte offsets in an at::RecordFunction. */
struct torch_layout {
	uint16_t sequence;       /* int64_t; -1: none */
	uint16_t forward_thread; /* uint64_t */
	uint16_t asynchronous;   /* bool */
	/* address and number of its IValues; valid while the operator starts */
	uint16_t inputs;
};
extern struct torch_layout torch_layout;

/* PyTorch's functions whose results the measurement looks for in the objects. */
struct torch_number_functions {
	/* at::sequence_number::peek: the number of the calling thread's next node */
	uint64_t (*sequence)(void);
	uint64_t (*thread)(void); /* at::RecordFunction::currentThreadId */
};
void torch_layout_configure(const struct torch_number_functions *numbers, bool shapes);

/* Runs the measurement. Called with the GIL held, when torch is imported completely. Does
 * nothing unless torch_layout_configure was called. */
void torch_layout_measure(void);

/* Examines a RecordFunction that starts while TORCH_MEASURING is set. Returns true if the
 * calling thread is one of the measurement: the operator must not be recorded. */
bool torch_layout_watch(const void *record_function, const char *name, bool backward);

/* Returns whether the calling thread is one of the measurement. */
bool torch_layout_is_ours(void);

#endif
