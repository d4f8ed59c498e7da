/* SPDX-License-Identifier: MIT
 * cupti.h: the one CUPTI session of this process: callbacks of the driver's calls, records of what
 * the GPU did.
 *
 * Nothing is linked: libcupti is looked for when the program first uses CUDA, and is the program's
 * own wherever it has one. What cannot be had is said in META source.cupti, with CUPTI's result
 * code, and the program goes on as if nothing had been asked.
 *
 * The session lasts as long as the process: it is never stopped and begun again, CUPTI is never
 * finalised, and buffers and callbacks stay valid for ever. A forked child has no session and never
 * makes a CUPTI call.
 *
 * Locks: one mutex around pperf's own CUPTI calls, never taken in a callback.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SESSION_H
#define PPERF_COLLECTOR_CUPTI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What CUPTI tells of a call, at its beginning and at its end: laid out as CUpti_CallbackData.
 * Valid during the callback. */
struct cupti_call {
	uint32_t site; /* enum cupti_call_site */
	const char *name;
	const void *arguments; /* a struct of the call's own arguments */
	const void *result;    /* a CUresult; valid at the end */
	const char *symbol;    /* of launches: the kernel's name, mangled */
	void *context_handle;
	uint32_t context; /* its id; 0: none current */
	uint64_t *data;   /* the same 64 bits at the beginning and at the end, zero at first */
	uint32_t correlation;
};
enum cupti_call_site { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };

/* What the session is for. Lives for ever. */
struct cupti_config {
	const uint16_t *(*calls)(
		void); /* callback ids of the driver's calls to hear of, ended by 0; asked when the session begins */
	const uint16_t *timed; /* of those that CUPTI shall time, ended by 0 */
	/* A call begins or ends, on the thread that makes it. May not call CUDA or CUPTI, wait, or
	 * take a lock of ours. */
	void (*call)(uint32_t cbid, const struct cupti_call *call);
	/* Whether `call` has put these 64 bits into cupti_call.data. */
	bool (*is_own_data)(uint64_t bits);
	/* A node of a graph was made: if a call that puts work into a stream is in progress on this
	 * thread, it was captured. */
	void (*node_created)(void);
	/* A context is about to end, in whatever call. context: its id; device: UINT32_MAX: not known. */
	void (*context_ends)(uint32_t context, uint32_t device);
	const char *library; /* path of the libcupti to use; NULL: as it is found */
	const char *toolkit; /* where CUDA is installed, as CUDA_HOME says; NULL: not said */
	bool hands_over; /* to another client of CUPTI's, as long as it is active (cupti_yield.h); else both are served */
	uint64_t buffer_bytes; /* bound on CUPTI's buffers; 0: the default, 64 MiB */
};

/* Starts the session: at most once in a process and its forked children, whoever calls, however
 * often. Call it when the driver is being initialised (InitializeInjection), or before a call to
 * CUDA; never between stream_enter and stream_leave. errno is kept. */
void cupti_start(const struct cupti_config *config);

/* Changes when CUPTI is left to another client or taken back: an EXIT may be missing to an ENTER from before. */
extern _Atomic uint32_t cupti_handovers;

/* The device of a context, by CUPTI's id; UINT32_MAX: not known. */
uint32_t cupti_device_of(uint32_t context);

/* CUPTI's id of an executable graph, 0: not known. May be called in a callback. */
uint32_t cupti_graph_exec_id(void *exec);

/* The name of a driver (1) or runtime (2) call as a name id, 0: none. Between stream_enter and
 * stream_leave. */
uint32_t cupti_call_name(int domain, uint32_t cbid);

#endif
