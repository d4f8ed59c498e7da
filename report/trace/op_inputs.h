/* SPDX-License-Identifier: MIT
 * Parses what a trace holds about the inputs of an operator: sizes, element types, and the values
 * of inputs that are not tensors. Types and values are present only if the recorder had them. The
 * text is trace_node.detail, in the form that trace_format.h describes.
 */
#ifndef PPERF_REPORT_TRACE_OP_INPUTS_H
#define PPERF_REPORT_TRACE_OP_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OP_INPUTS_MAX 16u /* further inputs are skipped: no formula needs them */
#define OP_DIMENSIONS_MAX 8u

/* Element type of a tensor. TF32 is not a storage type: it is what tensor cores reduce FP32 to. */
enum element_type {
	ELEMENT_UNKNOWN,
	ELEMENT_FP64,
	ELEMENT_FP32,
	ELEMENT_TF32,
	ELEMENT_FP16,
	ELEMENT_BF16,
	ELEMENT_FP8,
	ELEMENT_INT8,
	ELEMENT_INT16,
	ELEMENT_INT32,
	ELEMENT_INT64,
	ELEMENT_COUNT
};

const char *element_name(enum element_type element); /* "fp32"; "" for ELEMENT_UNKNOWN */
unsigned element_bytes(enum element_type element);
/* Finds the type of a name in PyTorch's spelling (`float`, `c10::BFloat16`) or in that of
 * element_name. Returns ELEMENT_UNKNOWN for any other name, and for an input that is not a
 * tensor. */
enum element_type element_find(const char *name, size_t length);

struct op_input {
	uint64_t sizes[OP_DIMENSIONS_MAX], count; /* count: number of elements */
	unsigned dimensions; /* 0: not a tensor, or a tensor with a single element */
	enum element_type element;
};

struct op_inputs {
	struct op_input inputs[OP_INPUTS_MAX];
	unsigned count;
	const char *values; /* `["","[1,1]"]`, one per input; points into the parsed text */
	size_t value_bytes;
	bool typed; /* the text has element types */
	bool has_flops;
	uint64_t flops; /* as computed by the recorder */
};

/* Parses `text`. Returns false if it has another form, was cut, or has a size that is not known. */
bool op_inputs_read(struct op_inputs *inputs, const char *text, size_t length);

/* Returns the number of bytes of `text` that hold the sizes. Types, values and FLOPs follow. */
size_t op_inputs_shapes_length(const char *text, size_t length);

/* Finds the value of input `index`, without its quotes. Returns false if it was not recorded, as
 * for tensors. */
bool op_inputs_value(
	const struct op_inputs *inputs, unsigned index, const char **value, size_t *length);
/* Parses the value of input `index` as integers: `[1, 2]` or `1`. Returns their number, or 0 if
 * there are none or more than `room`. */
unsigned op_inputs_numbers(
	const struct op_inputs *inputs, unsigned index, int64_t *numbers, unsigned room);
/* Returns the value of input `index` as 1 (True), 0 (False) or -1 (unknown). */
int op_inputs_bool(const struct op_inputs *inputs, unsigned index);

#endif
