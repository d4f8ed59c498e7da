/* SPDX-License-Identifier: MIT
 * mutate.h: changes that know how what they change is made. Of a trace: records, counts, sizes,
 * ids, stamps, heads of blocks; and checksums mended, so that they do not hide what is behind them.
 * Of JSON: values, strings, objects. Of an SQLite database: cells, rows, names of columns.
 */
#ifndef PPERF_FUZZ_MUTATE_H
#define PPERF_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Where changes come from: the same seed, the same changes. */
struct dice {
	uint64_t state;
};
size_t dice_below(struct dice *dice, size_t below); /* 0 if below is 0 */

/* Each changes what is there, `bytes` bytes, in place, where it may take up to `room`. Returns what
 * it takes then. */
size_t mutate_trace(unsigned char *trace, size_t bytes, size_t room, struct dice *dice);
size_t mutate_json(unsigned char *text, size_t bytes, size_t room, struct dice *dice);
size_t mutate_database(unsigned char *database, size_t bytes, size_t room, struct dice *dice);
/* Puts the checksums of a trace right. */
void mutate_mend(unsigned char *trace, size_t bytes);

#endif
