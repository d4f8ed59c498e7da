/* SPDX-License-Identifier: MIT
 * fuzz_nsys.c: an export of Nsight Systems, an SQLite database: whole ones with any cells, and
 * damaged ones.
 *
 * The input: a byte that chooses the view, then the file.
 */
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return target_import(data, bytes);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };

	if (bytes > 1 && !dice_below(&dice, 8))
		data[0] = (uint8_t)dice_below(&dice, 256);
	if (bytes < 2 || !dice_below(&dice, 6))
		return LLVMFuzzerMutate(data, bytes, room);
	return 1 + mutate_database(data + 1, bytes - 1, room - 1, &dice);
}
