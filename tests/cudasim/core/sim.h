/*
 * The simulated CUDA device, as the libraries above its core see it.
 *
 * The core lives in the simulated libcuda.so.1, together with the driver API; the simulated
 * libcudart calls the driver through the table of driver_table.h, and the simulated libcupti
 * listens to the core through `struct sim_tools`. One process has one core, whichever libraries are
 * loaded: the same direction as in reality.
 *
 * Every entry point of the runtime and of the driver opens one scope (entry.h). Runtime calls nest
 * driver calls as the real runtime does, so a tool sees both domains.
 *
 * Time: every stream has a virtual time line. Work is reported when it is submitted, with the start
 * and end that the cost model gives it, which are usually in the future; synchronising calls sleep
 * until then. All times are CLOCK_REALTIME nanoseconds.
 *
 * Kernels do nothing; copies and sets move real bytes, when they are submitted. Not simulated, and
 * refused with "not supported" or as said: IPC, textures, graphics, external memory, child graphs
 * (so a graph launch or a cudaMallocAsync in a capturing stream spoils the capture), conditional
 * nodes, CUDA's 32-bit entry points (cuMemAlloc without _v2). A module has every function it is
 * asked for. A statically linked runtime finds none of the driver's private tables.
 *
 * The environment, read when libcuda is loaded:
 *	SIM_DEVICES=1		how many devices there are, 1 to 8
 *	SIM_MEM=BYTES		memory of each (default 16 GiB), handed out in units of 2 MiB
 *	SIM_KERNEL_NS=NS	what every kernel takes (default: by a cost model, the same in every run)
 *	SIM_NO_DEVICE=1		there is none
 *	SIM_FAIL_MALLOC=N	the Nth allocation of device memory fails
 *	SIM_FAULT=N		the Nth kernel accesses an illegal address; every call fails from then on
 *	SIM_STUBS=1		says on stderr what was called and is not supported
 *	SIM_LOG=FILE		what is allocated, launched, copied, set and not supported, a line each; 2 is stderr
 *
 * Threads: every function here may be called from any thread. No lock of the core is held while a
 * tool is called, and a tool may call any sim_*() function and any entry point from within.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Visible outside its library; everything else is hidden. */
#define SIM_EXPORT __attribute__((visibility("default")))

/* The major version of CUDA that the library set is built for: 12 or 13. */
#ifndef SIM_MAJOR
#define SIM_MAJOR 13
#endif

/* What cuDriverGetVersion and cudaRuntimeGetVersion answer. */
#define SIM_CUDA_VERSION (SIM_MAJOR == 12 ? 12080 : 13000)

#define SIM_DEVICE_NAME "pperf simulated device"
#define SIM_DEVICES_MAX 8

/* The handles of the driver API are pointers to these: (CUcontext)context, (CUstream)stream and so
 * on. */
struct sim_context;
struct sim_stream;
struct sim_event;
struct sim_graph;
struct sim_graph_exec;
struct sim_node;

/* Numbered like CUpti_CallbackDomain. */
enum sim_domain {
	SIM_DRIVER = 1,
	SIM_RUNTIME = 2,
};

/* One entry point: static data of the library that defines it. */
struct sim_function {
	const char *name; /* the symbol's name: "cudaLaunchKernel_ptsz" */
	enum sim_domain domain;
	/* CUPTI's id in SIM_MAJOR; 0: it has none, and no tool is told of calls */
	int cbid;
	bool per_thread;           /* a _ptsz or _ptds twin: stream 0 is the thread's own stream */
	struct sim_function *next; /* the functions called so far; private to the core */
	uint64_t calls;            /* private to the core */
	bool known;                /* private to the core */
};

/* One call in progress. Lives on the stack of the thread that makes it. */
struct sim_scope {
	struct sim_function *function;
	/* the generated *_params struct of this function, NULL: there is none */
	const void *params;
	/* cudaError_t or CUresult; holds the result from api_exit on */
	const int *result;
	/* mangled name of the kernel that this call launches, else NULL */
	const char *symbol;
	/* the call of this thread that made this one, NULL: outermost */
	const struct sim_scope *outer;
	/* current when the call began, NULL: none yet; updated at exit */
	struct sim_context *context;
	/*
	 * The core sets it to the outer call's id, or for an outermost call to a fresh one.
	 * api_enter may replace it (by sim_next_correlation()); work done inside carries what it
	 * then holds.
	 */
	uint32_t correlation;
	uint64_t correlation_data;     /* the tool's: 0 at enter, kept until exit */
	uint64_t start_ns;             /* the tool's */
	const struct sim_tools *tools; /* who was told of the enter and will be told of the exit */
};

struct sim_dim {
	unsigned x, y, z;
};

enum sim_work_kind {
	SIM_KERNEL,
	SIM_COPY,
	SIM_SET,
	SIM_HOST_FUNCTION,
	SIM_EMPTY, /* a graph node that does nothing (joins, event nodes); never reported */
};

/* Numbered like CUpti_ActivityMemcpyKind. */
enum sim_copy_kind {
	SIM_COPY_HTOD = 1,
	SIM_COPY_DTOH = 2,
	SIM_COPY_HTOA = 3,
	SIM_COPY_ATOH = 4,
	SIM_COPY_ATOA = 5,
	SIM_COPY_ATOD = 6,
	SIM_COPY_DTOA = 7,
	SIM_COPY_DTOD = 8,
	SIM_COPY_HTOH = 9,
	SIM_COPY_PTOP = 10,
};

/* Numbered like CUpti_ActivityMemoryKind. */
enum sim_memory_kind {
	SIM_MEMORY_UNKNOWN = 0,
	SIM_MEMORY_PAGEABLE = 1,
	SIM_MEMORY_PINNED = 2,
	SIM_MEMORY_DEVICE = 3,
	SIM_MEMORY_ARRAY = 4,
	SIM_MEMORY_MANAGED = 5,
	SIM_MEMORY_DEVICE_STATIC = 6,
};

/* Something the device does. Valid during the call only, except `name`, which lives for ever. */
struct sim_work {
	enum sim_work_kind kind;
	/* of the innermost call; for a graph launch the same for all its work */
	uint32_t correlation;
	uint32_t device;
	uint32_t context; /* sim_context_id() */
	uint32_t stream;  /* sim_stream_id(); side branches of a graph have ids of their own */
	int stream_priority;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t node;        /* node id in the executable graph, 0: not from a graph */
	uint32_t graph_exec;  /* id of the executable graph, 0: not from a graph */
	bool between_kernels; /* a graph's set that needs only kernels, and that only kernels need */
	/* kernels */
	const char *name; /* mangled */
	struct sim_dim grid;
	struct sim_dim block;
	struct sim_dim cluster;  /* 0, 0, 0: none */
	uint32_t static_shared;  /* bytes */
	uint32_t dynamic_shared; /* bytes */
	uint32_t registers;      /* a thread */
	uint32_t local_bytes;    /* a thread */
	bool cooperative;
	/* copies and sets */
	uint64_t bytes;
	enum sim_copy_kind copy_kind;
	enum sim_memory_kind source_memory;
	enum sim_memory_kind target_memory; /* of a set, too */
	uint32_t source_device;             /* SIM_COPY_PTOP */
	uint32_t target_device;             /* SIM_COPY_PTOP */
	bool async;                         /* by an asynchronous call, or by a graph */
	uint32_t value;                     /* sets */
};

/* Memory allocated or released. Pool memory is reported with its pool and `async`. */
struct sim_memory {
	bool release;
	enum sim_memory_kind kind;
	uint64_t address;
	uint64_t bytes; /* as asked for; a release repeats it */
	uint64_t time_ns;
	uint32_t correlation;
	uint32_t device;
	uint32_t context;
	uint32_t stream; /* of an asynchronous call, else SIM_NO_STREAM */
	bool async;
	uint64_t pool;           /* handle of the pool, 0: none */
	uint64_t pool_reserved;  /* bytes the pool holds after the operation */
	uint64_t pool_used;      /* bytes in use of them */
	uint64_t pool_threshold; /* its release threshold */
};

#define SIM_NO_STREAM UINT32_MAX
#define SIM_NO_EVENT UINT32_MAX

/* Numbered like CUpti_ActivitySynchronizationType. Reported when the wait is over. */
enum sim_sync_kind {
	SIM_SYNC_EVENT = 1,
	SIM_SYNC_STREAM_WAIT_EVENT = 2,
	SIM_SYNC_STREAM = 3,
	SIM_SYNC_CONTEXT = 4,
};

struct sim_sync {
	enum sim_sync_kind kind;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream; /* SIM_NO_STREAM where it has none */
	uint32_t event;  /* sim_event_id(), SIM_NO_EVENT where it has none */
	struct sim_context *context_handle;
	struct sim_stream *stream_handle; /* NULL where it has none */
	bool query;                       /* cuEventQuery, cuStreamQuery: does not wait */
	int result;
};

/* An event recorded in a stream (not into a capture). */
struct sim_event_record {
	uint32_t event; /* sim_event_id() */
	uint32_t correlation;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint64_t device_ns; /* when the device reaches it */
};

enum sim_resource_kind {
	SIM_CU_INIT_FINISHED,
	SIM_CONTEXT_CREATED,
	SIM_CONTEXT_DESTROY_STARTING,
	SIM_STREAM_CREATED,
	SIM_STREAM_DESTROY_STARTING,
	SIM_MODULE_LOADED,
	SIM_MODULE_UNLOAD_STARTING,
	SIM_GRAPH_CREATED,
	SIM_GRAPH_DESTROY_STARTING,
	SIM_GRAPH_CLONED,
	SIM_NODE_CREATED,
	SIM_NODE_CLONED, /* at instantiation; `original_*` name what it was cloned from */
	SIM_NODE_DESTROY_STARTING,
	SIM_GRAPH_EXEC_CREATED,
	SIM_GRAPH_EXEC_DESTROY_STARTING,
};

/* Numbered like CUgraphNodeType. */
enum sim_node_kind {
	SIM_NODE_KERNEL = 0,
	SIM_NODE_COPY = 1,
	SIM_NODE_SET = 2,
	SIM_NODE_HOST = 3,
	SIM_NODE_GRAPH = 4,
	SIM_NODE_EMPTY = 5,
	SIM_NODE_WAIT_EVENT = 6,
	SIM_NODE_EVENT_RECORD = 7,
	SIM_NODE_MEM_ALLOC = 10,
	SIM_NODE_MEM_FREE = 11,
};

/* A resource that came or goes. Only the fields that its kind has are set; valid during the call.
 */
struct sim_resource {
	enum sim_resource_kind kind;
	struct sim_context *context;
	struct sim_stream *stream;
	uint32_t module;   /* id, from 1 */
	const void *image; /* the module's bytes */
	size_t image_bytes;
	struct sim_graph *graph;
	struct sim_graph *original_graph;
	struct sim_node *node;
	struct sim_node *original_node;
	enum sim_node_kind node_kind;
	struct sim_graph_exec *graph_exec;
};

/*
 * What a tool is told, on the thread that does it. No member may be NULL. There is one tool (the
 * simulated CUPTI, which has its own rules for its subscribers).
 */
struct sim_tools {
	void (*api_enter)(struct sim_scope *scope);
	void (*api_exit)(struct sim_scope *scope);
	void (*work)(const struct sim_work *work);
	void (*memory)(const struct sim_memory *memory);
	void (*sync)(const struct sim_sync *sync);
	void (*event)(const struct sim_event_record *event);
	void (*resource)(const struct sim_resource *resource);
	/* How much later a node of an executable graph starts because it is traced. Called with
	 * the core's lock held. May be NULL. */
	uint64_t (*node_delay)(uint32_t graph_exec, uint32_t context);
};

/* Installs the tool, or takes it away (NULL). `tools` must live for ever: calls in progress keep
 * it. */
void sim_tools_set(const struct sim_tools *tools);

/* A fresh correlation id; the first is 1. It wraps as the real one does, never to 0. */
uint32_t sim_next_correlation(void);
/* Starts the ids again at 1, as the real ones do when the subscriber leaves. */
void sim_restart_correlation(void);

/* The innermost call of this thread, NULL outside of all. */
const struct sim_scope *sim_current_scope(void);

/* CUPTI's id of a function of SIM_MAJOR by its symbol's name, 0: unknown. The table is made from
 * the real headers at build time. */
int sim_cbid(enum sim_domain domain, const char *name);
/* The other way round; NULL: no such id. */
const char *sim_cbid_name(enum sim_domain domain, int cbid);

/* Now, in the clock of every time stamp here. */
uint64_t sim_time_ns(void);

/* Devices: how many there are (SIM_DEVICES, 0 with SIM_NO_DEVICE), and one attribute by the number
 * that CUdevice_attribute gives it (0: unknown to the simulation). */
int sim_device_count(void);
int sim_device_attribute(int attribute, int device);
/* 16 bytes, the same in every run, different for every device. */
void sim_device_uuid(int device, unsigned char uuid[16]);
/* Bytes of memory of every device (SIM_MEM). */
size_t sim_device_memory(void);
/* Bytes of it that this process holds. */
size_t sim_device_used(int device);
/* Of these, what this process holds: what nobody else (SIM_OTHER) does. */
size_t sim_process_used(int device);

/* Whether cuInit has succeeded in this process. False in a forked child, where every call fails. */
bool sim_initialised(void);

/* The context current to this thread, NULL: none. */
struct sim_context *sim_context_current(void);
/* Ids count from 1, in order of creation; 0 for NULL. */
uint32_t sim_context_id(const struct sim_context *context);
int sim_context_device(const struct sim_context *context);
/* The id of the context's legacy default stream. */
uint32_t sim_context_null_stream(const struct sim_context *context);

/* The stream behind a CUstream handle; 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD (or 0 with
 * `per_thread`) give the default streams of `context` (NULL: the current one). NULL: no such
 * stream. */
struct sim_stream *sim_stream_of(struct sim_context *context, void *handle, bool per_thread);
/* Ids are unique in the process; the first default stream has 7, as on real devices. */
uint32_t sim_stream_id(const struct sim_stream *stream);
int sim_stream_priority(const struct sim_stream *stream);
/* CU_STREAM_NON_BLOCKING or 0. */
unsigned sim_stream_flags(const struct sim_stream *stream);
struct sim_context *sim_stream_context(const struct sim_stream *stream);

/* Calls `visit` once for each live context and each of its streams (SIM_CONTEXT_CREATED and
 * SIM_STREAM_CREATED), for tools that attach late. */
void sim_visit_resources(
	void (*visit)(const struct sim_resource *resource, void *data), void *data);

/* Ids count from 1 over all nodes of the process; a clone in an executable graph has its own. */
uint64_t sim_node_id(const struct sim_node *node);
uint32_t sim_graph_id(const struct sim_graph *graph);
uint32_t sim_graph_exec_id(const struct sim_graph_exec *exec);
uint32_t sim_event_id(const struct sim_event *event);

/* Prints to stderr one line: the label, and each function called since the last such call with its
 * count, by name. For debugging, through dlsym. */
void sim_dump(const char *label);

#endif
