/* SPDX-License-Identifier: MIT */
#include "preload/torch/record_function_layout.h"

#include "collector/file/dictionary.h"
#include "collector/process/signal_guard.h"
#include "preload/python/python.h"
#include "preload/torch/input_shapes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Words of a RecordFunction that are examined. The smallest one has 33 words, and what follows
 * is on the stack of its thread. */
#define WORDS 41u
#define PROBES 2u
#define WAIT_S 10

_Atomic unsigned torch_layout_known;
struct torch_layout torch_layout;

static struct torch_number_functions numbers;
static bool with_shapes;

/* The layouts of the releases that we have seen, for the field that cannot be measured. */
static const struct torch_layout known_layouts[] = {
	{ .sequence = 200, .forward_thread = 304, .asynchronous = 320 }, /* the new string ABI */
	{ .sequence = 176, .forward_thread = 280, .asynchronous = 296 }, /* the old string ABI */
	{ .sequence = 200,
		.forward_thread = 248,
		.asynchronous = 264 }, /* without kwinputs: 2.1 and before */
	{ .sequence = 176, .forward_thread = 224, .asynchronous = 240 },
};

/* ---- observed objects ---- */

/* A copy of a RecordFunction at its start, and the values expected in it. */
struct layout_probe {
	uint64_t words[WORDS];
	uint64_t sequence, thread;
	bool seen;
};

enum measure_step { NOTHING, FORWARD, BACKWARD, SHAPES_FEW, SHAPES_MANY };

static struct {
	struct layout_probe forward[PROBES], backward[PROBES];
	uint32_t round; /* index of the probe */
	_Atomic int step;
	_Atomic uintptr_t thread; /* the measuring thread; 0: none */
	const char *failure;      /* a sentence without its end; NULL: none */
	char message[96];
} measure;

static const uint64_t test_sequences[PROBES] = { UINT64_C(0x5AC0FFEE12345678),
	UINT64_C(0x3C0DEDBA5E0FF5E7) };

bool torch_layout_is_ours(void)
{
	return atomic_load(&measure.thread) == (uintptr_t)pthread_self();
}

static void copy_words(struct layout_probe *probe, const void *record_function, uint64_t sequence)
{
	if (probe->seen)
		return;
	memcpy(probe->words, record_function, sizeof probe->words);
	probe->sequence = sequence;
	probe->seen = true;
}

bool torch_layout_watch(const void *record_function, const char *name, bool backward)
{
	int step = atomic_load(&measure.step);

	if (!torch_layout_is_ours())
		return false;
	if (step == FORWARD && !backward && !strcmp(name, "aten::mul")) {
		copy_words(&measure.forward[measure.round], record_function, numbers.sequence());
		measure.backward[measure.round].thread = numbers.thread();
	} else if (step == BACKWARD && backward) {
		copy_words(&measure.backward[measure.round], record_function,
			measure.backward[measure.round].sequence);
	} else if ((step == SHAPES_FEW || step == SHAPES_MANY) && !backward &&
		   !strcmp(name, "aten::neg")) {
		torch_shapes_watch(
			(const char *)record_function + torch_layout.inputs, step == SHAPES_MANY);
	}
	return true;
}

/* ---- offsets ---- */

static bool set_measure_failure(const char *failure)
{
	if (!measure.failure)
		measure.failure = failure;
	return false;
}

/* Returns the only offset after `after` at which each probe has its number. Returns 0 if there
 * is none or more than one. */
static uint16_t find_offset(const uint64_t wanted[PROBES], uint16_t after)
{
	uint16_t found = 0;

	for (uint16_t i = (uint16_t)(after / 8 + 1); i < WORDS; i++) {
		if (measure.backward[0].words[i] != wanted[0] ||
			measure.backward[1].words[i] != wanted[1])
			continue;
		if (found)
			return 0;
		found = (uint16_t)(8 * i);
	}
	return found;
}

static bool find_links(struct torch_layout *layout)
{
	const uint64_t threads[PROBES] = { measure.backward[0].thread, measure.backward[1].thread };
	const uint64_t sequences[PROBES] = { measure.backward[0].sequence,
		measure.backward[1].sequence };

	for (uint32_t i = 0; i < PROBES; i++)
		if (!measure.forward[i].seen || !measure.backward[i].seen)
			return set_measure_failure("the test operator was not observed");
	if (threads[0] == threads[1] || sequences[0] == sequences[1])
		return set_measure_failure("two threads have the same number");
	layout->sequence = find_offset(sequences, 0);
	if (!layout->sequence)
		return set_measure_failure("no offset holds the sequence number");
	for (uint32_t i = 0; i < PROBES; i++)
		if (measure.forward[i].words[layout->sequence / 8] != measure.forward[i].sequence)
			return set_measure_failure(
				"an operator does not have its thread's sequence number");
	layout->forward_thread = find_offset(threads, layout->sequence);
	layout->inputs = (uint16_t)(layout->sequence + 8);
	return layout->forward_thread || set_measure_failure("no offset holds the forward thread");
}

/* Takes the offset from the known releases, because no RecordFunction that ends on another
 * thread can be made here. In all probes the field must be 0. */
static bool find_async(struct torch_layout *layout)
{
	for (size_t i = 0; i < sizeof known_layouts / sizeof known_layouts[0]; i++) {
		uint16_t offset = known_layouts[i].asynchronous;

		if (known_layouts[i].sequence != layout->sequence ||
			known_layouts[i].forward_thread != layout->forward_thread)
			continue;
		layout->asynchronous = offset;
		for (uint32_t j = 0; j < PROBES; j++)
			if ((measure.forward[j].words[offset / 8] & 0xFF) ||
				(measure.backward[j].words[offset / 8] & 0xFF))
				return false;
		return true;
	}
	return false;
}

static void finish_measurement(void)
{
	unsigned knowledge = 0;

	if (find_links(&torch_layout)) {
		knowledge |= TORCH_KNOWS_LINKS;
		if (find_async(&torch_layout))
			knowledge |= TORCH_KNOWS_ASYNC;
	}
	atomic_fetch_or_explicit(&torch_layout_known, knowledge, memory_order_release);
}

/* ---- Python part ---- */

/* Operators run on threads of ours. On the program's thread they may mean something else
 * (no_grad, a mode of its own). */
static const char source[] =
	"import sys\n"
	"torch = sys.modules['torch']\n"
	"facts(torch.__version__, torch._C._GLIBCXX_USE_CXX11_ABI)\n"
	"nodes = []\n"
	"settable = hasattr(torch._C._FunctionBase, '_set_sequence_nr')\n" /* not in 2.1 */
	/* without the setter, the numbers are at least not small */
	"def forward():\n"
	"	x = torch.ones(1, requires_grad=True, device='cpu', dtype=torch.float32)\n"
	"	if not settable:\n"
	"		for _ in range(300 + 200 * len(nodes)):\n"
	/* leaves nothing that only the garbage collector would free */
	"			x * 2\n"
	"	step(1)\n"
	"	nodes.append((x * 2).grad_fn)\n"
	"	step(0)\n"
	"def backward():\n"
	"	one = torch.ones(1, device='cpu', dtype=torch.float32)\n"
	"	for i in range(2):\n"
	"		round(i)\n"
	"		if settable:\n"
	"			nodes[i]._set_sequence_nr(number(i))\n"
	"		expect(nodes[i]._sequence_nr())\n"
	"		step(2)\n"
	"		nodes[i](one)\n"
	"		step(0)\n"
	"def shapes():\n"
	"	for i, sizes in (3, (5, 0, 1000003)), (4, (2, 3, 0, 5, 7, 11, 1000033)):\n"
	"		x = torch.empty(sizes, device='cpu', dtype=torch.float32)\n"
	"		step(i)\n"
	"		torch.neg(x)\n"
	"		step(0)\n"
	"try:\n"
	"	for i in range(2):\n"
	"		round(i)\n"
	"		in_thread(forward)\n"
	"	in_thread(backward)\n"
	"	if settle():\n"
	"		in_thread(shapes)\n"
	"finally:\n"
	"	del forward, backward, shapes, nodes\n";

static long long_value(struct python_object *object)
{
	long value = python.PyLong_AsLong(object);

	python_clear_error();
	return value;
}

static struct python_object *python_facts(
	struct python_object *self, struct python_object *arguments)
{
	ptrdiff_t bytes;
	const char *version = python.PyUnicode_AsUTF8AndSize(
		python.PyTuple_GetItem(arguments, 0), &bytes);

	(void)self;
	if (version)
		meta_set("version.torch", version);
	meta_set("torch.abi",
		python.PyObject_IsTrue(python.PyTuple_GetItem(arguments, 1)) == 1 ? "1" : "0");
	python_clear_error();
	return python_none();
}

static struct python_object *python_step(struct python_object *self, struct python_object *step)
{
	(void)self;
	atomic_store(&measure.step, (int)long_value(step));
	return python_none();
}

static struct python_object *python_round(struct python_object *self, struct python_object *round)
{
	(void)self;
	measure.round = (uint32_t)long_value(round) % PROBES;
	return python_none();
}

static struct python_object *python_number(struct python_object *self, struct python_object *round)
{
	(void)self;
	return python.PyLong_FromUnsignedLongLong(
		test_sequences[(uint32_t)long_value(round) % PROBES]);
}

static struct python_object *python_expect(
	struct python_object *self, struct python_object *sequence)
{
	(void)self;
	measure.backward[measure.round].sequence = python.PyLong_AsUnsignedLongLong(sequence);
	python_clear_error();
	return python_none();
}

static struct python_object *python_finish(struct python_object *self, struct python_object *unused)
{
	(void)self;
	(void)unused;
	finish_measurement();
	return python.PyLong_FromLong(
		with_shapes && (atomic_load(&torch_layout_known) & TORCH_KNOWS_LINKS));
}

static void *call_in_thread(void *callable)
{
	struct python_object *result;
	int state;

	atomic_store(&measure.thread, (uintptr_t)pthread_self());
	state = python.PyGILState_Ensure();
	result = python.PyObject_CallObject(callable, NULL);
	python_release(result);
	python.Py_DecRef(callable);
	python_clear_error();
	python.PyGILState_Release(state);
	atomic_store(&measure.thread, 0);
	return NULL;
}

/* Runs `callable` on a pthread, which Python does not know before or after, and waits for its
 * end. A later fork so happens in a process without an additional thread. The program's signals
 * are blocked on it. Returns false on failure. */
static bool run_in_thread(struct python_object *callable)
{
	struct timespec until;
	struct signal_guard guard;
	pthread_t thread;
	int failed;

	signal_guard_begin(&guard);
	failed = pthread_create(&thread, NULL, call_in_thread, callable);
	signal_guard_end(&guard);
	if (failed)
		return set_measure_failure("no thread could be created");
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	if (pthread_timedjoin_np(thread, NULL, &until) == 0)
		return true;
	pthread_detach(thread);
	return set_measure_failure("the test operator did not end");
}

static struct python_object *python_in_thread(
	struct python_object *self, struct python_object *callable)
{
	void *state;

	(void)self;
	python.Py_IncRef(callable); /* owned by the thread; leaked if there is none */
	state = python.PyEval_SaveThread();
	run_in_thread(callable);
	python.PyEval_RestoreThread(state);
	return python_none();
}

static const struct python_function python_functions[] = {
	{ "facts", python_facts, PYTHON_VARARGS, NULL },
	{ "step", python_step, PYTHON_ONE_ARGUMENT, NULL },
	{ "round", python_round, PYTHON_ONE_ARGUMENT, NULL },
	{ "number", python_number, PYTHON_ONE_ARGUMENT, NULL },
	{ "expect", python_expect, PYTHON_ONE_ARGUMENT, NULL },
	{ "settle", python_finish, PYTHON_NO_ARGUMENTS, NULL },
	{ "in_thread", python_in_thread, PYTHON_ONE_ARGUMENT, NULL },
};

/* ---- measurement ---- */

void torch_layout_configure(const struct torch_number_functions *torch, bool shapes)
{
	numbers = *torch;
	with_shapes = shapes;
}

static void write_layout_state(unsigned knowledge)
{
	if (!(knowledge & TORCH_KNOWS_LINKS))
		snprintf(measure.message, sizeof measure.message,
			"partial: backward is not linked to forward: %s", measure.failure);
	else if (with_shapes && !(knowledge & TORCH_KNOWS_SHAPES))
		snprintf(measure.message, sizeof measure.message, "partial: no shapes: %s",
			torch_shapes_failure());
	else
		snprintf(measure.message, sizeof measure.message, "on");
	meta_set("source.torch_ops", measure.message);
	if (!(knowledge & TORCH_KNOWS_LINKS))
		return;
	snprintf(measure.message, sizeof measure.message,
		"sequence %u, forward thread %u, asynchronous %s%u, inputs %s%u",
		torch_layout.sequence, torch_layout.forward_thread,
		knowledge & TORCH_KNOWS_ASYNC ? "" : "not ", torch_layout.asynchronous,
		knowledge & TORCH_KNOWS_SHAPES ? "" : "not checked, ", torch_layout.inputs);
	meta_set("torch.layout", measure.message);
}

void torch_layout_measure(void)
{
	int saved = errno;

	if (!numbers.thread)
		return;
	/* Gives the program's thread the number that it would have without us. */
	numbers.thread();
	atomic_fetch_or(&torch_layout_known, TORCH_MEASURING);
	if (!python_run(PYTHON_LABEL, source, python_functions,
		    sizeof python_functions / sizeof python_functions[0]))
		set_measure_failure("the test operator could not be run");
	atomic_fetch_and(&torch_layout_known, ~(unsigned)TORCH_MEASURING);
	if (with_shapes && torch_shapes_known())
		atomic_fetch_or_explicit(
			&torch_layout_known, TORCH_KNOWS_SHAPES, memory_order_release);
	write_layout_state(atomic_load(&torch_layout_known));
	errno = saved;
}
