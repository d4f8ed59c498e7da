/* SPDX-License-Identifier: MIT
 * The number of threads is known from the number of links of /proc/self/task.
 */
#include "collector/sample/sampled_threads.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/own_threads.h"
#include "collector/process/thread_clock.h"
#include "collector/stream/peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTING_BYTES (32u << 10)
#define FOLDER "/proc/self/task"

/* As the kernel writes it (getdents64(2)). */
struct listed_entry {
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* Allocated by fork_wiped_alloc. */
static struct thread_list {
	thread_observer *found, *ended;
	uint32_t count;
	bool is_set_up;     /* the threads that were there before the sampler are in the list */
	uint32_t entries;   /* threads in /proc/self/task at the last listing, pperf's too */
	uint64_t ended_ns;  /* sum of the clocks of threads that have ended, at their last look */
	uint64_t before_ns; /* CPU time of the process that is not of these threads, at setup */
	uint64_t streams;   /* stream_peer_count() when the streams were last looked up */
	uint32_t *by_tid;   /* hash table of positions in `threads`, counted from 1; 0: free */
	struct sampled_thread *threads;
	char listing[LISTING_BYTES];
} * list;

#define BY_TID (2 * SAMPLED_THREADS_MAX)

/* ---- the table ---- */

static uint32_t *find_slot(uint32_t tid)
{
	for (uint32_t at = tid * 0x9e3779b1u >> 12;; at++) {
		uint32_t *slot = &list->by_tid[at & (BY_TID - 1)];

		if (!*slot || list->threads[*slot - 1].tid == tid)
			return slot;
	}
}

static void rebuild_table(void)
{
	memset(list->by_tid, 0, BY_TID * sizeof *list->by_tid);
	for (uint32_t i = 0; i < list->count; i++)
		*find_slot(list->threads[i].tid) = i + 1;
}

static void add_thread(uint32_t tid)
{
	struct sampled_thread *thread = &list->threads[list->count];
	uint32_t *slot;

	if (own_thread_is(tid) || list->count == SAMPLED_THREADS_MAX)
		return;
	slot = find_slot(tid);
	if (*slot) {
		list->threads[*slot - 1].listed = true;
		return;
	}
	*thread = (struct sampled_thread){ .tid = tid, .listed = true, .began = list->is_set_up };
	if (!thread_cpu_ns(tid, &thread->cpu_ns))
		return;
	if (!thread->began)
		thread->sampled_ns = thread->cpu_ns;
	thread->stream = stream_peer_find(tid);
	*slot = ++list->count;
	list->found(thread);
}

static void drop_ended(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		struct sampled_thread *thread = &list->threads[i];

		if (!thread->listed) {
			list->ended(thread);
			list->ended_ns += thread->cpu_ns;
			continue;
		}
		list->threads[kept++] = *thread;
	}
	if (kept == list->count)
		return;
	list->count = kept;
	rebuild_table();
}

/* ---- listing ---- */

static uint32_t number_of(const char *name)
{
	uint32_t number = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		number = 10 * number + (uint32_t)(*name - '0');
	return *name ? 0 : number;
}

static void add_listed(size_t bytes)
{
	const struct listed_entry *entry;

	for (size_t at = 0; at < bytes; at += entry->bytes) {
		uint32_t tid;

		entry = (const void *)(list->listing + at);
		tid = number_of(entry->name);
		if (!tid)
			continue;
		list->entries++;
		add_thread(tid);
	}
}

static bool read_folder(void)
{
	const int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got;

	if (folder < 0)
		return false;
	list->entries = 0;
	while ((got = syscall(SYS_getdents64, folder, list->listing, LISTING_BYTES)) > 0)
		add_listed((size_t)got);
	close(folder);
	return got == 0 && list->entries;
}

static void look_up_streams(void)
{
	const uint64_t streams = stream_peer_count();

	if (streams == list->streams)
		return;
	list->streams = streams;
	for (uint32_t i = 0; i < list->count; i++)
		if (!list->threads[i].stream)
			list->threads[i].stream = stream_peer_find(list->threads[i].tid);
}

bool sampled_threads_update(bool must)
{
	struct stat status;
	bool read;

	if (stat(FOLDER, &status)) {
		add_thread((uint32_t)getpid());
		look_up_streams();
		return false;
	}
	if (!must && status.st_nlink == list->entries + 2) {
		look_up_streams();
		return true;
	}
	for (uint32_t i = 0; i < list->count; i++)
		list->threads[i].listed = false;
	read = read_folder();
	if (read)
		drop_ended();
	look_up_streams();
	return read;
}

struct sampled_thread *sampled_threads(uint32_t *count)
{
	*count = list->count;
	return list->threads;
}

struct sampled_thread *sampled_threads_find(uint32_t tid)
{
	const uint32_t position = *find_slot(tid);

	return position ? &list->threads[position - 1] : NULL;
}

bool sampled_thread_look(struct sampled_thread *thread)
{
	return thread_cpu_ns(thread->tid, &thread->cpu_ns);
}

/* The CPU time of the process that is in no thread of the list. */
static uint64_t outside_ns(void)
{
	uint64_t known = list->ended_ns + own_threads_cpu_ns(), process = process_cpu_ns();

	for (uint32_t i = 0; i < list->count; i++)
		known += list->threads[i].cpu_ns;
	return process > known ? process - known : 0;
}

uint64_t sampled_threads_unseen_ns(void)
{
	const uint64_t outside = outside_ns();

	return outside > list->before_ns ? outside - list->before_ns : 0;
}

bool sampled_threads_setup(thread_observer *found, thread_observer *ended)
{
	struct thread_list *fresh;

	if (list && list->is_set_up)
		return true;
	fresh = list ? list : fork_wiped_alloc(sizeof *fresh);
	if (!fresh)
		return false;
	list = fresh;
	list->by_tid = fork_wiped_alloc(BY_TID * sizeof *list->by_tid);
	list->threads = list->by_tid ? fork_wiped_alloc(SAMPLED_THREADS_MAX * sizeof *list->threads)
				     : NULL;
	if (!list->threads)
		return false;
	list->found = found;
	list->ended = ended;
	sampled_threads_update(true);
	list->before_ns = outside_ns();
	list->is_set_up = true;
	return true;
}
