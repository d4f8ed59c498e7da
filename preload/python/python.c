/* SPDX-License-Identifier: MIT */
#include "preload/python/python.h"

#include "collector/process/dynamic_linker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_INPUT 257 /* Py_file_input */

struct python python;

/* Reads a version such as "3.13.1 experimental free-threading build (main, ...)". Returns false if
 * it is older than 3.8. */
static bool parse_version(struct python *p)
{
	const char *version = p->Py_GetVersion();

	if (strncmp(version, "3.", 2))
		return false;
	p->minor = (unsigned)strtoul(version + 2, NULL, 10);
	p->free_threaded = strstr(version, "free-threading") != NULL;
	return p->minor >= 8;
}

static bool find_functions(struct python *p)
{
#define X(name, result, parameters) *(void **)&p->name = quiet_dlsym(RTLD_DEFAULT, #name);
	PYTHON_FUNCTIONS(X)
#undef X
	p->none = quiet_dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
	p->false_ = quiet_dlsym(RTLD_DEFAULT, "_Py_FalseStruct");
	p->ImportError = quiet_dlsym(RTLD_DEFAULT, "PyExc_ImportError");
	p->Exception = quiet_dlsym(RTLD_DEFAULT, "PyExc_Exception");
	p->code_type = quiet_dlsym(RTLD_DEFAULT, "PyCode_Type");
	p->str_type = quiet_dlsym(RTLD_DEFAULT, "PyUnicode_Type");
	p->runtime = quiet_dlsym(RTLD_DEFAULT, "_PyRuntime");
	*(void **)&p->PyThreadState_Get = quiet_dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	*(void **)&p->PyThreadState_EnterTracing = quiet_dlsym(
		RTLD_DEFAULT, "PyThreadState_EnterTracing");
	*(void **)&p->PyThreadState_LeaveTracing = quiet_dlsym(
		RTLD_DEFAULT, "PyThreadState_LeaveTracing");
#define X(name, result, parameters) &&p->name
	return p->none && p->false_ && p->ImportError && p->Exception PYTHON_FUNCTIONS(X) &&
	       parse_version(p);
#undef X
}

bool python_find(void)
{
	static _Atomic bool found;
	struct python candidate = { 0 };

	if (atomic_load_explicit(&found, memory_order_acquire))
		return true;
	if (!find_functions(&candidate))
		return false;
	python = candidate; /* two threads write the same */
	atomic_store_explicit(&found, true, memory_order_release);
	return true;
}

struct python_object *python_call_hidden(
	struct python_object *callable, struct python_object *arguments)
{
	struct python_object *result;
	void *state;

	if (!python.PyThreadState_Get || !python.PyThreadState_EnterTracing ||
		!python.PyThreadState_LeaveTracing)
		return python.PyObject_CallObject(callable, arguments);
	state = python.PyThreadState_Get();
	python.PyThreadState_EnterTracing(state);
	result = python.PyObject_CallObject(callable, arguments);
	python.PyThreadState_LeaveTracing(state);
	return result;
}

/* An exception that was set and has been fetched. */
struct raised {
	struct python_object *type, *value, *traceback; /* traceback: NULL if there is none */
};

/* The program's exception that was last raised again on this thread. Only its address is
 * compared. */
static __thread struct python_object *last_reraised __attribute__((tls_model("initial-exec")));

static void decref(struct python_object *object)
{
	python_release(object);
}

static struct python_object *take_attribute(struct python_object *object, const char *name)
{
	struct python_object *value = object ? python.PyObject_GetAttrString(object, name) : NULL;

	decref(object);
	return value;
}

/* True if an entry of a traceback is in pperf's Python code. */
static bool is_our_line(struct python_object *entry)
{
	struct python_object *code, *file;
	const char *text;
	bool ours;

	python.Py_IncRef(entry);
	code = take_attribute(take_attribute(entry, "tb_frame"), "f_code");
	file = take_attribute(code, "co_filename");
	text = file ? python.PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
	ours = text && !strncmp(text, PYTHON_LABEL, strlen(PYTHON_LABEL) - 1);
	decref(file);
	return ours;
}

/* Returns the entry after `entry`, which is released; NULL if there is none. */
static struct python_object *take_next_entry(struct python_object *entry)
{
	struct python_object *next = take_attribute(entry, "tb_next");

	if (next != python.none)
		return next;
	decref(next);
	return NULL;
}

/* Returns the traceback without its leading entries of pperf's code, as a new reference. NULL: all
 * entries are pperf's. */
static struct python_object *traceback_beyond_ours(const struct raised *raised)
{
	struct python_object *entry = raised->traceback;

	if (entry)
		python.Py_IncRef(entry);
	while (entry && is_our_line(entry))
		entry = take_next_entry(entry);
	return entry;
}

/* The function of Py_AddPendingCall that raises an exception again. Returns -1: an exception is
 * set. */
static int reraise(void *exception)
{
	struct python_object *type = python.PyObject_Type(exception);

	last_reraised = exception;
	python.PyErr_SetObject(type, exception);
	decref(type);
	decref(exception);
	return -1;
}

/* Raises an exception of the program again. On the main thread, where signal handlers run, by a
 * pending call. On another thread by an asynchronous exception, which has a type only. */
static void return_exception(struct raised *raised, struct python_object *traceback)
{
	python.PyException_SetTraceback(raised->value, traceback ? traceback : python.none);
	python.Py_IncRef(raised->value);
	if (syscall(SYS_gettid) == getpid() && !python.Py_AddPendingCall(reraise, raised->value))
		return;
	python.PyThreadState_SetAsyncExc((unsigned long)pthread_self(), raised->type);
	decref(raised->value);
}

static void clear_error(bool all_ours)
{
	struct raised raised = { NULL, NULL, NULL };
	struct python_object *theirs;
	bool is_exception;

	if (python.PyErr_Occurred()) {
		is_exception = python.PyErr_ExceptionMatches(*python.Exception);
		python.PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
		python.PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
		theirs = traceback_beyond_ours(&raised);
		if (raised.value &&
			(!is_exception || (all_ours && theirs) || raised.value == last_reraised))
			return_exception(&raised, theirs);
		decref(theirs);
		python.PyErr_Clear();
	}
	decref(raised.type);
	decref(raised.value);
	decref(raised.traceback);
	last_reraised = NULL;
}

void python_clear_error(void)
{
	clear_error(false);
}

void python_clear_own_error(void)
{
	clear_error(true);
}

static bool add_function(struct python_object *globals, const struct python_function *function)
{
	struct python_object *callable = python.PyCFunction_NewEx(function, NULL, NULL);
	bool done = callable && !python.PyDict_SetItemString(globals, function->name, callable);

	decref(callable);
	return done;
}

bool python_add_functions(
	struct python_object *dict, const struct python_function *functions, size_t count)
{
	bool done = true;

	for (size_t i = 0; done && i < count; i++)
		done = add_function(dict, &functions[i]);
	return done;
}

static bool run_source(struct python_object *globals, const char *label, const char *source)
{
	struct python_object *code = python.Py_CompileString(source, label, FILE_INPUT);
	struct python_object *result = code ? python.PyEval_EvalCode(code, globals, globals) : NULL;

	decref(code);
	decref(result);
	return result != NULL;
}

bool python_run_in(struct python_object *globals, const char *label, const char *source)
{
	return (python.PyDict_GetItemString(globals, "__builtins__") ||
		       !python.PyDict_SetItemString(
			       globals, "__builtins__", python.PyEval_GetBuiltins())) &&
	       run_source(globals, label, source);
}

bool python_run(const char *label, const char *source, const struct python_function *functions,
	size_t count)
{
	struct python_object *globals = python.PyDict_New();
	bool done = globals && !python.PyDict_SetItemString(
				       globals, "__builtins__", python.PyEval_GetBuiltins());

	done = done && python_add_functions(globals, functions, count) &&
	       run_source(globals, label, source);
	decref(globals); /* functions that the code defined keep it alive */
	python_clear_error();
	return done;
}
