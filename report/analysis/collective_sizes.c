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

/* Reads the size of the first input, in files without a description. */
static void read_first_input(struct trace_text detail, struct collective_size *size)
{
	struct op_inputs inputs;

	if (op_inputs_read(&inputs, detail.bytes, detail.length) && inputs.count &&
		inputs.inputs[0].dimensions)
		size->bytes = inputs.inputs[0].count * element_bytes(inputs.inputs[0].element);
}

static bool is_nccl_range(struct trace_text name)
{
	return name.length > 5 && !memcmp(name.bytes, "nccl:", 5);
}

/* Finds the operator that describes a collective. Where it has no size, that of the range in it,
 * such as `nccl:all_reduce`, is taken: older PyTorch describes the tensors there. */
static struct collective_size find_size(struct trace_reader *reader, uint32_t trace_node)
{
	static const char operator[] = "record_param_comms";
	struct collective_size size = { .bytes = 0 }, inner = size;

	for (; trace_node; trace_node = reader_node(reader, trace_node)->parent) {
		const struct trace_node_info *node = reader_node(reader, trace_node);
		const struct trace_text name = reader_name(reader, node->name),
					detail = reader_name(reader, node->detail);

		if (node->detail && detail.known && is_nccl_range(name))
			read_first_input(detail, &inner);
		if (node->kind != TRACE_NODE_OP ||
			name.length != sizeof operator- 1 ||
				memcmp(name.bytes, operator, name.length))
			continue;
		if (node->detail && detail.known && !read_description(detail, &size))
			read_first_input(detail, &size);
		break;
	}
	return size.bytes ? size : inner;
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
