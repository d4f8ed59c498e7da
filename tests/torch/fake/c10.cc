/* SPDX-License-Identifier: MIT
 * c10.cc: the stand-in's libc10.so, where the reports arrive.
 */
#include "c10.h"

namespace c10 {

Heard heard;

void reportMemoryUsageToProfiler(void *, int64_t size, size_t, size_t, Device)
{
	heard.calls[0]++;
	heard.bytes += size;
}

void reportMemoryUsageToProfiler(void *, int64_t size, int64_t, int64_t, Device)
{
	heard.calls[1]++;
	heard.bytes += size;
}

void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device)
{
	heard.calls[2]++;
}

void reportOutOfMemoryToProfiler(int64_t, int64_t, int64_t, Device)
{
	heard.calls[3]++;
}

} // namespace c10
