/* SPDX-License-Identifier: MIT */
#include "collector/sample/samples.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/stream/peer.h"
#include "collector/stream/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WEIGHT_MAX_NS ((uint64_t)UINT32_MAX * TRACE_SAMPLE_WEIGHT_NS)

void sample_read_node(struct sample *sample)
{
	const struct sampled_thread *thread = sample->thread;
	uint32_t node;

	sample->node = 0;
	if (!thread->stream || !stream_peer_node(thread->stream, thread->tid, &node))
		return;
	sample->node = node;
	sample->flags |= TRACE_SAMPLE_HAS_NODE;
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
