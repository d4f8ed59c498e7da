/* SPDX-License-Identifier: MIT
 * The driver behind runtime.c: only what pperf asks it, and the two calls that the runtimes need to
 * tell it things. One process has one, whichever runtimes are loaded. Every question is counted, so
 * that a test sees what it costs.
 */
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static void *capturing[8]; /* streams */
static _Thread_local int device __attribute__((tls_model("initial-exec"))) = -1;
static int questions;

EXPORT int cuCtxGetDevice(int *answer);
EXPORT int cuStreamIsCapturing(void *stream, int *status);
EXPORT int cuStreamIsCapturing_ptsz(void *stream, int *status);
EXPORT int cuKernelGetName(const char **name, void *kernel);
EXPORT void driver_use(int ordinal);
EXPORT int driver_capture(void *stream, int begin);
EXPORT int driver_questions(void);

int cuCtxGetDevice(int *answer)
{
	*answer = device;
	return device < 0 ? 201 : 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	questions++;
	*status = 0;
	for (size_t i = 0; i < sizeof capturing / sizeof *capturing; i++)
		if (stream && capturing[i] == stream)
			*status = 1;
	return 0;
}

int cuStreamIsCapturing_ptsz(void *stream, int *status)
{
	return cuStreamIsCapturing(stream ? stream : (void *)2, status);
}

/* A kernel's handle is the address of its name's pointer. */
int cuKernelGetName(const char **name, void *kernel)
{
	*name = *(const char *const *)kernel;
	return 0;
}

/* A context on this device is current to the thread. */
void driver_use(int ordinal)
{
	device = ordinal;
}

/* 0, or 401 if the stream is not being captured, or is already. */
int driver_capture(void *stream, int begin)
{
	for (size_t i = 0; i < sizeof capturing / sizeof *capturing; i++)
		if (capturing[i] == (begin ? NULL : stream)) {
			capturing[i] = begin ? stream : NULL;
			return 0;
		}
	return 401;
}

int driver_questions(void)
{
	return questions;
}
