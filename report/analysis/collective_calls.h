/* SPDX-License-Identifier: MIT
 *
 * Lists the calls of NCCL that communicate (COLLECTIVE records), by the thread and the time in
 * which their kernels were launched. A kernel that a thread launched in that time has the size of
 * the call. The calls of a group that are for one communicator and CUDA stream have one kernel
 * together, and the sum of their sizes. The size is unknown where several communicators or CUDA
 * streams of one GPU are in a group, or more kernels than these were launched.
 *
 * Memory: 72 bytes for each call or group, 550 for each thread during the pass. Nothing is read of
 * a trace without communicators.
 */
#ifndef PPERF_REPORT_ANALYSIS_COLLECTIVE_CALLS_H
#define PPERF_REPORT_ANALYSIS_COLLECTIVE_CALLS_H

#include "report/analysis/collective_sizes.h"
#include "report/analysis/communicator_requests.h"
#include "report/analysis/shared_pass.h"

struct collective_call {
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	struct collective_size size;
	uint64_t key; /* of the communicator; 0: unknown */
	uint32_t tid;
	uint32_t device; /* UINT32_MAX: unknown */
	uint32_t ranks, rank;
	uint32_t peer; /* of sends and receives with one other rank; else UINT32_MAX */
};

struct collective_calls {
	/* sorted by thread, then begin */
	struct collective_call *calls;
	size_t count, room;
	struct communicator_requests requests;
};

/* Returns the calls of a process, which belong to it. They are complete after the pass, to which
 * their reading is added unless they were read before, or the trace has no communicators. */
const struct collective_calls *collective_calls_read_in(struct shared_pass *pass);
/* As collective_calls_read_in, with a pass of its own. */
const struct collective_calls *collective_calls_of(struct process *process);

/* Returns the call in which thread `tid` launched a kernel on `device` at `at_ns`; NULL: none, or
 * more than one. */
const struct collective_call *collective_calls_find(
	const struct collective_calls *calls, uint32_t tid, uint64_t at_ns, uint32_t device);

#endif
