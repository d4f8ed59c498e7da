/* SPDX-License-Identifier: MIT
 * torch_layout.h: where things lie in an at::RecordFunction, the object that stands for a running operator. PyTorch has no functions that tell its sequence
 * number, the thread of its forward, or whether it may end elsewhere, and the places differ between releases and string ABIs.
 *
 * So they are measured: at the end of `import torch` two threads of ours, one after the other, make an autograd node each, whose numbers we know; a third
 * runs the nodes by themselves (without PyTorch's engine, which would start threads and initialise CUDA). What has the known numbers in both is the
 * place. Nothing of it is recorded, and nothing stays behind: no thread, no random number drawn, no sequence number of the program's taken.
 *
 * Until then, and where that fails, torch_layout_known lacks the bits, and source.torch_ops says what is missing for what reason.
 */
#ifndef PPERF_PRELOAD_TORCH_RECORD_FUNCTION_LAYOUT_H
#define PPERF_PRELOAD_TORCH_RECORD_FUNCTION_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum torch_layout_known {
	TORCH_KNOWS_LINKS = 1,  /* sequence, forward_thread */
	TORCH_KNOWS_ASYNC = 2,  /* asynchronous */
	TORCH_KNOWS_SHAPES = 4, /* inputs, and what torch_shapes.h needs */
	TORCH_IS_MEASURED = 8,  /* the measuring is going on: see torch_layout_watch */
};
extern _Atomic unsigned torch_layout_known; /* stored with release, after the offsets */

/* In an at::RecordFunction, in bytes. */
struct torch_layout {
	uint16_t sequence;       /* int64_t; -1: none */
	uint16_t forward_thread; /* uint64_t */
	uint16_t asynchronous;   /* bool */
	uint16_t inputs;         /* address and number of its IValues, while it starts */
};
extern struct torch_layout torch_layout;

/* The functions of PyTorch that the measuring compares with; before torch_layout_measure. */
struct torch_number_functions {
	uint64_t (*sequence)(
		void); /* at::sequence_number::peek: what the thread's next node will have */
	uint64_t (*thread)(void); /* at::RecordFunction::currentThreadId */
};
void torch_layout_configure(const struct torch_number_functions *numbers, bool shapes);

/* Measures. With the GIL, when torch is whole. */
void torch_layout_measure(void);

/* A RecordFunction starts, and TORCH_IS_MEASURED. true: it is one of ours, and is not to be recorded. */
bool torch_layout_watch(const void *record_function, const char *name, bool backward);

/* Of an end, likewise. */
bool torch_layout_is_ours(void);

#endif
