/* SPDX-License-Identifier: MIT
 * lib_c10: what the model of PyTorch's allocator (lib_c10_cuda.c) reports to, as libc10.so has it,
 * under the names of 2.x and of 1.13. What comes in is added up; reports_received prints it.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

struct device {
	int8_t type, index;
};

static _Atomic uint64_t usages[2], exhausted[2];
static _Atomic int64_t bytes_sum;
static _Atomic uint64_t check; /* of all arguments, whatever their order */

static void usage(int old, const void *address, int64_t bytes, uint64_t allocated,
	uint64_t reserved, struct device device)
{
	atomic_fetch_add(&usages[old], 1);
	atomic_fetch_add(&bytes_sum, bytes);
	atomic_fetch_add(&check, (address != NULL) + allocated * 3 + reserved * 5 +
					 (uint64_t)device.type * 7 + (uint64_t)device.index * 11);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
	void *address, int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
	usage(0, address, bytes, allocated, reserved, device);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
	void *address, int64_t bytes, int64_t allocated, int64_t reserved, struct device device)
{
	usage(1, address, bytes, (uint64_t)allocated, (uint64_t)reserved, device);
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
	int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
	atomic_fetch_add(&exhausted[0], 1);
	atomic_fetch_add(
		&check, (uint64_t)bytes + allocated * 3 + reserved * 5 + (uint64_t)device.type * 7);
}

void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
	int64_t bytes, int64_t allocated, int64_t reserved, struct device device)
{
	atomic_fetch_add(&exhausted[1], 1);
	atomic_fetch_add(&check,
		(uint64_t)(bytes + allocated * 3 + reserved * 5) + (uint64_t)device.type * 7);
}

void reports_received(void)
{
	printf("usages %llu and %llu, out of memory %llu and %llu, %lld bytes, check %llx\n",
		(unsigned long long)usages[0], (unsigned long long)usages[1],
		(unsigned long long)exhausted[0], (unsigned long long)exhausted[1],
		(long long)bytes_sum, (unsigned long long)check);
}
