/* SPDX-License-Identifier: MIT */
#include "preload/python/peer_threads.h"

#include "collector/process/clock.h"
#include "collector/process/dynamic_linker.h"
#include "collector/sample/sampled_threads.h"
#include "preload/python/peer_memory.h"
#include "preload/python/python.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first members of a thread state in every version: previous, next, interpreter. */
#define STATE_NEXT 8u
#define STATE_IDS_FROM 64u      /* no id is in front of this */
#define INTERPRETER_BYTES 1024u /* before 3.13: part in which the list of threads is */
#define PTHREAD_BYTES 2048u     /* of glibc's struct of a thread: part in which the id is */
#define STATES_MAX 16384u       /* thread states that are looked at */
#define INTERPRETERS_MAX 64u
#define UPDATE_NS UINT64_C(50000000)
#define UPDATE_SHARE 100u /* of the time, 1/100 at most is spent on updates */

/* Words of the interpreter's own table of offsets, from 3.13 on. */
enum { WORD_NEXT_INTERPRETER = 8, WORD_THREADS = 9, WORDS };

/* Offsets, measured by peer_threads_prepare. */
static struct {
	uint32_t thread_id;        /* in a thread state: the pthread_t */
	uint32_t native_id;        /* in a thread state: the kernel's id; 0: there is none */
	uint32_t pthread_tid;      /* in a pthread: the kernel's id */
	uint32_t threads;          /* in an interpreter: its first thread state */
	uint32_t next_interpreter; /* in an interpreter */
} at;

static void *(*interpreter_head)(void);
static uint64_t main_pthread; /* pthread_self() of the main thread */

static uint64_t word_of(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof word);
	return word;
}

/* Returns the offset of a word in `bytes`, from `from` on; 0: it is not there. */
static uint32_t find_word(const uint8_t *bytes, size_t count, uint32_t from, uint64_t word)
{
	for (uint32_t offset = from; offset + sizeof word <= count; offset += sizeof word)
		if (word_of(bytes, offset) == word)
			return offset;
	return 0;
}

/* Finds the ids in a copy of the main thread's state. Returns false if it is another thread's. */
static bool measure_ids(const uint8_t bytes[PEER_THREAD_BYTES])
{
	at.thread_id = find_word(bytes, PEER_THREAD_BYTES - 8, STATE_IDS_FROM, main_pthread);
	if (!at.thread_id)
		return false;
	at.native_id = word_of(bytes, at.thread_id + 8) == (uint64_t)getpid() ? at.thread_id + 8
									      : 0;
	return at.native_id || python.minor < 11;
}

/* Before 3.11 a thread state has only a pthread_t, which is an address with glibc. */
static bool measure_pthread(void)
{
	uint32_t words[PTHREAD_BYTES / sizeof(uint32_t)];

	if (at.native_id)
		return true;
	if (!peer_read(words, main_pthread, sizeof words))
		return false;
	for (uint32_t i = 0; i < PTHREAD_BYTES / sizeof *words; i++)
		if (words[i] == (uint32_t)getpid()) {
			at.pthread_tid = i * (uint32_t)sizeof *words;
			return true;
		}
	return false;
}

/* `first`: the first thread state of the interpreter. */
static bool measure_interpreter(
	const struct python_layout *layout, uintptr_t interpreter, uintptr_t first)
{
	uint8_t bytes[INTERPRETER_BYTES];
	uint64_t words[WORDS];

	if (layout->has_offsets) {
		if (!python.runtime || !peer_read(words, (uintptr_t)python.runtime, sizeof words))
			return false;
		at.next_interpreter = (uint32_t)words[WORD_NEXT_INTERPRETER];
		at.threads = (uint32_t)words[WORD_THREADS];
		return true;
	}
	if (!peer_read(bytes, interpreter, sizeof bytes))
		return false;
	at.next_interpreter = 0;
	at.threads = find_word(bytes, sizeof bytes, 8, first);
	return at.threads != 0;
}

/* Finds the main thread's state among those from `first` on. */
static bool find_main_thread(uintptr_t first)
{
	uint8_t bytes[PEER_THREAD_BYTES];
	uintptr_t state = first;

	for (unsigned i = 0; state && i < STATES_MAX && peer_read(bytes, state, sizeof bytes);
		i++) {
		if (measure_ids(bytes))
			return measure_pthread();
		state = (uintptr_t)word_of(bytes, STATE_NEXT);
	}
	return false;
}

void peer_threads_note_main(void)
{
	if ((pid_t)syscall(SYS_gettid) == getpid())
		main_pthread = (uint64_t)(uintptr_t)pthread_self();
}

const char *peer_threads_prepare(const struct python_layout *layout)
{
	void *(*main_interpreter)(void), *(*first_thread)(void *);
	uintptr_t interpreter, first;

	*(void **)&interpreter_head = quiet_dlsym(RTLD_DEFAULT, "PyInterpreterState_Head");
	*(void **)&main_interpreter = quiet_dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
	*(void **)&first_thread = quiet_dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead");
	if (peer_read_refused())
		return "process_vm_readv is refused";
	if (!interpreter_head || !main_interpreter || !first_thread)
		return "this Python does not export its list of threads";
	interpreter = (uintptr_t)main_interpreter();
	first = interpreter ? (uintptr_t)first_thread((void *)interpreter) : 0;
	if (!first || !find_main_thread(first) || !measure_interpreter(layout, interpreter, first))
		return "the thread states of this Python are not as expected";
	return NULL;
}

uint32_t peer_thread_tid(const uint8_t bytes[PEER_THREAD_BYTES])
{
	uint32_t tid;

	if (at.native_id)
		return (uint32_t)word_of(bytes, at.native_id);
	return peer_read(&tid, (uintptr_t)word_of(bytes, at.thread_id) + at.pthread_tid, sizeof tid)
		       ? tid
		       : 0;
}

/* Stores the thread states of an interpreter. Returns how many there are. */
static uint32_t update_interpreter(uintptr_t interpreter)
{
	uint8_t bytes[PEER_THREAD_BYTES];
	struct sampled_thread *thread;
	uint32_t states = 0;
	uintptr_t state;

	if (!peer_read(&state, interpreter + at.threads, sizeof state))
		return 0;
	for (; state && states < STATES_MAX && peer_read(bytes, state, sizeof bytes); states++) {
		thread = sampled_threads_find(peer_thread_tid(bytes));
		if (thread)
			thread->python = state;
		state = (uintptr_t)word_of(bytes, STATE_NEXT);
	}
	return states;
}

void peer_threads_update(void)
{
	static uint64_t due_ns;
	const uint64_t began_ns = clock_monotonic_ns();
	uintptr_t interpreter;
	uint64_t took_ns;

	if (began_ns < due_ns)
		return;
	interpreter = (uintptr_t)interpreter_head();
	for (unsigned i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		update_interpreter(interpreter);
		if (!peer_read(&interpreter, interpreter + at.next_interpreter, sizeof interpreter))
			break;
	}
	took_ns = (clock_monotonic_ns() - began_ns) * UPDATE_SHARE;
	due_ns = began_ns + (took_ns > UPDATE_NS ? took_ns : UPDATE_NS);
}
