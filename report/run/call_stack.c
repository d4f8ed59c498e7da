#include "report/run/call_stack.h"

#include <stdio.h>
#include <string.h>

uint32_t call_stack_frames(const struct process *process, uint32_t id)
{
	const struct trace_stack *stack = reader_stack(process->reader, id);
	const struct trace_python_stack *of_python = reader_python_stack(process->reader, id);

	return id == 0 ? 0 : of_python ? of_python->frames : stack ? stack->frames : 0;
}

/* Appends as much as fits. */
static size_t append_frame_text(
	char *out, size_t room, size_t used, const char *bytes, size_t length)
{
	if (length > room - 1 - used)
		length = room - 1 - used;
	memcpy(out + used, bytes, length);
	out[used + length] = '\0';
	return used + length;
}

static size_t python_text(const struct process *process, const struct trace_python_frame *frame,
	bool is_short, char *out, size_t room)
{
	struct trace_text file = reader_name(process->reader, frame->file);
	const struct trace_text function = reader_name(process->reader, frame->function);
	const char *slash = is_short ? memrchr(file.bytes, '/', file.length) : NULL;
	char line[16];
	const int line_length = snprintf(line, sizeof line, ":%u ", frame->line);
	size_t used;

	if (slash) {
		file.length -= (uint32_t)(slash + 1 - file.bytes);
		file.bytes = slash + 1;
	}
	used = append_frame_text(out, room, 0, file.bytes, file.length);
	used = append_frame_text(out, room, used, line, (size_t)line_length);
	return append_frame_text(out, room, used, function.bytes, function.length);
}

size_t call_stack_frame(
	struct process *process, uint32_t id, uint32_t index, bool is_short, char *out, size_t room)
{
	const struct trace_python_stack *of_python = reader_python_stack(process->reader, id);
	const struct trace_stack *stack;
	uint64_t address;

	if (of_python)
		return python_text(process,
			(const struct trace_python_frame *)(const void *)(of_python + 1) + index,
			is_short, out, room);
	stack = reader_stack(process->reader, id);
	memcpy(&address, (const char *)(stack + 1) + index * sizeof address, sizeof address);
	return process_symbol(process, address,
		is_short ? DEMANGLE_SHORT : process->profile->options.demangle, out, room);
}

size_t call_stack_source(
	const struct process *process, uint32_t trace_node, bool is_short, char *out, size_t room)
{
	const struct trace_source *source = trace_node ? reader_source(process->reader, trace_node)
						       : NULL;

	out[0] = '\0';
	return source ? python_text(process, &source->at, is_short, out, room) : 0;
}
