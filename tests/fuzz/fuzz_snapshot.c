/* SPDX-License-Identifier: MIT
 * fuzz_snapshot.c: a snapshot of torch.cuda.memory, a pickle, with any bytes.
 *
 * The input: a byte that chooses the view, then the file.
 */
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return target_import(data, bytes);
}
