/* SPDX-License-Identifier: MIT
 * python.cc: the stand-in's libtorch_python.so: initModule, which makes the module torch._C, and in
 * it what torch/__init__.py builds its operators, its backward pass and its memory from.
 */
#include "c10.h"
#include "python_abi.h"
#include "record_function.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

using at::RecordFunction;
using at::RecordScope;

/* An operator's name is a schema's, and stays where it is. */
static const char *schema(const char *name)
{
	static std::mutex lock;
	static std::set<std::string> names;
	std::lock_guard<std::mutex> guard(lock);
	return names.insert(name).first->c_str();
}

static PyObject *none()
{
	return Py_BuildValue("");
}

/* _op(name, scope, sequence, forward_thread, body): what body() returns or raises. */
static PyObject *op(PyObject *, PyObject *arguments)
{
	const char *name;
	int scope;
	long long sequence, forward_thread;
	PyObject *body;

	if (!PyArg_ParseTuple(arguments, "siLLO", &name, &scope, &sequence, &forward_thread, &body))
		return nullptr;
	const bool stable = scope == 0 && strncmp(name, "autograd::", 10) != 0;
	RecordFunction function(static_cast<RecordScope>(scope), stable ? schema(name) : name, stable, sequence, static_cast<uint64_t>(forward_thread), false);
	return PyObject_CallObject(body, nullptr);
}

/* _begin(name, scope): an operation that goes on; _end(what it returned), on any thread. */
static PyObject *begin(PyObject *, PyObject *arguments)
{
	const char *name;
	int scope;

	if (!PyArg_ParseTuple(arguments, "si", &name, &scope))
		return nullptr;
	return Py_BuildValue("K", reinterpret_cast<unsigned long long>(new RecordFunction(static_cast<RecordScope>(scope), name, false, -1, 0, true)));
}

static PyObject *end(PyObject *, PyObject *arguments)
{
	unsigned long long function;

	if (!PyArg_ParseTuple(arguments, "K", &function))
		return nullptr;
	delete reinterpret_cast<RecordFunction *>(function);
	return none();
}

static void work(int operators)
{
	for (int i = 0; i < operators; i++) {
		RecordFunction outer(RecordScope::FUNCTION, "aten::outer", true, -1, 0, false);
		RecordFunction inner(RecordScope::FUNCTION, "aten::inner", true, -1, 0, false);
	}
}

/* _threads(count, operators): so many threads that know nothing of Python, all alive at once. */
static PyObject *threads(PyObject *, PyObject *arguments)
{
	int count, operators;

	if (!PyArg_ParseTuple(arguments, "ii", &count, &operators))
		return nullptr;
	void *state = PyEval_SaveThread();
	std::vector<std::thread> all;
	for (int i = 0; i < count; i++)
		all.emplace_back(work, operators);
	for (std::thread &each : all)
		each.join();
	PyEval_RestoreThread(state);
	return none();
}

static PyObject *peek(PyObject *, PyObject *)
{
	return Py_BuildValue("K", static_cast<unsigned long long>(at::sequence_number::peek()));
}

static PyObject *next(PyObject *, PyObject *)
{
	return Py_BuildValue("K", static_cast<unsigned long long>(at::sequence_number::get_and_increment()));
}

static PyObject *thread_id(PyObject *, PyObject *)
{
	return Py_BuildValue("K", static_cast<unsigned long long>(RecordFunction::currentThreadId()));
}

static PyObject *cuda_malloc(PyObject *, PyObject *arguments)
{
	unsigned long long bytes;

	if (!PyArg_ParseTuple(arguments, "K", &bytes))
		return nullptr;
	void *address = c10::fake::cuda_malloc(static_cast<size_t>(bytes));
	if (!address) {
		PyErr_SetString(PyExc_MemoryError, "CUDA out of memory");
		return nullptr;
	}
	return Py_BuildValue("K", reinterpret_cast<unsigned long long>(address));
}

static PyObject *cuda_free(PyObject *, PyObject *arguments)
{
	unsigned long long address;

	if (!PyArg_ParseTuple(arguments, "K", &address))
		return nullptr;
	c10::fake::cuda_free(reinterpret_cast<void *>(address));
	return none();
}

/* _memory(): allocated, reserved. */
static PyObject *memory(PyObject *, PyObject *)
{
	return Py_BuildValue("KK", static_cast<unsigned long long>(c10::fake::cuda_allocated()), static_cast<unsigned long long>(c10::fake::cuda_reserved()));
}

/* _heard(): how often PyTorch's own profiler would have heard of a block, of a refusal; the bytes.
 */
static PyObject *heard(PyObject *, PyObject *)
{
	const c10::Heard &all = c10::heard;
	return Py_BuildValue("KKL", static_cast<unsigned long long>(all.calls[0] + all.calls[1]),
	                     static_cast<unsigned long long>(all.calls[2] + all.calls[3]), static_cast<long long>(all.bytes));
}

static PyMethodDef methods[] = {
	{"_op", op, METH_VARARGS, nullptr},
	{"_begin", begin, METH_VARARGS, nullptr},
	{"_end", end, METH_VARARGS, nullptr},
	{"_threads", threads, METH_VARARGS, nullptr},
	{"_peek", peek, METH_VARARGS, nullptr},
	{"_next", next, METH_VARARGS, nullptr},
	{"_thread_id", thread_id, METH_VARARGS, nullptr},
	{"_cuda_malloc", cuda_malloc, METH_VARARGS, nullptr},
	{"_cuda_free", cuda_free, METH_VARARGS, nullptr},
	{"_memory", memory, METH_VARARGS, nullptr},
	{"_heard", heard, METH_VARARGS, nullptr},
	{nullptr, nullptr, 0, nullptr},
};

extern "C" PyObject *initModule(void);

extern "C" PyObject *initModule(void)
{
	static PyModuleDef definition = {1, nullptr, nullptr, 0, nullptr, "torch._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

	if (getenv("FAKE_INIT_FAILS")) {
		PyErr_SetString(PyExc_RuntimeError, "the module does not want to be made");
		return nullptr;
	}
	PyObject *module = PyModule_Create2(&definition, 3);
	if (module)
		PyModule_AddIntConstant(module, "_GLIBCXX_USE_CXX11_ABI", at::layout().strings);
	return module;
}
