/* SPDX-License-Identifier: MIT
 * torch_memory.c: see torch_memory.h.
 */
#include "torch_memory.h"

#include "call.h"
#include "collector/dictionary.h"
#include "collector/quiet.h"
#include "collector/stream.h"
#include "python.h"
#include "python_frames.h"
#include "torch_libraries.h"

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

static bool enabled;
static char configured[CONFIGURATION_BYTES];  /* "": nothing */
static void *_Atomic real[TARGETS];           /* PyTorch's; NULL: not looked up */
static _Atomic uintptr_t code_begin, code_end; /* of its allocator's library; the end is stored last */
static _Atomic bool reported, doubted;
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

static void record(
	enum trace_kind kind, const void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	struct trace_tensor *tensor;
	uint32_t stack = 0;
	uint64_t begin = 0;

	if (!enabled || device.type != TORCH_DEVICE_CUDA)
		return;
	if (__builtin_expect(!atomic_load_explicit(&reported, memory_order_relaxed), 0))
		first_report();
	if (!stream_enter())
		return;
	if (__builtin_expect(python_stacks != PYTHON_STACKS_OFF, 0) && bytes > 0) {
		begin = clock_now();
		stack = python_stack_here();
	}
	tensor = stream_record(kind, sizeof *tensor);
	if (tensor) {
		tensor->stack = stack;
		tensor->address = (uintptr_t)address;
		tensor->bytes = bytes;
		tensor->allocated = allocated;
		tensor->reserved = reserved;
		tensor->device = (uint8_t)device.index;
		stream_commit();
	}
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

/* ---- what is said of it ---- */

void torch_memory_configure(bool wanted, const char *configuration)
{
	enabled = wanted;
	snprintf(configured, sizeof configured, "%s", configuration ? configuration : "");
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
	atomic_store(&code_begin, begin);
	atomic_store(&code_end, end);
	if (*setting)
		meta_set("torch.allocator", setting);
	if (strstr(setting, "cudaMallocAsync"))
		say_state("partial: the backend cudaMallocAsync reports no tensors; what it takes and gives back is recorded as device memory");
	else
		say_state("on");
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
