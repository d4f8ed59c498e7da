/* SPDX-License-Identifier: MIT
 * python.h: CPython's C functions, found in the process that we are in (an executable that exports them, or a libpython), and Python text of
 * ours run by them. Only functions of the stable ABI: CPython 3.8 and later, free-threaded builds too. No Python headers.
 *
 * Whoever calls one of them, or python_run, holds the GIL (on a free-threaded build: has a thread state attached), but for those that take it. None of
 * this prints, and none leaves an exception behind.
 */
#ifndef PPERF_PRELOAD_PYTHON_PYTHON_H
#define PPERF_PRELOAD_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

struct python_object; /* PyObject: a reference is owned unless "borrowed" is said */

/* What a function of ours is: PyCFunction. arguments: as its flags say. Returns a new reference. */
typedef struct python_object *python_c_function(
	struct python_object *self, struct python_object *arguments);

/* PyMethodDef. It must stay for the life of the process, as the name and the code must. */
struct python_function {
	const char *name;
	python_c_function *call;
	int flags; /* PYTHON_... */
	const char *doc;
};

#define PYTHON_VARARGS 0x0001 /* arguments: a tuple */
#define PYTHON_NO_ARGUMENTS 0x0004
#define PYTHON_ONE_ARGUMENT 0x0008 /* arguments: that one, borrowed */
#define PYTHON_FASTCALL 0x0080     /* call is a python_fast_function, cast */

typedef struct python_object *python_fast_function(
	struct python_object *self, struct python_object *const *arguments, ptrdiff_t count);

/* PyType_Spec and PyType_Slot. They must stay; the slots end with a zero. */
struct python_slot {
	int slot; /* PYTHON_SLOT_... */
	void *function;
};
struct python_type {
	const char *name;          /* with a dot */
	int basic_size, item_size; /* 0: as object's */
	unsigned flags;            /* PYTHON_TYPE_PLAIN */
	const struct python_slot *slots;
};
#define PYTHON_TYPE_PLAIN (1u << 18) /* Py_TPFLAGS_DEFAULT */
#define PYTHON_SLOT_ASSIGN_ITEM \
	3 /* Py_mp_ass_subscript: int (*)(self, key, value); value NULL: `del` */

/* As in Python's manual. Those that return an object return a new reference or NULL with an exception set, unless said otherwise. */
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
		struct python_object                                                            \
			*, /* borrowed; NULL also without an exception: it is not there */      \
		(struct python_object * dict, struct python_object * key))                      \
	X(PyDict_DelItem, int, (struct python_object * dict, struct python_object * key))       \
	X(PyType_FromSpec, struct python_object *, (const struct python_type *type))            \
	X(PyImport_GetModuleDict, struct python_object *, (void)) /* borrowed */                \
	X(PyObject_GetAttrString, struct python_object *,                                       \
		(struct python_object * object, const char *name))                              \
	X(PyObject_SetAttrString, int,                                                          \
		(struct python_object * object, const char *name, struct python_object *value)) \
	X(PyObject_CallObject, struct python_object *,                                          \
		(struct python_object * callable, struct python_object * arguments))            \
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
	X(PyLong_AsLong, long, (struct python_object * object)) /* -1 with an exception */      \
	X(PyLong_AsLongLong, long long, (struct python_object * object)) /* the same */         \
	X(PyLong_AsUnsignedLongLong, unsigned long long, (struct python_object * object))       \
	X(PyFloat_AsDouble, double, (struct python_object * object))                            \
	X(PyUnicode_FromString, struct python_object *, (const char *utf8))                     \
	X(PyUnicode_AsUTF8AndSize, const char *,                                                \
		(struct python_object * text, ptrdiff_t * bytes)) /* the object's own */        \
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
		(void)) /* needs no GIL; NULL: not a thread of Python's */                      \
	X(PyEval_SaveThread, void *, (void))                                                    \
	X(PyEval_RestoreThread, void, (void *state))                                            \
	X(Py_AddPendingCall, int, (int (*call)(void *), void *argument)) /* needs no GIL */     \
	X(Py_IsInitialized, int, (void))                                                        \
	X(Py_GetVersion, const char *, (void))

/* Valid once python_find has returned true: none is NULL. */
struct python {
#define X(name, result, parameters) result(*name) parameters;
	PYTHON_FUNCTIONS(X)
#undef X
	struct python_object *none, *false_;      /* borrowed */
	struct python_object *const *ImportError; /* what PyExc_ImportError is */
	struct python_object *const
		*Exception; /* what programs catch; KeyboardInterrupt and SystemExit are none */
	const void *code_type, *runtime; /* PyCode_Type, _PyRuntime; NULL: not exported */
	unsigned minor;                  /* of Python 3.minor */
	bool free_threaded;
};

extern struct python python;

/* Finds them. false: this process has no CPython, or keeps its functions to itself. Cheap when asked again; any thread, GIL or not. */
bool python_find(void);

/* Runs `source` (UTF-8) as a module of its own: a dictionary that holds __builtins__ and the functions, and that nobody else sees. `label` stands for the
 * file name. false: it raised; the exception is gone as by python_forget_error. */
bool python_run(const char *label, const char *source, const struct python_function *functions,
	size_t count);

/* None, for a function of ours to return. */
static inline struct python_object *python_none(void)
{
	python.Py_IncRef(python.none);
	return python.none;
}

/* What stands for the file name of our text; all such names begin as this one, without the >. */
#define PYTHON_LABEL "<pperf>"

/* Forgets the exception that is set, if any. But the program's handlers of signals run wherever Python happens to be, in our text, too: what they raise
 * is the program's, and comes again once it goes on. Here that is what is no Exception (Ctrl-C, sys.exit in a handler). */
void python_clear_error(void);

/* The same after text of ours that calls nothing that raises but Python's own types: then all that was not raised by that text itself is the program's. */
void python_clear_own_error(void);

#endif
