/* SPDX-License-Identifier: MIT */
#include "report/analysis/collective_sizes.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/trace/op_inputs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTION_FIELD 4u /* of trace_node.detail */
#define DESCRIPTION_MAX 128u

struct known_size {
	struct collective_size size;
	bool is_known;
};

struct collective_sizes {
	struct trace_reader *reader;
	struct known_size *of; /* by trace node */
};

struct collective_sizes *collective_sizes_new(struct trace_reader *reader)
{
	struct collective_sizes *sizes = xcalloc(sizeof *sizes);

	sizes->reader = reader;
	return sizes;
}

void collective_sizes_free(struct collective_sizes *sizes)
{
	if (sizes)
		free(sizes->of);
	free(sizes);
}

static const struct {
	const char *words, *part, *other;
	double share;
} operations[] = { { "collective", "", "", 0 },
#define X(operation, words, name, other, share) { words, name, other, share },
	SIZED_OPERATIONS(X)
#undef X
};

const char *sized_operation_name(enum sized_operation operation)
{
	return operations[operation].words;
}

static enum sized_operation operation_of_name(const char *name)
{
	for (unsigned i = 1; i < sizeof operations / sizeof *operations; i++)
		if (strstr(name, operations[i].part) ||
			(*operations[i].other && strstr(name, operations[i].other)))
			return (enum sized_operation)i;
	return SIZED_OTHER;
}

/* Returns the bytes on the slowest link of a ring of `ranks`, for the bus bandwidth. */
static uint64_t ring_bytes(enum sized_operation operation, uint64_t bytes, uint64_t ranks)
{
	const double share = operations[operation].share;

	if (!ranks || operation == SIZED_OTHER)
		return 0;
	return share > 0 ? (uint64_t)((double)bytes * share * (double)(ranks - 1) / (double)ranks)
			 : bytes;
}

struct collective_size collective_size_of(
	enum sized_operation operation, uint64_t bytes, uint64_t ranks)
{
	return (struct collective_size){ .bytes = bytes,
		.bus_bytes = ring_bytes(operation, bytes, ranks),
		.ranks = (uint32_t)min_u64(ranks, UINT32_MAX),
		.operation = operation };
}

/* Returns where field `field` of a text with tabs between fields begins, or NULL. */
static const char *find_field(struct trace_text text, unsigned field)
{
	const char *at = text.bytes, *end = text.bytes + text.length;

	for (; at && field; field--) {
		at = memchr(at, '\t', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return at;
}

/* Reads the description, such as `allreduce 4096 4096 8`. */
static bool read_description(struct trace_text detail, struct collective_size *size)
{
	const char *at = find_field(detail, DESCRIPTION_FIELD);
	char text[DESCRIPTION_MAX], name[64];
	unsigned long long in, out, ranks;
	size_t length = at ? (size_t)(detail.bytes + detail.length - at) : 0;

	if (!length || length >= sizeof text)
		return false;
	memcpy(text, at, length);
	text[length] = '\0';
	if (sscanf(text, "%63s %llu %llu %llu", name, &in, &out, &ranks) != 4)
		return false;
	*size = collective_size_of(operation_of_name(name), max_u64(in, out), ranks);
	return true;
}

/* Returns the bytes of the larger one of the first `count` inputs that are tensors. `ratio`, if not
 * NULL, receives how many times as large it is as the other one; 0: there is no whole number. */
static uint64_t largest_input(struct trace_text detail, unsigned count, uint64_t *ratio)
{
	struct op_inputs inputs;
	uint64_t least = UINT64_MAX, most = 0;

	if (!op_inputs_read(&inputs, detail.bytes, detail.length))
		return 0;
	for (unsigned i = 0; i < count && i < inputs.count; i++) {
		const struct op_input *input = &inputs.inputs[i];
		const uint64_t bytes = input->dimensions
					       ? input->count * element_bytes(input->element)
					       : 0;

		least = min_u64(least, bytes);
		most = max_u64(most, bytes);
	}
	if (ratio)
		*ratio = least && least < UINT64_MAX && most % least == 0 ? most / least : 0;
	return most;
}

static bool has_prefix(struct trace_text name, const char *prefix)
{
	return name.length > strlen(prefix) && !memcmp(name.bytes, prefix, strlen(prefix));
}

static bool is_named(struct trace_text name, const char *text)
{
	return name.length == strlen(text) && !memcmp(name.bytes, text, name.length);
}

/* Returns the operation of a range such as `nccl:all_reduce`. */
static enum sized_operation operation_of_range(struct trace_text name)
{
	char text[64];

	snprintf(text, sizeof text, "%.*s", (int)min_u64(name.length, sizeof text - 1), name.bytes);
	return operation_of_name(text);
}

/* What the operators around a launch say of a collective. */
struct described_size {
	struct collective_size complete;           /* of a description; bytes 0: there is none */
	uint64_t in_range, in_params, in_operator; /* bytes of inputs */
	uint64_t ratio; /* of the operator's larger tensor to the other one */
	enum sized_operation operation;
};

/* Reads what the node says. Returns true if the nodes around it say nothing more. */
static bool read_node(
	struct described_size *found, struct trace_text name, struct trace_text detail)
{
	if (has_prefix(name, "nccl:"))
		found->operation = operation_of_range(name);
	if (!detail.known)
		return false;
	if (has_prefix(name, "nccl:"))
		found->in_range = largest_input(detail, 1, NULL);
	else if (is_named(name, "record_param_comms")) {
		if (read_description(detail, &found->complete))
			return true;
		found->in_params = largest_input(detail, 1, NULL);
	} else if (has_prefix(name, "c10d::")) {
		found->in_operator = largest_input(detail, 2, &found->ratio);
		return true;
	}
	return false;
}

/* Finds the operators that describe a collective. Older PyTorch describes only tensors: one that
 * goes in at `nccl:all_reduce` and record_param_comms, and at the operators `c10d::` of two
 * tensors what comes out, too. */
static struct collective_size find_size(struct trace_reader *reader, uint32_t trace_node)
{
	struct described_size found = { .in_range = 0 };
	uint64_t bytes, ranks = 0;

	for (; trace_node; trace_node = reader_node(reader, trace_node)->parent) {
		const struct trace_node_info *node = reader_node(reader, trace_node);
		struct trace_text detail = { .known = false };

		if (node->detail)
			detail = reader_name(reader, node->detail);
		if (read_node(&found, reader_name(reader, node->name), detail))
			break;
	}
	if (found.complete.bytes)
		return found.complete;
	bytes = found.in_params ? found.in_params : found.in_range;
	if (found.operation == SIZED_ALLGATHER || found.operation == SIZED_REDUCE_SCATTER)
		ranks = found.ratio;
	return collective_size_of(found.operation, max_u64(bytes, found.in_operator), ranks);
}

struct collective_size collective_sizes_of(struct collective_sizes *sizes, uint32_t trace_node)
{
	struct known_size *known;

	if (trace_node >= reader_node_count(sizes->reader))
		return (struct collective_size){ .bytes = 0 };
	if (!sizes->of)
		sizes->of = xcalloc(reader_node_count(sizes->reader) * sizeof *sizes->of);
	known = &sizes->of[trace_node];
	if (!known->is_known)
		*known = (struct known_size){ find_size(sizes->reader, trace_node), true };
	return known->size;
}
