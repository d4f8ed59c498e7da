/* SPDX-License-Identifier: MIT
 * NVML's functions and structs are written out here, as NVIDIA's header of CUDA 12 and 13 has them.
 */
#include "collector/cupti/memory_samples.h"

#include "collector/cupti/call_ids.h"
#include "collector/process/clock.h"
#include "collector/process/dynamic_linker.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define INTERVAL_NS UINT64_C(1000000000)
#define COST_SHARE 1000u /* a sample may take this part of the time, one in ... */
#define DEVICES_MAX 64
#define PROCESSES_MAX 64u
#define UUID_TEXT 48u /* "GPU-", 32 digits and 4 hyphens */

struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_process { /* the second version, which the third uses, too */
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static struct {
	int (*device_count)(unsigned *count);
	int (*init)(void);
	int (*by_uuid)(const char *uuid, void **device);
	int (*memory)(void *device, struct nvml_memory *memory);
	int (*processes)(void *device, unsigned *count, struct nvml_process *list);
} nvml;

static struct {
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*uuid)(uint8_t uuid[16], int device);
} driver;

/* NVML's handle of each GPU, by CUDA's ordinal. NULL: none, as for a MIG instance. */
static void *handles[DEVICES_MAX];
static int handle_count;

static bool find_functions(void)
{
	void *cuda = quiet_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD),
	     *library = quiet_dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (!cuda || !library)
		return false;
	*(void **)&driver.count = quiet_dlsym(cuda, "cuDeviceGetCount");
	*(void **)&driver.get = quiet_dlsym(cuda, "cuDeviceGet");
	*(void **)&driver.uuid = quiet_dlsym(cuda, "cuDeviceGetUuid_v2");
	*(void **)&nvml.device_count = quiet_dlsym(library, "nvmlDeviceGetCount_v2");
	*(void **)&nvml.init = quiet_dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.by_uuid = quiet_dlsym(library, "nvmlDeviceGetHandleByUUID");
	*(void **)&nvml.memory = quiet_dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&nvml.processes = quiet_dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	return driver.count && driver.get && driver.uuid && nvml.device_count && nvml.init &&
	       nvml.by_uuid && nvml.memory;
}

static void *handle_of(int ordinal)
{
	char text[UUID_TEXT] = "GPU-", *at = text + 4;
	uint8_t uuid[16];
	void *handle = NULL;
	int device;

	if (driver.get(&device, ordinal) != 0 || driver.uuid(uuid, device) != 0)
		return NULL;
	for (int i = 0; i < 16; i++)
		at += sprintf(
			at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return nvml.by_uuid(text, &handle) == 0 ? handle : NULL;
}

/* Looks up NVML's handle of each GPU. Returns whether the driver knows the number of GPUs. */
static bool find_handles(void)
{
	int devices = 0;
	bool known;

	call_ids_own_call = true;
	known = driver.count(&devices) == 0;
	handle_count = devices < DEVICES_MAX ? devices : DEVICES_MAX;
	for (int i = 0; known && i < handle_count; i++)
		handles[i] = handle_of(i);
	call_ids_own_call = false;
	return known;
}

/* Returns whether NVML is initialised by the program, and then holds a reference of our own. */
static bool nvml_is_ready(void)
{
	static bool ready;
	unsigned count;

	if (!ready)
		ready = find_functions() && nvml.device_count(&count) == 0 && nvml.init() == 0 &&
			find_handles();
	return ready;
}

/* Returns the bytes that NVML counts for this process. 0: none, or not known. In a container, NVML
 * may give the process another number, or no list. */
static uint64_t process_bytes(void *handle)
{
	struct nvml_process list[PROCESSES_MAX];
	unsigned count = PROCESSES_MAX;

	if (!nvml.processes || nvml.processes(handle, &count, list) != 0)
		return 0;
	for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++)
		if (list[i].pid == (unsigned)getpid() && list[i].used != ~0ull)
			return list[i].used;
	return 0;
}

static void sample_device(uint32_t device, void *handle)
{
	struct trace_device_memory *record;
	const uint64_t used = process_bytes(handle);
	struct nvml_memory memory;

	if (nvml.memory(handle, &memory) != 0 || !stream_enter())
		return;
	record = stream_record(TRACE_DEVICE_MEMORY, sizeof *record);
	if (record) {
		record->free_bytes = memory.free;
		record->total_bytes = memory.total;
		record->process_bytes = used;
		record->device = device;
		record->reason = TRACE_SAMPLE_NVML;
		stream_commit();
	}
	stream_leave();
}

static void record_sample_cost(uint64_t began)
{
	struct trace_self *self;

	if (!stream_enter())
		return;
	self = stream_record(TRACE_SELF, sizeof *self);
	if (self) {
		self->duration = self->stamp - began;
		self->what = TRACE_SELF_SAMPLE;
		stream_commit();
	}
	stream_leave();
}

void memory_samples_poll(void)
{
	static uint64_t due_ns;
	const uint64_t began = clock_now(), began_ns = clock_monotonic_ns();
	const int saved = errno;
	uint64_t cost_ns;

	if (began_ns < due_ns)
		return;
	due_ns = began_ns + INTERVAL_NS;
	if (nvml_is_ready()) {
		for (int i = 0; i < handle_count; i++)
			if (handles[i])
				sample_device((uint32_t)i, handles[i]);
		record_sample_cost(began);
		cost_ns = clock_monotonic_ns() - began_ns;
		if (cost_ns > INTERVAL_NS / COST_SHARE)
			due_ns = began_ns + cost_ns * COST_SHARE;
	}
	errno = saved;
}
