/* SPDX-License-Identifier: MIT
 * Implements the functions that modules.py calls.
 *
 * A module is identified by a number: its serial number << 20 | the name id of its class. Each
 * thread keeps the numbers of the modules it is inside. A module's path below another is
 * computed by Python once and then cached in `edges`.
 */
#include "preload/torch/modules.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "preload/python/python.h"
#include "preload/python/frames.h"
#include "collector/stream/schedule.h"
#include "preload/torch/autograd_threads.h"
#include "preload/torch/operators.h"
#include "preload/torch/record_cost.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CLASS_BITS 20
#define HOOKS_MAX 8
#define OPEN_BYTES (64u << 10)
#define OPEN_MODULES_MAX ((OPEN_BYTES - sizeof(struct open_modules)) / sizeof(struct open_module))
#define PARENTS_MAX 16u   /* open modules that are searched for a parent */
#define PATH_EDGES 16384u /* a power of two */
#define CALLED_NODES 16384u

/* The text of modules.py. The assembler finds it relative to the root of the project. */
__asm__(".pushsection .rodata\n"
	".hidden torch_modules_source\n"
	".global torch_modules_source\n"
	"torch_modules_source:\n"
	".incbin \"preload/torch/modules.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char torch_modules_source[] __attribute__((visibility("hidden")));

static bool python_wanted, modules_wanted, in_children;
static _Atomic bool deferred; /* in a forked child without a trace file: is_module_deferred */
static void (*hooks[HOOKS_MAX])(void);
static size_t hook_count;

/* ---- modules that a thread is inside ---- */

struct open_module {
	const void *call;
	uint64_t number;
	bool recomputed; /* called inside of a backward function */
};
struct open_modules {
	uint32_t count;
	struct open_module rows[];
};

static __thread struct open_modules *mine;
static pthread_key_t thread_key;
static bool has_key;

static void free_thread(void *memory)
{
	mine = NULL;
	fork_kept_free(memory, OPEN_BYTES);
}

/* Returns NULL if there is no memory. */
static struct open_modules *open_modules(void)
{
	if (!mine && has_key) {
		mine = fork_kept_alloc(OPEN_BYTES);
		if (mine && pthread_setspecific(thread_key, mine)) {
			fork_kept_free(mine, OPEN_BYTES);
			mine = NULL;
		}
	}
	return mine;
}

static void push_module(
	struct open_modules *open, const void *call, uint64_t number, bool recomputed)
{
	if (open && open->count < OPEN_MODULES_MAX)
		open->rows[open->count++] = (struct open_module){ call, number, recomputed };
}

/* Removes the innermost entry of `call`. It is nearly always the last one; threads that are
 * switched by hand (greenlets) may close others first. */
static void pop_module(const void *call)
{
	struct open_modules *open = mine;
	uint32_t i = open ? open->count : 0;

	while (i && open->rows[i - 1].call != call)
		i--;
	if (!i)
		return;
	memmove(&open->rows[i - 1], &open->rows[i], (open->count - i) * sizeof open->rows[0]);
	open->count--;
}

/* ---- paths of modules ---- */

/* A cached path. Free-threaded Python has no GIL, so writers exclude each other by
 * `edges_written`, and readers check the key before and after reading the text. */
static struct edge {
	/* serial number of the parent << 32 | low 32 bits of the child's; 0: free */
	_Atomic uint64_t key;
	/* in the dictionary; never freed */
	const char *_Atomic text;
} edges[PATH_EDGES];
static atomic_flag edges_written = ATOMIC_FLAG_INIT;

/* Objects of modules.py, set by set_callables. */
static struct python_object *numbers_by_module, *modules_by_number, *number_of, *path_below;

static inline uint64_t edge_key(uint64_t parent, uint64_t child)
{
	return parent >> CLASS_BITS << 32 | (uint32_t)(child >> CLASS_BITS);
}

static inline struct edge *edge_slot(uint64_t key)
{
	return &edges[key * 0x9E3779B97F4A7C15u >> 50];
}
static_assert(PATH_EDGES == 1 << 14, "edge_slot takes 14 bits");

static inline const char *cached_text(uint64_t key)
{
	struct edge *edge = edge_slot(key);
	const char *text;

	if (atomic_load_explicit(&edge->key, memory_order_acquire) != key)
		return NULL;
	/* acquire: the key is read again after the text */
	text = atomic_load_explicit(&edge->text, memory_order_acquire);
	return atomic_load_explicit(&edge->key, memory_order_relaxed) == key ? text : NULL;
}

static void cache_text(uint64_t key, const char *text)
{
	struct edge *edge = edge_slot(key);

	if (atomic_flag_test_and_set_explicit(&edges_written, memory_order_acquire))
		return; /* another thread is writing; the next call caches it */
	atomic_store_explicit(&edge->key, 0, memory_order_relaxed);
	/* release: after the key was cleared */
	atomic_store_explicit(&edge->text, text, memory_order_release);
	atomic_store_explicit(&edge->key, key, memory_order_release);
	atomic_flag_clear_explicit(&edges_written, memory_order_release);
}

static uint32_t class_id(uint64_t number)
{
	return (uint32_t)number & ((1u << CLASS_BITS) - 1);
}

static const char *class_text(uint64_t number)
{
	size_t bytes;

	return class_id(number) ? name_text(class_id(number), &bytes) : "Module";
}

/* Returns the name id of a Python string, or 0 if no id is left. */
static uint32_t python_name_id(struct python_object *object)
{
	ptrdiff_t bytes = 0;
	const char *text = python.PyUnicode_AsUTF8AndSize(object, &bytes);
	uint32_t name = 0;

	if (!text)
		python_clear_error();
	else if (stream_enter_dictionary_only()) {
		name = name_id_always(text, (size_t)bytes);
		stream_leave();
	}
	return name;
}

/* Returns a tuple of `number` and the numbers of the open modules, innermost first. Returns NULL
 * with an exception set on failure. */
static struct python_object *path_arguments(const struct open_modules *open, uint64_t number)
{
	uint32_t count = open->count < PARENTS_MAX ? open->count : PARENTS_MAX;
	struct python_object *tuple = python.PyTuple_New((ptrdiff_t)count + 1), *value;

	for (uint32_t i = 0; tuple && i <= count; i++) {
		value = python.PyLong_FromUnsignedLongLong(
			i ? open->rows[open->count - i].number : number);
		if (!value || python.PyTuple_SetItem(tuple, (ptrdiff_t)i, value)) {
			python.Py_DecRef(tuple);
			return NULL;
		}
	}
	return tuple;
}

/* Calls path_below of modules.py. It returns a path, None (no path), or False (unknown this
 * time, not cached). Returns the class name if there is no path. */
static __attribute__((noinline)) const char *query_path(
	const struct open_modules *open, uint64_t number, uint64_t key)
{
	struct python_object *arguments = path_below ? path_arguments(open, number) : NULL;
	struct python_object *answer = arguments ? python_call_hidden(path_below, arguments) : NULL;
	const char *text = class_text(number);
	size_t bytes;
	uint32_t name;

	if (answer && answer != python.none && answer != python.false_) {
		name = python_name_id(answer);
		text = name ? name_text(name, &bytes) : text;
	}
	if (answer && answer != python.false_)
		cache_text(key, text);
	python_release(answer);
	python_release(arguments);
	python_clear_own_error();
	return text;
}

static inline const char *module_text(const struct open_modules *open, uint64_t number)
{
	const char *text;
	uint64_t key;

	if (!open || !open->count || !number)
		return class_text(number);
	key = edge_key(open->rows[open->count - 1].number, number);
	text = cached_text(key);
	return text ? text : query_path(open, number, key);
}

/* ---- where modules were called last ---- */

/* By serial number of the module: its low 32 bits << 32 | the node of its last call that was no
 * recomputation. Modules that share an entry overwrite it. */
static _Atomic uint64_t called_nodes[CALLED_NODES];

static inline _Atomic uint64_t *called_node_slot(uint64_t number)
{
	return &called_nodes[(number >> CLASS_BITS) % CALLED_NODES];
}

static inline void set_called_node(uint64_t number, uint32_t node)
{
	if (number && node)
		atomic_store_explicit(called_node_slot(number), number >> CLASS_BITS << 32 | node,
			memory_order_relaxed);
}

/* Returns 0 if it is unknown. */
static uint32_t called_node(uint64_t number)
{
	const uint64_t entry = atomic_load_explicit(called_node_slot(number), memory_order_relaxed);

	return number && entry >> 32 == (uint32_t)(number >> CLASS_BITS) ? (uint32_t)entry : 0;
}

/* ---- functions called by Python ---- */

/* Returns whether the call must be skipped in a forked child. A child that only computes, such
 * as a data loader worker, gets no file until it calls CUDA or NVTX. */
static bool is_module_deferred(void)
{
	if (!atomic_load_explicit(&deferred, memory_order_relaxed))
		return false;
	if (!trace_header())
		return true;
	atomic_store(&deferred, false);
	return false;
}

/* Registers a module at its first call. Returns 0 on failure. */
static __attribute__((noinline)) uint64_t new_number(struct python_object *module)
{
	struct python_object *arguments = python.PyTuple_New(1), *answer = NULL;
	long long number = 0;

	python.Py_IncRef(module);
	if (arguments && !python.PyTuple_SetItem(arguments, 0, module))
		answer = python_call_hidden(number_of, arguments);
	if (answer)
		number = python.PyLong_AsLongLong(answer);
	python_release(answer);
	python_release(arguments);
	python_clear_own_error();
	return number > 0 ? (uint64_t)number : 0;
}

static uint64_t number_of_module(struct python_object *module)
{
	struct python_object *key = python.PyLong_FromVoidPtr(module);
	struct python_object *number = key ? python.PyDict_GetItemWithError(numbers_by_module, key)
					   : NULL; /* borrowed; it lives as long as the module */

	python_release(key);
	return number ? (uint64_t)python.PyLong_AsLongLong(number) : new_number(module);
}

static void enter_module(struct python_object *module, const void *call)
{
	struct open_modules *open = open_modules();
	uint64_t number = number_of_module(module);
	const char *text = module_text(open, number);
	const bool begins_again = torch_ops_in_backward(),
		   recomputed = begins_again ||
				(open && open->count && open->rows[open->count - 1].recomputed);
	uint32_t node;

	if (__builtin_expect(schedule_wanted, 0) && open && !open->count)
		schedule_model_begins(torch_ops_nodes());
	push_module(open, call, number, recomputed);
	if (is_module_deferred())
		return;
	node = range_open(call, text, TRACE_NODE_MODULE, begins_again ? called_node(number) : 0,
		class_id(number));
	if (!recomputed)
		set_called_node(number, node);
	python_source_record(node);
}

static void leave_module(const void *call)
{
	if (!is_module_deferred())
		range_close(call);
	pop_module(call);
}

/* The type of a call, and a call that replaces one that could not be allocated. */
static struct python_object *call_type, *spare_call;

/* Implements `calls[module]`: begins a call of the module. It is a subscript because Python's
 * profilers see every call, even of a function written in C. Never fails. */
static struct python_object *begin_call(struct python_object *self, struct python_object *module)
{
	struct python_object *call = python.PyType_GenericAlloc(call_type, 0);

	(void)self;
	if (!call) {
		python.PyErr_Clear();
		python.Py_IncRef(spare_call);
		return spare_call;
	}
	enter_module(module, call);
	return call;
}

/* Implements `call[result]`. */
static struct python_object *return_result(struct python_object *self, struct python_object *result)
{
	(void)self;
	python.Py_IncRef(result);
	return result;
}

/* Ends a call: Python frees it when the module's frame is left. */
static void end_call(struct python_object *call)
{
	leave_module(call);
	python.PyObject_Free(call);
	python.Py_DecRef(call_type);
}

static struct python_object *new_type(const char *name,
	struct python_object *(*get_item)(struct python_object *, struct python_object *),
	void (*free_object)(struct python_object *))
{
	struct python_slot slots[3] = { { PYTHON_SLOT_GET_ITEM, NULL } };
	const struct python_type type = { name, 0, 0, PYTHON_TYPE_PLAIN, slots };

	memcpy(&slots[0].function, &get_item, sizeof get_item);
	if (free_object) {
		slots[1].slot = PYTHON_SLOT_FREE;
		memcpy(&slots[1].function, &free_object, sizeof free_object);
	}
	return python.PyType_FromSpec(&type);
}

static struct python_object *make_recorder(
	struct python_object *self, struct python_object *nothing)
{
	struct python_object *class = new_type("pperf.calls", begin_call, NULL), *calls = NULL;

	(void)self;
	(void)nothing;
	call_type = new_type("pperf.call", return_result, end_call);
	spare_call = call_type ? python.PyType_GenericAlloc(call_type, 0) : NULL;
	if (class && spare_call)
		calls = python.PyObject_CallObject(class, NULL);
	python_release(class);
	return calls;
}

static struct python_object *new_module_id(
	struct python_object *self, struct python_object *class_name)
{
	static _Atomic uint64_t last;
	uint64_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	uint32_t class = python_name_id(class_name);

	(void)self;
	if (class >> CLASS_BITS)
		class = 0;
	return python.PyLong_FromUnsignedLongLong(number << CLASS_BITS | class);
}

/* Keeps a reference, which is never released. */
static bool take_item(struct python_object **target, struct python_object *tuple, ptrdiff_t index)
{
	*target = python.PyTuple_GetItem(tuple, index);
	if (!*target)
		return false;
	python.Py_IncRef(*target);
	return true;
}

static struct python_object *set_callables(struct python_object *self, struct python_object *tuple)
{
	(void)self;
	if (!take_item(&numbers_by_module, tuple, 0) || !take_item(&modules_by_number, tuple, 1) ||
		!take_item(&number_of, tuple, 2) || !take_item(&path_below, tuple, 3))
		return NULL;
	return python_none();
}

static void delete_item(
	struct python_object *dict, struct python_object *reference, const char *attribute)
{
	struct python_object *key = dict ? python.PyObject_GetAttrString(reference, attribute)
					 : NULL;

	if (key) {
		python.PyDict_DelItem(dict, key);
		python.Py_DecRef(key);
	}
	python_clear_error();
}

/* Called by the weak reference of a freed module. */
static struct python_object *on_module_freed(
	struct python_object *self, struct python_object *reference)
{
	(void)self;
	delete_item(numbers_by_module, reference, "key");
	delete_item(modules_by_number, reference, "number");
	return python_none();
}

static struct python_object *modules_are_wanted(
	struct python_object *self, struct python_object *nothing)
{
	(void)self;
	(void)nothing;
	return python.PyLong_FromLong(modules_wanted);
}

static struct python_object *run_import_hooks(
	struct python_object *self, struct python_object *nothing)
{
	(void)self;
	(void)nothing;
	for (size_t i = 0; i < hook_count; i++)
		hooks[i]();
	hook_count = 0;
	return python_none();
}

/* `measure`: for record_cost_measure. */
static struct python_object *on_python_ends(
	struct python_object *self, struct python_object *measure)
{
	(void)self;
	record_cost_measure(measure);
	autograd_threads_finish();
	return python_none();
}

static struct python_object *write_outcome(struct python_object *self, struct python_object *text)
{
	ptrdiff_t bytes;
	const char *value = python.PyUnicode_AsUTF8AndSize(text, &bytes);

	(void)self;
	if (value)
		meta_set("source.torch_modules", value);
	python_clear_error();
	return python_none();
}

/* ---- start ---- */

void torch_modules_configure(bool python_is, bool modules, bool children)
{
	python_wanted = python_is;
	modules_wanted = modules;
	in_children = children;
}

void torch_modules_forked(void)
{
	atomic_store(&deferred, !in_children);
}

bool torch_modules_call_after_import(void (*hook)(void))
{
	if (hook_count == HOOKS_MAX)
		return false;
	hooks[hook_count++] = hook;
	return true;
}

static void write_python_version(void)
{
	const char *version = python.Py_GetVersion();
	char text[32];

	snprintf(text, sizeof text, "%.*s%s", (int)strcspn(version, " "), version,
		python.free_threaded ? "t" : "");
	meta_set("version.python", text);
}

void torch_modules_start(void)
{
	static const struct python_function functions[] = {
		{ "identify", new_module_id, PYTHON_ONE_ARGUMENT, NULL },
		{ "recorder", make_recorder, PYTHON_NO_ARGUMENTS, NULL },
		{ "ask", set_callables, PYTHON_VARARGS, NULL },
		{ "imported", run_import_hooks, PYTHON_NO_ARGUMENTS, NULL },
		{ "wanted", modules_are_wanted, PYTHON_NO_ARGUMENTS, NULL },
		{ "outcome", write_outcome, PYTHON_ONE_ARGUMENT, NULL },
		{ "forget", on_module_freed, PYTHON_ONE_ARGUMENT, NULL },
		{ "python_ends", on_python_ends, PYTHON_ONE_ARGUMENT, NULL },
	};

	if (!python_find()) {
		meta_set("source.torch_modules",
			"off: this Python does not export the functions needed (5)");
		return;
	}
	write_python_version();
	if (!python_wanted || !modules_wanted)
		meta_set("source.torch_modules",
			python_wanted ? "off: PPERF_MODULES=0 (0)" : "off: PPERF_PYTHON=0 (0)");
	if (!python_wanted)
		return;
	has_key = has_key || !pthread_key_create(&thread_key, free_thread);
	if (modules_wanted)
		meta_set("source.torch_modules", "off: torch was not imported completely (3)");
	if (!python_run(PYTHON_LABEL, torch_modules_source, functions,
		    sizeof functions / sizeof functions[0]))
		meta_set("source.torch_modules", "off: an error in Python (4)");
}
