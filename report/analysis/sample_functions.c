/* SPDX-License-Identifier: MIT */
#include "report/analysis/sample_functions.h"
#include "report/base/alloc.h"
#include "report/run/call_stack.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECENT_ADDRESSES 4096u /* a power of two */
#define NOT_RESOLVED "(not resolved)"
#define EVAL_FUNCTION "_PyEval_EvalFrameDefault"

struct recent_address {
	uint64_t address;
	uint32_t function; /* 0: the entry is empty */
};

/* Reads META python.eval_part. Without it, or if it is damaged, there is no such code. */
static void read_eval_part(struct sample_functions *functions)
{
	const struct trace_text range = process_meta(functions->process, "python.eval_part");
	char text[48] = "";

	if (range.length >= sizeof text)
		return;
	memcpy(text, range.bytes, range.length);
	if (sscanf(text, "0x%" SCNx64 "-0x%" SCNx64, &functions->eval_begin,
		    &functions->eval_end) != 2)
		functions->eval_begin = functions->eval_end = 0;
}

/* A symbol whose name is decoded. The strings are those of struct symbol or of this file, and stay
 * where they are. */
struct known_symbol {
	const char *name, *module; /* module: NULL: not known */
	uint32_t function;
};

void sample_functions_begin(struct sample_functions *functions, struct process *process)
{
	*functions = (struct sample_functions){ .process = process };
	ARRAY_ADD(functions->all, functions->room, functions->count);
	ARRAY_ADD(functions->frames, functions->frame_room, functions->frame_count);
	functions->id_last = reader_frame_last(process->reader);
	functions->numbers = xcalloc(((size_t)functions->id_last + 1) * sizeof *functions->numbers);
	functions->recent = xcalloc(RECENT_ADDRESSES * sizeof *functions->recent);
	read_eval_part(functions);
}

void sample_functions_free(struct sample_functions *functions)
{
	free(functions->all);
	free(functions->frames);
	free(functions->numbers);
	free(functions->path);
	free(functions->recent);
	free(functions->symbols);
	hash_index_free(&functions->symbol_index);
	hash_index_free(&functions->index);
	hash_index_free(&functions->frame_index);
}

static uint32_t intern_text(struct sample_functions *functions, const char *bytes, size_t length)
{
	return string_table_intern(functions->process->texts, bytes, length);
}

static bool starts_with(struct string_view text, const char *start)
{
	const size_t length = strlen(start);

	return text.length >= length && !memcmp(text.bytes, start, length);
}

/* ---- functions that only pass calls on ---- */

static const char *const interpreter_functions[] = { "_PyEval_", "PyEval_", "_PyFunction_",
	"PyObject_", "_PyObject_", "_PyVectorcall", "PyVectorcall", "PyRun_", "_PyRun_",
	"Py_RunMain", "Py_BytesMain", "Py_Main", "pymain_", "run_mod", "run_eval_code_obj",
	"pyrun_", "method_vectorcall", "cfunction_", "slot_tp_", "slot_sq_", "slot_mp_", "slot_nb_",
	"vectorcall_", "object_vacall", "type_call", "tp_new_wrapper", "wrap_", "wrapper_",
	"builtin_exec", "builtin_eval", "builtin___build_class__", "PyImport_",
	"import_find_and_load", "PyCFunction_", "PyMethod_", "method_call", "call_function",
	"do_call_core", "gen_send_ex", "gen_iternext", "function_code_fastcall", "PyIter_",
	"PyDescr_", "classmethoddescr_", "partial_call", "partial_vectorcall", "_PyArg_",
	"thread_run", "pythread_wrapper", "_PyGen_", "initialize_locals", "call_trampoline" };

static const char *const dispatcher_functions[] = { "torch::autograd::THPVariable_",
	"c10::impl::make_boxed_from_unboxed_functor", "c10::impl::wrap_kernel_functor_unboxed",
	"c10::impl::BoxedKernelWrapper",
	"c10::Dispatcher::", "c10::OperatorHandle::", "c10::TypedOperatorHandle",
	"c10::KernelFunction::", "c10::BoxedKernel::", "at::_ops::",
	"torch::autograd::VariableType::", "pybind11::cpp_function::", "at::redispatch::" };

static bool begins_with_any(struct string_view name, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (starts_with(name, starts[i]))
			return true;
	return false;
}

static bool is_interpreter_library(struct string_view library)
{
	return starts_with(library, "python") || starts_with(library, "libpython");
}

static void classify(
	struct sample_function *function, struct string_view name, struct string_view library)
{
	if (function->kind != SAMPLE_NATIVE)
		return;
	if (is_interpreter_library(library)) {
		function->is_eval = starts_with(name, EVAL_FUNCTION);
		/* A stripped interpreter: which of its functions it was is not known. */
		function->is_interpreter = starts_with(name, NOT_RESOLVED) ||
					   begins_with_any(name, interpreter_functions,
						   sizeof interpreter_functions /
							   sizeof *interpreter_functions);
		return;
	}
	function->is_interpreter = begins_with_any(name, dispatcher_functions,
		sizeof dispatcher_functions / sizeof *dispatcher_functions);
}

static uint64_t hash_of(uint32_t name, uint32_t library, enum sample_function_kind kind)
{
	return hash_u64(hash_u64((uint64_t)name << 32 | library) ^ kind);
}

static bool is_function(const struct sample_function *one, uint32_t name, uint32_t library,
	enum sample_function_kind kind)
{
	return one->name == name && one->library == library && one->kind == kind;
}

static uint32_t find_or_add(struct sample_functions *functions, uint32_t name, uint32_t library,
	enum sample_function_kind kind)
{
	const uint64_t hash = hash_of(name, library, kind);
	struct hash_slot *slot;

	hash_index_reserve(&functions->index);
	for (slot = hash_index_first(&functions->index, hash); slot->number;
		slot = hash_index_next(&functions->index, slot))
		if (is_function(&functions->all[slot->number], name, library, kind))
			return slot->number;
	*ARRAY_ADD(functions->all, functions->room, functions->count) = (struct sample_function){
		.name = name, .library = library, .kind = (uint8_t)kind
	};
	classify(&functions->all[functions->count - 1],
		string_table_get(functions->process->texts, name),
		string_table_get(functions->process->texts, library));
	hash_index_add(&functions->index, slot, hash, (uint32_t)functions->count - 1);
	return (uint32_t)functions->count - 1;
}

const struct sample_function *sample_function_find(const struct sample_functions *functions,
	uint32_t name, uint32_t library, enum sample_function_kind kind)
{
	struct hash_slot *slot;

	if (!functions->index.room)
		return NULL;
	for (slot = hash_index_first(&functions->index, hash_of(name, library, kind)); slot->number;
		slot = hash_index_next(&functions->index, slot))
		if (is_function(&functions->all[slot->number], name, library, kind))
			return &functions->all[slot->number];
	return NULL;
}

static uint32_t text_of_name(struct sample_functions *functions, struct trace_text name)
{
	static char decoded[DEMANGLE_OUTPUT + 1];
	const size_t length = demangle(functions->process->profile->options.demangle, name.bytes,
		name.length, decoded, sizeof decoded);

	return length ? intern_text(functions, decoded, length)
		      : intern_text(functions, name.bytes, name.length);
}

static bool is_eval_part(const struct sample_functions *functions, uint64_t address)
{
	return address >= functions->eval_begin && address < functions->eval_end;
}

static uint32_t function_of_symbol(
	struct sample_functions *functions, const char *function, const char *module)
{
	const struct trace_text name = { function, (uint32_t)strlen(function), true };

	return find_or_add(functions, text_of_name(functions, name),
		module && *module ? intern_text(functions, module, strlen(module)) : 0,
		SAMPLE_NATIVE);
}

static uint32_t resolve_address(struct sample_functions *functions, uint64_t address)
{
	/* symbols_find looks up the byte before a return address. */
	const struct symbol symbol = process_find_symbol(functions->process, address + 1);
	const char *name = symbol.function                    ? symbol.function
			   : is_eval_part(functions, address) ? EVAL_FUNCTION
							      : NOT_RESOLVED;
	const uint64_t hash = hash_u64(hash_u64((uintptr_t)name) ^ (uintptr_t)symbol.module);
	struct known_symbol *known;
	struct hash_slot *slot;

	hash_index_reserve(&functions->symbol_index);
	for (slot = hash_index_first(&functions->symbol_index, hash); slot->number;
		slot = hash_index_next(&functions->symbol_index, slot)) {
		known = &functions->symbols[slot->number - 1];
		if (known->name == name && known->module == symbol.module)
			return known->function;
	}
	known = ARRAY_ADD(functions->symbols, functions->symbol_room, functions->symbol_count);
	hash_index_add(&functions->symbol_index, slot, hash, (uint32_t)functions->symbol_count);
	*known = (struct known_symbol){ name, symbol.module,
		function_of_symbol(functions, name, symbol.module) };
	return known->function;
}

uint32_t sample_function_at(struct sample_functions *functions, uint64_t address)
{
	struct recent_address *recent =
		&functions->recent[hash_u64(address) & (RECENT_ADDRESSES - 1)];

	if (!recent->function || recent->address != address)
		*recent = (struct recent_address){ address, resolve_address(functions, address) };
	return recent->function;
}

uint32_t sample_function_named(
	struct sample_functions *functions, uint32_t function, uint32_t module)
{
	const struct trace_text name = reader_name(functions->process->reader, function),
				library = reader_name(functions->process->reader, module),
				unknown = { NOT_RESOLVED, sizeof NOT_RESOLVED - 1, true };
	const char *slash = memrchr(library.bytes, '/', library.length);
	const char *file = slash ? slash + 1 : library.bytes;

	if (!name.length && !library.length)
		return 0;
	return find_or_add(functions, text_of_name(functions, name.length ? name : unknown),
		library.length ? intern_text(functions, file,
					 (size_t)(library.bytes + library.length - file))
			       : 0,
		SAMPLE_NATIVE);
}

uint32_t sample_function_state(struct sample_functions *functions, const char *name)
{
	return find_or_add(functions, intern_text(functions, name, strlen(name)), 0, SAMPLE_STATE);
}

/* ---- Python ---- */

/* Returns the part of a file's path that says which file it is: in a package, the path from the
 * package on; in the standard library, from its folder on; else the file's name. */
static struct string_view short_file(struct trace_text file)
{
	static const char packages[] = "-packages/", standard[] = "/lib/python3";
	const char *end = file.bytes + file.length,
		   *start = memmem(file.bytes, file.length, packages, strlen(packages)), *slash;

	if (start)
		start += strlen(packages);
	if (!start && (start = memmem(file.bytes, file.length, standard, strlen(standard)))) {
		start += strlen(standard);
		slash = memchr(start, '/', (size_t)(end - start));
		start = slash ? slash + 1 : NULL;
	}
	if (!start && (slash = memrchr(file.bytes, '/', file.length)))
		start = slash + 1;
	if (!start)
		start = file.bytes;
	return (struct string_view){ start, (uint32_t)(end - start) };
}

/* Returns whether code of this file is pperf's own, which it labels in place of a file. */
static bool is_pperf_file(struct trace_text file)
{
	return starts_with((struct string_view){ file.bytes, file.length }, "<pperf");
}

bool sample_function_is_pperf(const struct sample_functions *functions, uint32_t function)
{
	return function && function == functions->pperf;
}

static uint32_t python_function(
	struct sample_functions *functions, const struct trace_python_frame *at)
{
	const struct trace_text name = reader_name(functions->process->reader, at->function),
				file = reader_name(functions->process->reader, at->file);
	const struct string_view shown = short_file(file);
	const char *known = name.length ? name.bytes : NOT_RESOLVED;
	uint32_t number;

	if (is_pperf_file(file))
		return functions->pperf = sample_function_state(functions, "(pperf)");
	number = find_or_add(functions,
		intern_text(functions, known, name.length ? name.length : strlen(known)),
		shown.length ? intern_text(functions, shown.bytes, shown.length) : 0,
		SAMPLE_PYTHON);
	functions->all[number].is_own |= !call_stack_is_library_file(file);
	return number;
}

/* ---- frames ---- */

static struct sample_frame make_frame(
	struct sample_functions *functions, const struct trace_frame_info *info)
{
	/* The address of a native frame is where it continues: behind the call. */
	return (struct sample_frame){
		.function = info->is_python ? python_function(functions, &info->at)
					    : sample_function_at(functions,
						      info->address ? info->address - 1 : 0),
		.line = info->is_python ? info->at.line : 0,
		.is_entry = info->is_python && info->at.reserved
	};
}

static bool is_frame(const struct known_frame *a, const struct known_frame *b)
{
	return a->parent == b->parent && a->frame.function == b->frame.function &&
	       a->frame.line == b->frame.line && a->frame.is_entry == b->frame.is_entry;
}

/* Sets what a new frame says about itself and its callers. */
static void count_calls(struct sample_functions *functions, uint32_t number)
{
	struct known_frame *frame = &functions->frames[number];
	const struct known_frame *caller = &functions->frames[frame->parent];
	const bool is_entry = frame->frame.is_entry || !frame->parent,
		   is_eval = functions->all[frame->frame.function].is_eval;

	frame->entries = caller->entries + is_entry;
	frame->evals = caller->evals + is_eval;
	frame->entry = is_entry ? number : caller->entry;
	frame->eval = is_eval ? number : caller->eval;
}

static uint32_t intern_frame(struct sample_functions *functions, const struct known_frame *frame)
{
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)frame->parent << 32 | frame->frame.function) ^
		((uint64_t)frame->frame.line << 1 | frame->frame.is_entry));
	struct hash_slot *slot;

	hash_index_reserve(&functions->frame_index);
	for (slot = hash_index_first(&functions->frame_index, hash); slot->number;
		slot = hash_index_next(&functions->frame_index, slot))
		if (is_frame(&functions->frames[slot->number], frame))
			return slot->number;
	*ARRAY_ADD(functions->frames, functions->frame_room, functions->frame_count) = *frame;
	hash_index_add(&functions->frame_index, slot, hash, (uint32_t)functions->frame_count - 1);
	count_calls(functions, (uint32_t)functions->frame_count - 1);
	return (uint32_t)functions->frame_count - 1;
}

/* Returns the number of the frame `id`, which it makes. `parent`: the number of its caller. */
static uint32_t make_frame_number(struct sample_functions *functions, uint32_t id, uint32_t parent)
{
	struct known_frame frame = { .parent = parent };
	struct trace_frame_info info;

	if (!reader_frame(functions->process->reader, id, &info))
		return 0;
	frame.frame = make_frame(functions, &info);
	return frame.frame.function ? intern_frame(functions, &frame) : 0;
}

/* Callers get their numbers first. They may be too many for recursion. */
static uint32_t number_with_callers(struct sample_functions *functions, uint32_t id)
{
	struct trace_frame_info info;
	size_t count = 0;
	uint32_t number = 0;

	for (; id && !functions->numbers[id]; id = info.parent) {
		*ARRAY_ADD(functions->path, functions->path_room, count) = id;
		if (!reader_frame(functions->process->reader, id, &info))
			info.parent = 0;
	}
	if (id)
		number = functions->numbers[id] - 1;
	while (count) {
		id = functions->path[--count];
		number = make_frame_number(functions, id, number);
		functions->numbers[id] = number + 1;
	}
	return number;
}

uint32_t sample_frame_number(struct sample_functions *functions, uint32_t id)
{
	if (!id || id > functions->id_last)
		return 0;
	return functions->numbers[id] ? functions->numbers[id] - 1
				      : number_with_callers(functions, id);
}

uint32_t sample_frame_in(struct sample_functions *functions, uint32_t caller, uint32_t function)
{
	return intern_frame(
		functions, &(struct known_frame){ .parent = caller, .frame.function = function });
}

uint32_t sample_function_library(const struct sample_functions *functions, uint32_t function)
{
	const struct sample_function *one = &functions->all[function];
	struct string_table *texts = functions->process->texts;
	struct string_view file;
	struct trace_text path;
	const char *slash;

	if (one->kind != SAMPLE_PYTHON || !one->library)
		return one->library;
	file = string_table_get(texts, one->library);
	path = (struct trace_text){ file.bytes, file.length, true };
	slash = memchr(path.bytes, '/', path.length);
	return slash ? string_table_intern(texts, path.bytes, (size_t)(slash - path.bytes))
		     : one->library;
}
