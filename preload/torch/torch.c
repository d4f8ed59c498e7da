/* SPDX-License-Identifier: MIT */
#include "preload/torch/torch.h"

#include "collector/file/dictionary.h"
#include "preload/python/python.h"
#include "preload/python/frames.h"
#include "preload/torch/compile.h"
#include "preload/torch/record_function_layout.h"
#include "preload/torch/libraries.h"
#include "preload/torch/tensor_memory.h"
#include "preload/torch/modules.h"
#include "preload/torch/operators.h"
#include "preload/user/python_module.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

static bool enabled, with_python;
static atomic_bool import_seen;         /* initModule of torch was called */
static atomic_bool pending_call_queued; /* Py_AddPendingCall has accepted on_main_thread */

void torch_configure(bool run_python)
{
	enabled = true;
	with_python = run_python;
}

/* Called with the GIL held. */
static void start_in_python(bool operators)
{
	if (operators)
		torch_modules_call_after_import(torch_layout_measure);
	torch_modules_call_after_import(torch_compile_start);
	torch_modules_call_after_import(python_frames_start);
	torch_modules_start();
	python_module_install_late();
}

static void start_all(void)
{
	bool operators = torch_ops_start(), in_python = with_python && python_find();

	torch_memory_look_up(in_python);
	if (in_python)
		start_in_python(operators);
	else
		torch_modules_start(); /* writes why modules are not recorded */
	if (!in_python && operators)
		meta_set("source.torch_ops",
			with_python ? "partial: backward is not linked to forward: this Python "
				      "does not export the functions needed"
				    : "partial: backward is not linked to forward: PPERF_PYTHON=0");
}

/* ---- at initModule ---- */

typedef struct python_object *init_module(void);

/* Returns NULL with ImportError set, for a module that imports the symbol in a process without
 * PyTorch. */
static struct python_object *no_module(void)
{
	if (python_find())
		python.PyErr_SetString(*python.ImportError, "undefined symbol: initModule");
	return NULL;
}

__attribute__((visibility("default"))) struct python_object *initModule(void);
struct python_object *initModule(void)
{
	init_module *real;
	struct python_object *module;
	bool of_torch;
	int saved;

	*(void **)&real = torch_symbol(TORCH_PYTHON, "initModule");
	of_torch = real != NULL;
	if (!of_torch)
		*(void **)&real = torch_symbol_elsewhere(
			(const void *)(uintptr_t)&initModule, "initModule");
	if (!real)
		return no_module();
	if (of_torch && enabled)
		atomic_store(&import_seen, true);
	module = real();
	saved = errno;
	if (module && of_torch && enabled)
		start_all();
	errno = saved;
	return module;
}

/* ---- after initModule ---- */

static struct python_object *get_attribute(struct python_object *object, const char *name)
{
	struct python_object *value = object ? python.PyObject_GetAttrString(object, name) : NULL;

	if (!value)
		python_clear_error();
	return value;
}

/* Returns whether torch.nn.Module exists. The rest of torch may not be imported yet. */
static bool torch_has_module_class(void)
{
	struct python_object *torch = python.PyDict_GetItemString(
		python.PyImport_GetModuleDict(), "torch");
	struct python_object *nn = get_attribute(torch, "nn"),
			     *module = get_attribute(nn, "Module");
	bool whole = module != NULL;

	python_release(nn);
	python_release(module);
	return whole;
}

/* Runs on Python's main thread between two bytecodes of the program. If torch is not complete
 * yet, a later CUDA call queues it again. */
static int on_main_thread(void *unused)
{
	int saved = errno;

	(void)unused;
	if (torch_has_module_class())
		start_in_python(true);
	else
		atomic_store(&pending_call_queued, false);
	errno = saved;
	return 0;
}

static void start_late(void)
{
	if (!torch_library(TORCH_CPU) || !torch_ops_start() || !with_python ||
		!torch_library(TORCH_PYTHON) || !python_find())
		return;
	if (!atomic_exchange(&pending_call_queued, true) &&
		python.Py_AddPendingCall(on_main_thread, NULL))
		atomic_store(&pending_call_queued, false);
}

void torch_late_start(void)
{
	int saved = errno;

	if (enabled && !atomic_load(&import_seen))
		start_late();
	errno = saved;
}
