/*
 * The parts of the simulated libcupti and what they ask of each other.
 *
 *   cupti_switch.c      how to misbehave, read once from the environment
 *   cupti_entry.c       what every exported function checks first
 *   cupti_info.c        versions, clock, identifiers
 *   cupti_result.c      texts of the result codes
 *   cupti_subscriber.c  the one subscriber and the callbacks it enabled
 *   cupti_callback.c    from the device's events to callbacks; correlation ids
 *   cupti_activity.c    which activity kinds are on; attributes; external correlation
 *   cupti_tools.c       from the device's events to activity records; attaching, detaching
 *   cupti_record.c      the bytes of a record
 *   cupti_buffer.c      the client's buffers, lost records
 *   cupti_worker.c      the thread that completes and delivers; flushing
 *
 * Locks, outermost first: `delivery` of cupti_worker.c (held while bufferCompleted runs), `lock` of
 * cupti_buffer.c (held while bufferRequested runs), `lock` of cupti_worker.c (never held around
 * foreign code). As with the real library, a client that holds a lock of its own around a CUPTI
 * call and takes the same lock in a buffer callback deadlocks.
 */
#ifndef CUPTI_PARTS_H
#define CUPTI_PARTS_H

#include "cupti/layout.h"
#include "core/sim.h"

/* API versions that changed something. */
enum {
	CUPTI_12_0 = 19,
	CUPTI_12_2 = 20,
	CUPTI_12_3 = 21,
	CUPTI_12_4 = 22,
	CUPTI_12_5 = 23,
	CUPTI_12_6 = 24,
	CUPTI_12_8 = 26,
	CUPTI_12_9 = 27,
	CUPTI_12_9_1 = 28,
	CUPTI_13_0 = 130000,
	CUPTI_13_0_1 = 130001,
	CUPTI_13_1 = 130100,
};

#define ACTIVITY_KINDS 64

/*
 * What the environment asks for. Every `N` counts from 1 within the process; 0 is never.
 *
 *   SIM_CUPTI_VERSION=V       cuptiGetVersion, record lengths and features of that API version
 *   SIM_CUPTI_REFUSE=CODE     cuptiSubscribe and everything that needs the driver returns CODE
 *   SIM_CUPTI_ENABLE_FAIL=K:C[,K:C]  enabling activity kind K returns C
 *   SIM_CUPTI_DROP=N          every Nth record is dropped and counted
 *   SIM_CUPTI_SILENT_DROP=N   every Nth record is dropped and not counted
 *   SIM_CUPTI_UNTIMED=N       every Nth kernel has start = end = 0
 *   SIM_CUPTI_LATE=MS         device records are complete only MS milliseconds after their end
 *   SIM_CUPTI_WHOLE=0         a flush that is not forced also hands over buffers that wait for a record
 *   SIM_CUPTI_UNKNOWN=N       after every Nth record comes one of a kind that no header knows
 *   SIM_CUPTI_INVALID=N       in the middle of every Nth buffer cuptiActivityGetNextRecord stops with
 *                             CUPTI_ERROR_INVALID_KIND
 *   SIM_CUPTI_ORDER=shuffle   device records come in no order at all
 *   SIM_CUPTI_THREAD=new      every buffer is handed over by a thread that was made for it and ends with it
 *   SIM_CUPTI_SLOW_FLUSH=MS   cuptiActivityFlushAll takes so many milliseconds longer
 *   SIM_CUPTI_HANG=WHAT       never returns: `flush`: cuptiActivityFlushAll, `forced`: with the flag, `disable`: cuptiActivityDisable
 *   SIM_CUPTI_FORCED_WAITS=1  a forced flush waits until the device has done all its work
 *   SIM_CUPTI_WORKER=record   the thread is made with the first record, by whom launches, instead of with the first kind
 *   SIM_CUPTI_HANG_FORK=1     in a forked child cuptiActivityFlushAll hangs (here: for 20 s)
 *   SIM_CUPTI_WRAP=1          correlation ids start at 2^32 - 1000
 *   SIM_CUPTI_FATAL=N         after the Nth kernel: STATE_FATAL_ERROR, then CUPTI is detached
 *   SIM_CUPTI_KERNEL_ID=outer device records carry the id of the outermost call that has one, not the innermost's;
 *                             =other: if two calls around the work have ids, an id of neither
 *   SIM_CUPTI_NESTED=1        driver calls inside traced runtime calls have activity records and ids, as all others
 *   SIM_CUPTI_IDS=records     only calls that have an activity record have an id, as CUPTI's guide promises; callbacks do not give one
 *   SIM_CUPTI_QUERIES=all|done|none  what event and stream queries leave in SYNCHRONIZATION records,
 *                             unless cuptiActivityEnableAllSyncRecords says so: one each (the
 *                             default, as CUPTI 13's header says), one if the work was done (the
 *                             default before 12.8), nothing
 *   SIM_CUPTI_CLOCK=zero      before 13.1, kernels have no times while a timestamp callback is
 *                             registered (release notes of 13.1: so since 12.6 Update 2)
 *   SIM_CUPTI_LOG=FILE        appends "pid tid function" for every call but GetNextRecord
 */
enum queries { QUERIES_ALL, QUERIES_DONE, QUERIES_NONE };

/* When GRAPHNODE_CREATED is sent for a clone that cuGraphInstantiate makes, beside its
 * GRAPHNODE_CLONED. */
enum clone_created { CREATED_BEFORE_CLONED, CREATED_AFTER_CLONED, CREATED_NEVER_FOR_CLONES };

struct switches {
	uint32_t version;
	int refuse;
	int enable_fail[ACTIVITY_KINDS];
	unsigned drop;
	unsigned silent_drop;
	unsigned untimed;
	uint64_t late_ns;
	bool whole;
	unsigned unknown;
	unsigned invalid;
	bool shuffle;
	bool fresh_threads;
	uint32_t slow_flush_ms;
	bool hang_flush, hang_forced, hang_disable;
	bool forced_waits;
	bool worker_at_record;
	bool hang_fork;
	bool wrap;
	unsigned fatal;
	bool outer_ids;
	bool other_ids;
	bool nested_records;
	bool record_ids;
	enum queries queries;
	bool clock_zeroes;
	enum clone_created clone_created;
	bool graph_trace_by_instantiation;
	uint32_t node_cost_ns;
	bool graph_memsets; /* also between kernels */
	int log;            /* file descriptor, -1: none */
};

/* Read at the first call; the same for the life of the process. */
const struct switches *switches(void);

/* The kind and length of the records that SIM_CUPTI_UNKNOWN inserts. */
enum { UNKNOWN_KIND = 200, UNKNOWN_BYTES = 64 };

/*
 * What an exported function does first. entry_pure() only notes the call. entry() also returns what
 * the function has to return when it cannot work: no device, refused, detached, in a forked child.
 * A call from within a buffer callback ends the process with a message: the real library holds its
 * locks there.
 */
void entry_pure(const char *function);
CUptiResult entry(const char *function);
/* Brackets the client's buffer callbacks. */
void entry_in_buffer_callback(int step);
/* This process was forked from the one that loaded the library. */
bool entry_forked(void);
/* CUPTI has detached itself, after a fatal error. */
void entry_detach(void);
bool entry_detached(void);

/* Clock of all records: CLOCK_REALTIME, or what the client's timestamp callback says. */
uint64_t clock_now(void);
/* True if a timestamp callback takes the kernels' times away. */
bool clock_zeroes(void);
/* A time of the device in that clock. */
uint64_t clock_of_device(uint64_t realtime_ns);
/* The calling thread, in the form that cuptiSetThreadIdType chose. */
uint32_t thread_id(void);

/* Whether this version has such a callback. */
bool callback_exists(CUpti_CallbackDomain domain, uint32_t cbid);
/* The subscriber. Thread-safe. */
bool subscriber_wants(CUpti_CallbackDomain domain, uint32_t cbid);
/* Calls it, whether it wants to or not; nothing when there is none. */
void subscriber_call(CUpti_CallbackDomain domain, uint32_t cbid, const void *data);
/* Tells STATE subscribers; `message` must be a constant. */
void subscriber_state(uint32_t cbid, CUptiResult result, const char *message);
/* The calling thread is inside a subscriber's callback. */
bool subscriber_calling(void);
/* Forgets the subscriber and all it enabled. */
void subscriber_clear(void);

/* The callback side of what the device tells. callback_enter() numbers the call. */
void callback_enter(struct sim_scope *scope);
void callback_exit(struct sim_scope *scope);
/* Whether the call yields an activity record of its own. */
bool callback_has_record(const struct sim_scope *scope);
void callback_resource(const struct sim_resource *resource);
void callback_sync(const struct sim_sync *sync);
void callback_launch(const struct sim_work *work);

/* Starts listening to the device; harmless when it does already. */
void tools_install(void);
/* Stops listening and forgets the client. */
void tools_remove(void);
/* Correlation ids start again. */
void correlation_restart(void);
/* What device work and memory of the running call must carry, given the innermost call's id. */
uint32_t correlation_of(uint32_t innermost);

/*
 * Exports `name` only from API version `since` on: in an older one dlsym() finds nothing, as with
 * the real library. `function` is what it does.
 */
#define CUPTI_SINCE(since, name, function)                               \
	__attribute__((used)) static __typeof__(name) *name##_find(void) \
	{                                                                \
		return switches()->version >= (since) ? function : NULL; \
	}                                                                \
	SIM_EXPORT __typeof__(name) name __attribute__((ifunc(#name "_find")));

/* Which records are wanted. `context` is an id, 0: any. */
bool activity_on(CUpti_ActivityKind kind, uint32_t context);
/* Whether a kind that works for all contexts is on anywhere. */
bool activity_any(void);
bool activity_api_on(enum sim_domain domain, int cbid);
/* The kind of the domain is on, whatever was said of this function. */
bool activity_api_kind_on(enum sim_domain domain);
bool activity_latency(void);
bool activity_sync_wanted(const struct sim_sync *sync);
bool activity_event_times(void);
bool activity_per_thread(void);
bool activity_zeroed(void);
void activity_clear(void);
/* Top of this thread's stack of external ids of `kind`; false: empty. */
bool external_top(unsigned kind, uint64_t *id);
#define EXTERNAL_KINDS CUPTI_EXTERNAL_CORRELATION_KIND_SIZE

/* One record on its way. */
struct record {
	uint64_t due_ns; /* when it is complete, in sim_time_ns() */
	uint32_t stream;
	uint32_t length; /* 0: this CUPTI has no such record */
	uint8_t bytes[CUPTI_RECORD_MAX];
};

/* Length of a kind's records in this version, 0: none such. */
uint32_t record_length(uint32_t kind);
void record_kernel(struct record *record, const struct sim_work *work, uint64_t queued_ns);
void record_copy(struct record *record, const struct sim_work *work);
void record_set(struct record *record, const struct sim_work *work);
void record_memory(struct record *record, const struct sim_memory *memory);
void record_api(struct record *record, const struct sim_scope *scope, uint64_t end_ns);
void record_external(struct record *record, uint32_t kind, uint64_t id, uint32_t correlation);
void record_overhead(struct record *record, uint32_t kind, uint64_t start_ns, uint64_t end_ns,
	uint32_t correlation);
void record_sync(struct record *record, const struct sim_sync *sync, uint64_t event_sync);
void record_event(struct record *record, const struct sim_event_record *event, uint64_t event_sync);
void record_graph(
	struct record *record, const struct sim_work *first, uint64_t start_ns, uint64_t end_ns);
void record_device(struct record *record, int device);
void record_context(struct record *record, const struct sim_context *context);
void record_stream(struct record *record, const struct sim_stream *stream, uint32_t correlation);

/* Whose buffer a record goes to. */
enum buffer_owner {
	BUFFER_THREAD, /* the calling thread's, where buffers are per thread */
	BUFFER_DEVICE, /* the worker's */
};

/* Copies a complete record into the client's buffers, asking for one where needed. */
void buffer_put(enum buffer_owner owner, const struct record *record);
/* The same for device work that has not ended: a reader stops at the first. Their buffers are full
 * thereafter, so that nothing comes behind them. */
void buffer_put_incomplete(const struct record *const *records, size_t count);
/* Hands full buffers, or with `all` every buffer with something in it, to the client. The caller
 * holds the delivery lock. */
void buffer_deliver(bool all);
bool buffer_registered(void);
/* Forgets what no client shall see any more. Buffers stay with CUPTI. */
void buffer_clear(void);

/* Device work that will be complete at record->due_ns. */
void worker_add(const struct record *record);
/* Makes the thread, which inherits the signal mask of the caller. */
void worker_start(void);
/* SIM_CUPTI_HANG: the caller never returns. */
void worker_hang(void);
/* Something is to be delivered soon. */
void worker_wake(void);
void worker_period(uint32_t ms);
/* Delivers what is complete; `forced` also hands out what is not. */
void worker_flush(bool forced);
void worker_clear(void);

#endif
