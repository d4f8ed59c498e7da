/* SPDX-License-Identifier: MIT
 * fuzz_kept.c: a kept profile (report/run/kept_process.h) with any bytes, as if its checksum, its
 * owner and its trace were right.
 *
 * The input: a byte that chooses the view, then the profile.
 */
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes < 1)
		return -1;
	target_keep(data + 1, bytes - 1);
	target_show(*data, target_other());
	return 0;
}
