/* SPDX-License-Identifier: MIT
 *
 * Finds the peak rates of a GPU: arithmetic by element type, and memory bandwidth.
 *
 * The rates come from gpu_peaks.table, which is compiled in; --peaks names a file of the same form
 * to use instead. A rate that neither the table nor the trace has is unknown.
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

/* What is known of a GPU. 0 or empty: unknown. */
struct peaks_device {
	const char *name;
	size_t name_bytes;
	uint32_t major, minor, multiprocessors;
	uint64_t clock_hz, memory_clock_hz, bus_bits;
};

enum peaks_known_from {
	PEAKS_NONE,
	PEAKS_FROM_TABLE,
	PEAKS_FROM_PARTIAL_GPU /* from the table, scaled to another number of SMs */,
	PEAKS_FROM_ATTRIBUTES
};

struct peaks {
	double flops[PEAK_COUNT]; /* per second; 0: unknown */
	double bytes;             /* memory bandwidth per second; 0: unknown */
	enum peaks_known_from from;
};

struct peaks_table;

/* Reads a file, or the built-in table if `path` is NULL. An error in it ends the program with
 * STATUS_USAGE and a message with file and line. */
struct peaks_table *peaks_read(const char *path);
void peaks_free(struct peaks_table *table); /* NULL is allowed */

/* Returns false if no peak is known. */
bool peaks_find(
	const struct peaks_table *table, const struct peaks_device *device, struct peaks *peaks);

/* Returns the peak for `element`; `matrix`: of matrix products. 0: unknown. */
double peaks_flops(const struct peaks *peaks, enum element_type element, bool matrix);

#endif
