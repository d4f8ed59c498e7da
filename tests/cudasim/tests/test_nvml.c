/* SPDX-License-Identifier: MIT
 * The simulated NVML says what CUDA says of the same devices.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_cuda.h"
#include "core/sim.h"

struct device;
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct device **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device);
int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned length);
int nvmlDeviceGetName(struct device *device, char *name, unsigned length);
int nvmlDeviceGetMemoryInfo(struct device *device, unsigned long long memory[3]);
int nvmlDeviceGetComputeRunningProcesses_v3(
	struct device *device, unsigned *count, struct process *list);

enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

START_TEST(the_devices_are_those_of_cuda)
{
	struct device *device, *same;
	char bus[32], name[64], uuid[64];
	unsigned count;
	int devices;

	FAILS(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	OK(cudaGetDeviceCount(&devices));
	ck_assert_int_eq((int)count, devices);
	OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
	OK(nvmlDeviceGetHandleByPciBusId_v2(bus, &device));
	OK(nvmlDeviceGetHandleByIndex_v2(0, &same));
	ck_assert_ptr_eq(device, same);
	OK(nvmlDeviceGetName(device, name, sizeof(name)));
	ck_assert_str_eq(name, SIM_DEVICE_NAME);
	OK(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	OK(nvmlDeviceGetHandleByUUID(uuid, &same));
	ck_assert_ptr_eq(device, same);
	FAILS(nvmlDeviceGetUUID(device, uuid, 8), INSUFFICIENT_SIZE);
	FAILS(nvmlDeviceGetHandleByIndex_v2(count, &device), INVALID_ARGUMENT);
	FAILS(nvmlDeviceGetHandleByPciBusId_v2("0000:99:00.0", &device), NOT_FOUND);
	OK(nvmlShutdown());
	FAILS(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
}
END_TEST

START_TEST(this_process_holds_what_it_has_allocated)
{
	struct process list[4];
	struct device *device;
	unsigned count = 4;
	unsigned long long memory[3]; /* all, free, used */
	void *allocated;

	OK(nvmlInit_v2());
	OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
	ck_assert_uint_eq(count, 0);
	OK(cudaMalloc(&allocated, 8 * MIB));
	FAILS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), INSUFFICIENT_SIZE);
	ck_assert_uint_eq(count, 1);
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
	ck_assert_int_eq((int)list[0].pid, getpid());
	ck_assert_uint_ge(list[0].used, 8 * MIB);
	OK(nvmlDeviceGetMemoryInfo(device, memory));
	ck_assert_uint_eq(memory[2], list[0].used);
	ck_assert_uint_eq(memory[0], memory[1] + memory[2]);
}
END_TEST

START_TEST(a_forked_child_may_ask_it_too)
{
	pid_t child;
	int status;

	OK(cudaFree(NULL));
	OK(nvmlInit_v2());
	child = fork();
	if (child == 0) {
		unsigned count = 0;

		_exit(nvmlDeviceGetCount_v2(&count) == 0 && count == (unsigned)sim_device_count()
				? 0
				: 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

SUITE("NVML", the_devices_are_those_of_cuda, this_process_holds_what_it_has_allocated,
	a_forked_child_may_ask_it_too)
