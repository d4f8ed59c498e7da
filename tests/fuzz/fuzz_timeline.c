/* SPDX-License-Identifier: MIT
 * fuzz_timeline.c: a memory timeline of torch.profiler, JSON, with any bytes.
 *
 * The input: a byte that chooses the view, then the file.
 */
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return target_import(data, bytes);
}
