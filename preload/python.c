/* SPDX-License-Identifier: MIT
 * python.c: see python.h.
 */
#include "python.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FILE_INPUT 257 /* Py_file_input */

struct python python;

/* "3.13.1 experimental free-threading build (main, ...)". false: older than what we know. */
static bool take_version(struct python *p)
{
	const char *version = p->Py_GetVersion();

	if (strncmp(version, "3.", 2))
		return false;
	p->minor = (unsigned)strtoul(version + 2, NULL, 10);
	p->free_threaded = strstr(version, "free-threading") != NULL;
	return p->minor >= 8;
}

static bool find(struct python *p)
{
#define X(name, result, parameters) *(void **)&p->name = dlsym(RTLD_DEFAULT, #name);
	PYTHON_FUNCTIONS(X)
#undef X
	p->none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
	p->false_ = dlsym(RTLD_DEFAULT, "_Py_FalseStruct");
	p->ImportError = dlsym(RTLD_DEFAULT, "PyExc_ImportError");
	p->KeyboardInterrupt = dlsym(RTLD_DEFAULT, "PyExc_KeyboardInterrupt");
	p->code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
	p->runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
#define X(name, result, parameters) && p->name
	return p->none && p->false_ && p->ImportError && p->KeyboardInterrupt PYTHON_FUNCTIONS(X) && take_version(p);
#undef X
}

bool python_find(void)
{
	static _Atomic bool found;
	struct python candidate = {0};

	if (atomic_load_explicit(&found, memory_order_acquire))
		return true;
	if (!find(&candidate))
		return false;
	python = candidate; /* two threads that come here at once write the same */
	atomic_store_explicit(&found, true, memory_order_release);
	return true;
}

void python_forget_error(void)
{
	bool interrupted;

	if (!python.PyErr_Occurred())
		return;
	interrupted = python.PyErr_ExceptionMatches(*python.KeyboardInterrupt);
	python.PyErr_Clear();
	if (interrupted)
		python.PyErr_SetInterrupt(); /* somebody pressed Ctrl-C while it was us who ran: it is the program's */
}

static bool put(struct python_object *globals, const struct python_function *function)
{
	struct python_object *callable = python.PyCFunction_NewEx(function, NULL, NULL);
	bool done = callable && !python.PyDict_SetItemString(globals, function->name, callable);

	if (callable)
		python.Py_DecRef(callable);
	return done;
}

static bool run_in(struct python_object *globals, const char *label, const char *source)
{
	struct python_object *code = python.Py_CompileString(source, label, FILE_INPUT);
	struct python_object *result = code ? python.PyEval_EvalCode(code, globals, globals) : NULL;

	if (code)
		python.Py_DecRef(code);
	if (result)
		python.Py_DecRef(result);
	return result != NULL;
}

bool python_run(const char *label, const char *source, const struct python_function *functions, size_t count)
{
	struct python_object *globals = python.PyDict_New();
	bool done = globals && !python.PyDict_SetItemString(globals, "__builtins__", python.PyEval_GetBuiltins());

	for (size_t i = 0; done && i < count; i++)
		done = put(globals, &functions[i]);
	done = done && run_in(globals, label, source);
	if (globals)
		python.Py_DecRef(globals); /* functions that it left behind hold it */
	python_forget_error();
	return done;
}
