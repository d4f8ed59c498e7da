/* SPDX-License-Identifier: MIT
 * Finds CPython's C functions in the program, and runs Python code of pperf. They are exported by
 * the executable or by a libpython. Uses only functions of the stable ABI: CPython 3.8 and later,
 * also free-threaded builds. Needs no Python headers.
 * To call python_run or one of CPython's functions, a thread must hold the GIL, or on a
 * free-threaded build have an attached thread state. The functions that acquire the GIL and those
 * marked "needs no GIL" can be called without. Nothing here prints or leaves an exception set.
 */
#ifndef PPERF_PRELOAD_PYTHON_PYTHON_H
#define PPERF_PRELOAD_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

struct python_object; /* PyObject: a reference is owned unless marked as borrowed */

/* PyCFunction: a C function of pperf that Python calls. `arguments`: as its flags say. Returns a
 * new reference. */
typedef struct python_object *python_c_function(
	struct python_object *self, struct python_object *arguments);

/* PyMethodDef. It must stay valid for the life of the process, as must the name and the code. */
struct python_function {
	const char *name;
	python_c_function *call;
	int flags; /* PYTHON_... */
	const char *doc;
};

#define PYTHON_VARARGS 0x0001  /* arguments: a tuple */
#define PYTHON_KEYWORDS 0x0003 /* call is a python_keyword_function, cast */
#define PYTHON_NO_ARGUMENTS 0x0004
#define PYTHON_ONE_ARGUMENT 0x0008 /* arguments: the argument itself, borrowed */
#define PYTHON_FASTCALL 0x0080     /* call is a python_fast_function, cast */

typedef struct python_object *python_fast_function(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count);

/* `arguments`: a tuple; `keywords`: a dict or NULL */
typedef struct python_object *python_keyword_function(struct python_object *self,
	struct python_object *arguments, struct python_object *keywords);

/* PyType_Spec and PyType_Slot. The name and what PYTHON_SLOT_METHODS refers to must stay valid. The
 * slots end with a zero. */
struct python_slot {
	int slot; /* PYTHON_SLOT_... */
	void *function;
};
struct python_type {
	const char *name;          /* must contain a dot */
	int basic_size, item_size; /* 0: that of `object` */
	unsigned flags;            /* PYTHON_TYPE_..., or-ed */
	const struct python_slot *slots;
};
#define PYTHON_TYPE_PLAIN (1u << 18) /* Py_TPFLAGS_DEFAULT */
#define PYTHON_TYPE_BASE (1u << 10)  /* Py_TPFLAGS_BASETYPE: may have subclasses */
/* Py_mp_ass_subscript: int (*)(self, key, value). `value` NULL: deletes the item. */
#define PYTHON_SLOT_ASSIGN_ITEM 3
#define PYTHON_SLOT_GET_ITEM 5 /* Py_mp_subscript: object *(*)(self, key) */
#define PYTHON_SLOT_FREE 52    /* Py_tp_dealloc: void (*)(self) */
#define PYTHON_SLOT_METHODS 64 /* Py_tp_methods: functions, the last one with the name NULL */

/* The functions, as in Python's manual. Those that return an object return a new reference, or NULL
 * with an exception set, unless marked otherwise. */
#define PYTHON_FUNCTIONS(X)                                                                     \
	X(Py_CompileString, struct python_object *,                                             \
		(const char *text, const char *file, int start))                                \
	X(PyEval_EvalCode, struct python_object *,                                              \
		(struct python_object * code, struct python_object * globals,                   \
			struct python_object * locals))                                         \
	X(PyEval_GetBuiltins, struct python_object *, (void)) /* borrowed */                    \
	X(PyCFunction_NewEx, struct python_object *,                                            \
		(const struct python_function *function, struct python_object *self,            \
			struct python_object *module))                                          \
	X(PyDict_New, struct python_object *, (void))                                           \
	X(PyDict_SetItemString, int,                                                            \
		(struct python_object * dict, const char *key, struct python_object *value))    \
	X(PyDict_GetItemString, struct python_object *,                                         \
		(struct python_object * dict, const char *key)) /* borrowed; no error */        \
	X(PyDict_GetItemWithError,                                                              \
		struct python_object *, /* borrowed; NULL, no exception: missing */             \
		(struct python_object * dict, struct python_object * key))                      \
	X(PyDict_DelItem, int, (struct python_object * dict, struct python_object * key))       \
	X(PyType_FromSpec, struct python_object *, (const struct python_type *type))            \
	X(PyType_GenericAlloc, struct python_object *,                                          \
		(struct python_object * type, ptrdiff_t items))                                 \
	X(PyObject_Free, void, (void *memory))                                                  \
	X(PyImport_GetModuleDict, struct python_object *, (void))      /* borrowed */           \
	X(PySys_GetObject, struct python_object *, (const char *name)) /* borrowed */           \
	X(PyList_Append, int, (struct python_object * list, struct python_object * item))       \
	X(PyObject_GetAttrString, struct python_object *,                                       \
		(struct python_object * object, const char *name))                              \
	X(PyObject_SetAttrString, int,                                                          \
		(struct python_object * object, const char *name, struct python_object *value)) \
	X(PyObject_CallObject, struct python_object *,                                          \
		(struct python_object * callable, struct python_object * arguments))            \
	X(PyObject_Call, struct python_object *,                                                \
		(struct python_object * callable, struct python_object * arguments,             \
			struct python_object * keywords))                                       \
	X(PyObject_IsTrue, int, (struct python_object * object))                                \
	X(PyTuple_New, struct python_object *, (ptrdiff_t size))                                \
	X(PyTuple_Size, ptrdiff_t, (struct python_object * tuple))                              \
	X(PyTuple_GetItem, struct python_object *,                                              \
		(struct python_object * tuple, ptrdiff_t index)) /* borrowed */                 \
	X(PyTuple_SetItem, int,                                                                 \
		(struct python_object * tuple, ptrdiff_t index, struct python_object * stolen)) \
	X(PyLong_FromLong, struct python_object *, (long value))                                \
	X(PyLong_FromVoidPtr, struct python_object *, (const void *address))                    \
	X(PyLong_FromLongLong, struct python_object *, (long long value))                       \
	X(PyLong_FromUnsignedLongLong, struct python_object *, (unsigned long long value))      \
	X(PyLong_AsLong, long, (struct python_object * object))                                 \
	X(PyLong_AsLongLong, long long, (struct python_object * object))                        \
	X(PyLong_AsUnsignedLongLong, unsigned long long, (struct python_object * object))       \
	X(PyFloat_AsDouble, double, (struct python_object * object))                            \
	X(PyUnicode_FromString, struct python_object *, (const char *utf8))                     \
	X(PyUnicode_AsUTF8AndSize, const char *,                                                \
		(struct python_object * text, ptrdiff_t * bytes)) /* owned by the object */     \
	X(Py_IncRef, void, (struct python_object * object))                                     \
	X(Py_DecRef, void, (struct python_object * object))                                     \
	X(PyErr_Occurred, struct python_object *, (void)) /* borrowed; NULL: none */            \
	X(PyErr_Clear, void, (void))                                                            \
	X(PyErr_SetString, void, (struct python_object * type, const char *text))               \
	X(PyErr_SetObject, void, (struct python_object * type, struct python_object * value))   \
	X(PyErr_ExceptionMatches, int, (struct python_object * type))                           \
	X(PyErr_Fetch, void,                                                                    \
		(struct python_object * *type, struct python_object * *value,                   \
			struct python_object * *traceback))                                     \
	X(PyErr_NormalizeException, void,                                                       \
		(struct python_object * *type, struct python_object * *value,                   \
			struct python_object * *traceback))                                     \
	X(PyErr_GetExcInfo, void,                                                               \
		(struct python_object * *type, struct python_object * *value,                   \
			struct python_object * *traceback))                                     \
	X(PyErr_SetExcInfo, void,                                                               \
		(struct python_object * type, struct python_object * value,                     \
			struct python_object * traceback))                                      \
	X(PyThreadState_SetAsyncExc, int, (unsigned long thread, struct python_object *type))   \
	X(PyObject_Type, struct python_object *, (struct python_object * object))               \
	X(PyException_SetTraceback, int,                                                        \
		(struct python_object * exception, struct python_object * traceback))           \
	X(PyGILState_Ensure, int, (void))                                                       \
	X(PyGILState_Release, void, (int state))                                                \
	X(PyGILState_GetThisThreadState, void *,                                                \
		(void)) /* needs no GIL; NULL: not a Python thread */                           \
	X(PyEval_SaveThread, void *, (void))                                                    \
	X(PyEval_RestoreThread, void, (void *state))                                            \
	X(Py_AddPendingCall, int, (int (*call)(void *), void *argument)) /* needs no GIL */     \
	X(Py_IsInitialized, int, (void))                                                        \
	X(Py_GetVersion, const char *, (void))

/* Valid once python_find has returned true. No function is NULL. */
struct python {
#define X(name, result, parameters) result(*name) parameters;
	PYTHON_FUNCTIONS(X)
#undef X
	struct python_object *none, *false_;      /* borrowed */
	struct python_object *const *ImportError; /* the value of PyExc_ImportError */
	/* What programs catch. KeyboardInterrupt and SystemExit are not among its subclasses. */
	struct python_object *const *Exception;
	/* PyCode_Type, PyUnicode_Type, _PyRuntime; NULL: not exported */
	const void *code_type, *str_type, *runtime;
	/* Python 3.11 and later; NULL in older ones: see python_call_hidden. */
	void *(*PyThreadState_Get)(void);
	void (*PyThreadState_EnterTracing)(void *state), (*PyThreadState_LeaveTracing)(void *state);
	unsigned minor; /* of Python 3.minor */
	bool free_threaded;
};

extern struct python python;

/* Finds the functions. Returns false if the process has no CPython, or one that does not export
 * them. Cheap once found. Any thread, with or without the GIL. */
bool python_find(void);

/* Runs `source` (UTF-8) as a module of its own: a new dictionary that holds __builtins__ and
 * `functions`. `label` is its file name. Returns false if it raised; the exception is cleared by
 * python_clear_error. */
bool python_run(const char *label, const char *source, const struct python_function *functions,
	size_t count);

/* Runs `source` in the dict of a module, which gets __builtins__ if it has none. Returns false,
 * with an exception, if it raised. */
bool python_run_in(struct python_object *globals, const char *label, const char *source);

/* Adds functions to a dict. Returns false, with an exception, if that failed. */
bool python_add_functions(
	struct python_object *dict, const struct python_function *functions, size_t count);

/* Calls a function of pperf's Python code, hidden from the program's trace and profile functions
 * (sys.settrace, sys.setprofile). Before Python 3.11 the call is visible to them. For calls in the
 * middle of the program, such as for a module's name. Returns a new reference, or NULL with an
 * exception, which the caller clears with python_clear_own_error. */
struct python_object *python_call_hidden(
	struct python_object *callable, struct python_object *arguments);

/* Returns None, as a new reference for a C function to return. */
static inline struct python_object *python_none(void)
{
	python.Py_IncRef(python.none);
	return python.none;
}

/* Gives up a reference. NULL is allowed. */
static inline void python_release(struct python_object *object)
{
	if (object)
		python.Py_DecRef(object);
}

/* The file name of pperf's Python code. All such names begin with it, without the `>`. */
#define PYTHON_LABEL "<pperf>"

/* Clears the exception that is set, if any. It may be the program's: Python runs the program's
 * signal handlers in the middle of pperf's code too, and they may raise. Such an exception is
 * raised again where the program continues. An exception that is not a subclass of Exception is
 * taken as the program's (Ctrl-C, sys.exit in a handler). */
void python_clear_error(void);

/* As python_clear_error, after Python code of pperf that handles only built-in types. Such code
 * calls no code of the program, so any exception that it did not raise itself is the program's. */
void python_clear_own_error(void);

#endif
