/* SPDX-License-Identifier: MIT
 * killed PROGRESS [MOST]: three threads set numbered marks, MOST each or for ever, and note in the
 * file PROGRESS, which outlives them, how many calls have returned; then they wait for their end.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

enum { THREADS = 3 };

struct progress {
	unsigned long tid, done;
};

static pthread_barrier_t barrier;
static unsigned most = UINT_MAX;

static void *thread(void *argument)
{
	struct progress *progress = argument;
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = "mark";
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	progress->tid = (unsigned long)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < most; i++) {
		nvtxRangePushA("range");
		attributes.payload.uiValue = i;
		nvtxMarkEx(&attributes);
		__atomic_store_n(&progress->done, i + 1, __ATOMIC_RELEASE);
		nvtxRangePop();
		for (volatile int wait = 0; wait < 400; wait++)
			;
	}
	pause();
	return NULL;
}

int main(int count, char **arguments)
{
	int fd = count > 1 ? open(arguments[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	struct progress *progress;
	pthread_t threads[THREADS];

	if (count > 2)
		most = (unsigned)atoi(arguments[2]);
	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		return 2;
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, &progress[i]))
			return 2;
	pthread_barrier_wait(&barrier);
	puts("ready");
	fflush(stdout);
	pthread_join(threads[0], NULL);
	return 0;
}
