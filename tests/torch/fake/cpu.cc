/* SPDX-License-Identifier: MIT
 * cpu.cc: the stand-in's libtorch_cpu.so: RecordFunction and its callbacks, as PyTorch keeps them:
 * each object has its own copy of the callbacks that were there when it began, and calls their ends
 * even if they have been taken away since.
 */
#include "record_function.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace at {

static const Layout layouts[] = {
	{"new", 1, 200, 304, 312, 320},
	{"old", 0, 176, 280, 288, 296},
	{"without-kwinputs", 1, 200, 248, 256, 264},
	/* Of no release: one that can be found out, one that cannot. */
	{"moved", 1, 208, 264, 272, 280},
	{"hidden", 1, 336, 344, 352, 353},
};

const Layout &layout()
{
	const char *wanted = getenv("FAKE_LAYOUT");
	for (const Layout &known : layouts)
		if (wanted && strcmp(known.name, wanted) == 0)
			return known;
	return layouts[0];
}

namespace {
struct Entry {
	RecordFunctionCallback callback;
	uint64_t handle;
};
std::mutex lock;
std::vector<Entry> callbacks;
std::atomic<uint64_t> threads;
thread_local uint64_t thread_id, sequence;
} // namespace

#ifndef FAKE_WITHOUT_CALLBACKS
uint64_t addGlobalCallback(RecordFunctionCallback callback)
{
	static uint64_t handles;
	std::lock_guard<std::mutex> guard(lock);
	callbacks.push_back({callback, ++handles});
	return handles;
}

void removeCallback(uint64_t handle)
{
	std::lock_guard<std::mutex> guard(lock);
	for (size_t i = 0; i < callbacks.size(); i++)
		if (callbacks[i].handle == handle)
			callbacks.erase(callbacks.begin() + static_cast<ptrdiff_t>(i--));
}
#endif

uint64_t RecordFunction::currentThreadId()
{
	if (!thread_id)
		thread_id = ++threads;
	return thread_id;
}

template <typename T> void RecordFunction::put(unsigned offset, T value)
{
	memcpy(reinterpret_cast<unsigned char *>(this) + offset, &value, sizeof value);
}

RecordFunction::RecordFunction(RecordScope where, const char *name, bool stable, int64_t number, uint64_t forward_thread, bool async)
    : running(new std::vector<Running>), schema(stable ? name : nullptr), copy(stable ? "" : name), before(), thread(currentThreadId()),
      scope(static_cast<uint8_t>(where)), members()
{
	static_assert(offsetof(RecordFunction, thread) == 88 && offsetof(RecordFunction, scope) == 96 && sizeof(RecordFunction) == 360, "as in PyTorch");
	const Layout &at = layout();

	put(at.sequence, number);
	put(at.forward_thread, forward_thread);
	put(at.async, async);
	std::vector<RecordFunctionCallback> now;
	{
		std::lock_guard<std::mutex> guard(lock);
		for (const Entry &entry : callbacks)
			if (entry.callback.scopes[scope])
				now.push_back(entry.callback);
	}
	for (const RecordFunctionCallback &callback : now)
		running->push_back({callback, callback.start ? callback.start(*this) : nullptr});
}

void RecordFunction::end()
{
	if (!running)
		return;
	for (Running &each : *running)
		if (each.callback.end)
			each.callback.end(*this, each.context.get());
	delete running;
	running = nullptr;
}

RecordFunction::~RecordFunction()
{
	end();
}

#ifndef FAKE_WITHOUT_CALLBACKS
const char *RecordFunction::name() const
{
	return schema ? schema : copy.c_str();
}
#endif

uint64_t sequence_number::peek()
{
	return sequence;
}

uint64_t sequence_number::get_and_increment()
{
	return sequence++;
}

} // namespace at
