// SPDX-License-Identifier: MIT
// native_stacks SECONDS THREADS: each thread uses that much CPU time, three parts of four in spend_three and one in spend_one, called in
// many ways: by callbacks of libc, below frames of unknown size, by functions that throw, in a handler on a stack of its own.
#include <algorithm>
#include <alloca.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <stdexcept>

static thread_local volatile unsigned long sink;
static double seconds;

static double cpu_time()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Takes as long as so many multiplications that wait for one another: memory is not used, because loops of loads and stores take times that
// depend on where they are.
static inline __attribute__((always_inline)) void multiply(unsigned long count)
{
	unsigned long number = sink;

	for (unsigned long i = 0; i < count; i++) {
		number = number * 6364136223846793005UL + 1;
		__asm__ volatile("" : "+r"(number));
	}
	sink = number;
}

// Returns 50000 to 149999. With a constant number the rounds could take a multiple of the period of sampling.
static unsigned long iterations()
{
	static thread_local unsigned long state = 1;

	state = state * 6364136223846793005UL + 1442695040888963407UL;
	return 50000 + (state >> 33) % 100000;
}

extern "C" __attribute__((noinline)) void spend_three()
{
	multiply(3 * iterations());
}

extern "C" __attribute__((noinline)) void spend_one()
{
	multiply(iterations());
}

static int compare(const void *a, const void *b)
{
	spend_one();
	spend_three();
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static __attribute__((noinline)) void sort_numbers()
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof *numbers, compare);
}

static __attribute__((noinline)) unsigned long recurse(unsigned depth)
{
	char *room = static_cast<char *>(alloca(depth * 8 + 16));

	memset(room, 1, depth * 8 + 16);
	if (depth)
		return recurse(depth - 1) + static_cast<unsigned long>(room[depth]);
	spend_one();
	spend_three();
	return sink;
}

static __attribute__((noinline)) void throw_below()
{
	recurse(3);
	throw std::length_error("as planned");
}

static void in_handler(int)
{
	spend_one();
	spend_three();
}

static void *work(void *)
{
	static thread_local char room[65536];
	const stack_t stack = { room, 0, sizeof room }, none = { nullptr, SS_DISABLE, 0 };
	unsigned rounds = 0;

	sigaltstack(&stack, nullptr);
	while (cpu_time() < seconds) {
		sort_numbers();
		recurse(60);
		try {
			throw_below();
		} catch (const std::length_error &) {
			sink = sink + 1;
		}
		if (++rounds % 16 == 0)
			raise(SIGUSR1);
	}
	// A sanitizer unmaps the alternate stack that it finds at a thread's end.
	sigaltstack(&none, nullptr);
	return nullptr;
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	pthread_attr_t small;
	pthread_t threads[64];

	seconds = argc > 1 ? atof(argv[1]) : 1;
	const int count = argc > 2 ? std::min(atoi(argv[2]), 64) : 1;
	action.sa_handler = in_handler;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, work, nullptr))
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], nullptr);
	puts("done");
	return 0;
}
