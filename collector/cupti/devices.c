/* SPDX-License-Identifier: MIT
 * The driver's functions are looked up in the libcuda that the program has loaded.
 */
#include "collector/cupti/devices.h"

#include "collector/cupti/call_ids.h"
#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define DEVICES_MAX 64

static struct device_functions {
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*memory)(size_t *bytes, int device);
	int (*uuid)(uint8_t uuid[16], int device);
} driver;

/* The member for each attribute (CUdevice_attribute). */
static const struct {
	uint16_t attribute, offset;
} attributes[] = {
	{ 1, offsetof(struct trace_device, max_threads_per_block) },
	{ 8, offsetof(struct trace_device, shared_bytes_per_block) },
	/* The maximum that a kernel may opt in to, if there is one. */
	{ 97, offsetof(struct trace_device, shared_bytes_per_block) },
	{ 10, offsetof(struct trace_device, warp_threads) },
	{ 12, offsetof(struct trace_device, registers_per_block) },
	{ 16, offsetof(struct trace_device, multiprocessors) },
	{ 39, offsetof(struct trace_device, max_threads_per_sm) },
	{ 75, offsetof(struct trace_device, compute_major) },
	{ 76, offsetof(struct trace_device, compute_minor) },
	{ 81, offsetof(struct trace_device, shared_bytes_per_sm) },
	{ 82, offsetof(struct trace_device, registers_per_sm) },
	{ 106, offsetof(struct trace_device, max_blocks_per_sm) },
	{ 111, offsetof(struct trace_device, reserved_shared_bytes_per_block) },
};

/* The members of struct trace_device_rates. */
static const struct {
	uint16_t attribute, offset;
} rates[] = {
	{ 13, offsetof(struct trace_device_rates, clock_khz) },
	{ 36, offsetof(struct trace_device_rates, memory_clock_khz) },
	{ 37, offsetof(struct trace_device_rates, bus_bits) },
};

/* Looks up the driver's functions. The driver stays loaded, because a program that uses CUDA holds
 * it. */
static int find_driver(void)
{
	void *library = quiet_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (!library)
		return 0;
	*(void **)&driver.count = quiet_dlsym(library, "cuDeviceGetCount");
	*(void **)&driver.get = quiet_dlsym(library, "cuDeviceGet");
	*(void **)&driver.name = quiet_dlsym(library, "cuDeviceGetName");
	*(void **)&driver.attribute = quiet_dlsym(library, "cuDeviceGetAttribute");
	*(void **)&driver.memory = quiet_dlsym(library, "cuDeviceTotalMem_v2");
	/* On a MIG instance, this is the UUID of the instance. */
	*(void **)&driver.uuid = quiet_dlsym(library, "cuDeviceGetUuid_v2");
	if (!driver.uuid)
		*(void **)&driver.uuid = quiet_dlsym(library, "cuDeviceGetUuid");
	return driver.count && driver.get && driver.name && driver.attribute;
}

static void read_rates(struct trace_device_rates *record, int device)
{
	int value;

	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
		if (driver.attribute(&value, rates[i].attribute, device) == 0 && value > 0)
			memcpy((char *)record + rates[i].offset, &value, sizeof value);
}

static void read_properties(struct trace_device *record, int device)
{
	size_t bytes = 0;
	int value;

	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (driver.attribute(&value, attributes[i].attribute, device) == 0 && value > 0)
			memcpy((char *)record + attributes[i].offset, &value, sizeof value);
	if (driver.memory && driver.memory(&bytes, device) == 0)
		record->memory_bytes = bytes;
	if (driver.uuid)
		driver.uuid(record->uuid, device);
}

static void record_device(int ordinal)
{
	struct trace_device record = { .head = { .size = sizeof record, .kind = TRACE_DEVICE } };
	struct trace_device_rates rates_record = { .head = { .size = sizeof rates_record,
							   .kind = TRACE_DEVICE_RATES } };
	char name[256] = "";
	int device;

	if (driver.get(&device, ordinal) != 0)
		return;
	driver.name(name, sizeof name, device);
	read_properties(&record, device);
	record.device = rates_record.device = (uint32_t)ordinal;
	read_rates(&rates_record, device);
	if (stream_enter()) {
		record.name = name_id_always(name, strnlen(name, sizeof name));
		dictionary_put(&record.head, 1);
		dictionary_put(&rates_record.head, 1);
		stream_leave();
	}
}

void gpu_device_record(void)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;
	int saved = errno, count = 0;

	if (!atomic_flag_test_and_set(&begun)) {
		call_ids_own_call = true;
		if (find_driver() && driver.count(&count) == 0)
			for (int i = 0; i < count && i < DEVICES_MAX; i++)
				record_device(i);
		/* The driver is not loaded yet, or not initialised. */
		else
			atomic_flag_clear(&begun);
		call_ids_own_call = false;
	}
	errno = saved;
}
