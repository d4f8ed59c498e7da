/* SPDX-License-Identifier: MIT
 * settings.h: the PPERF_* variables, read once by the constructor. What they mean to users: libpperf(7).
 */
#ifndef PPERF_PRELOAD_SETTINGS_H
#define PPERF_PRELOAD_SETTINGS_H

#include "collector/file/trace_file.h"
#include "collector/stream/schedule.h"
#include <stdbool.h>

/* Every setting: its variable, what it is without it. PPERF_STEP_MARKER is for the report, which finds it in the trace. */
#define SETTINGS(X)                   \
	X(PPERF_OUTPUT, "trace.bin")  \
	X(PPERF_MAX, "4G")            \
	X(PPERF_CHILDREN, "gpu")      \
	X(PPERF_STACKS, "alloc")      \
	X(PPERF_NVTX, "1")            \
	X(PPERF_CUDA, "1")            \
	X(PPERF_CUPTI, "1")           \
	X(PPERF_CUPTI_BUFFERS, "64M") \
	X(PPERF_TENSORS, "1")         \
	X(PPERF_PYTHON, "1")          \
	X(PPERF_MODULES, "1")         \
	X(PPERF_OPS, "events")        \
	X(PPERF_SHAPES, "0")          \
	X(PPERF_PYSTACKS, "off")      \
	X(PPERF_SCHEDULE, "")         \
	X(PPERF_STEP_MARKER, "")      \
	X(PPERF_REDACT, "0")          \
	X(PPERF_QUIET, "")

enum setting {
#define X(variable, fallback) SETTING_##variable,
	SETTINGS(X)
#undef X
		SETTING_COUNT,
};

/* What is long comes last: of what every process reads, most lies in one page. */
struct pperf_settings {
	bool nvtx, cuda, cupti;
	bool redact;          /* no arguments, folder, host or paths of settings in the trace */
	bool tensors;         /* PyTorch's allocator */
	bool python, modules; /* whether we run anything in Python; PyTorch's modules */
	bool all_children;    /* PPERF_CHILDREN=all */
	const char *ops;      /* of PyTorch, as given; like `stacks` */
	bool shapes;          /* of operators' inputs */
	const char *python_stacks; /* PPERF_PYSTACKS, as given; like `stacks` */
	bool scheduled;
	struct schedule schedule; /* PPERF_SCHEDULE */
	const char *step_marker;  /* PPERF_STEP_MARKER, as given; like `stacks` */
	const char *
		stacks; /* as given; NULL: not given. In the constructor only: programs write their titles over their environment */
	bool cupti_hands_over; /* PPERF_CUPTI=yield */
	const char *
		other_nvtx; /* in the constructor only: what NVTX_INJECTION64_PATH named before us, in this process or an earlier one of the run; "" nothing */
	int quiet;          /* PPERF_QUIET: 1 or 0 as given, -1 not given */
	char bad_value[256]; /* a value that was not understood, as a sentence; "" none */
	const char *given_values[SETTING_COUNT],
		*rank; /* as the trace is to say them; NULL: not given */
	struct trace_settings trace;
	char directory
		[4096]; /* where the run began: what a relative output is relative to. "": nowhere */
	char run[4096 * 2 + 64];  /* PPERF_RUN for this process and its children */
	char cupti_library[4096]; /* what PPERF_CUPTI is */
};

/* Reads the environment. Changes nothing in it. */
void settings_read(struct pperf_settings *settings);

/* This process's rank, as a launcher gave it; NULL: none did. */
const char *settings_rank(void);

/* Writes PPERF_RUN for this process's children. other_nvtx: what NVTX_INJECTION64_PATH names, if it is another tool; else NULL. */
void settings_export(struct pperf_settings *settings, const char *other_nvtx);

/* 0/1, false/true, off/on, no/yes; `otherwise` for what is none of them or not set. */
bool settings_flag(const char *value, bool fallback);

/* 64K, 128M, 4G, or bytes. 0: not a size. */
uint64_t settings_size(const char *value);

#endif
