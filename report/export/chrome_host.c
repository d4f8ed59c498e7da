/* SPDX-License-Identifier: MIT
 *
 * Events of the program's threads: operators, annotations, modules, CUDA calls, memory.
 */
#include "report/export/chrome_event.h"
#include "report/export/kineto_names.h"
#include "report/text/json_scanner.h"
#include <stdio.h>

#define FIELDS 5u /* of trace_node.detail */

/* ---- operators ---- */

/* Splits the inputs of an operator: sizes, types, values, FLOPs, collective (trace_format.h). */
static void split_detail(struct trace_text detail, struct string_view fields[FIELDS])
{
	const char *at = detail.bytes, *end = detail.bytes + detail.length;

	for (unsigned i = 0; i < FIELDS; i++) {
		const char *tab = i + 1 < FIELDS ? memchr(at, '\t', (size_t)(end - at)) : NULL;

		fields[i] = (struct string_view){ at, (uint32_t)((tab ? tab : end) - at) };
		at = tab ? tab + 1 : end;
	}
}

/* Whether a text is one JSON array. The names of a trace may hold anything. */
static bool is_json_array(struct string_view text)
{
	char copy[4096 + JSON_SLACK] = { 0 };
	struct json_scanner scan = { .at = copy, .end = copy + text.length };
	struct json_text value;

	if (text.length < 2 || text.length > 4096 || *text.bytes != '[')
		return false;
	memcpy(copy, text.bytes, text.length);
	for (uint32_t i = 0; i < text.length; i++)
		if ((unsigned char)copy[i] < ' ' || (unsigned char)copy[i] > '~')
			return false;
	return json_value(&scan, &value) && value.length == text.length && !scan.nonstandard_values;
}

static void arg_array(struct chrome *chrome, const char *key, struct string_view array)
{
	if (!is_json_array(array))
		return;
	chrome_arg_begin(chrome, key);
	output_bytes(chrome->out, array.bytes, array.length);
}

/* Adds what is known of a collective: `allreduce 4096 4096 8` with the sizes `[[1024]]` and the
 * types `["Float"]`. */
static void args_collective(struct chrome *chrome, const struct string_view fields[FIELDS])
{
	char name[64], type[64], text[128];
	unsigned long long in, out, ranks, elements;

	if (fields[4].length >= sizeof text || fields[0].length >= sizeof text)
		return;
	snprintf(text, sizeof text, "%.*s", (int)fields[4].length, fields[4].bytes);
	if (sscanf(text, "%63s %llu %llu %llu", name, &in, &out, &ranks) != 4)
		return;
	snprintf(text, sizeof text, "%.*s", (int)fields[0].length, fields[0].bytes);
	if (sscanf(text, "[[%llu]]", &elements) != 1)
		return;
	snprintf(text, sizeof text, "%.*s",
		(int)(fields[1].length < sizeof text ? fields[1].length : 0), fields[1].bytes);
	if (sscanf(text, "[\"%63[^\"]\"]", type) != 1)
		return;
	chrome_arg_string(chrome, "Collective name", name);
	chrome_arg_string(chrome, "dtype", type);
	chrome_arg(chrome, "In msg nelems", elements);
	chrome_arg(chrome, "Out msg nelems",
		in && elements ? out / (in / elements ? in / elements : 1) : elements);
	chrome_arg(chrome, "Group size", ranks);
}

static void args_inputs(struct chrome *chrome, const struct trace_node_info *node)
{
	const struct trace_text detail = reader_name(chrome->process->reader, node->detail);
	struct string_view fields[FIELDS];

	if (!detail.known)
		return;
	split_detail(detail, fields);
	if (fields[4].length)
		args_collective(chrome, fields);
	arg_array(chrome, "Input Dims", fields[0]);
	if (fields[4].length)
		return;
	arg_array(chrome, "Input type", fields[1]);
	arg_array(chrome, "Concrete Inputs", fields[2]);
	if (fields[3].length && strspn(fields[3].bytes, "0123456789") >= fields[3].length) {
		chrome_arg_begin(chrome, "flops");
		output_bytes(chrome->out, fields[3].bytes, fields[3].length);
	}
}

static void args_operator(
	struct chrome *chrome, const struct host_event *event, const struct trace_node_info *node)
{
	if (node->kind == TRACE_NODE_BACKWARD)
		chrome_arg(chrome, "Fwd thread id", event->of.forward.thread);
	args_inputs(chrome, node);
	if (event->of.forward.number)
		chrome_arg(chrome, "Sequence number", event->of.forward.number);
}

/* Writes the arrow from an operator to its backward function. */
static void put_backward_arrow(struct chrome *chrome, const struct host_event *event)
{
	const struct string_view name = chrome_view("fwdbwd");

	chrome_begin(chrome, 's', "fwdbwd", name, chrome->pid, event->of.forward.tid,
		event->of.forward.begin_ns);
	chrome_id(chrome, event->number);
	chrome_end(chrome);
	chrome_begin(chrome, 'f', "fwdbwd", name, chrome->pid, event->tid, event->begin_ns);
	chrome_member(chrome, "\"bp\":\"e\"");
	chrome_id(chrome, event->number);
	chrome_end(chrome);
}

/* ---- ranges ---- */

/* Returns the name of a module as PyTorch writes it: `nn.Module: ` with class, underscore
 * and number. If the trace has the module's path, that takes the place of class and number. */
static struct string_view module_name(struct chrome *chrome, const struct trace_node_info *node,
	struct string_view name, char *text, size_t room)
{
	const struct trace_text class = reader_name(chrome->process->reader, node->detail);
	const bool numbered = class.known && name.length > class.length + 1u &&
			      !memcmp(name.bytes, class.bytes, class.length) &&
			      name.bytes[class.length] == '.' &&
			      strspn(name.bytes + class.length + 1, "0123456789") ==
				      name.length - class.length - 1u;
	const int length = snprintf(text, room, "nn.Module: %.*s", (int)name.length, name.bytes);

	if (numbered && (size_t)length < room)
		text[11 + class.length] = '_';
	return (struct string_view){ text,
		(uint32_t)((size_t)length < room ? (size_t)length : room - 1) };
}

static const char *range_category(const struct trace_node_info *node)
{
	switch (node->kind) {
	case TRACE_NODE_OP:
	case TRACE_NODE_BACKWARD:
		return "cpu_op";
	case TRACE_NODE_MODULE:
		return "python_function";
	default:
		return "user_annotation";
	}
}

static void put_range(
	struct chrome *chrome, const struct host_event *event, struct string_view name)
{
	const struct trace_node_info *node = reader_node(chrome->process->reader, event->node);
	const struct trace_text domain = reader_name(chrome->process->reader, node->domain);
	char text[1024];

	if (node->kind == TRACE_NODE_MODULE)
		name = module_name(chrome, node, name, text, sizeof text);
	chrome_begin(
		chrome, 'X', range_category(node), name, chrome->pid, event->tid, event->begin_ns);
	chrome_duration(chrome, event->end_ns - event->begin_ns);
	if (domain.known && domain.length)
		chrome_arg_text(
			chrome, "domain", (struct string_view){ domain.bytes, domain.length });
	if (event->in_operator)
		args_operator(chrome, event, node);
	else if (node->kind != TRACE_NODE_MODULE)
		args_inputs(chrome, node);
	if (node->kind == TRACE_NODE_MODULE)
		chrome_arg(chrome, "Python id", event->number);
	if (event->range_number)
		chrome_arg(chrome, "External id", event->range_number);
	chrome_end(chrome);
	if (node->kind == TRACE_NODE_BACKWARD && event->of.forward.tid)
		put_backward_arrow(chrome, event);
}

static void put_async(
	struct chrome *chrome, const struct host_event *event, struct string_view name)
{
	chrome_begin(
		chrome, 'b', "start_end_range", name, chrome->pid, event->tid, event->begin_ns);
	chrome_id(chrome, event->number);
	chrome_end(chrome);
	chrome_begin(chrome, 'e', "start_end_range", name, chrome->pid, event->tid, event->end_ns);
	chrome_id(chrome, event->number);
	chrome_end(chrome);
}

/* ---- calls and memory ---- */

static void put_call(struct chrome *chrome, const struct host_event *event, struct string_view name)
{
	if (!name.length)
		name = chrome_view("(call)");
	name = kineto_call_name(name);
	chrome_begin(chrome, 'X', kineto_call_category(name.bytes, name.length), name, chrome->pid,
		event->tid, event->begin_ns);
	chrome_duration(chrome, event->end_ns - event->begin_ns);
	if (event->of.call.bytes)
		chrome_arg(chrome, "bytes", event->of.call.bytes);
	if (event->of.call.address)
		chrome_arg(chrome, "address", event->of.call.address);
	if (event->of.call.result)
		chrome_arg(chrome, "result", event->of.call.result);
	chrome_arg_stack(chrome, event->stack);
	if (event->of.call.correlation)
		chrome_arg(chrome, "correlation", event->of.call.correlation);
	if (event->range_number)
		chrome_arg(chrome, "External id", event->range_number);
	chrome_end(chrome);
	if (event->has_work)
		chrome_put_arrow(chrome, 's', chrome->pid, event->tid, event->of.call.correlation,
			event->begin_ns);
}

static void put_tensor(struct chrome *chrome, const struct host_event *event)
{
	const bool is_oom = event->kind == HOST_OOM;

	chrome_begin(chrome, 'i', "cpu_instant_event",
		chrome_view(is_oom ? "[OutOfMemory]" : "[memory]"), chrome->pid, event->tid,
		event->begin_ns);
	chrome_member(chrome, "\"s\":\"t\"");
	chrome_arg(chrome, "Device Type", 1);
	chrome_arg(chrome, "Device Id", event->device);
	chrome_arg_stack(chrome, event->stack);
	chrome_arg(chrome, "Total Reserved", event->of.tensor.reserved);
	chrome_arg(chrome, "Total Allocated", event->of.tensor.allocated);
	chrome_arg_signed(chrome, "Bytes", event->of.tensor.bytes);
	chrome_arg(chrome, "Addr", event->of.tensor.address);
	chrome_end(chrome);
}

static void put_counter(
	struct chrome *chrome, const struct host_event *event, struct string_view name)
{
	int64_t whole;
	double real;

	memcpy(&whole, &event->of.counter.bits, sizeof whole);
	memcpy(&real, &event->of.counter.bits, sizeof real);
	if (event->of.counter.type == TRACE_METRIC_F64 && (real != real || real - real != 0))
		return;
	chrome_begin(chrome, 'C', NULL, name, chrome->pid, event->tid, event->begin_ns);
	chrome_arg_begin(chrome, "value");
	if (event->of.counter.type == TRACE_METRIC_F64)
		output_double(chrome->out, real);
	else
		output_signed(chrome->out, whole);
	chrome_end(chrome);
}

static void put_mark(struct chrome *chrome, const struct host_event *event, struct string_view name)
{
	chrome_begin(chrome, 'i', "mark", name, chrome->pid, event->tid, event->begin_ns);
	chrome_member(chrome, "\"s\":\"t\"");
	chrome_end(chrome);
}

static void put_overhead(struct chrome *chrome, const struct host_event *event)
{
	chrome_begin(chrome, 'X', "overhead", chrome_view(kineto_overhead_name(event->device)),
		chrome->pid, 0, event->begin_ns);
	chrome_duration(chrome, event->end_ns - event->begin_ns);
	chrome_end(chrome);
}

void chrome_put_host(struct chrome *chrome, const struct host_event *event)
{
	const struct string_view name = record_event_name(chrome->events, event);

	switch ((enum host_kind)event->kind) {
	case HOST_RANGE:
		put_range(chrome, event, name);
		break;
	case HOST_ASYNC:
		put_async(chrome, event, name);
		break;
	case HOST_CALL:
		put_call(chrome, event, name);
		break;
	case HOST_MARK:
		put_mark(chrome, event, name);
		break;
	case HOST_TENSOR:
	case HOST_OOM:
		put_tensor(chrome, event);
		break;
	case HOST_COUNTER:
		put_counter(chrome, event, name);
		break;
	case HOST_OVERHEAD:
		put_overhead(chrome, event);
		break;
	}
}
