/* SPDX-License-Identifier: MIT
 * Reads the PPERF_* variables, once, in the constructor. libpperf(7) describes them for users.
 */
#ifndef PPERF_PRELOAD_SETTINGS_H
#define PPERF_PRELOAD_SETTINGS_H

#include "collector/cupti/session.h"
#include "collector/file/trace_file.h"
#include "collector/sample/sampler.h"
#include "collector/stream/schedule.h"
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* Every setting with its default. The report also uses PPERF_STEP_MARKER, which it reads from the
 * trace. */
#define SETTINGS(X)                    \
	X(PPERF_OUTPUT, "trace.bin")   \
	X(PPERF_MAX, "4G")             \
	X(PPERF_RING, "0")             \
	X(PPERF_RING_KEEP, "off")      \
	X(PPERF_CHILDREN, "gpu")       \
	X(PPERF_STACKS, "alloc")       \
	X(PPERF_NVTX, "1")             \
	X(PPERF_CUDA, "1")             \
	X(PPERF_CUPTI, "1")            \
	X(PPERF_CUPTI_BUFFERS, "64M")  \
	X(PPERF_GRAPHS, "nodes")       \
	X(PPERF_TENSORS, "1")          \
	X(PPERF_PYTHON, "1")           \
	X(PPERF_MODULES, "1")          \
	X(PPERF_OPS, "events")         \
	X(PPERF_SHAPES, "0")           \
	X(PPERF_PYSTACKS, "own")       \
	X(PPERF_SAMPLE, "0")           \
	X(PPERF_SAMPLE_CLOCK, "cpu")   \
	X(PPERF_SAMPLE_STACK, "16384") \
	X(PPERF_SAMPLE_KIND, "perf")   \
	X(PPERF_SCHEDULE, "")          \
	X(PPERF_STEP_MARKER, "")       \
	X(PPERF_REDACT, "0")           \
	X(PPERF_QUIET, "")

enum setting {
#define X(variable, fallback) SETTING_##variable,
	SETTINGS(X)
#undef X
		SETTING_COUNT,
};

/* The settings of a process. Large members are last, so that most of what every process reads is in
 * one page. The members marked "environment" point into it. They are valid in the constructor only,
 * because programs write their titles over their environment. */
struct pperf_settings {
	bool nvtx, cuda, cupti;
	bool redact;  /* the trace has no arguments, folder, host or paths of settings */
	bool tensors; /* record PyTorch's allocator */
	/* python: run Python code in the program; modules: record PyTorch's modules */
	bool python, modules;
	bool all_children;         /* PPERF_CHILDREN=all */
	const char *ops;           /* PPERF_OPS; NULL: not set; environment */
	bool shapes;               /* record the shapes of operators' inputs */
	const char *python_stacks; /* PPERF_PYSTACKS; NULL: not set; environment */
	bool scheduled;
	struct schedule schedule;         /* PPERF_SCHEDULE */
	bool keeps_oom;                   /* PPERF_RING_KEEP: oom */
	uint32_t keeps_slow;              /* PPERF_RING_KEEP: slow:N, in tenths; 0: not */
	struct sampler_settings sampling; /* PPERF_SAMPLE and what belongs to it */
	const char *step_marker;          /* PPERF_STEP_MARKER; NULL: not set; environment */
	const char *stacks;               /* PPERF_STACKS; NULL: not set; environment */
	bool cupti_hands_over;            /* PPERF_CUPTI=yield */
	enum cupti_graphs graphs;         /* PPERF_GRAPHS */
	uint64_t graph_nodes_max;         /* N of PPERF_GRAPHS=auto:N; 0: not set */
	/* The tool that NVTX_INJECTION64_PATH named before us, in this process or an earlier one of
	 * the run. "": none. Environment. */
	const char *chained_nvtx;
	int quiet;           /* PPERF_QUIET: 1 or 0; -1: not set */
	pid_t launched_pid;  /* PPERF_LAUNCHED, the process that `pperf run` became; 0: none */
	time_t started;      /* when the library was loaded, in seconds */
	char bad_value[256]; /* a sentence about a value that was not understood; "": none */
	/* The values for the trace, copied. NULL: not set. */
	const char *given_values[SETTING_COUNT], *rank, *world_size;
	struct trace_settings trace;
	/* The folder where the run began. A relative output is relative to it. "": the folder was
	 * removed. */
	char directory[4096];
	char run[4096 * 2 + 64];  /* PPERF_RUN for this process and its children */
	char cupti_library[4096]; /* value of PPERF_CUPTI */
};

/* Reads the environment. It does not change it. */
void settings_read(struct pperf_settings *settings);

/* Returns this process's rank as text: the first of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and
 * SLURM_PROCID that is set and not empty. NULL: none is. The text is not checked, and points into
 * the environment. */
const char *settings_rank(void);
/* Returns the number of ranks as text, from the variable of the same launcher: WORLD_SIZE,
 * OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_STEP_NUM_TASKS. NULL: it is not set. */
const char *settings_world_size(void);

/* Formats PPERF_RUN for this process's children. `chained_nvtx`: the other tool that
 * NVTX_INJECTION64_PATH names, NULL: unchanged. */
void settings_export(struct pperf_settings *settings, const char *chained_nvtx);

/* Parses 0/1, false/true, off/on and no/yes. Returns `fallback` for other values and NULL. */
bool settings_flag(const char *value, bool fallback);

/* Parses 64K, 128M, 4G, or bytes. Returns 0 if it is not a size. */
uint64_t settings_size(const char *value);

#endif
