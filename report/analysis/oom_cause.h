/* SPDX-License-Identifier: MIT
 * Why memory ran out: one of six causes, with the figures that show it.
 *
 * The causes are tested in this order, and the first that holds is returned:
 *
 *   LIMIT          PyTorch failed without a call of CUDA although the GPU had room: a limit of its
 *                  allocator, such as set_per_process_memory_fraction.
 *   OTHERS         What is neither free nor allocated by this process is more than CUDA's context
 *                  needs, and the request would have fit without it.
 *   TOO_LARGE      The request is larger than the GPU's memory without what others hold.
 *   LEAK           What the program holds grows from step to step, and the request would have fit
 *                  without that growth.
 *   FRAGMENTATION  The free memory was enough, but no piece of it. In PyTorch's segments, or, of a
 *                  program without PyTorch, on the GPU.
 *   LIVE           None of these: the program holds too much at once.
 */
#ifndef PPERF_REPORT_ANALYSIS_OOM_CAUSE_H
#define PPERF_REPORT_ANALYSIS_OOM_CAUSE_H

#include "report/run/process.h"

/* CUDA's context, with the modules and workspaces of its libraries: 0.3 to 0.8 GB on data-center
 * GPUs. Only what is beyond this may be another process's. */
#define OOM_CONTEXT_BYTES (UINT64_C(1) << 30)

enum oom_cause_kind {
	OOM_UNKNOWN, /* the memory of the GPU is not known */
	OOM_LIMIT,
	OOM_OTHERS,
	OOM_TOO_LARGE,
	OOM_LEAK,
	OOM_FRAGMENTATION,
	OOM_LIVE
};

struct oom_cause {
	enum oom_cause_kind kind;
	uint64_t asked, held, total; /* held: device memory by records; total 0: not known */
	/* By the driver, right after the failed call. Not known: is_free_known false, and `free` is
	 * what records and the first allocation leave at most. */
	uint64_t free;
	bool is_free_known;
	uint64_t others; /* total - held - free: contexts, libraries, other processes */
	/* Of the fastest leak (memory_leaks.h), and what its steps left. 0: none */
	uint64_t growth_per_step, grown;
	struct memory_gaps gaps; /* of PyTorch's segments */
	bool of_torch;
};

/* Finds the cause of one time that PyTorch ran out of memory. Reads the trace once more if there
 * may be a leak that is not known yet. */
struct oom_cause oom_cause_of_torch(struct process *process, const struct memory_oom *oom);
/* The same of a failed CUDA allocation. UNKNOWN if it is not device memory, or if PyTorch's
 * allocator reported the failure itself. */
struct oom_cause oom_cause_of_call(struct process *process, const struct failed_allocation *failed);

/* Returns the word in JSON: `limit`, `others`, `too_large`, `leak`, `fragmentation`, `live`,
 * `unknown`. */
const char *oom_cause_name(enum oom_cause_kind kind);

#define OOM_CAUSE_TEXT 320u

/* Writes a sentence without a period: the cause and its figures. "": unknown. */
void oom_cause_sentence(
	const struct oom_cause *cause, bool iec, bool ascii, char text[OOM_CAUSE_TEXT]);
/* Returns what to do about it, as sentences. "": unknown. */
const char *oom_cause_advice(const struct oom_cause *cause);

#endif
