/* SPDX-License-Identifier: MIT
 * The simulated libnvidia-ml.so.1: the devices as the driver shows them to monitors. Of what the
 * machine does it knows this process only. NVML does not need CUDA, so it also answers in a forked
 * child.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cuda.h>

#include "core/entry.h"

/* NVML's numbers. */
enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
};

#define UUID_TEXT_BYTES 41 /* "GPU-" and 36 characters */
#define DRIVER_VERSION (SIM_MAJOR == 12 ? "570.86.15" : "580.65.06")
#define POWER_MW 70000u
#define TEMPERATURE_C 30u
#define SM_MHZ 1980u
#define MEMORY_MHZ 2619u

struct nvml_device {
	int index;
};

/* As NVML lays them out. */
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct nvml_utilization {
	unsigned gpu, memory; /* percent */
};
struct nvml_process_v1 {
	unsigned pid;
	unsigned long long used;
};
struct nvml_process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
struct nvml_pci {
	char legacy_bus_id[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "nvmlProcessInfo_v1_t");
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

static struct nvml_device devices[SIM_DEVICES_MAX];
static int users; /* that have initialised it and not shut it down */

#define NVML_API(identifier, proto, args)                                                 \
	static int identifier##_inside proto;                                             \
	SIM_EXPORT int identifier proto;                                                  \
	SIM_EXPORT int identifier proto                                                   \
	{                                                                                 \
		static struct sim_function function_ = { .name = #identifier,             \
			.domain = SIM_RUNTIME };                                          \
		int result_ = 0;                                                          \
		struct sim_scope scope_ = { .function = &function_, .result = &result_ }; \
		if (sim_forked())                                                         \
			return identifier##_inside args;                                  \
		sim_enter(&scope_);                                                       \
		result_ = identifier##_inside args;                                       \
		sim_leave(&scope_);                                                       \
		return result_;                                                           \
	}                                                                                 \
	static int identifier##_inside proto

/* Begins what needs NVML to be initialised, and a device. */
#define CHECK(condition, error)       \
	do {                          \
		if (!(condition))     \
			return error; \
	} while (0)
#define CHECK_READY() CHECK(__atomic_load_n(&users, __ATOMIC_RELAXED) > 0, NVML_ERROR_UNINITIALIZED)
#define CHECK_DEVICE(device)                                                          \
	do {                                                                          \
		CHECK_READY();                                                        \
		CHECK((device) >= devices && (device) < devices + sim_device_count(), \
			NVML_ERROR_INVALID_ARGUMENT);                                 \
	} while (0)

static int start(void)
{
	for (int i = 0; i < SIM_DEVICES_MAX; i++)
		devices[i].index = i;
	__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

NVML_API(nvmlInit, (void), ())
{
	return start();
}

NVML_API(nvmlInit_v2, (void), ())
{
	return start();
}

NVML_API(nvmlInitWithFlags, (unsigned flags), (flags))
{
	(void)flags;
	return start();
}

NVML_API(nvmlShutdown, (void), ())
{
	CHECK_READY();
	__atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

SIM_EXPORT const char *nvmlErrorString(int result);
SIM_EXPORT const char *nvmlErrorString(int result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	default:
		return "Unknown Error";
	}
}

static int put(char *target, unsigned length, const char *text)
{
	CHECK(target, NVML_ERROR_INVALID_ARGUMENT);
	CHECK(strlen(text) < length, NVML_ERROR_INSUFFICIENT_SIZE);
	strcpy(target, text);
	return NVML_SUCCESS;
}

NVML_API(nvmlSystemGetDriverVersion, (char *version, unsigned length), (version, length))
{
	CHECK_READY();
	return put(version, length, DRIVER_VERSION);
}

NVML_API(nvmlSystemGetNVMLVersion, (char *version, unsigned length), (version, length))
{
	CHECK_READY();
	return put(version, length, SIM_MAJOR == 12 ? "12.570.86.15" : "13.580.65.06");
}

NVML_API(nvmlSystemGetCudaDriverVersion, (int *version), (version))
{
	*version = SIM_CUDA_VERSION;
	return NVML_SUCCESS;
}

NVML_API(nvmlSystemGetCudaDriverVersion_v2, (int *version), (version))
{
	*version = SIM_CUDA_VERSION;
	return NVML_SUCCESS;
}

static int count(unsigned *devices_there)
{
	CHECK_READY();
	*devices_there = (unsigned)sim_device_count();
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetCount, (unsigned *device_count), (device_count))
{
	return count(device_count);
}

NVML_API(nvmlDeviceGetCount_v2, (unsigned *device_count), (device_count))
{
	return count(device_count);
}

static int by_index(unsigned index, struct nvml_device **device)
{
	CHECK_READY();
	CHECK(index < (unsigned)sim_device_count(), NVML_ERROR_INVALID_ARGUMENT);
	*device = &devices[index];
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetHandleByIndex, (unsigned index, struct nvml_device **device), (index, device))
{
	return by_index(index, device);
}

NVML_API(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct nvml_device **device),
	(index, device))
{
	return by_index(index, device);
}

static unsigned bus_of(int device)
{
	return (unsigned)sim_device_attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
}

static int by_bus(const char *id, struct nvml_device **device)
{
	unsigned domain, bus;

	CHECK_READY();
	CHECK(id && sscanf(id, "%x:%x", &domain, &bus) == 2, NVML_ERROR_INVALID_ARGUMENT);
	for (int i = 0; domain == 0 && i < sim_device_count(); i++) {
		if (bus_of(i) != bus)
			continue;
		*device = &devices[i];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

NVML_API(nvmlDeviceGetHandleByPciBusId, (const char *id, struct nvml_device **device), (id, device))
{
	return by_bus(id, device);
}

NVML_API(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, struct nvml_device **device),
	(id, device))
{
	return by_bus(id, device);
}

static void write_uuid(char text[UUID_TEXT_BYTES], int device)
{
	unsigned char bytes[16];
	char *at = text + sprintf(text, "GPU");

	sim_device_uuid(device, bytes);
	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x",
			i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

NVML_API(nvmlDeviceGetUUID, (struct nvml_device * device, char *uuid, unsigned length),
	(device, uuid, length))
{
	char text[UUID_TEXT_BYTES];

	CHECK_DEVICE(device);
	write_uuid(text, device->index);
	return put(uuid, length, text);
}

NVML_API(nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **device), (uuid, device))
{
	char text[UUID_TEXT_BYTES];

	CHECK_READY();
	for (int i = 0; i < sim_device_count(); i++) {
		write_uuid(text, i);
		if (strcasecmp(text, uuid) != 0)
			continue;
		*device = &devices[i];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

NVML_API(nvmlDeviceGetName, (struct nvml_device * device, char *name, unsigned length),
	(device, name, length))
{
	CHECK_DEVICE(device);
	return put(name, length, SIM_DEVICE_NAME);
}

NVML_API(nvmlDeviceGetIndex, (struct nvml_device * device, unsigned *index), (device, index))
{
	CHECK_DEVICE(device);
	*index = (unsigned)device->index;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMinorNumber, (struct nvml_device * device, unsigned *minor), (device, minor))
{
	CHECK_DEVICE(device);
	*minor = (unsigned)device->index;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetCudaComputeCapability, (struct nvml_device * device, int *major, int *minor),
	(device, major, minor))
{
	CHECK_DEVICE(device);
	*major = sim_device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->index);
	*minor = sim_device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->index);
	return NVML_SUCCESS;
}

NVML_API(
	nvmlDeviceGetPciInfo_v3, (struct nvml_device * device, struct nvml_pci *pci), (device, pci))
{
	CHECK_DEVICE(device);
	*pci = (struct nvml_pci){ .bus = bus_of(device->index) };
	snprintf(pci->legacy_bus_id, sizeof(pci->legacy_bus_id), "0000:%02X:00.0", pci->bus & 255);
	snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMemoryInfo, (struct nvml_device * device, struct nvml_memory *memory),
	(device, memory))
{
	CHECK_DEVICE(device);
	memory->total = sim_device_memory();
	memory->used = sim_device_used(device->index);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMemoryInfo_v2, (struct nvml_device * device, struct nvml_memory_v2 *memory),
	(device, memory))
{
	CHECK_DEVICE(device);
	memory->total = sim_device_memory();
	memory->reserved = 0;
	memory->used = sim_device_used(device->index);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

/* This process, once it holds memory there. In: room for *there; out: how many there are. */
#define RUNNING(device, there, list)                                         \
	do {                                                                 \
		unsigned room_ = *(there);                                   \
		*(there) = sim_process_used((device)->index) > 0;            \
		CHECK(*(there) <= room_, NVML_ERROR_INSUFFICIENT_SIZE);      \
		CHECK(*(there) == 0 || (list), NVML_ERROR_INVALID_ARGUMENT); \
		if (*(there)) {                                              \
			memset(list, 0, sizeof(*(list)));                    \
			(list)->pid = (unsigned)getpid();                    \
			(list)->used = sim_process_used((device)->index);    \
		}                                                            \
		return NVML_SUCCESS;                                         \
	} while (0)

NVML_API(nvmlDeviceGetComputeRunningProcesses,
	(struct nvml_device * device, unsigned *there, struct nvml_process_v1 *list),
	(device, there, list))
{
	CHECK_DEVICE(device);
	RUNNING(device, there, list);
}

NVML_API(nvmlDeviceGetComputeRunningProcesses_v2,
	(struct nvml_device * device, unsigned *there, struct nvml_process *list),
	(device, there, list))
{
	CHECK_DEVICE(device);
	RUNNING(device, there, list);
}

NVML_API(nvmlDeviceGetComputeRunningProcesses_v3,
	(struct nvml_device * device, unsigned *there, struct nvml_process *list),
	(device, there, list))
{
	CHECK_DEVICE(device);
	RUNNING(device, there, list);
}

NVML_API(nvmlDeviceGetUtilizationRates,
	(struct nvml_device * device, struct nvml_utilization *rates), (device, rates))
{
	CHECK_DEVICE(device);
	*rates = (struct nvml_utilization){ 0, 0 };
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetTemperature, (struct nvml_device * device, int sensor, unsigned *celsius),
	(device, sensor, celsius))
{
	CHECK_DEVICE(device);
	CHECK(sensor == 0, NVML_ERROR_INVALID_ARGUMENT);
	*celsius = TEMPERATURE_C;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetPowerUsage, (struct nvml_device * device, unsigned *milliwatt),
	(device, milliwatt))
{
	CHECK_DEVICE(device);
	*milliwatt = POWER_MW;
	return NVML_SUCCESS;
}

/* Clocks: 0 graphics, 1 SM, 2 memory, 3 video. */
NVML_API(nvmlDeviceGetClockInfo, (struct nvml_device * device, int clock, unsigned *megahertz),
	(device, clock, megahertz))
{
	CHECK_DEVICE(device);
	CHECK(clock >= 0 && clock <= 3, NVML_ERROR_INVALID_ARGUMENT);
	*megahertz = clock == 2 ? MEMORY_MHZ : SM_MHZ;
	return NVML_SUCCESS;
}

/* The devices have no links between them, and are not part of a fabric. */
NVML_API(nvmlDeviceGetNvLinkRemoteDeviceType,
	(struct nvml_device * device, unsigned link, int *type), (device, link, type))
{
	CHECK_DEVICE(device);
	(void)link;
	(void)type;
	return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API(nvmlDeviceGetNvLinkRemotePciInfo_v2,
	(struct nvml_device * device, unsigned link, struct nvml_pci *pci), (device, link, pci))
{
	CHECK_DEVICE(device);
	(void)link;
	(void)pci;
	return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API(nvmlDeviceGetGpuFabricInfoV, (struct nvml_device * device, void *information),
	(device, information))
{
	CHECK_DEVICE(device);
	(void)information;
	return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API(nvmlDeviceGetP2PStatus,
	(struct nvml_device * device, struct nvml_device *other, int capability, int *status),
	(device, other, capability, status))
{
	CHECK_DEVICE(device);
	CHECK_DEVICE(other);
	*status = capability == 0 || capability == 1
			  ? 0
			  : 5; /* reading and writing: yes; else: not supported */
	return NVML_SUCCESS;
}
