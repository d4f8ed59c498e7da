/* SPDX-License-Identifier: MIT
 * c10.h: what PyTorch's CUDA allocator tells of each block, whether a profiler listens or not. The
 * overloads are those of PyTorch 2 and 1.13.
 */
#ifndef FAKE_C10_H
#define FAKE_C10_H

#include <cstddef>
#include <cstdint>

namespace c10
{

struct Device {
	int8_t type, index; /* type 1: CUDA */
};

void reportMemoryUsageToProfiler(
	void *address, int64_t size, size_t allocated, size_t reserved, Device device);
void reportMemoryUsageToProfiler(
	void *address, int64_t size, int64_t allocated, int64_t reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t size, int64_t allocated, int64_t reserved, Device device);

/* Of our own: how often each of the four was reached, and the sum of the sizes that it was given.
 */
struct Heard {
	uint64_t calls[4];
	int64_t bytes;
};
extern Heard heard;

namespace fake
{
/* 512-byte blocks out of segments of 2 MiB, each on device 0. nullptr: more than `capacity` would
 * be held. */
void *cuda_malloc(size_t bytes);
void cuda_free(void *address);
size_t cuda_allocated();
size_t cuda_reserved();
} // namespace fake

} // namespace c10

#endif
