/* SPDX-License-Identifier: MIT
 * Bounds libiberty's decoder. There are three bounds, each for something that a short name can
 * cause:
 *
 *  time      A parsed name is a graph with shared parts, and the decoder traverses it as a tree.
 *            That takes 2^60 steps for 200 bytes, and not all of them print. So a timer of the
 *            thread's processor time jumps out of it.
 *  output    The callback jumps out when the text is longer than the room.
 *  stack     The decoder is recursive. It limits the recursion itself for names up to 1024 bytes.
 *            CUTLASS's kernels have names of several thousand bytes. These are decoded with
 *            DMGL_NO_RECURSE_LIMIT, on a stack that is large enough.
 *
 * It is safe to jump out of the C++ decoder. Behind its callback interface it owns no memory
 * and no locks. All of its state is on the stack (the same in binutils 2.38 to 2.44). The Rust
 * decoder allocates, so it runs without a timer. Its work is proportional to its output, except
 * for one construct, which is refused before.
 */
#include "report/symbols/libiberty.h"
#include "report/symbols/demangle.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* glibc defines the name since 2.39, the field always */
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define RECURSION_LIMITED_BYTES 1024u /* libiberty refuses longer names by default */
/* For DEMANGLE_INPUT bytes, which needed up to 8 MiB in tests, and for SCOPES_STACK. */
#define LARGE_STACK (64u << 20)
/* For an array whose size libiberty computes as a product: scopes_array_bytes. */
#define SCOPES_STACK (16u << 20)
#define RUST_BINDER_DIGITS 2 /* of the count in `for<'a, 'b>`, in base 62 */

struct decode_job {
	const char *mangled;
	int options;
	int (*decoder)(const char *, int, demangle_callbackref, void *);
	char *out;
	size_t room, used;
	enum decode_result end;
};

/* Only one thread decodes at a time, so one jump buffer is enough. */
static sigjmp_buf decode_stop;
static volatile sig_atomic_t decoder_running;

static void on_decode_timeout(int signal)
{
	(void)signal;
	if (decoder_running)
		siglongjmp(decode_stop, DECODE_TOO_SLOW);
}

/* Returns whether append_decoded may jump out. The Rust decoder owns memory while it prints text
 * that is not ASCII; the jump then happens at a later text. */
static bool is_ascii(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

static void append_decoded(const char *text, size_t bytes, void *opaque)
{
	struct decode_job *job = opaque;

	if (bytes == 0)
		return;
	if (job->used < job->room && bytes < job->room - job->used) {
		memcpy(job->out + job->used, text, bytes);
		job->used += bytes;
		return;
	}
	job->used = job->room;
	if (is_ascii(text, bytes))
		siglongjmp(decode_stop, DECODE_TOO_LONG);
}

/* Starts a timer that sends a signal to this thread after DEMANGLE_TIME_NS of its processor
 * time. Returns false on failure. */
static bool decode_timer_start(timer_t *timer)
{
	struct sigaction action = { .sa_handler = on_decode_timeout,
		.sa_flags = SA_NODEFER | SA_RESTART };
	struct itimerspec limit = { .it_value = { .tv_sec = 0, .tv_nsec = DEMANGLE_TIME_NS } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM };

	event.sigev_notify_thread_id = gettid();
	sigaction(SIGVTALRM, &action, NULL);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, timer) &&
		timer_create(CLOCK_MONOTONIC, &event, timer))
		return false;
	if (!timer_settime(*timer, 0, &limit, NULL))
		return true;
	timer_delete(*timer);
	return false;
}

static void run_decoder(struct decode_job *job)
{
	int jumped = sigsetjmp(decode_stop, 0);

	if (jumped == 0) {
		decoder_running = 1;
		job->end = job->decoder(job->mangled, job->options, append_decoded, job)
				   ? DECODE_DONE
				   : DECODE_NOT_MANGLED;
		if (job->end == DECODE_DONE && job->used == job->room)
			job->end = DECODE_TOO_LONG;
	} else {
		job->end = (enum decode_result)jumped;
	}
	decoder_running = 0;
}

static void *run_decoder_timed(void *opaque)
{
	struct decode_job *job = opaque;
	sigset_t alarm, before;
	timer_t timer;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGVTALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, &before);
	job->end = DECODE_TOO_SLOW;
	if (decode_timer_start(&timer)) {
		run_decoder(job);
		timer_delete(timer);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return NULL;
}

/* Returns an upper bound of an array on libiberty's stack. It has 16 bytes per template and per
 * reference to a template parameter in the graph (a product), and each may be counted twice.
 * Writing them takes at least the letters that are counted here. */
static size_t scopes_array_bytes(const char *mangled)
{
	size_t references = 0, templates = 0;

	for (const char *p = mangled; *p; p++) {
		templates += *p == 'I';
		references += (*p == 'R' || *p == 'O') && (p[1] == 'T' || p[1] == 'S');
	}
	return 16 * 2 * templates * 2 * references;
}

static void run_on_large_stack(struct decode_job *job)
{
	pthread_attr_t attributes;
	pthread_t thread;

	job->end = DECODE_TOO_LONG;
	if (scopes_array_bytes(job->mangled) > SCOPES_STACK)
		return;
	pthread_attr_init(&attributes);
	if (!pthread_attr_setstacksize(&attributes, LARGE_STACK) &&
		!pthread_create(&thread, &attributes, run_decoder_timed, job))
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static bool is_rust_legacy(const char *mangled)
{
	const char *hash = strstr(mangled, "17h");

	return !strncmp(mangled, "_ZN", 3) && hash && strspn(hash + 3, "0123456789abcdef") == 16 &&
	       hash[19] == 'E';
}

/* Returns whether no binder declares a large number of lifetimes. A binder is `G` and a count in
 * base 62 up to `_`, and prints nothing where a path is skipped. The letters of an identifier
 * can look the same. Such a name is then shown mangled without need. */
static bool rust_binders_are_small(const char *mangled)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t count;

	for (const char *p = strchr(mangled, 'G'); p; p = strchr(p + 1, 'G')) {
		count = strspn(p + 1, digits);
		if (count > RUST_BINDER_DIGITS && p[1 + count] == '_')
			return false;
	}
	return true;
}

static void decode_rust(struct decode_job *job)
{
	job->decoder = rust_demangle_callback;
	if (rust_binders_are_small(job->mangled))
		run_decoder(job);
	else
		job->end = DECODE_TOO_SLOW;
}

static void decode_cxx(struct decode_job *job)
{
	job->decoder = cplus_demangle_v3_callback;
	if (strlen(job->mangled) <= RECURSION_LIMITED_BYTES) {
		run_decoder_timed(job);
		return;
	}
	job->options |= DMGL_NO_RECURSE_LIMIT;
	run_on_large_stack(job);
}

enum decode_result libiberty_decode(
	const char *mangled, enum decode_style style, char *out, size_t room, size_t *bytes)
{
	struct decode_job job = {
		.mangled = mangled, .out = out, .room = room, .end = DECODE_NOT_MANGLED
	};

	if (style == DECODE_FULL)
		job.options = DMGL_PARAMS | DMGL_ANSI;
	if (!strncmp(mangled, "_R", 2) || is_rust_legacy(mangled))
		decode_rust(&job);
	if (job.end == DECODE_NOT_MANGLED && !strncmp(mangled, "_Z", 2)) {
		job.used = 0;
		decode_cxx(&job);
	}
	if (job.end == DECODE_DONE)
		out[job.used] = '\0';
	*bytes = job.used;
	return job.end;
}
