/* SPDX-License-Identifier: MIT */
#include "preload/torch/tensor_memory.h"

#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/held_memory.h"
#include "collector/stream/stream.h"
#include "collector/stream/recording_switch.h"
#include "preload/python/python.h"
#include "preload/python/frames.h"
#include "preload/torch/libraries.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef void report_usage(void *address, int64_t bytes, size_t allocated, size_t reserved,
	struct torch_device device);
typedef void report_exhausted(
	int64_t bytes, size_t allocated, size_t reserved, struct torch_device device);

/* The totals are size_t in 2.x and int64_t in 1.13. Both are passed in the same registers. */
#define USAGE _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define USAGE_1_13 _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define EXHAUSTED _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define EXHAUSTED_1_13 _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

__attribute__((visibility("default"))) report_usage USAGE, USAGE_1_13;
__attribute__((visibility("default"))) report_exhausted EXHAUSTED, EXHAUSTED_1_13;

static void usage_ignored(
	void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	(void)address, (void)bytes, (void)allocated, (void)reserved, (void)device;
}

static void exhausted_ignored(
	int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	(void)bytes, (void)allocated, (void)reserved, (void)device;
}

enum target { TARGET_USAGE, TARGET_USAGE_1_13, TARGET_EXHAUSTED, TARGET_EXHAUSTED_1_13, TARGETS };

union report_function { /* a PyTorch function, by its type */
	report_usage *usage;
	report_exhausted *exhausted;
	void *found;
};

static const struct {
	const char *name;
	union report_function own, ignored;
} targets[TARGETS] = {
	[TARGET_USAGE] = { TEXT(USAGE), { .usage = USAGE }, { .usage = usage_ignored } },
	[TARGET_USAGE_1_13] = { TEXT(USAGE_1_13), { .usage = USAGE_1_13 },
		{ .usage = usage_ignored } },
	[TARGET_EXHAUSTED] = { TEXT(EXHAUSTED), { .exhausted = EXHAUSTED },
		{ .exhausted = exhausted_ignored } },
	[TARGET_EXHAUSTED_1_13] = { TEXT(EXHAUSTED_1_13), { .exhausted = EXHAUSTED_1_13 },
		{ .exhausted = exhausted_ignored } },
};

#define CONFIGURATION_BYTES 512u
/* After this many device allocations of PyTorch's allocator without a report, its reports are taken
 * as missing. */
#define UNREPORTED_MAX 2
/* Allocations at which the library is searched for, in a program that does not import torch. */
#define SEARCHES_MAX 4

/* The last record of a device, and how many more records may refer to it. Kept in memory that a
 * fork wipes, because a child's trace starts anew. */
struct last_report {
	_Atomic uint64_t allocated, reserved;
	_Atomic uint32_t run;
};

static bool enabled;
/* TRACE_TENSOR_DEVICES entries; NULL: no memory, and every record has the totals. */
static struct last_report *last_report;
static char configuration_text[CONFIGURATION_BYTES]; /* "": none */
static void *_Atomic real[TARGETS];                  /* PyTorch's functions; NULL: not looked up */
/* Mapped range of libc10_cuda. The end is stored last. */
static _Atomic uintptr_t code_begin, code_end;
/* state_claimed: a thread has found libc10_cuda loaded, and writes META source.torch_memory; no
 * other one does.
 * reported: PyTorch has reported a block.
 * report_missing: META source.torch_memory says that reports are missing. */
static _Atomic bool state_claimed, reported, report_missing;
static _Atomic unsigned unreported, searches;

/* Writes META source.torch_memory. The (0) of "off" is the number of the reason: a setting. */
static void write_memory_state(const char *state)
{
	meta_set("source.torch_memory", enabled ? state : "off: PPERF_TENSORS=0 (0)");
}

/* ---- PyTorch's functions ---- */

static void look_up_reports(void)
{
	for (int i = 0; i < TARGETS; i++) {
		void *found = torch_symbol(TORCH_C10, targets[i].name);

		if (found && found != targets[i].own.found)
			atomic_store_explicit(&real[i], found, memory_order_release);
	}
}

/* Looks in all objects if libc10 does not define the function: PyTorch may be linked into
 * another object, or the program has a copy. Falls back to a function that does nothing. */
static void *look_up_report_elsewhere(enum target target)
{
	void *found = torch_symbol_elsewhere(targets[target].own.found, targets[target].name);

	if (!found)
		found = targets[target].ignored.found;
	atomic_store_explicit(&real[target], found, memory_order_release);
	return found;
}

static __attribute__((noinline)) union report_function find_report(enum target target)
{
	union report_function report_function;
	struct signal_guard guard;

	signal_guard_begin(&guard);
	torch_memory_look_up(false);
	report_function.found = atomic_load_explicit(&real[target], memory_order_acquire);
	if (!report_function.found)
		report_function.found = look_up_report_elsewhere(target);
	signal_guard_end(&guard);
	return report_function;
}

static inline union report_function real_report(enum target target)
{
	union report_function report_function = { .found = atomic_load_explicit(
							  &real[target], memory_order_acquire) };

	return __builtin_expect(report_function.found != NULL, 1) ? report_function
								  : find_report(target);
}

/* ---- recording ---- */

/* Reports of at least this many bytes go through record_slowly. */
static int64_t slow_from_bytes = INT64_MIN;

/* Corrects META source.torch_memory if it says that reports are missing although the first one was
 * only late. */
static __attribute__((noinline)) void first_report(void)
{
	struct signal_guard guard;

	signal_guard_begin(&guard);
	if (!held_memory_wanted)
		slow_from_bytes = python_stack_min_bytes;
	atomic_store(&reported, true);
	if (atomic_load(&report_missing))
		write_memory_state("on");
	signal_guard_end(&guard);
}

/* The arguments of a report. */
struct tensor_report {
	uint64_t address;
	int64_t bytes;
	uint64_t allocated, reserved;
	uint32_t device, stack;
};

static bool is_in_units(uint64_t value, unsigned bits)
{
	return value % TRACE_TENSOR_UNIT == 0 && value / TRACE_TENSOR_UNIT >> bits == 0;
}

static uint64_t report_bytes(const struct tensor_report *tensor_report)
{
	return tensor_report->bytes < 0 ? -(uint64_t)tensor_report->bytes
					: (uint64_t)tensor_report->bytes;
}

/* Returns whether the totals follow from the device's last record and the report's bytes. If so,
 * they need not be written. */
static bool follows_last(
	const struct last_report *before, const struct tensor_report *tensor_report)
{
	return atomic_load_explicit(&before->run, memory_order_relaxed) &&
	       atomic_load_explicit(&before->allocated, memory_order_relaxed) +
			       (uint64_t)tensor_report->bytes ==
		       tensor_report->allocated &&
	       atomic_load_explicit(&before->reserved, memory_order_relaxed) ==
		       tensor_report->reserved &&
	       is_in_units(tensor_report->address, TRACE_TENSOR_BYTES_BIT) &&
	       is_in_units(report_bytes(tensor_report), 64 - TRACE_TENSOR_BYTES_BIT);
}

static bool append_next(const struct tensor_report *tensor_report)
{
	struct trace_tensor_next_stack *with_stack;
	struct trace_tensor_next *next = stream_record(
		TRACE_TENSOR_NEXT, tensor_report->stack ? sizeof *with_stack : sizeof *next);

	if (!next)
		return false;
	if (tensor_report->stack) {
		with_stack = (void *)next;
		with_stack->stack = tensor_report->stack;
	}
	next->head.flags = (uint8_t)(tensor_report->device |
				     (tensor_report->bytes < 0 ? TRACE_TENSOR_FREED : 0));
	next->block = tensor_report->address / TRACE_TENSOR_UNIT |
		      report_bytes(tensor_report) / TRACE_TENSOR_UNIT << TRACE_TENSOR_BYTES_BIT;
	stream_commit();
	return true;
}

static bool append_tensor(
	enum trace_kind kind, uint8_t flags, const struct tensor_report *tensor_report)
{
	struct trace_tensor *tensor = stream_record(kind, sizeof *tensor);

	if (!tensor)
		return false;
	tensor->head.flags = flags;
	tensor->address = tensor_report->address;
	tensor->bytes = tensor_report->bytes;
	tensor->allocated = tensor_report->allocated;
	tensor->reserved = tensor_report->reserved;
	tensor->device = tensor_report->device;
	tensor->stack = tensor_report->stack;
	stream_commit();
	return true;
}

/* Writes the report and remembers its totals, so that the next one may refer to them if this one
 * was written. All reports of a device come under the allocator's lock. If some should not,
 * pperf-report finds that the totals do not add up, and warns. */
static void append_report(enum trace_kind kind, const struct tensor_report *tensor_report)
{
	struct last_report *before = last_report ? &last_report[tensor_report->device] : NULL;
	const bool next = before && kind == TRACE_TENSOR && follows_last(before, tensor_report),
		   written = next ? append_next(tensor_report)
				  : append_tensor(kind, 0, tensor_report);
	uint32_t run;

	if (!before)
		return;
	run = next ? atomic_load_explicit(&before->run, memory_order_relaxed) - 1
		   : TRACE_TENSOR_RUN - 1;
	atomic_store_explicit(&before->allocated, tensor_report->allocated, memory_order_relaxed);
	atomic_store_explicit(&before->reserved, tensor_report->reserved, memory_order_relaxed);
	atomic_store_explicit(&before->run, written ? run : 0, memory_order_relaxed);
}

/* Makes the next record of each device have the totals. */
static void restart_totals(void)
{
	for (uint32_t device = 0; last_report && device < TRACE_TENSOR_DEVICES; device++)
		atomic_store_explicit(&last_report[device].run, 0, memory_order_relaxed);
}

/* Writes the report and remembers which blocks are held (PPERF_RING). */
static __attribute__((noinline)) void append_report_held(
	enum trace_kind kind, const struct tensor_report *tensor_report)
{
	static uint32_t restatements; /* at the last report; under the lock */
	const struct held_block block = { .key = { tensor_report->address, HELD_TENSOR },
		.bytes = report_bytes(tensor_report),
		.node = stream_node(),
		.stack = tensor_report->stack,
		.device = tensor_report->device };
	struct signal_guard guard;

	held_memory_lock(&guard);
	if (restatements != held_memory_restatements())
		restart_totals();
	restatements = held_memory_restatements();
	append_report(kind, tensor_report);
	held_memory_set_level(
		tensor_report->device, tensor_report->allocated, tensor_report->reserved);
	if (kind == TRACE_TENSOR_OOM)
		held_memory_ran_out(report_bytes(tensor_report), false);
	else if (tensor_report->bytes >= 0)
		held_memory_add(&block);
	else
		held_memory_remove(HELD_TENSOR, tensor_report->address, UINT64_MAX);
	held_memory_unlock(&guard);
}

/* Counts a report while recording is paused, and remembers the totals. */
static void skip_report(const struct tensor_report *tensor_report)
{
	uint64_t began = stream_begin_skipped_event(TRACE_SKIPPED_TENSORS);

	if (last_report) {
		atomic_store_explicit(&last_report[tensor_report->device].allocated,
			tensor_report->allocated, memory_order_relaxed);
		atomic_store_explicit(&last_report[tensor_report->device].reserved,
			tensor_report->reserved, memory_order_relaxed);
		atomic_store_explicit(
			&last_report[tensor_report->device].run, 0, memory_order_relaxed);
	}
	stream_end_skipped_event(TRACE_SKIPPED_TENSORS, began);
	stream_leave();
}

/* Captures the stack that PPERF_PYSTACKS requests for an allocation, and records it. The cost of a
 * line that is known is not recorded: that would cost as much again. With PPERF_RING all reports
 * come here, so that those without it need no test. */
static __attribute__((noinline)) void record_slowly(
	enum trace_kind kind, struct tensor_report *tensor_report)
{
	const bool with_stack = tensor_report->bytes >= python_stack_min_bytes;
	const uint64_t begin = with_stack ? clock_now() : 0;
	uint64_t ticks = 0;
	bool slow = true;

	if (with_stack)
		tensor_report->stack = python_stack_mode == PYTHON_STACKS_OWN
					       ? python_own_line_capture(&slow)
					       : python_stack_capture();
	if (with_stack && slow)
		ticks = clock_now() - begin;
	if (held_memory_wanted)
		append_report_held(kind, tensor_report);
	else
		append_report(kind, tensor_report);
	if (ticks)
		stream_write_stack_cost(begin, ticks);
}

static void record_report(enum trace_kind kind, const void *address, int64_t bytes,
	size_t allocated, size_t reserved, struct torch_device device)
{
	struct tensor_report tensor_report = { (uintptr_t)address, bytes, allocated, reserved,
		(uint8_t)device.index, 0 };

	if (!enabled || device.type != TORCH_DEVICE_CUDA || device.index < 0)
		return;
	if (__builtin_expect(!atomic_load_explicit(&reported, memory_order_relaxed), 0))
		first_report();
	if (!stream_enter())
		return;
	if (recording_is_paused() && kind == TRACE_TENSOR) {
		skip_report(&tensor_report);
		return;
	}
	if (__builtin_expect(bytes >= slow_from_bytes, 0))
		record_slowly(kind, &tensor_report);
	else
		append_report(kind, &tensor_report);
	stream_leave();
}

void USAGE(
	void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record_report(TRACE_TENSOR, address, bytes, allocated, reserved, device);
	real_report(TARGET_USAGE).usage(address, bytes, allocated, reserved, device);
}

void USAGE_1_13(
	void *address, int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record_report(TRACE_TENSOR, address, bytes, allocated, reserved, device);
	real_report(TARGET_USAGE_1_13).usage(address, bytes, allocated, reserved, device);
}

void EXHAUSTED(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record_report(TRACE_TENSOR_OOM, NULL, bytes, allocated, reserved, device);
	real_report(TARGET_EXHAUSTED).exhausted(bytes, allocated, reserved, device);
}

void EXHAUSTED_1_13(int64_t bytes, size_t allocated, size_t reserved, struct torch_device device)
{
	record_report(TRACE_TENSOR_OOM, NULL, bytes, allocated, reserved, device);
	real_report(TARGET_EXHAUSTED_1_13).exhausted(bytes, allocated, reserved, device);
}

void torch_memory_write_levels(void)
{
	if (!enabled || !last_report || !stream_enter())
		return;
	for (uint32_t device = 0; device < TRACE_TENSOR_DEVICES; device++) {
		const struct tensor_report tensor_report = {
			.allocated = atomic_load_explicit(
				&last_report[device].allocated, memory_order_relaxed),
			.reserved = atomic_load_explicit(
				&last_report[device].reserved, memory_order_relaxed),
			.device = device,
		};

		if (tensor_report.allocated || tensor_report.reserved)
			append_tensor(TRACE_TENSOR, TRACE_TENSOR_LEVEL, &tensor_report);
		/* The device's next record has the totals, whichever record precedes it. */
		atomic_store_explicit(&last_report[device].run, 0, memory_order_relaxed);
	}
	stream_leave();
}

/* ---- state in META ---- */

void torch_memory_configure(bool wanted, const char *configuration)
{
	last_report = fork_wiped_alloc(TRACE_TENSOR_DEVICES * sizeof *last_report);
	enabled = wanted;
	if (configuration)
		snprintf(configuration_text, sizeof configuration_text, "%s", configuration);
}

/* Copies the result of os.getenv(`variable`) to configuration_text. Returns false if it is
 * unset. The environment itself must not be read here: a thread may be changing it. */
static bool read_python_environment(const char *variable)
{
	struct python_object *os = python.PyDict_GetItemString(
		python.PyImport_GetModuleDict(), "os");
	struct python_object *getenv = os ? python.PyObject_GetAttrString(os, "getenv") : NULL;
	struct python_object *arguments = getenv ? python.PyTuple_New(1) : NULL, *value = NULL;
	const char *text = NULL;

	if (arguments &&
		!python.PyTuple_SetItem(arguments, 0, python.PyUnicode_FromString(variable)))
		value = python.PyObject_CallObject(getenv, arguments);
	if (value)
		text = python.PyUnicode_AsUTF8AndSize(value, NULL);
	if (text)
		snprintf(configuration_text, sizeof configuration_text, "%s", text);
	python_clear_error();
	python_release(value);
	python_release(arguments);
	python_release(getenv);
	return text != NULL;
}

static void write_allocator_state(const char *setting)
{
	if (*setting)
		meta_set("torch.allocator", setting);
	if (strstr(setting, "cudaMallocAsync"))
		write_memory_state("partial: the backend cudaMallocAsync reports no tensors; its "
				   "allocations and frees are recorded as device memory");
	else
		write_memory_state("on");
}

/* c10::cuda::CUDAStream, which C++ returns in two registers: a c10::Device (two bytes: the type, 1
 * for CUDA, and the index), and the stream's number. */
struct torch_stream {
	uint64_t device;
	int64_t number;
};

/* c10::cuda::getCurrentCUDAStream reads a thread-local variable. CUDAStream::stream reads a table,
 * and queries the current device of the CUDA runtime. It is not called for the default stream. */
static struct torch_stream (*_Atomic current_stream)(signed char device);
static void *(*_Atomic stream_handle)(const struct torch_stream *stream);

static void look_up_streams(void)
{
	void *handle = torch_symbol(TORCH_C10_CUDA, "_ZNK3c104cuda10CUDAStream6streamEv"),
	     *current = torch_symbol(TORCH_C10_CUDA, "_ZN3c104cuda20getCurrentCUDAStreamEa");

	if (!handle || !current)
		return;
	atomic_store(&stream_handle, (void *(*)(const struct torch_stream *))(uintptr_t)handle);
	atomic_store(&current_stream, (struct torch_stream(*)(signed char))(uintptr_t)current);
}

void torch_memory_look_up(bool read_environment)
{
	uintptr_t begin, end;

	look_up_reports();
	if (atomic_load(&code_end) || !torch_library_range(TORCH_C10_CUDA, &begin, &end))
		return; /* written already, or PyTorch without CUDA, which has no such allocator */
	if (read_environment && !read_python_environment("PYTORCH_ALLOC_CONF"))
		read_python_environment("PYTORCH_CUDA_ALLOC_CONF");
	if (atomic_exchange(&state_claimed, true))
		return;
	write_allocator_state(configuration_text);
	look_up_streams();
	/* Stored last. From here on, another thread may write that reports are missing, and that
	 * must not be overwritten. */
	atomic_store(&code_begin, begin);
	atomic_store(&code_end, end);
}

static void search_allocator(void)
{
	struct signal_guard guard;

	if (atomic_load(&searches) >= SEARCHES_MAX ||
		atomic_fetch_add(&searches, 1) >= SEARCHES_MAX)
		return;
	signal_guard_begin(&guard);
	torch_memory_look_up(false);
	signal_guard_end(&guard);
}

static bool is_allocator(uintptr_t address)
{
	const uintptr_t end = atomic_load_explicit(&code_end, memory_order_acquire);

	return address < end && address >= atomic_load_explicit(&code_begin, memory_order_relaxed);
}

void torch_memory_check_reported(const void *caller, bool pool)
{
	if (!atomic_load(&code_end))
		search_allocator();
	if (atomic_load(&reported) || !is_allocator((uintptr_t)caller))
		return;
	if (!pool && atomic_fetch_add(&unreported, 1) + 1 < UNREPORTED_MAX)
		return;
	if (atomic_exchange(&report_missing, true))
		return;
	write_memory_state(pool ? "partial: PyTorch's backend cudaMallocAsync reports no tensors; "
				  "its allocations and frees are recorded as device memory"
				: "partial: PyTorch's allocator allocated device memory and "
				  "reported no tensor");
	/* Another thread may have reported one meanwhile, and written its state first. */
	if (atomic_load(&reported))
		write_memory_state("on");
}

/* The allocator holds its lock, and calls these functions itself before it allocates. So they have
 * initialised their tables, and take no lock. */
bool torch_memory_stream(const void *caller, uint32_t device, void **stream)
{
	struct torch_stream (*current)(signed char) = atomic_load(&current_stream);
	struct torch_stream now;
	const int saved = errno;

	if (!current && !atomic_load(&code_end)) {
		search_allocator();
		current = atomic_load(&current_stream);
	}
	if (!current || device > INT8_MAX || !is_allocator((uintptr_t)caller))
		return false;
	now = current((signed char)device);
	if ((now.device & 0xffff) != (TORCH_DEVICE_CUDA | device << 8))
		return false;
	*stream = now.number ? atomic_load(&stream_handle)(&now) : NULL;
	errno = saved;
	return true;
}
