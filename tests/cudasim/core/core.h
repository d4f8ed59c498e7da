/*
 * Inside the simulated libcuda.so.1: the device's state and what may be done with it.
 *
 * The driver_*.c files are the API and hold no state; they check arguments and call what is
 * declared here. One lock guards all of it. Functions that need it held say so; the others take it
 * themselves. No lock is held while time passes, a tool is told, or a function of the program runs.
 */
#ifndef CORE_H
#define CORE_H

#include <cuda.h>

#include "core/sim.h"

/* ---- core.c: settings, lock, clock, log ---- */

struct settings {
	size_t memory;        /* bytes a device, SIM_MEM */
	size_t other;         /* of these, bytes that another process holds, SIM_OTHER */
	size_t context;       /* bytes that a context takes, SIM_CONTEXT */
	int devices;          /* SIM_DEVICES; 0 with SIM_NO_DEVICE */
	uint64_t kernel_ns;   /* SIM_KERNEL_NS; 0: by the cost model */
	uint64_t fail_malloc; /* SIM_FAIL_MALLOC: which device allocation fails, 0: none */
	uint64_t fault;       /* SIM_FAULT: which kernel accesses an illegal address, 0: none */
	uint64_t query_ns;    /* SIM_QUERY_NS: how much longer a query of a device takes */
	bool say_stubs;       /* SIM_STUBS: what is not supported is named on stderr */
};

const struct settings *settings(void);

void core_lock(void);
void core_unlock(void);
/* Leaves the thread's spin or sleep at `time_ns`; at once if that is past. */
void wait_until(uint64_t time_ns);
/* One line to SIM_LOG (a file, or 2: stderr), if set. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For setting up children: from now on a fork leaves a child in which sim_forked() is true. */
void watch_forks(void);
/* Never NULL: a simulator without memory is of no use, so it says so and aborts. */
void *zalloc(size_t bytes);
void *grow(void *old, size_t bytes);

/* ---- scope.c: telling the tool; each does nothing when there is none ---- */

void tell_work(const struct sim_work *work);
void tell_memory(const struct sim_memory *memory);
void tell_sync(const struct sim_sync *sync);
void tell_event(const struct sim_event_record *event);
void tell_resource(const struct sim_resource *resource);
uint64_t tool_node_delay(uint32_t graph_exec, uint32_t context);
/* Whether stream 0 means the thread's own stream in the call in progress. */
bool per_thread_call(void);
/* The correlation id of the call in progress, 0: none. */
uint32_t current_correlation(void);

/* ---- context.c ---- */

struct sim_context {
	uint32_t id;
	int device;
	size_t charged; /* SIM_CONTEXT, if the device had as much */
	unsigned flags;
	bool primary;
	bool alive;
	int retained; /* of a primary context */
	/* SIM_FAULT: since when every call fails, as after an illegal address; 0: never. */
	_Atomic uint64_t fault_ns;
	struct sim_stream *null_stream;
	struct sim_stream *streams; /* all of the context, the null stream last */
	struct sim_context *next;   /* contexts are never freed: stale handles are recognised */
};

/* What cuInit does: the injected library, then the devices. */
CUresult initialise(void);
/* CUDA_SUCCESS when cuInit has been called. */
CUresult require_init(void);
/* The current context into *context; CUDA_ERROR_INVALID_CONTEXT: there is none. After a fault, the
 * fault's error. */
CUresult require_context(struct sim_context **context);
/* The error that a fault has left in the context: it comes back from every call until the process
 * ends (CUDA's manual on CUDA_ERROR_ILLEGAL_ADDRESS). */
CUresult context_error(const struct sim_context *context);
CUresult context_create(struct sim_context **context, unsigned flags, int device);
CUresult context_destroy(struct sim_context *context);
bool context_valid(const struct sim_context *context);
CUresult primary_retain(struct sim_context **context, int device);
CUresult primary_release(int device);
CUresult primary_reset(int device);
CUresult primary_set_flags(int device, unsigned flags);
/* Whether it is alive, and its flags. */
bool primary_state(int device, unsigned *flags);
CUresult context_set_current(struct sim_context *context);
CUresult context_push(struct sim_context *context);
CUresult context_pop(struct sim_context **context);

/* ---- stream.c: time lines ---- */

#define STREAM_QUEUE 1024 /* work a stream takes before its launcher waits, as on real devices */

struct node_set {
	struct sim_node **nodes;
	size_t count;
};

struct sim_stream {
	bool alive; /* streams are reused, never freed: stale handles are recognised */
	uint32_t id;
	unsigned flags;
	int priority;
	int owner; /* tid of the thread whose default stream it is, else 0 */
	struct sim_context *context;
	struct sim_stream *next; /* of the context */
	uint64_t end_ns;         /* when all that was submitted is done */
	/* the latest host function it depends on is due then; 0: none */
	uint64_t host_ns;
	uint64_t queue[STREAM_QUEUE]; /* ends of the work submitted last, a ring */
	uint64_t submitted;
	struct sim_capture *capture; /* into which it captures, NULL: none */
	struct node_set tails;       /* what the next captured node depends on */
};

CUresult stream_create(struct sim_stream **stream, unsigned flags, int priority);
CUresult stream_destroy(struct sim_stream *stream);
/* The stream behind a handle, per_thread_call() considered. */
CUresult stream_resolve(CUstream handle, struct sim_stream **stream);
CUresult stream_query(struct sim_stream *stream);
CUresult stream_sync(struct sim_stream *stream);
/* Waits until all of the stream's work is done, telling nobody. */
void stream_wait(struct sim_stream *stream);
CUresult context_sync(void);
/* Waits until all of the context's work is done, telling nobody. */
void context_wait(const struct sim_context *context);
/* Creates the default stream of a new context. The lock must be held. */
struct sim_stream *stream_new(struct sim_context *context, unsigned flags, int priority);
/* Gives back all streams of a context. The lock must be held. */
void streams_release(struct sim_context *context);
/* Where work submitted now could start at the earliest: after the stream's own, and with the legacy
 * default stream's rules. The lock must be held. */
uint64_t stream_ready(struct sim_stream *stream, uint64_t now);
/* Takes `end_ns` as the end of one more piece of work; gives the time before which the caller must
 * not go on (a full queue), 0: at once. The lock must be held. */
uint64_t stream_push(struct sim_stream *stream, uint64_t end_ns);

/* ---- event.c ---- */

struct sim_event {
	bool alive; /* events are reused, never freed */
	uint32_t id;
	unsigned flags;
	bool recorded;
	uint64_t time_ns;
	uint64_t host_ns;    /* as in sim_stream */
	uint64_t capture_id; /* not 0: recorded last in that capture */
	struct node_set tails;
	struct sim_context *context;
	struct sim_event *next; /* free ones */
};

CUresult event_create(struct sim_event **event, unsigned flags);
CUresult event_destroy(struct sim_event *event);
CUresult event_record(struct sim_event *event, struct sim_stream *stream);
CUresult event_query(struct sim_event *event);
CUresult event_sync(struct sim_event *event);
CUresult event_elapsed(float *ms, struct sim_event *start, struct sim_event *end);
CUresult stream_wait_event(struct sim_stream *stream, struct sim_event *event);

/* ---- memory.c, array.c: what lies behind addresses ---- */

struct physical;

#define GRANULARITY ((size_t)2 << 20) /* bytes; device memory is handed out in multiples */

enum block_owner {
	BLOCK_MALLOC,
	BLOCK_POOL,       /* a piece of a pool's memory */
	BLOCK_HOST,       /* pinned, ours */
	BLOCK_REGISTERED, /* pinned, the program's */
	BLOCK_MANAGED,
	BLOCK_ARRAY,
	BLOCK_MAPPED, /* cuMemMap */
	BLOCK_STATIC, /* a __device__ variable */
};

struct block {
	uintptr_t address;
	size_t bytes; /* as asked for */
	size_t held;  /* bytes of the device's capacity it holds */
	enum block_owner owner;
	enum sim_memory_kind kind;
	int device;
	struct sim_context *context;
	struct pool *pool;         /* BLOCK_POOL */
	struct physical *physical; /* BLOCK_MAPPED */
	unsigned flags;            /* of cuMemHostAlloc and cuMemHostRegister */
};

/* Room for `bytes` (more than 0) on the current device. */
CUresult memory_alloc(void **address, size_t bytes, enum block_owner owner);
/* Frees what memory_alloc gave (also pool memory); 0 is no error. Waits for the device, as the real
 * one. */
CUresult memory_free(void *address, enum block_owner owner);
/* Memory of a __device__ variable. */
void *memory_static(size_t bytes);
CUresult host_alloc(void **address, size_t bytes, unsigned flags);
CUresult host_register(void *address, size_t bytes, unsigned flags);
CUresult host_unregister(void *address);
CUresult host_free(void *address);
/* Copies the block that holds `address`; false: none does. */
bool block_find(const void *address, struct block *block);
/* Whether [address, address + bytes) is memory of the device or of the host as a whole: a range
 * that begins inside a block must not leave what is allocated. */
bool range_valid(const void *address, size_t bytes);
void memory_info(int device, size_t *free_bytes, size_t *total_bytes);
/* Takes (or gives back) capacity of a device; false: there is not so much. The lock must be held.
 */
bool memory_charge(int device, size_t bytes);
void memory_discharge(int device, size_t bytes);
/* Pages that the device's memory is made of, NULL: the host has none. A forked child does not get
 * them. */
void *pages_map(size_t bytes);
/* The lock must be held. */
void block_add(const struct block *block);
/* Removes the block that begins at `address`, and copies it out; false: none. The lock must be
 * held. */
bool block_remove(const void *address, struct block *block);
/* Calls `visit` for each place at which it is mapped. The lock must be held. */
void blocks_of_physical(
	const struct physical *physical, void (*visit)(const void *address, size_t bytes));
/* Bytes of the range that are mapped (cuMemMap). The lock must be held. */
size_t mapped_bytes(const void *address, size_t bytes);
/* Whether a mapping begins, or ends, at the address. The lock must be held. */
bool mapping_begins(uintptr_t address);
bool mapping_ends(uintptr_t address);
/* Frees all memory that a context owns. The lock must be held. */
void memory_release_context(struct sim_context *context);
/* Sets to zero; whole pages of plain device memory by giving them back to the host. */
void memory_zero(void *address, size_t bytes);
/* Whether the next device allocation is the one that SIM_FAIL_MALLOC names. */
bool allocation_fails(void);
/* Tells the tool of an allocation or a release that the call in progress makes. */
void tell_block(const struct block *block, bool release, const struct sim_stream *stream);

struct array {
	unsigned magic;
	void *memory;
	size_t width, height, depth; /* elements; height and depth may be 0 */
	size_t pitch;                /* bytes a row */
	CUarray_format format;
	unsigned channels;
	unsigned flags;
	struct array *levels; /* of a mipmapped array, else NULL */
	unsigned level_count;
};

CUresult array_create(struct array **array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels);
CUresult array_destroy(struct array *array);
bool array_valid(const struct array *array);
/* Bytes of one element, 0: unknown format. */
size_t array_element(CUarray_format format, unsigned channels);

/* ---- vmm.c: cuMemCreate and cuMemMap ---- */

struct physical;

CUresult address_reserve(void **address, size_t bytes, size_t alignment);
CUresult address_free(void *address, size_t bytes);
CUresult physical_create(struct physical **physical, size_t bytes, int device);
CUresult physical_retain(struct physical **physical, const void *address);
CUresult physical_release(struct physical *physical);
CUresult physical_map(struct physical *physical, void *address, size_t bytes, size_t offset);
CUresult physical_unmap(void *address, size_t bytes);
CUresult physical_access(void *address, size_t bytes, int prot);

/* ---- pool.c ---- */

struct pool;

CUresult pool_create(struct pool **pool, int device);
CUresult pool_destroy(struct pool *pool);
CUresult pool_default(struct pool **pool, int device);
/* The pool that cuMemAllocAsync uses. */
CUresult pool_current(struct pool **pool, int device);
CUresult pool_set_current(struct pool *pool, int device);
CUresult pool_alloc(struct pool *pool, void **address, size_t bytes, struct sim_stream *stream);
CUresult pool_free(void *address, struct sim_stream *stream);
CUresult pool_trim(struct pool *pool, size_t keep);
CUresult pool_get(struct pool *pool, CUmemPool_attribute attribute, void *value);
CUresult pool_set(struct pool *pool, CUmemPool_attribute attribute, const void *value);
/* Gives back what lies above the pools' thresholds, as the real ones do when the host synchronises.
 */
void pools_relax(void);
/* Fills the pool's members. The lock must be held. */
void pool_describe(const struct pool *pool, struct sim_memory *memory);
/* Gives a piece back. The lock must be held. */
void pool_return(struct pool *pool, uintptr_t address);

/* ---- kernel.c: modules and functions ---- */

struct module {
	uint32_t id;
	const void *image;
	size_t bytes;
	bool loaded; /* the tool has been told */
	bool alive;
	struct kernel *kernels; /* those asked for */
	struct module *next;
};

struct kernel {
	unsigned magic;
	const char *name;
	struct module *module;
	uint32_t registers;     /* this and the rest: once it is learned */
	uint32_t static_shared; /* bytes */
	uint32_t local_bytes;   /* a thread */
	uint32_t max_threads;   /* a block */
	uint32_t max_dynamic;   /* bytes of dynamic shared memory it may be launched with */
	struct parameter {
		uint16_t bytes, offset; /* offset: among all of them, in bytes */
	} * parameters;
	unsigned parameter_count;
	const struct habit *habit; /* private to argument.c */
	/* its code was found: what it needs and its parameters are those of the code */
	bool described;
	bool learned;
	struct kernel *next; /* of the module */
};

/* All kernels of a module. */
struct kernel_list {
	struct kernel **list;
	size_t count;
};

#define PARAMETERS_MAX 1024

struct module *module_new(const void *image, size_t bytes);
CUresult module_unload(struct module *module);
bool module_valid(const struct module *module);
/* Tells the tool that it is loaded, the first time. */
void module_touch(struct module *module);
/* Bytes of a cubin (ELF), a fat binary or PTX text, 0: none of these. */
size_t image_bytes(const void *image);
/* The kernel of that name in the module, made at the first question; it lives for ever. */
struct kernel *kernel_get(struct module *module, const char *name);
bool kernel_valid(const struct kernel *kernel);
/* Reads what its code says, the first time; without code it is made from the name. Everything that
 * uses what a kernel needs calls it. */
void kernel_learn(struct kernel *kernel);
/* The kernel is one of a simulated library, and is given one address. */
void kernel_takes_address(struct kernel *kernel);
CUresult kernel_attribute(struct kernel *kernel, CUfunction_attribute attribute, int *value);
CUresult kernel_set_attribute(struct kernel *kernel, CUfunction_attribute attribute, int value);
/* Blocks of `threads` that fit an SM at once; 0: none does. The kernel must be learned. */
int kernel_occupancy(const struct kernel *kernel, int threads, size_t dynamic_shared);

/* ---- fatbin.c, cubin.c: the code that programs bring ---- */

/* Calls `visit` with each ELF file for that architecture (90) in the fat binary; it is gone after
 * the call. */
void fatbin_visit(const void *image, int arch,
	void (*visit)(const void *elf, size_t bytes, void *data), void *data);
/* Fills in what the code says of these kernels, and sorts them. */
void cubin_describe(const void *elf, size_t bytes, const struct kernel_list *kernels);

/* ---- work.c: what a stream does ---- */

struct op_kernel {
	struct kernel *kernel;
	struct sim_dim grid, block, cluster;
	size_t dynamic_shared;
	bool cooperative;
	/* as the launch was given them, NULL: none; not in a graph's node */
	void **arguments;
	/* in a node: the addresses that were among them, NULL: none */
	const struct touched *touched;
};

/* A box of bytes; a plain copy is one row of one slice. */
struct op_copy {
	char *target;
	const char *source;
	size_t target_pitch, source_pitch; /* bytes from row to row */
	size_t target_slice, source_slice; /* bytes from slice to slice */
	size_t width, rows, slices;        /* width in bytes */
	bool target_array, source_array;
	bool async;
	enum sim_copy_kind kind; /* this and the rest: set by copy_classify */
	enum sim_memory_kind target_memory, source_memory;
	int target_device, source_device;
};

struct op_set {
	char *target;
	size_t pitch;
	uint32_t value;
	unsigned element;   /* bytes: 1, 2 or 4 */
	size_t width, rows; /* width in elements */
	bool async;
	enum sim_memory_kind target_memory;
};

struct op_host {
	void (*function)(void *data);
	void *data;
};

struct op {
	enum sim_work_kind kind;
	enum sim_node_kind node_kind;
	union {
		struct op_kernel kernel;
		struct op_copy copy;
		struct op_set set;
		struct op_host host;
		struct sim_event *event; /* event nodes */
	};
};

/* Checks and completes the operations; CUDA_ERROR_INVALID_VALUE where the real one says so. */
CUresult kernel_check(const struct op_kernel *kernel);
CUresult copy_classify(struct op_copy *copy);
CUresult set_classify(struct op_set *set);
/* Does it in the stream, or captures it. */
CUresult submit(struct sim_stream *stream, const struct op *op);
/* Does it (copies the bytes, calls no host function) and tells the tool. */
void perform(const struct op *op, const struct sim_work *work);
/* How long it takes, by the cost model: the same for the same operation in every run. */
uint64_t op_cost_ns(const struct op *op);
/* The stream's part of a report. */
struct sim_work work_in(const struct sim_stream *stream, uint64_t start_ns, uint64_t end_ns);

/* ---- value.c: which bytes of the device are known ---- */

/* A copy of one row, of any direction: what is not known arrives as zeros. */
void values_copy(void *target, enum sim_memory_kind target_kind, const void *source,
	enum sim_memory_kind source_kind, size_t bytes);
/* A set or a copy wrote them: they are known from now on. */
void values_write(const void *address, size_t bytes);
/* The memory was given back. */
void values_forget(const void *address, size_t bytes);
/* A kernel was given these addresses: what was written in one piece around each is unknown from
 * there on. */
void values_touch(const uintptr_t *addresses, size_t how_many);
void values_touch_all(void);
/* Whether anything is known at all. */
bool values_any(void);

/* ---- argument.c: the device addresses among a kernel's arguments ---- */

struct touched {
	size_t count;
	uintptr_t addresses[];
};

/* There is device memory here: such addresses are looked for. */
void arguments_know(uintptr_t address, size_t bytes);
/* Where the kernel has its results, as far as its name tells; its parameters are known. */
void arguments_learn(struct kernel *kernel);
/* What the kernel's arguments point to is not known any longer. */
void arguments_touch(const struct op_kernel *kernel);
/* The operation as a graph's node has it: of a kernel's arguments it keeps the addresses, for ever.
 */
struct op op_kept(const struct op *op);

/* ---- host.c: functions of the program that run in stream order, on a thread of the driver ---- */

void host_enqueue(const struct op_host *host, uint64_t due_ns);
/* Waits for those due until then. 0: returns at once. */
void host_wait(uint64_t due_ns);
/* Whether host_wait would wait. */
bool host_pending(uint64_t due_ns);

/* ---- capture.c ---- */

struct sim_capture {
	uint64_t id;
	struct sim_graph *graph;
	struct sim_stream *origin;
	CUstreamCaptureMode mode;
	const void *thread; /* identity of the thread that began it */
	bool invalid;
	struct sim_capture *next; /* of those in progress */
};

CUresult capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode);
CUresult capture_end(struct sim_stream *stream, struct sim_graph **graph);
/* What the stream does; the outputs may be NULL. `tails` stays valid until the stream's next call.
 */
CUresult capture_info(struct sim_stream *stream, CUstreamCaptureStatus *status, uint64_t *id,
	struct sim_graph **graph, struct sim_node ***tails, size_t *count);
CUresult capture_update(
	struct sim_stream *stream, struct sim_node *const *nodes, size_t count, bool set);
CUresult capture_exchange_mode(CUstreamCaptureMode *mode);
/* Whether this thread may make a call that could disturb a capture; if not, the capture is invalid.
 */
CUresult capture_permits_unsafe(void);
/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the capture invalid, if the stream (any stream of the
 * context) captures; for calls that wait for it. */
CUresult capture_forbids_stream(struct sim_stream *stream);
CUresult capture_forbids_context(struct sim_context *context);
/* Adds the operation to the stream's capture. The lock must be held. */
CUresult capture_add(struct sim_stream *stream, const struct op *op, struct sim_node **node);
/* Work on the legacy stream must not depend on a capturing one: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT.
 * The lock must be held. */
CUresult capture_permits_legacy(struct sim_stream *stream);
/* Makes the stream join the capture in which the event was recorded, or refuses. The lock must be
 * held. */
CUresult capture_join(struct sim_stream *stream, const struct sim_event *event);
/* The capture of that id, NULL: it is over. The lock must be held. */
struct sim_capture *capture_find(uint64_t id);
/* From now on all calls in it fail. The lock must be held. */
void capture_invalidate(struct sim_capture *capture);
void set_assign(struct node_set *set, struct sim_node *const *nodes, size_t count);
void set_include(struct node_set *set, struct sim_node *const *nodes, size_t count);

/* ---- graph.c, graph_exec.c ---- */

struct sim_node {
	unsigned magic;
	uint64_t id;
	struct sim_graph *graph;
	struct op op;
	struct node_set needs;
	uint64_t origin_id;   /* of a clone: the id of what it was cloned from */
	unsigned lane;        /* of a clone: which of the executable's streams it runs in */
	bool lane_taken;      /* of a clone: a node after it continues its lane */
	size_t index;         /* private to graph.c: its place in an order, of nodes or of clones */
	bool mark;            /* private to graph.c */
	bool between_kernels; /* of a clone: needs only kernels, and only kernels need it */
	uint64_t end_ns;      /* of a clone: in the launch in progress */
};

struct sim_graph {
	unsigned magic;
	uint32_t id;
	struct sim_node **nodes;
	size_t count;
	size_t room;
};

CUresult graph_create(struct sim_graph **graph);
CUresult graph_destroy(struct sim_graph *graph);
bool graph_valid(const struct sim_graph *graph);
bool node_valid(const struct sim_node *node);
CUresult graph_add(struct sim_graph *graph, struct sim_node **node, struct sim_node *const *needs,
	size_t count, const struct op *op);
CUresult graph_connect(struct sim_graph *graph, struct sim_node *from, struct sim_node *to);
CUresult node_destroy(struct sim_node *node);
/* Nodes in an order that respects all edges, into `order` (graph->count of them); false: a cycle.
 */
bool graph_order(struct sim_graph *graph, struct sim_node **order);
/* Whether all nodes are before one of `tails`, or among them. The lock must be held. */
bool graph_joined(struct sim_graph *graph, const struct node_set *tails);
/* Makes a node. The lock must be held. */
struct sim_node *node_append(
	struct sim_graph *graph, struct sim_node *const *needs, size_t count, const struct op *op);
/* Frees it, telling nobody. The lock must not be held. */
void graph_free(struct sim_graph *graph);
void tell_node(enum sim_resource_kind kind, struct sim_node *node);

CUresult exec_create(struct sim_graph_exec **exec, struct sim_graph *graph, uint64_t flags);
CUresult exec_destroy(struct sim_graph_exec *exec);
CUresult exec_launch(struct sim_graph_exec *exec, struct sim_stream *stream);
bool exec_valid(const struct sim_graph_exec *exec);
uint64_t exec_flags(const struct sim_graph_exec *exec);
/* Takes over the parameters of a graph of the same shape; CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
 * else. */
CUresult exec_update(struct sim_graph_exec *exec, struct sim_graph *graph, struct sim_node **bad);
/* The operation of the node in the executable graph that was cloned from `node`. */
CUresult exec_set_op(struct sim_graph_exec *exec, struct sim_node *node, const struct op *op);

#endif
