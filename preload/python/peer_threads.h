/* SPDX-License-Identifier: MIT
 * Finds the Python thread states of the threads that are sampled, by walking the interpreters'
 * lists of them.
 */
#ifndef PPERF_PRELOAD_PYTHON_PEER_THREADS_H
#define PPERF_PRELOAD_PYTHON_PEER_THREADS_H

#include "preload/python/layout.h"

/* The bytes of a thread state that are read at once. */
#define PEER_THREAD_BYTES 512u

/* Notes the calling thread as the main thread, if it is that. Called by the constructor. */
void peer_threads_note_main(void);

/* Learns where a thread state has the ids of its thread, and where an interpreter has its threads,
 * from those of the main thread. Returns why the frames of other threads cannot be read; NULL: they
 * can. Any thread, while Python is initialised. */
const char *peer_threads_prepare(const struct python_layout *layout);

/* Returns the kernel's id of the thread that a thread state, of which `bytes` is a copy, belongs
 * to; 0: unknown. */
uint32_t peer_thread_tid(const uint8_t bytes[PEER_THREAD_BYTES]);

/* Stores, in each sampled thread that has one, the address of its thread state. Does nothing if it
 * was called a short time ago. */
void peer_threads_update(void);

#endif
