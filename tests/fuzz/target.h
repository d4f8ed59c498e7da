/* SPDX-License-Identifier: MIT
 * target.h: what each fuzz_X.c defines, and libFuzzer or replay.c calls.
 */
#ifndef PPERF_FUZZ_TARGET_H
#define PPERF_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
/* Only where changes know what they change. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed);
/* libFuzzer's own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room);

/* The path of a small whole trace beside the input; of the run of those that the builder makes. */
const char *target_other(void);

/* Shows the file `path` as `choice` says. */
void target_show(uint8_t choice, const char *path);
/* From now on the cache has these bytes as the profile of every trace. */
void target_keep(const uint8_t *bytes, size_t count);

/* The file of another tool behind the byte that chooses what shows it; read to its end. */
int target_import(const uint8_t *data, size_t bytes);

#endif
