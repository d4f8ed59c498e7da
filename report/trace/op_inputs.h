/* SPDX-License-Identifier: MIT
 * op_inputs.h: what a trace says of the inputs of an operator: sizes, and where the recorder had them, types and the
 * values of those that are no tensors (struct trace_node's `detail`, as trace_format.h describes it).
 */
#ifndef PPERF_REPORT_TRACE_OP_INPUTS_H
#define PPERF_REPORT_TRACE_OP_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OP_INPUTS_MAX 16u /* later ones are not looked at: no formula needs them */
#define OP_DIMENSIONS_MAX 8u

/* What numbers a tensor has. TF32: no type of a tensor, but what a matrix unit makes of FP32. */
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

const char *element_name(enum element_type element); /* "fp32"; of UNKNOWN: "" */
unsigned element_bytes(enum element_type element);
/* As PyTorch prints it (`float`, `c10::BFloat16`) or as above; UNKNOWN: of no tensor, or of none that is known here. */
enum element_type element_find(const char *name, size_t length);

struct op_input {
	uint64_t sizes[OP_DIMENSIONS_MAX], count; /* count: of its elements */
	unsigned dimensions;                      /* 0: no tensor, or one of a single number */
	enum element_type element;
};

struct op_inputs {
	struct op_input inputs[OP_INPUTS_MAX];
	unsigned count;
	const char *
		values; /* `["","[1,1]"]`, one for each input; lives as long as the text that was parsed */
	size_t value_bytes;
	bool typed; /* types were given */
	bool has_flops;
	uint64_t flops; /* as the recorder itself reckoned them */
};

/* False: it is not of that form, was cut, or has sizes that nobody knew. */
bool op_inputs_read(struct op_inputs *inputs, const char *text, size_t length);

/* Where the sizes end and the rest begins. */
size_t op_inputs_shapes_length(const char *text, size_t length);

/* The value of an input that is no tensor, without its quotes. False: it was not recorded. */
bool op_inputs_value(
	const struct op_inputs *inputs, unsigned index, const char **value, size_t *length);
/* The same as whole numbers, `[1, 2]` or `1`; how many there are, 0: none, or more than `room`. */
unsigned op_inputs_numbers(
	const struct op_inputs *inputs, unsigned index, int64_t *numbers, unsigned room);
/* 1 True, 0 False, -1 unknown. */
int op_inputs_bool(const struct op_inputs *inputs, unsigned index);

#endif
