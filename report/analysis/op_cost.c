/* SPDX-License-Identifier: MIT */
#include "report/analysis/op_cost.h"
#include <string.h>

#define NO_INPUT 255u

struct op_formula {
	/* Without `aten::`. A name with a trailing `_` is the in-place form: its first input is the
	 * output. */
	const char *name;
	bool (*compute)(const struct op_inputs *inputs, const struct op_formula *formula,
		struct op_cost *cost);
	uint8_t a, b, c; /* indices of inputs, or other parameters of `compute` */
};

/* Multiplies `*value` by `by`. Returns false on overflow. */
static bool multiply_checked(uint64_t *value, uint64_t by)
{
	return !__builtin_mul_overflow(*value, by, value);
}

static const struct op_input *input_tensor(const struct op_inputs *inputs, unsigned index)
{
	return index < inputs->count && inputs->inputs[index].dimensions ? &inputs->inputs[index]
									 : NULL;
}

/* ---- bytes ---- */

/* Adds bytes. If one addend is unknown, the sum is unknown from then on. */
static void add_bytes(struct op_cost *cost, uint64_t count, unsigned each)
{
	if (!each || !multiply_checked(&count, each) ||
		__builtin_add_overflow(cost->bytes, count, &cost->bytes))
		cost->has_bytes = false;
}

static void add_read(struct op_cost *cost, const struct op_input *input)
{
	if (input)
		add_bytes(cost, input->count, element_bytes(input->element));
}

static void add_write(struct op_cost *cost, uint64_t count, enum element_type element)
{
	add_bytes(cost, count, element_bytes(element));
}

/* ---- products ---- */

/* Broadcasts the shape of `to` with that of `by`, without the last `but` dimensions of each.
 * Returns false if the shapes do not match. */
static bool broadcast_shapes(struct op_input *to, const struct op_input *by, unsigned but)
{
	const unsigned own = to->dimensions > but ? to->dimensions - but : 0,
		       other = by->dimensions > but ? by->dimensions - but : 0,
		       most = own > other ? own : other;
	struct op_input result = { .count = 1, .dimensions = most, .element = to->element };

	for (unsigned i = 0; i < most; i++) {
		const uint64_t left = i + own < most ? 1 : to->sizes[i + own - most],
			       right = i + other < most ? 1 : by->sizes[i + other - most];

		if (left != right && left != 1 && right != 1)
			return false;
		result.sizes[i] = left == 1 ? right : left;
		if (!multiply_checked(&result.count, result.sizes[i]))
			return false;
	}
	*to = result;
	return true;
}

static bool matmul_flops(struct op_cost *cost, uint64_t batch, uint64_t m, uint64_t k, uint64_t n)
{
	cost->matrix = true;
	cost->flops = 2;
	return multiply_checked(&cost->flops, batch) && multiply_checked(&cost->flops, m) &&
	       multiply_checked(&cost->flops, k) && multiply_checked(&cost->flops, n);
}

/* Any product that torch.matmul computes, of vectors too; mm, bmm and others are cases of it. `c`:
 * the input that is added. */
static bool cost_product(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *a = input_tensor(inputs, formula->a),
			      *b = input_tensor(inputs, formula->b);
	struct op_input batch;
	uint64_t m, k, n, out;

	if (!a || !b)
		return false;
	m = a->dimensions > 1 ? a->sizes[a->dimensions - 2] : 1;
	k = a->sizes[a->dimensions - 1];
	n = b->dimensions > 1 ? b->sizes[b->dimensions - 1] : 1;
	batch = *a;
	if (k != b->sizes[b->dimensions > 1 ? b->dimensions - 2 : 0] ||
		!broadcast_shapes(&batch, b, 2))
		return false;
	cost->element = a->element;
	add_read(cost, a);
	add_read(cost, b);
	if (formula->c != NO_INPUT)
		add_read(cost, input_tensor(inputs, formula->c));
	out = batch.count;
	if (!multiply_checked(&out, m) || !multiply_checked(&out, n))
		return false;
	add_write(cost, out, a->element);
	return matmul_flops(cost, batch.count, m, k, n);
}

/* Inputs: input [..., K], weight [N, K], bias [N] or none. */
static bool cost_linear(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *input = input_tensor(inputs, formula->a),
			      *weight = input_tensor(inputs, formula->b);
	uint64_t rows;

	if (!input || !weight || weight->dimensions != 2 ||
		input->sizes[input->dimensions - 1] != weight->sizes[1] || !weight->sizes[1])
		return false;
	rows = input->count / weight->sizes[1];
	cost->element = input->element;
	add_read(cost, input);
	add_read(cost, weight);
	add_read(cost, input_tensor(inputs, formula->c));
	add_write(cost, rows * weight->sizes[0], input->element);
	return matmul_flops(cost, 1, rows, weight->sizes[1], weight->sizes[0]);
}

/* ---- convolutions ---- */

/* Each output element is a sum over the elements of one filter. The weight is [out, in / groups,
 * filter ...]. */
static bool filter_flops(struct op_cost *cost, uint64_t outputs, const struct op_input *weight)
{
	if (weight->dimensions < 3 || !weight->sizes[0])
		return false;
	return matmul_flops(cost, 1, outputs, weight->count / weight->sizes[0], 1);
}

/* Output size of one dimension; 0: the parameters are invalid. */
static uint64_t convolution_output_size(
	uint64_t size, uint64_t filter, int64_t stride, int64_t padding, int64_t dilation)
{
	uint64_t room, covered = filter ? filter - 1 : 0;

	if (stride < 1 || padding < 0 || dilation < 1 || !filter || padding > INT32_MAX ||
		!multiply_checked(&covered, (uint64_t)dilation) || covered == UINT64_MAX ||
		__builtin_add_overflow(size, 2 * (uint64_t)padding, &room) || room < covered + 1)
		return 0;
	return (room - covered - 1) / (uint64_t)stride + 1;
}

static int64_t dimension_value(const int64_t *numbers, unsigned count, unsigned dimension)
{
	return numbers[count == 1 ? 0 : dimension];
}

/* formula->a and formula->b: indices of the inputs stride and padding; dilation follows the later
 * of the two. formula->c: index of the input that says whether the convolution is transposed, or
 * NO_INPUT. */
static bool cost_convolution(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *input = input_tensor(inputs, 0), *weight = input_tensor(inputs, 1);
	const unsigned last = formula->a > formula->b ? formula->a : formula->b;
	int64_t strides[4], paddings[4], dilations[4];
	unsigned spatial, stride, padding, dilation;
	uint64_t outputs;

	if (!input || !weight || weight->dimensions < 3 || weight->dimensions > 5 ||
		input->dimensions != weight->dimensions)
		return false;
	spatial = weight->dimensions - 2;
	stride = op_inputs_numbers(inputs, formula->a, strides, 4);
	padding = op_inputs_numbers(inputs, formula->b, paddings, 4);
	dilation = op_inputs_numbers(inputs, last + 1, dilations, 4);
	if ((stride != 1 && stride != spatial) || (padding != 1 && padding != spatial) ||
		(dilation != 1 && dilation != spatial) ||
		(formula->c != NO_INPUT && op_inputs_bool(inputs, formula->c) != 0))
		return false;
	outputs = input->sizes[0];
	if (!multiply_checked(&outputs, weight->sizes[0]))
		return false;
	for (unsigned i = 0; i < spatial; i++)
		if (!multiply_checked(&outputs,
			    convolution_output_size(input->sizes[i + 2], weight->sizes[i + 2],
				    dimension_value(strides, stride, i),
				    dimension_value(paddings, padding, i),
				    dimension_value(dilations, dilation, i))))
			return false;
	cost->element = input->element;
	add_read(cost, input);
	add_read(cost, weight);
	add_write(cost, outputs, input->element);
	return outputs && filter_flops(cost, outputs, weight);
}

/* Inputs: grad_output, input, weight ..., transposed (value 7), ..., output_mask (value 10). Each
 * requested gradient, of input and of weight, costs as much as the forward pass. */
static bool cost_convolution_backward(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *gradient = input_tensor(inputs, 0), *input = input_tensor(inputs, 1),
			      *weight = input_tensor(inputs, 2);
	const char *mask;
	size_t length;
	unsigned wanted = 0;

	(void)formula;
	if (!gradient || !input || !weight || op_inputs_bool(inputs, 7) != 0 ||
		!op_inputs_value(inputs, 10, &mask, &length))
		return false;
	cost->element = gradient->element;
	add_read(cost, gradient);
	if (length > 1 && mask[1] == 'T') { /* gradient of the input: [True, ... */
		wanted++;
		add_read(cost, weight);
		add_write(cost, input->count, input->element);
	}
	mask = memchr(mask, ',', length);
	if (!mask)
		return false;
	mask += mask[1] == ' ' ? 2 : 1;
	if (*mask == 'T') {
		wanted++;
		add_read(cost, input);
		add_write(cost, weight->count, weight->element);
	}
	return wanted && filter_flops(cost, gradient->count, weight) &&
	       multiply_checked(&cost->flops, wanted);
}

/* ---- attention ---- */

/* Attention of queries and keys:
 *
 * - `a`: index of the query; key and value follow it.
 * - `b`: index of the value that says whether attention is causal. A causal query uses only the
 *   keys up to its own position.
 * - `c`: number of products of queries x keys x width: 2 forward, 5 backward (one is recomputed).
 */
static bool cost_attention(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *query = input_tensor(inputs, formula->a),
			      *key = input_tensor(inputs, formula->a + 1u),
			      *value = input_tensor(inputs, formula->a + 2u);
	const int causal = op_inputs_bool(inputs, formula->b);
	uint64_t pairs;

	if (!query || !key || !value || query->dimensions != 4 || key->dimensions != 4 ||
		value->dimensions != 4 || key->sizes[2] != value->sizes[2] ||
		query->sizes[3] != key->sizes[3] || value->sizes[3] != key->sizes[3])
		return false;
	pairs = query->sizes[2];
	if (causal < 0 || (causal && key->sizes[2] != query->sizes[2]) || pairs > UINT32_MAX ||
		key->sizes[2] > UINT32_MAX)
		return false;
	pairs = causal ? pairs * (pairs + 1) / 2 : pairs * key->sizes[2];
	cost->element = query->element;
	for (unsigned i = 0; i < 3; i++)
		add_read(cost, input_tensor(inputs, formula->a + i));
	if (formula->c == 2) {
		add_write(cost, query->count, query->element);
		/* The gradient of the output, and the output, are as large as the query. */
	} else {
		for (unsigned i = 0; i < 3; i++)
			add_write(cost, query->count, query->element);
		add_write(cost, key->count, key->element);
		add_write(cost, value->count, value->element);
	}
	return matmul_flops(cost, query->sizes[0], query->sizes[1], pairs, query->sizes[3]) &&
	       multiply_checked(&cost->flops, formula->c);
}

/* ---- elementwise operators ---- */

/* Operators over broadcast inputs:
 *
 * - `a`: operations for each element; 0: not defined.
 * - `b`: bytes of an output element; 0: as the inputs.
 * - `c`: number of inputs. One after these is the output tensor.
 */
static bool cost_elementwise(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	struct op_input out = { .count = 1 };
	enum element_type element = ELEMENT_UNKNOWN;

	for (unsigned i = 0; i < formula->c; i++) {
		const struct op_input *input = input_tensor(inputs, i);

		if (!input)
			continue;
		if (out.dimensions == 0)
			element = input->element;
		else if (input->element != element) /* type promotion has rules of its own */
			cost->has_bytes = false;
		if (!broadcast_shapes(&out, input, 0))
			return false;
		add_read(cost, input);
	}
	if (!out.dimensions)
		return false;
	cost->element = element;
	add_bytes(cost, out.count, formula->b ? formula->b : element_bytes(element));
	cost->flops = out.count;
	cost->has_flops = formula->a > 0 && multiply_checked(&cost->flops, formula->a);
	return true;
}

/* Moves without computation. `a`: the input that is written, in its own type. `b`: the input that
 * is read, or NO_INPUT. */
static bool cost_copy(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *to = input_tensor(inputs, formula->a),
			      *from = input_tensor(inputs, formula->b);

	if (!to || (formula->b != NO_INPUT && !from))
		return false;
	cost->element = to->element;
	cost->has_flops = false;
	add_write(cost, to->count, to->element);
	add_read(cost, from);
	return true;
}

/* Passes over a whole input. The number of operations is not defined.
 *
 * - `a`: the input; all other inputs (weights, statistics) are read once.
 * - `b`: how many outputs of its size are written.
 * - `c`: number of inputs, from `a` on, that have its size.
 */
static bool cost_full_pass(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *input = input_tensor(inputs, formula->a);

	if (!input)
		return false;
	cost->element = input->element;
	cost->has_flops = false;
	for (unsigned i = 0; i < inputs->count; i++) {
		const struct op_input *other = input_tensor(inputs, i);

		if (other && i < formula->a + formula->c && other->count != input->count)
			return false;
		add_read(cost, other);
	}
	for (unsigned i = 0; i < formula->b; i++)
		add_write(cost, input->count, input->element);
	return true;
}

/* Reductions to the same type, over all elements or over the dimensions in value 1. One operation
 * for each element read. */
static bool cost_reduced(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *input = input_tensor(inputs, 0);
	int64_t along[OP_DIMENSIONS_MAX];
	uint64_t out = 1, each = 1;
	unsigned count, seen = 0;

	(void)formula;
	if (!input)
		return false;
	cost->element = input->element;
	cost->flops = input->count;
	add_read(cost, input);
	count = inputs->count > 2 ? op_inputs_numbers(inputs, 1, along, OP_DIMENSIONS_MAX)
				  : 0; /* (self, dtype): over all elements */
	for (unsigned i = 0; i < count; i++) {
		const int64_t at = along[i] < 0 ? along[i] + input->dimensions : along[i];

		if (at < 0 || at >= input->dimensions || seen >> at & 1)
			return false;
		seen |= 1u << at;
		each *= input->sizes[at];
	}
	if (count && each)
		out = input->count / each;
	if (!count && inputs->count > 2) /* the dimensions were not recorded */
		cost->has_bytes = false;
	add_write(cost, out, input->element);
	return true;
}

/* Inputs: weight [rows, width] and indices. Reads and writes the rows that the indices select. */
static bool cost_embedding(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_input *weight = input_tensor(inputs, formula->a),
			      *indices = input_tensor(inputs, formula->b);
	uint64_t out;

	if (!weight || !indices || weight->dimensions != 2)
		return false;
	out = indices->count;
	if (!multiply_checked(&out, weight->sizes[1]))
		return false;
	cost->element = weight->element;
	cost->has_flops = false;
	add_read(cost, indices);
	add_write(cost, out, weight->element);
	add_write(cost, out, weight->element);
	return true;
}

/* ---- the table ---- */

static const struct op_formula formulas[] = {
	{ "mm", cost_product, 0, 1, NO_INPUT },
	{ "bmm", cost_product, 0, 1, NO_INPUT },
	{ "matmul", cost_product, 0, 1, NO_INPUT },
	{ "mv", cost_product, 0, 1, NO_INPUT },
	{ "dot", cost_product, 0, 1, NO_INPUT },
	{ "addmm", cost_product, 1, 2, 0 },
	{ "_addmm_activation", cost_product, 1, 2, 0 },
	{ "baddbmm", cost_product, 1, 2, 0 },
	{ "addmv", cost_product, 1, 2, 0 },
	{ "linear", cost_linear, 0, 1, 2 },
	{ "conv1d", cost_convolution, 3, 4, NO_INPUT },
	{ "conv2d", cost_convolution, 3, 4, NO_INPUT },
	{ "conv3d", cost_convolution, 3, 4, NO_INPUT },
	{ "convolution", cost_convolution, 3, 4, 6 },
	{ "_convolution", cost_convolution, 3, 4, 6 },
	{ "cudnn_convolution", cost_convolution, 3, 2, NO_INPUT },
	{ "miopen_convolution", cost_convolution, 4, 3, NO_INPUT },
	{ "convolution_backward", cost_convolution_backward, 0, 0, 0 },
	{ "scaled_dot_product_attention", cost_attention, 0, 5, 2 },
	{ "_scaled_dot_product_flash_attention", cost_attention, 0, 4, 2 },
	{ "_scaled_dot_product_efficient_attention", cost_attention, 0, 6, 2 },
	{ "_scaled_dot_product_cudnn_attention", cost_attention, 0, 6, 2 },
	{ "_scaled_dot_product_flash_attention_backward", cost_attention, 1, 11, 5 },
	{ "_scaled_dot_product_efficient_attention_backward", cost_attention, 1, 11, 5 },
	{ "add", cost_elementwise, 1, 0, 2 },
	{ "sub", cost_elementwise, 1, 0, 2 },
	{ "rsub", cost_elementwise, 1, 0, 2 },
	{ "mul", cost_elementwise, 1, 0, 2 },
	{ "div", cost_elementwise, 1, 0, 2 },
	{ "neg", cost_elementwise, 1, 0, 1 },
	{ "abs", cost_elementwise, 1, 0, 1 },
	{ "relu", cost_elementwise, 1, 0, 1 },
	{ "clamp", cost_elementwise, 0, 0, 3 },
	{ "clamp_min", cost_elementwise, 1, 0, 2 },
	{ "maximum", cost_elementwise, 1, 0, 2 },
	{ "minimum", cost_elementwise, 1, 0, 2 },
	{ "addcmul", cost_elementwise, 3, 0, 3 },
	{ "addcdiv", cost_elementwise, 3, 0, 3 },
	{ "sqrt", cost_elementwise, 0, 0, 1 },
	{ "rsqrt", cost_elementwise, 0, 0, 1 },
	{ "reciprocal", cost_elementwise, 0, 0, 1 },
	{ "exp", cost_elementwise, 0, 0, 1 },
	{ "log", cost_elementwise, 0, 0, 1 },
	{ "sin", cost_elementwise, 0, 0, 1 },
	{ "cos", cost_elementwise, 0, 0, 1 },
	{ "tanh", cost_elementwise, 0, 0, 1 },
	{ "sigmoid", cost_elementwise, 0, 0, 1 },
	{ "gelu", cost_elementwise, 0, 0, 1 },
	{ "silu", cost_elementwise, 0, 0, 1 },
	{ "threshold_backward", cost_elementwise, 0, 0, 2 },
	{ "gelu_backward", cost_elementwise, 0, 0, 2 },
	{ "silu_backward", cost_elementwise, 0, 0, 2 },
	{ "tanh_backward", cost_elementwise, 0, 0, 2 },
	{ "sigmoid_backward", cost_elementwise, 0, 0, 2 },
	{ "eq", cost_elementwise, 1, 1, 2 },
	{ "ne", cost_elementwise, 1, 1, 2 },
	{ "lt", cost_elementwise, 1, 1, 2 },
	{ "le", cost_elementwise, 1, 1, 2 },
	{ "gt", cost_elementwise, 1, 1, 2 },
	{ "ge", cost_elementwise, 1, 1, 2 },
	{ "copy_", cost_copy, 0, 1, 0 },
	{ "fill_", cost_copy, 0, NO_INPUT, 0 },
	{ "zero_", cost_copy, 0, NO_INPUT, 0 },
	{ "clone", cost_copy, 0, 0, 0 },
	{ "_softmax", cost_full_pass, 0, 1, 1 },
	{ "softmax", cost_full_pass, 0, 1, 1 },
	{ "_log_softmax", cost_full_pass, 0, 1, 1 },
	{ "log_softmax", cost_full_pass, 0, 1, 1 },
	{ "_softmax_backward_data", cost_full_pass, 0, 1, 2 },
	{ "_log_softmax_backward_data", cost_full_pass, 0, 1, 2 },
	{ "layer_norm", cost_full_pass, 0, 1, 1 },
	{ "native_layer_norm", cost_full_pass, 0, 1, 1 },
	{ "native_layer_norm_backward", cost_full_pass, 0, 1, 2 },
	{ "rms_norm", cost_full_pass, 0, 1, 1 },
	{ "batch_norm", cost_full_pass, 0, 1, 1 },
	{ "native_batch_norm", cost_full_pass, 0, 1, 1 },
	{ "cudnn_batch_norm", cost_full_pass, 0, 1, 1 },
	{ "native_batch_norm_backward", cost_full_pass, 0, 1, 2 },
	{ "cudnn_batch_norm_backward", cost_full_pass, 0, 1, 2 },
	{ "group_norm", cost_full_pass, 0, 1, 1 },
	{ "native_group_norm", cost_full_pass, 0, 1, 1 },
	{ "sum", cost_reduced, 0, 0, 0 },
	{ "mean", cost_reduced, 0, 0, 0 },
	{ "amax", cost_reduced, 0, 0, 0 },
	{ "amin", cost_reduced, 0, 0, 0 },
	{ "embedding", cost_embedding, 0, 1, 0 },
	{ .name = NULL },
};

/* Finds the formula by name. The in-place form has the same cost: its output is one of the inputs,
 * but is written just as well. */
static const struct op_formula *find_formula(const char *name, size_t length)
{
	static const char space[] = "aten::";

	if (length < sizeof space || memcmp(name, space, sizeof space - 1) != 0)
		return NULL;
	name += sizeof space - 1;
	length -= sizeof space - 1;
	for (unsigned cut = 0; cut < 2 && length > cut && (!cut || name[length - 1] == '_'); cut++)
		for (const struct op_formula *formula = formulas; formula->compute; formula++)
			if (strlen(formula->name) == length - cut &&
				!memcmp(formula->name, name, length - cut))
				return cut && formula->compute == cost_elementwise && formula->b
					       ? NULL
					       : formula;
	return NULL;
}

bool op_cost(struct op_cost *cost, const char *name, size_t length, const struct op_inputs *inputs,
	enum element_type assumed)
{
	const struct op_formula *formula = find_formula(name, length);
	struct op_inputs typed = *inputs;

	for (unsigned i = 0; i < typed.count && !typed.typed; i++)
		typed.inputs[i].element = typed.inputs[i].dimensions ? assumed : ELEMENT_UNKNOWN;
	*cost = (struct op_cost){ .has_flops = true, .has_bytes = true };
	if (!formula || !formula->compute(&typed, formula, cost))
		*cost = (struct op_cost){ .flops = 0 };
	if (inputs->has_flops && inputs->flops) {
		cost->flops = inputs->flops;
		cost->has_flops = cost->recorded = true;
	}
	return cost->has_flops || cost->has_bytes;
}
