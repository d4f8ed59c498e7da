/* SPDX-License-Identifier: MIT
 * expect.h: a program under test writes down what it does, one JSON object a line, in the order of
 * each thread's calls, and the test compares that with what the trace says. Texts are in
 * hexadecimal: their exact bytes count. Header only, for C and C++.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *expect_file;
static pthread_mutex_t expect_lock = PTHREAD_MUTEX_INITIALIZER;
static int expect_failures;

/* The rest of the line after the kind is built here; one is used for one event. */
struct expected {
	char text[400000];
	size_t length;
};

static inline void expect_open(const char *path)
{
	expect_file = fopen(path, "we");
	if (!expect_file) {
		perror(path);
		exit(2);
	}
}

static inline struct expected *expect_event(const char *kind)
{
	struct expected *event = (struct expected *)malloc(sizeof *event);

	if (!event)
		abort();
	event->length = (size_t)snprintf(event->text, sizeof event->text,
		"{\"tid\": %ld, \"kind\": \"%s\"", syscall(SYS_gettid), kind);
	return event;
}

static inline void expect_bytes(
	struct expected *event, const char *key, const void *bytes, size_t count)
{
	char *at = event->text + event->length;

	at += sprintf(at, ", \"%s\": \"", key);
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%02x", ((const unsigned char *)bytes)[i]);
	at += sprintf(at, "\"");
	event->length = (size_t)(at - event->text);
}

static inline void expect_text(struct expected *event, const char *key, const char *text)
{
	if (text)
		expect_bytes(event, key, text, strlen(text));
	else
		event->length += (size_t)sprintf(
			event->text + event->length, ", \"%s\": null", key);
}

static inline void expect_number(struct expected *event, const char *key, int64_t value)
{
	event->length += (size_t)sprintf(
		event->text + event->length, ", \"%s\": %" PRId64, key, value);
}

/* A payload: NVTX's number of its type and its 8 bytes. */
static inline void expect_payload(struct expected *event, int type, const void *bits)
{
	expect_number(event, "payload_type", type);
	expect_bytes(event, "payload", bits, 8);
}

static inline void expect_done(struct expected *event)
{
	pthread_mutex_lock(&expect_lock);
	fprintf(expect_file, "%s}\n", event->text);
	pthread_mutex_unlock(&expect_lock);
	free(event);
}

/* An event that only has a name and a domain. */
static inline void expect_named(const char *kind, const char *name, const char *domain)
{
	struct expected *event = expect_event(kind);

	expect_text(event, "name", name);
	expect_text(event, "domain", domain);
	expect_done(event);
}

/* What a call returned. */
static inline void expect_value(const char *what, int64_t got, int64_t wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s returned %" PRId64 ", not %" PRId64 "\n", what, got, wanted);
	__atomic_fetch_add(&expect_failures, 1, __ATOMIC_RELAXED);
}

static inline int expect_close(void)
{
	if (fclose(expect_file)) {
		perror("the list of what is expected");
		return 2;
	}
	return expect_failures != 0;
}

#endif
