/* SPDX-License-Identifier: MIT */
#include "report/analysis/op_cost.h"
#include <string.h>

#define NO_INPUT 255u

struct formula {
	const char *name; /* without `aten::`; a `_` behind it: in place, the first input is the output */
	bool (*reckon)(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost);
	uint8_t a, b, c; /* which inputs, or what else the function wants */
};

/* A product that may not fit; false if it does not. */
static bool times(uint64_t *value, uint64_t by)
{
	return !__builtin_mul_overflow(*value, by, value);
}

static const struct op_input *tensor(const struct op_inputs *inputs, unsigned index)
{
	return index < inputs->count && inputs->all[index].dimensions ? &inputs->all[index] : NULL;
}

/* ---- bytes ---- */

/* Nothing is known any more once one of them is not. */
static void add_bytes(struct op_cost *cost, uint64_t count, unsigned each)
{
	if (!each || !times(&count, each) || __builtin_add_overflow(cost->bytes, count, &cost->bytes))
		cost->has_bytes = false;
}

static void reads(struct op_cost *cost, const struct op_input *input)
{
	if (input)
		add_bytes(cost, input->count, element_bytes(input->element));
}

static void writes(struct op_cost *cost, uint64_t count, enum element element)
{
	add_bytes(cost, count, element_bytes(element));
}

/* ---- products ---- */

/* The sizes of both, spread over each other from the last on; false: they do not go together. */
static bool spread(struct op_input *to, const struct op_input *by, unsigned but)
{
	const unsigned own = to->dimensions > but ? to->dimensions - but : 0,
		       other = by->dimensions > but ? by->dimensions - but : 0, most = own > other ? own : other;
	struct op_input result = { .count = 1, .dimensions = most, .element = to->element };

	for (unsigned i = 0; i < most; i++) {
		const uint64_t left = i + own < most ? 1 : to->sizes[i + own - most],
			       right = i + other < most ? 1 : by->sizes[i + other - most];

		if (left != right && left != 1 && right != 1)
			return false;
		result.sizes[i] = left == 1 ? right : left;
		if (!times(&result.count, result.sizes[i]))
			return false;
	}
	*to = result;
	return true;
}

static bool multiplied(struct op_cost *cost, uint64_t batch, uint64_t m, uint64_t k, uint64_t n)
{
	cost->matrix = true;
	cost->flops = 2;
	return times(&cost->flops, batch) && times(&cost->flops, m) && times(&cost->flops, k) && times(&cost->flops, n);
}

/* As torch.matmul has it, of vectors too; mm, bmm and the like are cases of it. c: what is added. */
static bool product(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *a = tensor(inputs, formula->a), *b = tensor(inputs, formula->b);
	struct op_input batch;
	uint64_t m, k, n, out;

	if (!a || !b)
		return false;
	m = a->dimensions > 1 ? a->sizes[a->dimensions - 2] : 1;
	k = a->sizes[a->dimensions - 1];
	n = b->dimensions > 1 ? b->sizes[b->dimensions - 1] : 1;
	batch = *a;
	if (k != b->sizes[b->dimensions > 1 ? b->dimensions - 2 : 0] || !spread(&batch, b, 2))
		return false;
	cost->element = a->element;
	reads(cost, a);
	reads(cost, b);
	if (formula->c != NO_INPUT)
		reads(cost, tensor(inputs, formula->c));
	out = batch.count;
	if (!times(&out, m) || !times(&out, n))
		return false;
	writes(cost, out, a->element);
	return multiplied(cost, batch.count, m, k, n);
}

/* input [..., K], weight [N, K], bias [N] or none. */
static bool linear(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *input = tensor(inputs, formula->a), *weight = tensor(inputs, formula->b);
	uint64_t rows;

	if (!input || !weight || weight->dimensions != 2 || input->sizes[input->dimensions - 1] != weight->sizes[1] ||
		!weight->sizes[1])
		return false;
	rows = input->count / weight->sizes[1];
	cost->element = input->element;
	reads(cost, input);
	reads(cost, weight);
	reads(cost, tensor(inputs, formula->c));
	writes(cost, rows * weight->sizes[0], input->element);
	return multiplied(cost, 1, rows, weight->sizes[1], weight->sizes[0]);
}

/* ---- convolutions ---- */

/* Each element of the output is a sum over all that a filter covers: weight is [out, in / groups, filter ...]. */
static bool filtered(struct op_cost *cost, uint64_t outputs, const struct op_input *weight)
{
	if (weight->dimensions < 3 || !weight->sizes[0])
		return false;
	return multiplied(cost, 1, outputs, weight->count / weight->sizes[0], 1);
}

/* Of one dimension; 0: it cannot be. */
static uint64_t slid(uint64_t size, uint64_t filter, int64_t stride, int64_t padding, int64_t dilation)
{
	uint64_t room, covered = filter ? filter - 1 : 0;

	if (stride < 1 || padding < 0 || dilation < 1 || !filter || padding > INT32_MAX ||
		!times(&covered, (uint64_t)dilation) || covered == UINT64_MAX ||
		__builtin_add_overflow(size, 2 * (uint64_t)padding, &room) || room < covered + 1)
		return 0;
	return (room - covered - 1) / (uint64_t)stride + 1;
}

static int64_t number_of(const int64_t *numbers, unsigned count, unsigned dimension)
{
	return numbers[count == 1 ? 0 : dimension];
}

/* a, b: which values are stride and padding; dilation follows the later one. c: which says `transposed`, or none. */
static bool convolution(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *input = tensor(inputs, 0), *weight = tensor(inputs, 1);
	const unsigned last = formula->a > formula->b ? formula->a : formula->b;
	int64_t strides[4], paddings[4], dilations[4];
	unsigned spatial, stride, padding, dilation;
	uint64_t outputs;

	if (!input || !weight || weight->dimensions < 3 || weight->dimensions > 5 || input->dimensions != weight->dimensions)
		return false;
	spatial = weight->dimensions - 2;
	stride = op_inputs_numbers(inputs, formula->a, strides, 4);
	padding = op_inputs_numbers(inputs, formula->b, paddings, 4);
	dilation = op_inputs_numbers(inputs, last + 1, dilations, 4);
	if ((stride != 1 && stride != spatial) || (padding != 1 && padding != spatial) ||
		(dilation != 1 && dilation != spatial) || (formula->c != NO_INPUT && op_inputs_truth(inputs, formula->c) != 0))
		return false;
	outputs = input->sizes[0];
	if (!times(&outputs, weight->sizes[0]))
		return false;
	for (unsigned i = 0; i < spatial; i++)
		if (!times(&outputs, slid(input->sizes[i + 2], weight->sizes[i + 2], number_of(strides, stride, i),
					     number_of(paddings, padding, i), number_of(dilations, dilation, i))))
			return false;
	cost->element = input->element;
	reads(cost, input);
	reads(cost, weight);
	writes(cost, outputs, input->element);
	return outputs && filtered(cost, outputs, weight);
}

/* grad_output, input, weight ..., transposed (value 7), ..., output_mask (value 10): for each gradient that is asked for of
 * input and weight as much as forward. */
static bool convolution_backward(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *gradient = tensor(inputs, 0), *input = tensor(inputs, 1), *weight = tensor(inputs, 2);
	const char *mask;
	size_t length;
	unsigned wanted = 0;

	(void)formula;
	if (!gradient || !input || !weight || op_inputs_truth(inputs, 7) != 0 || !op_inputs_value(inputs, 10, &mask, &length))
		return false;
	cost->element = gradient->element;
	reads(cost, gradient);
	if (length > 1 && mask[1] == 'T') { /* of the input: [True, ... */
		wanted++;
		reads(cost, weight);
		writes(cost, input->count, input->element);
	}
	mask = memchr(mask, ',', length);
	if (!mask)
		return false;
	mask += mask[1] == ' ' ? 2 : 1;
	if (*mask == 'T') {
		wanted++;
		reads(cost, input);
		writes(cost, weight->count, weight->element);
	}
	return wanted && filtered(cost, gradient->count, weight) && times(&cost->flops, wanted);
}

/* ---- attention ---- */

/* a: which input is the query, key and value follow; b: which value says whether it is causal; c: how many products of
 * queries x keys x width it takes: 2 forward, 5 backward (one is done again). Under a causal mask a query meets the keys
 * up to its own. */
static bool attention(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *query = tensor(inputs, formula->a), *key = tensor(inputs, formula->a + 1u),
			      *value = tensor(inputs, formula->a + 2u);
	const int causal = op_inputs_truth(inputs, formula->b);
	uint64_t pairs;

	if (!query || !key || !value || query->dimensions != 4 || key->dimensions != 4 || value->dimensions != 4 ||
		key->sizes[2] != value->sizes[2] || query->sizes[3] != key->sizes[3] || value->sizes[3] != key->sizes[3])
		return false;
	pairs = query->sizes[2];
	if (causal < 0 || (causal && key->sizes[2] != query->sizes[2]) || pairs > UINT32_MAX || key->sizes[2] > UINT32_MAX)
		return false;
	pairs = causal ? pairs * (pairs + 1) / 2 : pairs * key->sizes[2];
	cost->element = query->element;
	for (unsigned i = 0; i < 3; i++)
		reads(cost, tensor(inputs, formula->a + i));
	if (formula->c == 2) {
		writes(cost, query->count, query->element);
	} else { /* the gradient of the output, and the output, are as large as the query */
		for (unsigned i = 0; i < 3; i++)
			writes(cost, query->count, query->element);
		writes(cost, key->count, key->element);
		writes(cost, value->count, value->element);
	}
	return multiplied(cost, query->sizes[0], query->sizes[1], pairs, query->sizes[3]) && times(&cost->flops, formula->c);
}

/* ---- what goes over each element ---- */

/* Inputs spread over each other. a: operations an element, 0: how many is not defined; b: bytes of an element of the
 * output, 0: as the inputs; c: how many inputs there are: one behind them is where the output goes. */
static bool elementwise(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	struct op_input out = { .count = 1 };
	enum element element = ELEMENT_UNKNOWN;

	for (unsigned i = 0; i < formula->c; i++) {
		const struct op_input *input = tensor(inputs, i);

		if (!input)
			continue;
		if (out.dimensions == 0)
			element = input->element;
		else if (input->element != element) /* what it becomes is a rule of its own */
			cost->has_bytes = false;
		if (!spread(&out, input, 0))
			return false;
		reads(cost, input);
	}
	if (!out.dimensions)
		return false;
	cost->element = element;
	add_bytes(cost, out.count, formula->b ? formula->b : element_bytes(element));
	cost->flops = out.count;
	cost->has_flops = formula->a > 0 && times(&cost->flops, formula->a);
	return true;
}

/* Nothing is computed: a: the input that is written, in its type; b: the one that is read, or none. */
static bool moved(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *to = tensor(inputs, formula->a), *from = tensor(inputs, formula->b);

	if (!to || (formula->b != NO_INPUT && !from))
		return false;
	cost->element = to->element;
	cost->has_flops = false;
	writes(cost, to->count, to->element);
	reads(cost, from);
	return true;
}

/* Input a, of which `b` times as much is moved in all, and what else is given (weights, statistics) read once. How many
 * operations it takes is not defined. c: how many inputs, from a on, are of that size. */
static bool swept(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *input = tensor(inputs, formula->a);

	if (!input)
		return false;
	cost->element = input->element;
	cost->has_flops = false;
	for (unsigned i = 0; i < inputs->count; i++) {
		const struct op_input *other = tensor(inputs, i);

		if (other && i < formula->a + formula->c && other->count != input->count)
			return false;
		reads(cost, other);
	}
	for (unsigned i = 0; i < formula->b; i++)
		writes(cost, input->count, input->element);
	return true;
}

/* All of it, or along the dimensions of value 1, to numbers of the same type: an operation for each element that is read. */
static bool reduced(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *input = tensor(inputs, 0);
	int64_t along[OP_DIMENSIONS_MOST];
	uint64_t out = 1, each = 1;
	unsigned count, seen = 0;

	(void)formula;
	if (!input)
		return false;
	cost->element = input->element;
	cost->flops = input->count;
	reads(cost, input);
	count = inputs->count > 2 ? op_inputs_numbers(inputs, 1, along, OP_DIMENSIONS_MOST) : 0; /* (self, dtype): all of it */
	for (unsigned i = 0; i < count; i++) {
		const int64_t at = along[i] < 0 ? along[i] + input->dimensions : along[i];

		if (at < 0 || at >= input->dimensions || seen >> at & 1)
			return false;
		seen |= 1u << at;
		each *= input->sizes[at];
	}
	if (count && each)
		out = input->count / each;
	if (!count && inputs->count > 2) /* along what was not recorded */
		cost->has_bytes = false;
	writes(cost, out, input->element);
	return true;
}

/* weight [rows, width], indices: the rows that they name. */
static bool looked_up(const struct op_inputs *inputs, const struct formula *formula, struct op_cost *cost)
{
	const struct op_input *weight = tensor(inputs, formula->a), *indices = tensor(inputs, formula->b);
	uint64_t out;

	if (!weight || !indices || weight->dimensions != 2)
		return false;
	out = indices->count;
	if (!times(&out, weight->sizes[1]))
		return false;
	cost->element = weight->element;
	cost->has_flops = false;
	reads(cost, indices);
	writes(cost, out, weight->element);
	writes(cost, out, weight->element);
	return true;
}

/* ---- the table ---- */

static const struct formula formulas[] = {
	{ "mm", product, 0, 1, NO_INPUT },
	{ "bmm", product, 0, 1, NO_INPUT },
	{ "matmul", product, 0, 1, NO_INPUT },
	{ "mv", product, 0, 1, NO_INPUT },
	{ "dot", product, 0, 1, NO_INPUT },
	{ "addmm", product, 1, 2, 0 },
	{ "_addmm_activation", product, 1, 2, 0 },
	{ "baddbmm", product, 1, 2, 0 },
	{ "addmv", product, 1, 2, 0 },
	{ "linear", linear, 0, 1, 2 },
	{ "conv1d", convolution, 3, 4, NO_INPUT },
	{ "conv2d", convolution, 3, 4, NO_INPUT },
	{ "conv3d", convolution, 3, 4, NO_INPUT },
	{ "convolution", convolution, 3, 4, 6 },
	{ "_convolution", convolution, 3, 4, 6 },
	{ "cudnn_convolution", convolution, 3, 2, NO_INPUT },
	{ "miopen_convolution", convolution, 4, 3, NO_INPUT },
	{ "convolution_backward", convolution_backward, 0, 0, 0 },
	{ "scaled_dot_product_attention", attention, 0, 5, 2 },
	{ "_scaled_dot_product_flash_attention", attention, 0, 4, 2 },
	{ "_scaled_dot_product_efficient_attention", attention, 0, 6, 2 },
	{ "_scaled_dot_product_cudnn_attention", attention, 0, 6, 2 },
	{ "_scaled_dot_product_flash_attention_backward", attention, 1, 11, 5 },
	{ "_scaled_dot_product_efficient_attention_backward", attention, 1, 11, 5 },
	{ "add", elementwise, 1, 0, 2 },
	{ "sub", elementwise, 1, 0, 2 },
	{ "rsub", elementwise, 1, 0, 2 },
	{ "mul", elementwise, 1, 0, 2 },
	{ "div", elementwise, 1, 0, 2 },
	{ "neg", elementwise, 1, 0, 1 },
	{ "abs", elementwise, 1, 0, 1 },
	{ "relu", elementwise, 1, 0, 1 },
	{ "clamp", elementwise, 0, 0, 3 },
	{ "clamp_min", elementwise, 1, 0, 2 },
	{ "maximum", elementwise, 1, 0, 2 },
	{ "minimum", elementwise, 1, 0, 2 },
	{ "addcmul", elementwise, 3, 0, 3 },
	{ "addcdiv", elementwise, 3, 0, 3 },
	{ "sqrt", elementwise, 0, 0, 1 },
	{ "rsqrt", elementwise, 0, 0, 1 },
	{ "reciprocal", elementwise, 0, 0, 1 },
	{ "exp", elementwise, 0, 0, 1 },
	{ "log", elementwise, 0, 0, 1 },
	{ "sin", elementwise, 0, 0, 1 },
	{ "cos", elementwise, 0, 0, 1 },
	{ "tanh", elementwise, 0, 0, 1 },
	{ "sigmoid", elementwise, 0, 0, 1 },
	{ "gelu", elementwise, 0, 0, 1 },
	{ "silu", elementwise, 0, 0, 1 },
	{ "threshold_backward", elementwise, 0, 0, 2 },
	{ "gelu_backward", elementwise, 0, 0, 2 },
	{ "silu_backward", elementwise, 0, 0, 2 },
	{ "tanh_backward", elementwise, 0, 0, 2 },
	{ "sigmoid_backward", elementwise, 0, 0, 2 },
	{ "eq", elementwise, 1, 1, 2 },
	{ "ne", elementwise, 1, 1, 2 },
	{ "lt", elementwise, 1, 1, 2 },
	{ "le", elementwise, 1, 1, 2 },
	{ "gt", elementwise, 1, 1, 2 },
	{ "ge", elementwise, 1, 1, 2 },
	{ "copy_", moved, 0, 1, 0 },
	{ "fill_", moved, 0, NO_INPUT, 0 },
	{ "zero_", moved, 0, NO_INPUT, 0 },
	{ "clone", moved, 0, 0, 0 },
	{ "_softmax", swept, 0, 1, 1 },
	{ "softmax", swept, 0, 1, 1 },
	{ "_log_softmax", swept, 0, 1, 1 },
	{ "log_softmax", swept, 0, 1, 1 },
	{ "_softmax_backward_data", swept, 0, 1, 2 },
	{ "_log_softmax_backward_data", swept, 0, 1, 2 },
	{ "layer_norm", swept, 0, 1, 1 },
	{ "native_layer_norm", swept, 0, 1, 1 },
	{ "native_layer_norm_backward", swept, 0, 1, 2 },
	{ "rms_norm", swept, 0, 1, 1 },
	{ "batch_norm", swept, 0, 1, 1 },
	{ "native_batch_norm", swept, 0, 1, 1 },
	{ "cudnn_batch_norm", swept, 0, 1, 1 },
	{ "native_batch_norm_backward", swept, 0, 1, 2 },
	{ "cudnn_batch_norm_backward", swept, 0, 1, 2 },
	{ "group_norm", swept, 0, 1, 1 },
	{ "native_group_norm", swept, 0, 1, 1 },
	{ "sum", reduced, 0, 0, 0 },
	{ "mean", reduced, 0, 0, 0 },
	{ "amax", reduced, 0, 0, 0 },
	{ "amin", reduced, 0, 0, 0 },
	{ "embedding", looked_up, 0, 1, 0 },
	{ .name = NULL },
};

/* In place it is the same, but that the output is one of the inputs, and written all the same. */
static const struct formula *find(const char *name, size_t length)
{
	static const char space[] = "aten::";

	if (length < sizeof space || memcmp(name, space, sizeof space - 1) != 0)
		return NULL;
	name += sizeof space - 1;
	length -= sizeof space - 1;
	for (unsigned cut = 0; cut < 2 && length > cut && (!cut || name[length - 1] == '_'); cut++)
		for (const struct formula *formula = formulas; formula->reckon; formula++)
			if (strlen(formula->name) == length - cut && !memcmp(formula->name, name, length - cut))
				return cut && formula->reckon == elementwise && formula->b ? NULL : formula;
	return NULL;
}

bool op_cost(struct op_cost *cost, const char *name, size_t length, const struct op_inputs *inputs, enum element assumed)
{
	const struct formula *formula = find(name, length);
	struct op_inputs typed = *inputs;

	for (unsigned i = 0; i < typed.count && !typed.typed; i++)
		typed.all[i].element = typed.all[i].dimensions ? assumed : ELEMENT_UNKNOWN;
	*cost = (struct op_cost){ .has_flops = true, .has_bytes = true };
	if (!formula || !formula->reckon(&typed, formula, cost))
		*cost = (struct op_cost){ .flops = 0 };
	if (inputs->has_flops && inputs->flops) {
		cost->flops = inputs->flops;
		cost->has_flops = cost->recorded = true;
	}
	return cost->has_flops || cost->has_bytes;
}
