/* SPDX-License-Identifier: MIT */
#include "report/run/call_stack.h"

#include <stdio.h>
#include <string.h>

/* The frames of a stack id: those of Python, then the native ones. */
struct stack_frames {
	const struct trace_python_frame *python;
	const char *native; /* return addresses */
	uint32_t python_count, count;
};

static struct stack_frames find_frames(const struct process *process, uint32_t stack)
{
	const struct trace_stack *of_native = stack ? reader_stack(process->reader, stack) : NULL;
	const struct trace_python_stack *of_python = stack ? reader_python_stack(
								     process->reader, stack)
							   : NULL;
	struct stack_frames frames = { .python = NULL };

	if (of_python) {
		frames.python = (const void *)(of_python + 1);
		frames.python_count = frames.count = of_python->frames;
	}
	if (of_native) {
		frames.native = (const char *)(of_native + 1);
		frames.count += of_native->frames;
	}
	return frames;
}

static uint64_t native_address(const struct stack_frames *frames, uint32_t index)
{
	uint64_t address = 0;

	if (frames->native)
		memcpy(&address, frames->native + (index - frames->python_count) * sizeof address,
			sizeof address);
	return address;
}

uint32_t call_stack_frames(const struct process *process, uint32_t stack)
{
	return find_frames(process, stack).count;
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
	if (file.length) /* functions in C have no file */
		used = append_frame_text(out, room, used, line, (size_t)line_length);
	return append_frame_text(out, room, used, function.bytes, function.length);
}

size_t call_stack_frame(struct process *process, uint32_t stack, uint32_t index, bool is_short,
	char *out, size_t room)
{
	const struct stack_frames frames = find_frames(process, stack);

	if (index < frames.python_count)
		return python_text(process, &frames.python[index], is_short, out, room);
	return process_symbol(process, native_address(&frames, index),
		is_short ? DEMANGLE_SHORT : process->profile->options.demangle, out, room);
}

static bool contains(struct trace_text text, const char *part)
{
	return memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

static bool begins_with(struct trace_text text, const char *start)
{
	return text.length >= strlen(start) && !memcmp(text.bytes, start, strlen(start));
}

/* Returns whether code in this file was typed, and has no file: python -c, a console, a cell of a
 * notebook. Other names in `<>` are generated code. */
static bool is_typed_code(struct trace_text file)
{
	return begins_with(file, "<stdin>") || begins_with(file, "<string>") ||
	       begins_with(file, "<console>") || begins_with(file, "<python-input-") ||
	       begins_with(file, "<ipython-input-");
}

/* torch.profiler writes files relative to the folders in which Python finds modules. */
bool call_stack_is_library_file(struct trace_text file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/",
		"/torchinductor_", "/lib/python3" };
	static const char *const packages[] = { "torch/", "torchvision/", "transformers/",
		"accelerate/", "diffusers/", "deepspeed/", "lightning/", "pytorch_lightning/",
		"lightning_fabric/", "peft/", "timm/", "numpy/", "concurrent/", "asyncio/",
		"multiprocessing/", "importlib/", "contextlib.py", "functools.py", "runpy.py",
		"threading.py" };

	if (!file.length || (file.bytes[0] == '<' && !is_typed_code(file)))
		return true;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (contains(file, folders[i]))
			return true;
	for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
		if (begins_with(file, packages[i]))
			return true;
	return false;
}

/* Whether the file of a library is PyTorch's or Python's own, and not that of a package with
 * models, such as torchvision. */
static bool is_framework_file(struct trace_text file)
{
	static const char *const own[] = { "torch/", "concurrent/", "asyncio/", "multiprocessing/",
		"importlib/", "contextlib.py", "functools.py", "runpy.py", "threading.py" };
	static const char folder[] = "-packages/";
	const char *package = memmem(file.bytes, file.length, folder, strlen(folder));

	if (!file.length || file.bytes[0] == '<' || contains(file, "/torchinductor_"))
		return true;
	if (package) {
		const uint32_t skipped = (uint32_t)(package + strlen(folder) - file.bytes);

		file = (struct trace_text){ file.bytes + skipped, file.length - skipped, true };
		return begins_with(file, "torch/");
	}
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (begins_with(file, own[i]))
			return true;
	return contains(file, "/lib/python3");
}

/* Whether a mapped file is a library, the interpreter or the kernel's code. */
static bool is_native_library(struct trace_text path)
{
	const char *slash = memrchr(path.bytes, '/', path.length);
	const struct trace_text name = slash ? (struct trace_text){ .bytes = slash + 1,
		.length = (uint32_t)(path.bytes + path.length - slash - 1) }
					     : path;
	static const char *const names[] = { "libtorch", "libc10", "libcu", "libnv", "libnccl",
		"libpython", "libpperf", "libstdc++", "libc.", "python3", "ld-linux", "[" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (begins_with(name, names[i]))
			return true;
	return !name.length || contains(path, "/site-packages/") ||
	       contains(path, "/dist-packages/") || begins_with(path, "/lib/") ||
	       begins_with(path, "/lib64/") || begins_with(path, "/usr/lib");
}

static bool is_own_address(const struct process *process, uint64_t address)
{
	const struct trace_module *module, *found = NULL;

	/* A later module replaces an earlier one at the same address. */
	for (uint32_t i = 0; (module = reader_dictionary(process->reader, TRACE_MODULE, i)); i++)
		if (address >= module->start && address < module->end)
			found = module;
	return found && !is_native_library((struct trace_text){
				.bytes = (const char *)(found + 1), .length = found->path_bytes });
}

static bool is_own_frame(
	const struct process *process, const struct stack_frames *frames, uint32_t index)
{
	if (index < frames->python_count)
		return !call_stack_is_library_file(
			reader_name(process->reader, frames->python[index].file));
	return is_own_address(process, native_address(frames, index) - 1); /* a return address */
}

uint32_t call_stack_own_frame(const struct process *process, uint32_t stack, uint32_t from)
{
	const struct stack_frames frames = find_frames(process, stack);

	while (from < frames.count && !is_own_frame(process, &frames, from))
		from++;
	return from < frames.count ? from : frames.count;
}

#define SHOWN_OF_A_KIND (CALL_STACK_SHOWN / 2)

static bool is_in_module(const struct tree *tree, uint32_t node)
{
	while (node && tree->nodes[node].kind != NODE_MODULE)
		node = tree->nodes[node].parent;
	return node != 0;
}

uint32_t call_stack_shown_frames(
	const struct process *process, uint32_t node, uint32_t id, uint32_t shown[CALL_STACK_SHOWN])
{
	const struct stack_frames frames = find_frames(process, id);
	const bool in_module = is_in_module(process->profile->tree, node);
	uint32_t own = call_stack_own_frame(process, id, 0), count = 0;

	for (uint32_t i = 0;
		!in_module && i < own && i < frames.python_count && count < SHOWN_OF_A_KIND; i++)
		if (!is_framework_file(reader_name(process->reader, frames.python[i].file)))
			shown[count++] = i;
	for (uint32_t i = 0; i < SHOWN_OF_A_KIND && own < frames.count; i++) {
		shown[count++] = own;
		own = call_stack_own_frame(process, id, own + 1);
	}
	if (!count && frames.count)
		shown[count++] = 0;
	return count;
}

size_t call_stack_source(
	const struct process *process, uint32_t trace_node, bool is_short, char *out, size_t room)
{
	const struct trace_source *source = trace_node ? reader_source(process->reader, trace_node)
						       : NULL;

	out[0] = '\0';
	return source ? python_text(process, &source->at, is_short, out, room) : 0;
}
