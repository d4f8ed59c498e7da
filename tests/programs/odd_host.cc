// SPDX-License-Identifier: MIT
// odd_host: calls NVTX where programs seldom do: from a static constructor, exit handlers, a signal handler, destructors of threads, and
// while an exception is on its way. It prints how many ranges it has opened.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <nvtx3/nvToolsExt.h>

static int opened;

struct range {
	explicit range(const char *name)
	{
		nvtxRangePushA(name);
		__atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
	}
	~range() { nvtxRangePop(); }
};

struct early {
	early() { range here("a static constructor"); }
	~early() { range here("a static destructor"); }
};

static early before_main;

static void at_exit()
{
	range here("an exit handler");
}

static void on_signal(int)
{
	range here("a signal handler");
}

static void of_key(void *)
{
	range here("the destructor of a key");
}

static void thread(pthread_key_t key)
{
	static thread_local struct at_end {
		~at_end() { range here("a thread_local destructor"); }
	} end;

	(void)&end;
	pthread_setspecific(key, &end);
	range here("a thread");
}

static int thrown(int depth)
{
	range here("on the way of an exception");

	if (depth == 0)
		throw std::runtime_error("thrown");
	return thrown(depth - 1) + 1;
}

int main()
{
	pthread_key_t key;
	std::string caught;

	std::atexit(at_exit);
	std::signal(SIGUSR1, on_signal);
	pthread_key_create(&key, of_key);
	for (int i = 0; i < 10; i++) {
		std::raise(SIGUSR1);
		std::thread(thread, key).join();
		try {
			thrown(20);
		} catch (const std::runtime_error &error) {
			caught = error.what();
		}
	}
	std::printf("%s, %d\n", caught.c_str(), opened);
	return 0;
}
