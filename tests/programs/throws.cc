// SPDX-License-Identifier: MIT
// throws RUNTIME COUNT: calls the runtime's cudaMalloc, which throws an exception out of itself COUNT times, and COUNT times returns. A
// thread leaves by pthread_exit in it, too, whose destructors must run. It prints what it has caught and got.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>

using malloc_function = int (*)(void **, size_t);
static malloc_function device_malloc;
static int destroyed;

struct counted {
	~counted() { destroyed++; }
};

static void thrower()
{
	counted here;

	throw std::length_error("from inside");
}

static void leaver()
{
	counted here;

	pthread_exit(nullptr);
}

static void nothing()
{
}

static int call(void (*function)())
{
	void *address = reinterpret_cast<void *>(function);

	return device_malloc(&address, 16);
}

static void *thread(void *)
{
	counted here;

	call(leaver);
	return nullptr;
}

int main(int count, char **arguments)
{
	int caught = 0, results = 0, rounds = count > 2 ? std::atoi(arguments[2]) : 0;
	pthread_t id;

	if (!rounds || !dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL))
		return 2;
	device_malloc = reinterpret_cast<malloc_function>(dlsym(RTLD_DEFAULT, "cudaMalloc"));
	for (int i = 0; i < rounds; i++) {
		try {
			call(thrower);
		} catch (const std::length_error &) {
			caught++;
		}
		results += call(nothing);
	}
	if (pthread_create(&id, nullptr, thread, nullptr) || pthread_join(id, nullptr))
		return 2;
	std::printf("caught %d, destroyed %d, results %d\n", caught, destroyed, results);
	return 0;
}
