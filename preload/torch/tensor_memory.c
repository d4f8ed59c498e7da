/* SPDX-License-Identifier: MIT
 * torch_memory.c: see torch_memory.h.
 */
#include "preload/torch/tensor_memory.h"

#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/stream.h"
#include "collector/stream/recording_switch.h"
#include "preload/python/python.h"
#include "preload/python/frames.h"
#include "preload/torch/libraries.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef void report_usage(void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device);
typedef void report_exhausted(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device);

/* The totals are size_t in 2.x and int64_t in 1.13: for the processor the same. */
#define USAGE _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define USAGE_1_13 _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define EXHAUSTED _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define EXHAUSTED_1_13 _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

__attribute__((visibility("default"))) report_usage USAGE, USAGE_1_13;
__attribute__((visibility("default"))) report_exhausted EXHAUSTED, EXHAUSTED_1_13;

static void usage_nowhere(void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	(void)address, (void)bytes, (void)allocated, (void)reserved, (void)device;
}

static void exhausted_nowhere(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	(void)bytes, (void)allocated, (void)reserved, (void)device;
}

enum target { TARGET_USAGE, TARGET_USAGE_1_13, TARGET_EXHAUSTED, TARGET_EXHAUSTED_1_13, TARGETS };

union report { /* a function of PyTorch's, by what it is */
	report_usage *usage;
	report_exhausted *exhausted;
	void *found;
};

static const struct {
	const char *name;
	union report own, nowhere;
} targets[TARGETS] = {
	[TARGET_USAGE] = {TEXT(USAGE), {.usage = USAGE}, {.usage = usage_nowhere}},
	[TARGET_USAGE_1_13] = {TEXT(USAGE_1_13), {.usage = USAGE_1_13}, {.usage = usage_nowhere}},
	[TARGET_EXHAUSTED] = {TEXT(EXHAUSTED), {.exhausted = EXHAUSTED}, {.exhausted = exhausted_nowhere}},
	[TARGET_EXHAUSTED_1_13] = {TEXT(EXHAUSTED_1_13), {.exhausted = EXHAUSTED_1_13}, {.exhausted = exhausted_nowhere}},
};

#define CONFIGURATION_BYTES 512u
#define UNREPORTED_MOST 2 /* times that the allocator may take memory before it reports what it did with it */
#define SEARCHES 4        /* allocations at which it is looked for, in a program that does not import it */

/* Of a device: what its last record said; how many more may refer to the one before them. In fork memory: a child's trace begins anew. */
struct last {
	_Atomic uint64_t allocated, reserved;
	_Atomic uint32_t run;
};

static bool enabled;
static struct last *last; /* TRACE_TENSOR_DEVICES of them; NULL: no memory, every record is whole */
static char configured[CONFIGURATION_BYTES];  /* "": nothing */
static void *_Atomic real[TARGETS];           /* PyTorch's; NULL: not looked up */
static _Atomic uintptr_t code_begin, code_end; /* of its allocator's library; the end is stored last */
static _Atomic bool known, reported, doubted; /* known: somebody has found the library, and says so */
static _Atomic unsigned unreported, searches;

static void say_state(const char *state)
{
	meta_set("source.torch_memory", enabled ? state : "off: PPERF_TENSORS=0 (0)");
}

/* ---- PyTorch's own ---- */

static void look_up(void)
{
	for (int i = 0; i < TARGETS; i++) {
		void *found = torch_symbol(TORCH_C10, targets[i].name);

		if (found && found != targets[i].own.found)
			atomic_store_explicit(&real[i], found, memory_order_release);
	}
}

/* Not in an object of the usual name: linked into another, or the program has a copy. */
static void *look_everywhere(enum target target)
{
	void *found = torch_symbol_besides(targets[target].own.found, targets[target].name);

	if (!found)
		found = targets[target].nowhere.found;
	atomic_store_explicit(&real[target], found, memory_order_release);
	return found;
}

static __attribute__((noinline)) union report find(enum target target)
{
	union report report;
	struct quiet quiet;

	quiet_begin(&quiet);
	torch_memory_begin(false);
	report.found = atomic_load_explicit(&real[target], memory_order_acquire);
	if (!report.found)
		report.found = look_everywhere(target);
	quiet_end(&quiet);
	return report;
}

static inline union report real_of(enum target target)
{
	union report report = {.found = atomic_load_explicit(&real[target], memory_order_acquire)};

	return __builtin_expect(report.found != NULL, 1) ? report : find(target);
}

/* ---- what is recorded ---- */

/* It was late, if it was missed. */
static __attribute__((noinline)) void first_report(void)
{
	struct quiet quiet;

	quiet_begin(&quiet);
	atomic_store(&reported, true);
	if (atomic_load(&doubted))
		say_state("on");
	quiet_end(&quiet);
}

/* A report, as it came. */
struct heard {
	uint64_t address;
	int64_t bytes;
	uint64_t allocated, reserved;
	uint32_t device, stack;
};

static bool is_in_units(uint64_t value, unsigned bits)
{
	return value % TRACE_TENSOR_UNIT == 0 && value / TRACE_TENSOR_UNIT >> bits == 0;
}

static uint64_t size_of(const struct heard *heard)
{
	return heard->bytes < 0 ? -(uint64_t)heard->bytes : (uint64_t)heard->bytes;
}

/* Whether its totals are those of the last one of the device and its own bytes, so that they need not be written. */
static bool follows(const struct last *before, const struct heard *heard)
{
	return atomic_load_explicit(&before->run, memory_order_relaxed) && !heard->stack &&
	       atomic_load_explicit(&before->allocated, memory_order_relaxed) + (uint64_t)heard->bytes == heard->allocated &&
	       atomic_load_explicit(&before->reserved, memory_order_relaxed) == heard->reserved &&
	       is_in_units(heard->address, TRACE_TENSOR_BYTES_BIT) && is_in_units(size_of(heard), 64 - TRACE_TENSOR_BYTES_BIT);
}

static bool put_next(const struct heard *heard)
{
	struct trace_tensor_next *next = stream_record(TRACE_TENSOR_NEXT, sizeof *next);

	if (!next)
		return false;
	next->head.flags = (uint8_t)(heard->device | (heard->bytes < 0 ? TRACE_TENSOR_GIVEN_BACK : 0));
	next->block = heard->address / TRACE_TENSOR_UNIT | size_of(heard) / TRACE_TENSOR_UNIT << TRACE_TENSOR_BYTES_BIT;
	stream_commit();
	return true;
}

static bool put_whole(enum trace_kind kind, uint8_t flags, const struct heard *heard)
{
	struct trace_tensor *tensor = stream_record(kind, sizeof *tensor);

	if (!tensor)
		return false;
	tensor->head.flags = flags;
	tensor->address = heard->address;
	tensor->bytes = heard->bytes;
	tensor->allocated = heard->allocated;
	tensor->reserved = heard->reserved;
	tensor->device = heard->device;
	tensor->stack = heard->stack;
	stream_commit();
	return true;
}

/* The next one may refer to this one, if it was written. Under the allocator's lock, as all of a device's reports are; should some not be, the
 * report finds that they do not add up, and says so. */
static void put(enum trace_kind kind, const struct heard *heard)
{
	struct last *before = last ? &last[heard->device] : NULL;
	const bool next = before && kind == TRACE_TENSOR && follows(before, heard), written = next ? put_next(heard) : put_whole(kind, 0, heard);
	uint32_t run;

	if (!before)
		return;
	run = next ? atomic_load_explicit(&before->run, memory_order_relaxed) - 1 : TRACE_TENSOR_RUN - 1;
	atomic_store_explicit(&before->allocated, heard->allocated, memory_order_relaxed);
	atomic_store_explicit(&before->reserved, heard->reserved, memory_order_relaxed);
	atomic_store_explicit(&before->run, written ? run : 0, memory_order_relaxed);
}

/* Outside of the schedule's windows: the totals are remembered. */
static void pass(const struct heard *heard)
{
	uint64_t began = stream_pass_begins(TRACE_SKIPPED_TENSORS);

	if (last) {
		atomic_store_explicit(&last[heard->device].allocated, heard->allocated, memory_order_relaxed);
		atomic_store_explicit(&last[heard->device].reserved, heard->reserved, memory_order_relaxed);
		atomic_store_explicit(&last[heard->device].run, 0, memory_order_relaxed);
	}
	stream_pass_ends(TRACE_SKIPPED_TENSORS, began);
	stream_leave();
}

static void record(
	enum trace_kind kind, const void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	struct heard heard = {(uintptr_t)address, bytes, allocated, reserved, (uint8_t)device.index, 0};
	uint64_t begin = 0;

	if (!enabled || device.type != TORCH_DEVICE_CUDA || device.index < 0)
		return;
	if (__builtin_expect(!atomic_load_explicit(&reported, memory_order_relaxed), 0))
		first_report();
	if (!stream_enter())
		return;
	if (window_is_shut() && kind == TRACE_TENSOR) {
		pass(&heard);
		return;
	}
	if (__builtin_expect(python_stacks != PYTHON_STACKS_OFF, 0) && bytes > 0) {
		begin = clock_now();
		heard.stack = python_stack_here();
	}
	put(kind, &heard);
	if (begin)
		call_stack_took(begin, clock_now() - begin);
	stream_leave();
}

void USAGE(void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record(TRACE_TENSOR, address, bytes, allocated, reserved, device);
	real_of(TARGET_USAGE).usage(address, bytes, allocated, reserved, device);
}

void USAGE_1_13(void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record(TRACE_TENSOR, address, bytes, allocated, reserved, device);
	real_of(TARGET_USAGE_1_13).usage(address, bytes, allocated, reserved, device);
}

void EXHAUSTED(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record(TRACE_TENSOR_OOM, NULL, bytes, allocated, reserved, device);
	real_of(TARGET_EXHAUSTED).exhausted(bytes, allocated, reserved, device);
}

void EXHAUSTED_1_13(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record(TRACE_TENSOR_OOM, NULL, bytes, allocated, reserved, device);
	real_of(TARGET_EXHAUSTED_1_13).exhausted(bytes, allocated, reserved, device);
}

void torch_memory_say_levels(void)
{
	if (!enabled || !last || !stream_enter())
		return;
	for (uint32_t device = 0; device < TRACE_TENSOR_DEVICES; device++) {
		const struct heard heard = {
			.allocated = atomic_load_explicit(&last[device].allocated, memory_order_relaxed),
			.reserved = atomic_load_explicit(&last[device].reserved, memory_order_relaxed),
			.device = device,
		};

		if (heard.allocated || heard.reserved)
			put_whole(TRACE_TENSOR, TRACE_TENSOR_LEVEL, &heard);
		atomic_store_explicit(&last[device].run, 0, memory_order_relaxed); /* the next one is whole, whoever is before it */
	}
	stream_leave();
}

/* ---- what is said of it ---- */

void torch_memory_configure(bool wanted, const char *configuration)
{
	last = fork_memory(TRACE_TENSOR_DEVICES * sizeof *last);
	enabled = wanted;
	if (configuration)
		snprintf(configured, sizeof configured, "%s", configuration);
}

/* What os.getenv says of it now. The environment itself may not be read here: a thread may be changing it. */
static bool ask(const char *variable)
{
	struct python_object *os = python.PyDict_GetItemString(python.PyImport_GetModuleDict(), "os");
	struct python_object *getenv = os ? python.PyObject_GetAttrString(os, "getenv") : NULL;
	struct python_object *arguments = getenv ? python.PyTuple_New(1) : NULL, *value = NULL;
	const char *text = NULL;

	if (arguments && !python.PyTuple_SetItem(arguments, 0, python.PyUnicode_FromString(variable)))
		value = python.PyObject_CallObject(getenv, arguments);
	if (value)
		text = python.PyUnicode_AsUTF8AndSize(value, NULL);
	if (text)
		snprintf(configured, sizeof configured, "%s", text);
	python_forget_error();
	for (int i = 0; i < 3; i++) {
		struct python_object *object = i == 0 ? value : i == 1 ? arguments : getenv;

		if (object)
			python.Py_DecRef(object);
	}
	return text != NULL;
}

void torch_memory_begin(bool ask_python)
{
	const char *setting = configured;
	uintptr_t begin, end;

	look_up();
	if (atomic_load(&code_end) || !torch_library_range(TORCH_C10_CUDA, &begin, &end))
		return; /* said already; or PyTorch without CUDA, which has nothing to say of this */
	if (ask_python && !ask("PYTORCH_ALLOC_CONF"))
		ask("PYTORCH_CUDA_ALLOC_CONF");
	if (atomic_exchange(&known, true))
		return;
	if (*setting)
		meta_set("torch.allocator", setting);
	if (strstr(setting, "cudaMallocAsync"))
		say_state("partial: the backend cudaMallocAsync reports no tensors; what it takes and gives back is recorded as device memory");
	else
		say_state("on");
	/* Last of all: from now on another thread may have something less pleasant to say, and that shall stand. */
	atomic_store(&code_begin, begin);
	atomic_store(&code_end, end);
}

static void search(void)
{
	struct quiet quiet;

	if (atomic_load(&searches) >= SEARCHES || atomic_fetch_add(&searches, 1) >= SEARCHES)
		return;
	quiet_begin(&quiet);
	torch_memory_begin(false);
	quiet_end(&quiet);
}

static bool is_allocator(uintptr_t address)
{
	const uintptr_t end = atomic_load_explicit(&code_end, memory_order_acquire);

	return address < end && address >= atomic_load_explicit(&code_begin, memory_order_relaxed);
}

void torch_memory_took(const void *caller, bool pool)
{
	if (!atomic_load(&code_end))
		search();
	if (atomic_load(&reported) || !is_allocator((uintptr_t)caller))
		return;
	if (!pool && atomic_fetch_add(&unreported, 1) + 1 < UNREPORTED_MOST)
		return;
	if (atomic_exchange(&doubted, true))
		return;
	say_state(pool ? "partial: PyTorch's backend cudaMallocAsync reports no tensors; what it takes and gives back is recorded as device memory"
		       : "partial: PyTorch's allocator took device memory and reported no tensor");
}
