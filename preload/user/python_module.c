/* SPDX-License-Identifier: MIT */
#include "preload/user/python_module.h"

#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "preload/python/python.h"
#include "preload/user/callbacks.h"
#include "preload/user/interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Python calls a python_fast_function with three arguments if its flags say so. */
#define FAST(function) ((python_c_function *)(void (*)(void))(function)), PYTHON_FASTCALL, NULL
#define MODULE "pperf"

/* The text of pperf.py. The assembler finds it relative to the root of the project. */
__asm__(".pushsection .rodata\n"
	".hidden pperf_module_source\n"
	".global pperf_module_source\n"
	"pperf_module_source:\n"
	".incbin \"preload/user/pperf.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char pperf_module_source[] __attribute__((visibility("hidden")));

/* struct _inittab of CPython: a built-in module. */
struct builtin_module {
	const char *name; /* NULL: the end of the table */
	struct python_object *(*init)(void);
};

static struct python_object *(*init_time)(void); /* Python's own */
static bool installed;

/* ---- the functions that pperf.py calls ---- */

static struct python_object *python_false(void)
{
	python.Py_IncRef(python.false_);
	return python.false_;
}

/* Returns the text of a str that has no NUL and no surrogates, else NULL. It is valid as long as
 * the object is. */
static const char *plain_text(struct python_object *object)
{
	ptrdiff_t bytes;
	const char *text = python.PyUnicode_AsUTF8AndSize(object, &bytes);

	if (!text)
		python_clear_error();
	return text && strlen(text) == (size_t)bytes ? text : NULL;
}

/* open(trace, label): False if the label is no plain text. */
static struct python_object *module_open(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *text = count == 2 ? plain_text(arguments[1]) : NULL;

	(void)self;
	if (!text)
		return python_false();
	user_range_open(arguments[0], text);
	return python_none();
}

/* close(trace) */
static struct python_object *module_close(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	(void)self;
	if (count == 1)
		user_range_close(arguments[0]);
	return python_none();
}

/* begin(label) -> number; False if the label is no plain text. */
static struct python_object *module_begin(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *text = count == 1 ? plain_text(arguments[0]) : NULL;

	(void)self;
	return text ? python.PyLong_FromUnsignedLongLong(user_range_begin(text)) : python_false();
}

/* end(number) */
static struct python_object *module_end(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	(void)self;
	if (count == 1)
		user_range_end(python.PyLong_AsUnsignedLongLong(arguments[0]));
	return python_none();
}

/* mark(text): False if it is no plain text. */
static struct python_object *module_mark(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *text = count == 1 ? plain_text(arguments[0]) : NULL;

	(void)self;
	if (!text)
		return python_false();
	user_mark(text);
	return python_none();
}

/* metric(name, unit) -> number */
static struct python_object *module_metric(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *name = count == 2 ? plain_text(arguments[0]) : NULL,
		   *unit = name ? plain_text(arguments[1]) : NULL;

	(void)self;
	return python.PyLong_FromLong(unit ? (long)user_metric(name, unit) : 0);
}

/* push(number, value): `value` is a float. */
static struct python_object *module_push(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	(void)self;
	if (count == 2)
		user_metric_push((unsigned)python.PyLong_AsLong(arguments[0]),
			python.PyFloat_AsDouble(arguments[1]));
	return python_none();
}

/* cost(number, ns): a call of the metric's callback took `ns`. */
static struct python_object *module_cost(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	unsigned metric = count == 2 ? (unsigned)python.PyLong_AsLong(arguments[0]) : 0;

	(void)self;
	if (metric)
		user_callback_add_cost(metric, user_metric_name(metric),
			python.PyLong_AsUnsignedLongLong(arguments[1]));
	return python_none();
}

/* warn(key, text): sets META warning.KEY. */
static struct python_object *module_warn(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *name = count == 2 ? plain_text(arguments[0]) : NULL,
		   *text = name ? plain_text(arguments[1]) : NULL;
	char key[256];

	(void)self;
	if (text) {
		snprintf(key, sizeof key, "warning.%s", name);
		meta_set(key, text);
	}
	return python_none();
}

/* recorded() -> 1: events are recorded now, 0: recording is paused. */
static struct python_object *module_recorded(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	(void)self;
	(void)arguments;
	(void)count;
	return python.PyLong_FromLong(user_is_recorded());
}

/* Returns a dict of these functions, or NULL with an exception. */
static struct python_object *new_function_dict(void)
{
	static const struct python_function functions[] = {
		{ "open", FAST(module_open) },
		{ "close", FAST(module_close) },
		{ "begin", FAST(module_begin) },
		{ "end", FAST(module_end) },
		{ "mark", FAST(module_mark) },
		{ "metric", FAST(module_metric) },
		{ "push", FAST(module_push) },
		{ "cost", FAST(module_cost) },
		{ "warn", FAST(module_warn) },
		{ "recorded", FAST(module_recorded) },
	};
	struct python_object *dict = python.PyDict_New();

	if (dict && !python_add_functions(dict, functions, sizeof functions / sizeof *functions)) {
		python_release(dict);
		return NULL;
	}
	return dict;
}

/* ---- the finder, which is also the loader ---- */

/* find_spec(name, path=None, target=None) */
static struct python_object *finder_find_spec(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count)
{
	const char *name = count ? plain_text(arguments[0]) : NULL;
	struct python_object *importlib, *spec_class, *pair, *spec;

	if (!name || strcmp(name, MODULE))
		return python_none();
	importlib = python.PyDict_GetItemString(
		python.PyImport_GetModuleDict(), "_frozen_importlib");
	spec_class = importlib ? python.PyObject_GetAttrString(importlib, "ModuleSpec") : NULL;
	pair = spec_class ? python.PyTuple_New(2) : NULL;
	if (!pair) {
		python_clear_error();
		python_release(spec_class);
		return python_none();
	}
	python.Py_IncRef(arguments[0]);
	python.PyTuple_SetItem(pair, 0, arguments[0]);
	python.Py_IncRef(self);
	python.PyTuple_SetItem(pair, 1, self);
	spec = python.PyObject_CallObject(spec_class, pair);
	python_release(pair);
	python_release(spec_class);
	return spec;
}

/* create_module(spec) -> None: Python makes the module. */
static struct python_object *finder_create_module(
	struct python_object *self, struct python_object *spec)
{
	(void)self;
	(void)spec;
	return python_none();
}

/* exec_module(module) */
static struct python_object *finder_exec_module(
	struct python_object *self, struct python_object *module)
{
	struct python_object *globals = python.PyObject_GetAttrString(module, "__dict__");
	const bool done = globals && python_run_in(globals, "<" MODULE ".py>", pperf_module_source);

	(void)self;
	python_release(globals);
	return done ? python_none() : NULL;
}

/* pperf_functions() -> dict: how pperf.py, also an installed one, finds this library. */
static struct python_object *finder_functions(
	struct python_object *self, struct python_object *nothing)
{
	(void)self;
	(void)nothing;
	return new_function_dict();
}

/* Returns a new finder, or NULL with an exception. */
static struct python_object *new_finder(void)
{
	static const struct python_function methods[] = {
		{ "find_spec", FAST(finder_find_spec) },
		{ "create_module", finder_create_module, PYTHON_ONE_ARGUMENT, NULL },
		{ "exec_module", finder_exec_module, PYTHON_ONE_ARGUMENT, NULL },
		{ "pperf_functions", finder_functions, PYTHON_NO_ARGUMENTS, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static struct python_slot slots[] = { { PYTHON_SLOT_METHODS, NULL }, { 0, NULL } };
	static const struct python_type type = { "pperf.finder", 0, 0, PYTHON_TYPE_PLAIN, slots };
	struct python_object *class, *finder;

	*(const struct python_function **)&slots[0].function = methods;
	class = python.PyType_FromSpec(&type);
	finder = class ? python.PyObject_CallObject(class, NULL) : NULL;
	python_release(class);
	return finder;
}

static void install(void)
{
	struct python_object *finders = python.PySys_GetObject("meta_path"),
			     *finder = finders ? new_finder() : NULL;

	installed = finder && !python.PyList_Append(finders, finder);
	python_release(finder);
	python_clear_error();
}

void python_module_install_late(void)
{
	if (user_is_configured() && !installed)
		install();
}

/* ---- at the start of the interpreter ---- */

/* Replaces the init function of the module `time`. Also runs in each further interpreter of the
 * process. */
static struct python_object *init_time_and_install(void)
{
	struct python_object *module = init_time();
	const int saved = errno;

	if (module && python_find())
		install();
	errno = saved;
	return module;
}

void python_module_configure(void)
{
	struct builtin_module *const *table = quiet_dlsym(RTLD_DEFAULT, "PyImport_Inittab"),
				     *module;
	int (*is_initialized)(void);

	*(void **)&is_initialized = table ? quiet_dlsym(RTLD_DEFAULT, "Py_IsInitialized") : NULL;
	if (!is_initialized || is_initialized() || !*table)
		return;
	for (module = *table; module->name; module++)
		if (!strcmp(module->name, "time") && module->init) {
			init_time = module->init;
			module->init = init_time_and_install;
			return;
		}
}
