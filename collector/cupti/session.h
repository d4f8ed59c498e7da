/* SPDX-License-Identifier: MIT
 * Runs the one CUPTI session of this process: callbacks of driver calls, and records of GPU work.
 *
 * Nothing is linked. libcupti is searched when the program first uses CUDA, and is the program's
 * own copy if it has one. What is not available is written to META source.cupti with CUPTI's result
 * code, and the program continues unaffected.
 *
 * The session lasts as long as the process. It is never stopped and begun again, CUPTI is never
 * finalised, and buffers and callbacks stay valid for ever. A forked child has no session and never
 * calls CUPTI.
 *
 * One mutex surrounds pperf's own CUPTI calls. No callback takes it.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SESSION_H
#define PPERF_COLLECTOR_CUPTI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What CUPTI reports about a call, at its begin and at its end. The layout is that of
 * CUpti_CallbackData. Valid during the callback. */
struct cupti_call {
	uint32_t site; /* enum cupti_call_site */
	const char *name;
	const void *arguments; /* a struct with the call's arguments */
	const void *result;    /* a CUresult; valid at the end */
	const char *symbol;    /* of launches: the kernel's mangled name */
	void *context_handle;
	uint32_t context; /* its id; 0: none current */
	/* 64 bits for the subscriber, kept from the begin to the end of a call. Zero at first. */
	uint64_t *data;
	uint32_t correlation;
};
enum cupti_call_site { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };

/* How launches of CUDA graphs are recorded; collector/cupti/graph_trace.h
 * describes it. */
enum cupti_graphs { CUPTI_GRAPHS_NODES, CUPTI_GRAPHS_WHOLE, CUPTI_GRAPHS_AUTO };

/* What the session does. It must stay valid for ever. */
struct cupti_config {
	/* Returns the callback ids of the driver calls to subscribe to, ended by 0. Called when the
	 * session begins. */
	const uint16_t *(*calls)(void);
	/* The ids of those that CUPTI times, ended by 0. */
	const uint16_t *timed_calls;
	/* Called at the begin and the end of a call, on its thread. It must not call CUDA or CUPTI,
	 * wait, or take a lock of ours. */
	void (*on_call)(uint32_t cbid, const struct cupti_call *call);
	/* Whether CUPTI makes a record of this call, or of its GPU work. */
	bool (*leaves_record)(uint32_t cbid);
	/* Whether `call` has stored these 64 bits in cupti_call.data. */
	bool (*is_own_data)(uint64_t bits);
	/* Called when a node of a graph was made. If the thread is in a call that enqueues work
	 * into a CUDA stream, that call was captured. */
	void (*on_node_created)(void);
	/* Called when a context is about to end, in any call. `device` is UINT32_MAX if unknown. */
	void (*on_context_ends)(uint32_t context, uint32_t device);
	const char *library; /* path of the libcupti to use; NULL: search for it */
	const char *toolkit; /* folder of CUDA's toolkit, from CUDA_HOME; NULL: unknown */
	/* Hand CUPTI over to another client while that is active (handover.h). If false, both are
	 * served. */
	bool hands_over;
	uint64_t buffer_bytes; /* limit of CUPTI's buffers; 0: 64 MiB */
	enum cupti_graphs graphs;
	uint64_t graph_nodes_max; /* nodes per second, for CUPTI_GRAPHS_AUTO */
};

/* Starts the session, at most once in a process and its forked children. Any thread may call it,
 * any number of times. Call it while the driver is being initialised (InitializeInjection), or
 * before a CUDA call. Do not call it between stream_enter and stream_leave. errno is preserved. */
void cupti_start(const struct cupti_config *config);

/* Changes whenever a handover begins or ends. An EXIT may be missing for an ENTER from before. */
extern _Atomic uint32_t cupti_handovers;

/* Returns the device of a context, by CUPTI's id, or UINT32_MAX if unknown. */
uint32_t cupti_device_of(uint32_t context);

/* Returns CUPTI's id of an executable graph, 0 if unknown. May be called in a callback. */
uint32_t cupti_graph_exec_id(void *exec);

/* Returns the name id of a driver (1) or runtime (2) call, 0 if it has none. Called between
 * stream_enter and stream_leave. */
uint32_t cupti_call_name(int domain, uint32_t cbid);

#endif
