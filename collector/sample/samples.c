/* SPDX-License-Identifier: MIT */
#include "collector/sample/samples.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/stream/frame_request.h"
#include "collector/stream/peer.h"
#include "collector/stream/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODE_TRIES 4u
#define EDGE_READS 20u /* of the clock: about 0.5 us */
#define WEIGHT_MAX_NS ((uint64_t)UINT32_MAX * TRACE_SAMPLE_WEIGHT_NS)

static bool read_node(const struct sampled_thread *thread, uint32_t *node)
{
	return thread->stream && stream_peer_node(thread->stream, thread->tid, node);
}

/* Whether a range of this node is C++ code, whose callers in Python do not change. */
static bool is_operator(uint32_t node)
{
	const enum trace_node_kind kind = node_kind(node);

	return kind == TRACE_NODE_OP || kind == TRACE_NODE_BACKWARD;
}

/* Whether the thread is no longer in the node, which it then sets. A thread that has begun to close
 * the range before it could see the request does so within this time. */
static bool has_left(const struct sampled_thread *thread, uint32_t *node)
{
	uint32_t again;

	for (unsigned i = 0; i < EDGE_READS; i++) {
		if (read_node(thread, &again) && again != *node) {
			*node = again;
			return true;
		}
		clock_now();
	}
	return false;
}

void sample_read_node(struct sample *sample)
{
	const struct sampled_thread *thread = sample->thread;
	uint64_t requested = 0;
	uint32_t node;

	sample->node = 0;
	if (!read_node(thread, &node))
		return;
	for (unsigned i = 0; i < NODE_TRIES; i++) {
		sample->taken = clock_now();
		sample->node = node;
		if (!thread->python || !is_operator(node))
			break;
		frame_request_make(thread->stream, node, sample->taken, requested);
		requested = sample->taken;
		if (!has_left(thread, &node))
			break;
	}
	sample->flags |= TRACE_SAMPLE_HAS_NODE;
}

void sample_request_frames(const struct sampled_thread *thread)
{
	uint32_t node;

	if (thread->python && read_node(thread, &node) && is_operator(node))
		frame_request_make(thread->stream, node, clock_now(), 0);
}

/* Writes a sample of at most WEIGHT_MAX_NS. */
static void write_one(const struct sample *sample, uint64_t weight_ns)
{
	struct trace_sample *record = stream_record(TRACE_SAMPLE, sizeof *record);
	uint64_t ago;

	if (!record)
		return;
	ago = record->stamp > sample->taken ? record->stamp - sample->taken : 0;
	record->head.node = sample->node;
	record->head.flags = sample->flags;
	record->pc = sample->pc;
	record->ago = ago < UINT32_MAX ? (uint32_t)ago : UINT32_MAX;
	record->tid = sample->thread->tid;
	record->weight = (uint32_t)(weight_ns / TRACE_SAMPLE_WEIGHT_NS);
	record->state = sample->state;
	record->native = sample->native;
	record->python = sample->python;
	stream_commit();
}

void sample_write(const struct sample *sample)
{
	uint64_t left = sample->weight_ns;

	for (; left > WEIGHT_MAX_NS; left -= WEIGHT_MAX_NS)
		write_one(sample, WEIGHT_MAX_NS);
	write_one(sample, left);
}

/* Reads the name of a thread in the kernel. Returns its name id; 0: not known. */
static uint32_t read_thread_name(uint32_t tid)
{
	char path[48], name[32];
	ssize_t got;
	int file;

	snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	got = read(file, name, sizeof name);
	close(file);
	if (got > 0 && name[got - 1] == '\n')
		got--;
	return got > 0 ? name_id_always(name, (size_t)got) : 0;
}

void sample_write_thread(struct sampled_thread *thread, uint64_t cpu_ns, bool resumed)
{
	struct trace_sampled_thread *record;

	if (!thread->name)
		thread->name = read_thread_name(thread->tid);
	record = stream_record(TRACE_SAMPLED_THREAD, sizeof *record);
	thread->stated_ns = cpu_ns;
	thread->stated_at = clock_monotonic_ns();
	if (!record)
		return;
	record->head.node = 0;
	record->head.flags = resumed ? TRACE_SAMPLED_THREAD_RESUMED : 0;
	record->cpu_ns = cpu_ns;
	record->waited_ns = thread->waited_ns;
	record->tid = thread->tid;
	record->name = thread->name;
	stream_commit();
}

void sample_write_self(uint64_t ticks)
{
	struct trace_self *self = stream_record(TRACE_SELF, sizeof *self);

	if (!self)
		return;
	self->duration = ticks;
	self->what = TRACE_SELF_SAMPLER;
	stream_commit();
}
