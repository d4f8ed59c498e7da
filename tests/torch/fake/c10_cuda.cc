/* SPDX-License-Identifier: MIT
 * c10_cuda.cc: the stand-in's libc10_cuda.so: an allocator that reports as PyTorch's does, under
 * its lock, through the linkage table.
 */
#include "c10.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace c10 {
namespace fake {

static const size_t block = 512, segment = 2 << 20, capacity = 64 << 20;
static std::mutex lock;
static std::map<void *, size_t> sizes;
static size_t allocated, reserved;
static uintptr_t next = 0x7000000000;

/* FAKE_REPORT=1.13: with the signatures of that release. */
static bool is_old()
{
	static const bool old = getenv("FAKE_REPORT") != nullptr;
	return old;
}

static void report(void *address, int64_t size)
{
	const Device device = {1, 0};
	if (is_old())
		reportMemoryUsageToProfiler(address, size, static_cast<int64_t>(allocated), static_cast<int64_t>(reserved), device);
	else
		reportMemoryUsageToProfiler(address, size, allocated, reserved, device);
}

static void report_oom(int64_t size)
{
	const Device device = {1, 0};
	if (is_old())
		reportOutOfMemoryToProfiler(size, static_cast<int64_t>(allocated), static_cast<int64_t>(reserved), device);
	else
		reportOutOfMemoryToProfiler(size, allocated, reserved, device);
}

void *cuda_malloc(size_t bytes)
{
	std::lock_guard<std::mutex> guard(lock);
	const size_t size = (bytes + block - 1) / block * block;
	if (allocated + size > capacity) {
		report_oom(static_cast<int64_t>(size));
		return nullptr;
	}
	while (reserved < allocated + size)
		reserved += segment;
	void *address = reinterpret_cast<void *>(next);
	next += size;
	sizes[address] = size;
	allocated += size;
	report(address, static_cast<int64_t>(size));
	return address;
}

void cuda_free(void *address)
{
	std::lock_guard<std::mutex> guard(lock);
	const auto found = sizes.find(address);
	if (found == sizes.end())
		return;
	const size_t size = found->second;
	sizes.erase(found);
	allocated -= size;
	report(address, -static_cast<int64_t>(size));
}

size_t cuda_allocated()
{
	std::lock_guard<std::mutex> guard(lock);
	return allocated;
}

size_t cuda_reserved()
{
	std::lock_guard<std::mutex> guard(lock);
	return reserved;
}

} // namespace fake
} // namespace c10
