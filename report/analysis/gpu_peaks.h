/* SPDX-License-Identifier: MIT
 * peaks.h: what a GPU can do at most: arithmetic by type, memory. From a table that people can read, devices.table,
 * compiled in; --peaks puts a file of the same form in its place. What neither the table nor the trace says is not known.
 *
 *	struct peaks_table *table = peaks_read(NULL);
 *	struct peaks peaks;
 *
 *	if (peaks_find(table, &device, &peaks) && peaks.flops[PEAK_BF16] > 0)
 *		...
 */
#ifndef PPERF_REPORT_ANALYSIS_GPU_PEAKS_H
#define PPERF_REPORT_ANALYSIS_GPU_PEAKS_H

#include "report/trace/op_inputs.h"

#define PEAKS_LINES_MAX 256u

#define PEAKS(X)                    \
	X(FP64, fp64)               \
	X(FP32, fp32)               \
	X(FP64_MATRIX, fp64_matrix) \
	X(TF32, tf32)               \
	X(FP16, fp16)               \
	X(BF16, bf16)               \
	X(FP8, fp8)                 \
	X(INT8, int8)

enum peak {
#define X(id, name) PEAK_##id,
	PEAKS(X)
#undef X
		PEAK_COUNT
};

/* A GPU, as far as it is known; 0 and empty: it is not. */
struct peaks_device {
	const char *name;
	size_t name_bytes;
	uint32_t major, minor, multiprocessors;
	uint64_t clock_hz, memory_clock_hz, bus_bits;
};

enum peaks_known_from {
	PEAKS_NONE,
	PEAKS_FROM_TABLE,
	PEAKS_FROM_PARTIAL_GPU /* of the table, for fewer or more SMs */,
	PEAKS_FROM_ATTRIBUTES
};

struct peaks {
	double flops[PEAK_COUNT]; /* a second; 0: not known */
	double bytes;             /* of memory, a second; 0: not known */
	enum peaks_known_from from;
};

struct peaks_table;

/* A file; NULL: the built-in one. What is wrong with it ends the program with a sentence that names file and line, and
 * STATUS_USAGE. */
struct peaks_table *peaks_read(const char *path);
void peaks_free(struct peaks_table *table); /* NULL is fine */

/* False: nothing is known of it. */
bool peaks_find(
	const struct peaks_table *table, const struct peaks_device *device, struct peaks *peaks);

/* Of arithmetic with such numbers, as products of matrices or not; 0: not known. */
double peaks_flops(const struct peaks *peaks, enum element_type element, bool matrix);

#endif
