/* SPDX-License-Identifier: MIT
 *
 * How functions of PyTorch's compiler are replaced:
 *
 *	torch._C._dynamo.eval_frame.set_guard_error_hook
 *	        at the end of `import torch`. The module torch._dynamo.guards calls it once, while
 *	        the program imports torch._dynamo. It is restored then, and the import is watched.
 *	torch._dynamo.convert_frame._compile
 *	        at the end of that import. Compiles one frame; its first argument is the code.
 *	torch._dynamo.utils.compile_time_record_function
 *	        the same. Makes the context manager of a phase, which records nothing without a
 *	        profiler. Releases without this function always report phases as ranges.
 *
 * A replacement is a built-in function whose `self` is the original. Whatever fails here, the
 * original is called with its own arguments.
 */
#include "preload/torch/compile.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "preload/python/python.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 512u
#define HOOK_SETTER "set_guard_error_hook"
/* Python calls a python_keyword_function with three arguments if its flags say so. */
#define CALLS(function) ((python_c_function *)(void (*)(void))(function))

/* The text of compile.py. The assembler finds it relative to the root of the project. */
__asm__(".pushsection .rodata\n"
	".hidden torch_compile_source\n"
	".global torch_compile_source\n"
	"torch_compile_source:\n"
	".incbin \"preload/torch/compile.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char torch_compile_source[] __attribute__((visibility("hidden")));

/* The class of a spec that is watched, that of plain ones, and the class of phases. */
static struct python_object *watched_class, *plain_class, *phase_class;
/* Frame ids as text -> names of the functions. */
static struct python_object *function_names;
/* What set_guard_error_hook is replaced by. */
static struct python_object *armed;

static struct python_object *attribute_of(struct python_object *object, const char *name)
{
	struct python_object *value = object ? python.PyObject_GetAttrString(object, name) : NULL;

	if (!value)
		python_clear_error();
	return value;
}

/* Returns a borrowed reference, or NULL. */
static struct python_object *loaded_module(const char *name)
{
	return python.PyDict_GetItemString(python.PyImport_GetModuleDict(), name);
}

/* Copies a text attribute, cut to `room`. Writes `?` if there is none. */
static void copy_text(struct python_object *object, const char *name, char *text, size_t room)
{
	struct python_object *value = attribute_of(object, name);
	const char *utf8 = value ? python.PyUnicode_AsUTF8AndSize(value, NULL) : NULL;

	if (!utf8)
		python_clear_error();
	snprintf(text, room, "%s", utf8 ? utf8 : "?");
	python_release(value);
}

/* Returns -1 if the attribute is missing or no number. */
static long number_attribute(struct python_object *object, const char *name)
{
	struct python_object *value = attribute_of(object, name);
	long number = value && value != python.none ? python.PyLong_AsLong(value) : -1;

	if (number == -1)
		python_clear_error();
	python_release(value);
	return number;
}

/* ---- names of compilations ---- */

/* Appends `, frame 0, version 1` for PyTorch's compile id 0/1. */
static void add_compile_id(char *text, size_t room, struct python_object *compile_id)
{
	const long frame = number_attribute(compile_id, "frame_id"),
		   version = number_attribute(compile_id, "frame_compile_id");
	const size_t used = strlen(text);

	if (frame >= 0 && version >= 0)
		snprintf(text + used, room - used, ", frame %ld, version %ld", frame, version);
}

/* Writes a function as `Net.forward (net.py:12)`. */
static void name_function(struct python_object *code, char *text, size_t room)
{
	char function[NAME_BYTES / 4], file[NAME_BYTES / 2];
	const char *slash;

	/* Python 3.11 and later have qualified names. */
	copy_text(code, python.minor >= 11 ? "co_qualname" : "co_name", function, sizeof function);
	copy_text(code, "co_filename", file, sizeof file);
	slash = strrchr(file, '/');
	snprintf(text, room, "%s (%.100s:%ld)", function, slash ? slash + 1 : file,
		number_attribute(code, "co_firstlineno"));
}

/* Returns true if the class of `object` has this name. */
static bool has_class(struct python_object *object, const char *class_name)
{
	struct python_object *class = python.PyObject_Type(object);
	char name[16] = "";

	if (class)
		copy_text(class, "__name__", name, sizeof name);
	else
		python_clear_error();
	python_release(class);
	return !strcmp(name, class_name);
}

/* Returns the variable `fn` of the function that PyTorch puts around a module of torch.nn, as a new
 * reference, or NULL. `arguments`: of _compile. Newer releases pass the closure as their fifth. */
static struct python_object *wrapped_callable(struct python_object *arguments)
{
	struct python_object *locals = python.PyTuple_GetItem(arguments, 2),
			     *fn = has_class(locals, "dict")
					   ? python.PyDict_GetItemString(locals, "fn")
					   : NULL,
			     *cells;

	if (fn) {
		python.Py_IncRef(fn);
		return fn;
	}
	cells = python.PyTuple_Size(arguments) > 4 ? python.PyTuple_GetItem(arguments, 4) : NULL;
	if (!cells || !has_class(cells, "tuple") || python.PyTuple_Size(cells) != 1)
		return NULL;
	return attribute_of(python.PyTuple_GetItem(cells, 0), "cell_contents");
}

/* Returns the code of the function `forward` of a module, or NULL. */
static struct python_object *forward_code(struct python_object *module)
{
	struct python_object *class = python.PyObject_Type(module),
			     *forward = attribute_of(class, "forward"),
			     *code = attribute_of(forward, "__code__");

	python_release(class);
	python_release(forward);
	return code;
}

/* Returns the code of what wrap_inline of PyTorch wraps: a function, a module, or its method. */
static struct python_object *callable_code(struct python_object *callable)
{
	struct python_object *module, *code;

	if (has_class(callable, "function"))
		return attribute_of(callable, "__code__");
	if (!has_class(callable, "method"))
		return forward_code(callable);
	module = attribute_of(callable, "__self__");
	code = module ? forward_code(module) : NULL;
	python_release(module);
	return code;
}

/* Returns the code that is compiled, as the program wrote it. PyTorch compiles a function of its
 * own (external_utils.py: inner) around a module. */
static struct python_object *compiled_code(struct python_object *arguments)
{
	struct python_object *code = python.PyTuple_GetItem(arguments, 0), *called, *found = NULL;
	char file[NAME_BYTES / 2];

	copy_text(code, "co_filename", file, sizeof file);
	called = strstr(file, "/_dynamo/external_utils.py") ? wrapped_callable(arguments) : NULL;
	if (called)
		found = callable_code(called);
	python_release(called);
	if (!found)
		python.Py_IncRef(found = code);
	return found;
}

static void remember_function(struct python_object *compile_id, const char *function)
{
	struct python_object *name = python.PyUnicode_FromString(function);
	char frame[24];

	snprintf(frame, sizeof frame, "%ld", number_attribute(compile_id, "frame_id"));
	if (!name || python.PyDict_SetItemString(function_names, frame, name))
		python_clear_error();
	python_release(name);
}

/* Writes the name of a compilation. `arguments`: of _compile: code, globals, locals. `compile_id`:
 * may be NULL. */
static void name_compilation(
	struct python_object *arguments, struct python_object *compile_id, char *text, size_t room)
{
	struct python_object *code = compiled_code(arguments);
	char function[NAME_BYTES / 2];

	name_function(code, function, sizeof function);
	python_release(code);
	snprintf(text, room, "torch.compile %s", function);
	if (!compile_id)
		return;
	remember_function(compile_id, function);
	add_compile_id(text, room, compile_id);
}

/* Returns the id of the compilation that this thread is in, or NULL. PyTorch keeps it in a
 * thread-local object. */
static struct python_object *current_compile_id(void)
{
	struct python_object *state = attribute_of(loaded_module("torch._guards"), "_TLS"),
			     *context = attribute_of(state, "compile_context"),
			     *id = context && context != python.none
					   ? attribute_of(context, "compile_id")
					   : NULL;

	python_release(state);
	python_release(context);
	if (id == python.none) {
		python_release(id);
		return NULL;
	}
	return id;
}

/* Returns the name of a compilation of the backward graph, as a Python string, or NULL. */
static struct python_object *backward_name(void)
{
	struct python_object *id = current_compile_id(), *function;
	const char *name = NULL;
	char frame[24], text[NAME_BYTES];

	if (!id)
		return NULL;
	snprintf(frame, sizeof frame, "%ld", number_attribute(id, "frame_id"));
	function = python.PyDict_GetItemString(function_names, frame);
	if (function)
		name = python.PyUnicode_AsUTF8AndSize(function, NULL);
	snprintf(text, sizeof text, "torch.compile backward of %s", name ? name : "a function");
	add_compile_id(text, sizeof text, id);
	python_release(id);
	return python.PyUnicode_FromString(text);
}

/* ---- _compile ---- */

/* Replaces convert_frame._compile(code, ..., compile_id=...). */
static struct python_object *compile_frame(struct python_object *original,
	struct python_object *arguments, struct python_object *keywords)
{
	struct python_object *result;
	char name[NAME_BYTES];

	if (python.PyTuple_Size(arguments) < 3)
		return python.PyObject_Call(original, arguments, keywords);
	name_compilation(arguments,
		keywords ? python.PyDict_GetItemString(keywords, "compile_id") : NULL, name,
		sizeof name);
	range_open(arguments, name, TRACE_NODE_RANGE, 0, 0);
	result = python.PyObject_Call(original, arguments, keywords);
	range_close(arguments);
	return result;
}

/* ---- phases ---- */

/* Returns true if PyTorch records phases itself. pperf receives them then. */
static bool has_profiler(void)
{
	struct python_object *enabled = attribute_of(
		loaded_module("torch.autograd.profiler"), "_is_profiler_enabled");
	const bool has = enabled && python.PyObject_IsTrue(enabled) == 1;

	python_release(enabled);
	return has;
}

/* Returns a Phase around PyTorch's own context manager, or NULL. */
static struct python_object *new_phase(struct python_object *context, struct python_object *name)
{
	const char *text = python.PyUnicode_AsUTF8AndSize(name, NULL);
	struct python_object *phase = text ? python.PyObject_CallObject(phase_class, NULL) : NULL,
			     *own = text && !strncmp(text, "backward._backward_impl", 23)
					    ? backward_name()
					    : NULL;

	if (phase && (python.PyObject_SetAttrString(phase, "context", context) ||
			     python.PyObject_SetAttrString(phase, "name", own ? own : name))) {
		python_release(phase);
		phase = NULL;
	}
	python_release(own);
	python_clear_error();
	return phase;
}

/* Replaces utils.compile_time_record_function(name). */
static struct python_object *record_phase(struct python_object *original,
	struct python_object *arguments, struct python_object *keywords)
{
	struct python_object *context = python.PyObject_Call(original, arguments, keywords), *phase;

	if (!context || python.PyTuple_Size(arguments) != 1 || has_profiler())
		return context;
	phase = new_phase(context, python.PyTuple_GetItem(arguments, 0));
	if (!phase)
		return context;
	python_release(context);
	return phase;
}

/* Calls a method of PyTorch's context manager. */
static struct python_object *call_context(
	struct python_object *phase, const char *method, struct python_object *arguments)
{
	struct python_object *context = python.PyObject_GetAttrString(phase, "context"),
			     *function = context ? python.PyObject_GetAttrString(context, method)
						 : NULL,
			     *result = function ? python.PyObject_CallObject(function, arguments)
						: NULL;

	python_release(context);
	python_release(function);
	return result;
}

static struct python_object *enter_phase(struct python_object *phase, struct python_object *nothing)
{
	struct python_object *name = attribute_of(phase, "name"), *result;
	const char *text = name ? python.PyUnicode_AsUTF8AndSize(name, NULL) : NULL;

	(void)nothing;
	if (text)
		range_open(phase, text, TRACE_NODE_RANGE, 0, 0);
	python_release(name); /* the phase keeps it */
	result = call_context(phase, "__enter__", NULL);
	if (!result)
		range_close(phase);
	return result;
}

static struct python_object *exit_phase(
	struct python_object *phase, struct python_object *arguments)
{
	struct python_object *result = call_context(phase, "__exit__", arguments);

	range_close(phase);
	return result;
}

static struct python_object *make_entry_class(
	struct python_object *self, struct python_object *nothing)
{
	static const struct python_function methods[] = {
		{ "__enter__", enter_phase, PYTHON_NO_ARGUMENTS, NULL },
		{ "__exit__", exit_phase, PYTHON_VARARGS, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static struct python_slot slots[] = { { PYTHON_SLOT_METHODS, NULL }, { 0, NULL } };
	static const struct python_type type = { "pperf.phase", 0, 0,
		PYTHON_TYPE_PLAIN | PYTHON_TYPE_BASE, slots };

	(void)self;
	(void)nothing;
	*(const struct python_function **)&slots[0].function = methods;
	return python.PyType_FromSpec(&type);
}

/* ---- installing ---- */

/* Sets `name` of a module to a function whose `self` is the original. Returns false if there is no
 * such function, or it was replaced before. */
static bool replace(const char *module_name, const struct python_function *function)
{
	struct python_object *module = loaded_module(module_name),
			     *original = attribute_of(module, function->name),
			     *replacement = original ? python.PyCFunction_NewEx(
							       function, original, NULL)
						     : NULL;
	const bool done = replacement &&
			  !python.PyObject_SetAttrString(module, function->name, replacement);

	python_clear_error();
	python_release(original);
	python_release(replacement);
	return done;
}

/* Called when torch._dynamo has been imported. */
static void install(void)
{
	static const struct python_function compile = { "_compile", CALLS(compile_frame),
		PYTHON_KEYWORDS, NULL },
					    phase = { "compile_time_record_function",
						    CALLS(record_phase), PYTHON_KEYWORDS, NULL };
	static bool installed;
	bool functions;

	if (installed)
		return;
	installed = true;
	functions = replace("torch._dynamo.convert_frame", &compile);
	replace("torch._dynamo.utils", &phase);
	meta_set("source.torch_compile",
		functions ? "on" : "partial: this PyTorch has no convert_frame._compile (2)");
}

static struct python_object *get_initializing(
	struct python_object *self, struct python_object *spec)
{
	struct python_object *values = attribute_of(spec, "__dict__"),
			     *value = values ? python.PyDict_GetItemString(values, "_initializing")
					     : NULL;

	(void)self;
	value = value ? value : python.false_;
	python.Py_IncRef(value);
	python_release(values);
	return value;
}

static struct python_object *set_initializing(
	struct python_object *self, struct python_object *arguments)
{
	struct python_object *spec = python.PyTuple_GetItem(arguments, 0),
			     *value = python.PyTuple_GetItem(arguments, 1),
			     *values = spec ? python.PyObject_GetAttrString(spec, "__dict__")
					    : NULL;

	(void)self;
	if (!values || !value || python.PyDict_SetItemString(values, "_initializing", value)) {
		python_release(values);
		return NULL;
	}
	python_release(values);
	if (python.PyObject_IsTrue(value) == 0) {
		if (python.PyObject_SetAttrString(spec, "__class__", plain_class))
			python_clear_error();
		install();
	}
	return python_none();
}

/* Calls install() at the end of the import of torch._dynamo, now if it has ended. */
static void watch_import(void)
{
	struct python_object *spec = attribute_of(loaded_module("torch._dynamo"), "__spec__"),
			     *initializing = attribute_of(spec, "_initializing");

	if (!initializing || python.PyObject_IsTrue(initializing) != 1)
		install();
	else if (python.PyObject_SetAttrString(spec, "__class__", watched_class)) {
		python_clear_error();
		meta_set("source.torch_compile", "off: the import cannot be watched (3)");
	}
	python_release(spec);
	python_release(initializing);
}

/* Restores set_guard_error_hook where it is still replaced. */
static void disarm(struct python_object *original)
{
	static const char *const modules[] = { "torch._C._dynamo.eval_frame",
		"torch._dynamo.eval_frame", "torch._dynamo.guards" };

	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
		struct python_object *module = loaded_module(modules[i]),
				     *now = attribute_of(module, HOOK_SETTER);

		if (now && now == armed &&
			python.PyObject_SetAttrString(module, HOOK_SETTER, original))
			python_clear_error();
		python_release(now);
	}
}

/* Replaces set_guard_error_hook until its first call. */
static struct python_object *guard_hook_set(struct python_object *original,
	struct python_object *arguments, struct python_object *keywords)
{
	disarm(original);
	watch_import();
	return python.PyObject_Call(original, arguments, keywords);
}

/* ---- start ---- */

static struct python_object *set_classes(struct python_object *self, struct python_object *tuple)
{
	(void)self;
	phase_class = python.PyTuple_GetItem(tuple, 0);
	watched_class = phase_class ? python.PyTuple_GetItem(tuple, 1) : NULL;
	plain_class = watched_class ? python.PyTuple_GetItem(tuple, 2) : NULL;
	if (!plain_class)
		return NULL;
	python.Py_IncRef(phase_class);
	python.Py_IncRef(watched_class);
	python.Py_IncRef(plain_class);
	return python_none();
}

/* Replaces set_guard_error_hook. Returns false if this PyTorch has none. */
static bool arm(void)
{
	static const struct python_function setter = { HOOK_SETTER, CALLS(guard_hook_set),
		PYTHON_KEYWORDS, NULL };

	if (!replace("torch._C._dynamo.eval_frame", &setter))
		return false;
	armed = attribute_of(loaded_module("torch._C._dynamo.eval_frame"), HOOK_SETTER);
	return true;
}

void torch_compile_start(void)
{
	static const struct python_function functions[] = {
		{ "Entry", make_entry_class, PYTHON_NO_ARGUMENTS, NULL },
		{ "get_initializing", get_initializing, PYTHON_ONE_ARGUMENT, NULL },
		{ "set_initializing", set_initializing, PYTHON_VARARGS, NULL },
		{ "classes", set_classes, PYTHON_VARARGS, NULL },
	};

	function_names = python.PyDict_New();
	if (!function_names || !python_run(PYTHON_LABEL, torch_compile_source, functions,
				       sizeof functions / sizeof *functions)) {
		python_clear_error();
		meta_set("source.torch_compile", "off: an error in Python (4)");
		return;
	}
	if (loaded_module("torch._dynamo"))
		watch_import();
	else if (!arm())
		meta_set("source.torch_compile",
			"off: this PyTorch has no eval_frame.set_guard_error_hook (1)");
}
