/* SPDX-License-Identifier: MIT
 * rank_traces.h: Writes the traces of a small job, whose collectives have known times.
 *
 * Rank r begins each collective r microseconds after rank 0, the straggler 30 us after. All members
 * end it 40 us after the last has begun. Clocks differ by a millisecond a rank.
 */
#ifndef PPERF_TESTS_SUPPORT_RANK_TRACES_H
#define PPERF_TESTS_SUPPORT_RANK_TRACES_H

#include <stdint.h>

#define RANK_TRACES_MOST 8u
#define RANK_TRACES_TRANSFER_NS 40000u
#define RANK_TRACES_LATE_NS 30000u

/* Writes rank0.bin and so on into the working directory. `straggler` UINT32_MAX: none. */
void rank_traces_write(uint32_t ranks, uint32_t steps, uint32_t straggler);

/* By how much a rank begins a collective after rank 0. */
uint64_t rank_traces_delay(uint32_t rank, uint32_t straggler);

#endif
