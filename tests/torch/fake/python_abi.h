/* SPDX-License-Identifier: MIT
 * python_abi.h: the few functions of CPython's stable ABI that the stand-in for PyTorch calls, so
 * that it is built without Python's headers.
 */
#ifndef FAKE_PYTHON_ABI_H
#define FAKE_PYTHON_ABI_H

#include <cstddef>
#include <cstdint>

struct PyObject;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

struct PyMethodDef {
	const char *name;
	PyCFunction function;
	int flags;
	const char *doc;
};

struct PyModuleDef {
	intptr_t references;
	void *type, *init;
	ptrdiff_t index;
	void *copy;
	const char *name, *doc;
	ptrdiff_t size;
	PyMethodDef *methods;
	void *slots, *traverse, *clear, *free;
};

constexpr int METH_VARARGS = 1;

extern "C" {
PyObject *PyModule_Create2(PyModuleDef *, int);
int PyModule_AddIntConstant(PyObject *, const char *, long);
int PyArg_ParseTuple(PyObject *, const char *, ...);
PyObject *Py_BuildValue(const char *, ...);
PyObject *PyObject_CallObject(PyObject *, PyObject *);
void PyErr_SetString(PyObject *, const char *);
PyObject *PyErr_Occurred(void);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
extern PyObject *PyExc_RuntimeError;
extern PyObject *PyExc_MemoryError;
}

#endif
