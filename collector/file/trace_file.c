/* SPDX-License-Identifier: MIT
 * All state is in pages that a forked child finds zeroed, so the child has nothing to reset.
 */
#include "collector/file/trace_file.h"

#include "collector/process/clock.h"
#include "collector/file/file_space.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/file/output_path.h"
#include "collector/process/private_files.h"
#include "collector/file/ring.h"
#include "collector/file/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum file_state { FILE_NONE, FILE_OPEN, FILE_FAILED };

/* The trace file of this process. Wiped in a forked child. */
struct trace_file {
	pthread_mutex_t lock; /* for opening and reopening; zeros: unlocked */
	/* enum file_state. FILE_OPEN is stored with release, after everything else. */
	int state;
	int fd;    /* in the program's table; -1: it has none */
	int error; /* errno if state is FILE_FAILED */
	dev_t device;
	ino_t inode;
	bool mapped;       /* false: TRACE_TAIL_AT_RISK */
	uint64_t reserved; /* file blocks are allocated up to this offset */
	uint64_t ready;    /* up to this offset the file is mapped, with its header */
	struct trace_header *header;
	char path[4096];
};

static const struct trace_settings *settings;
static struct trace_file *file;
static pid_t configured_pid;
/* The descriptor of this process's file. It is outside the wiped pages: a forked child closes it,
 * if it is still the same file. */
static struct {
	int fd;
	pid_t pid;
	dev_t device;
	ino_t inode;
} inherited = { .fd = -1 };

/* The descriptor in the table of the thread that has one of its own; -1: none. */
static int private_fd = -1;

static void configure_ring(uint64_t bytes);

void trace_configure(const struct trace_settings *configured)
{
	settings = configured;
	file = fork_wiped_alloc(sizeof *file);
	if (file && settings->ring_bytes)
		configure_ring(settings->ring_bytes);
	configured_pid = getpid();
	output_grow_fd_table();
}

/* Whether a mapped page can never raise SIGBUS once its space is allocated. That holds for local
 * file systems that reserve blocks, and for memory. */
static bool mapping_is_safe(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case 0xEF53:     /* ext2, 3, 4 */
	case 0x58465342: /* xfs */
	case 0x01021994: /* tmpfs */
	/* overlay: the file is on the file system below, and fallocate fails if that one cannot
	 * allocate */
	case 0x794c7630:
		return true;
	}
	return false;
}

bool (*trace_may_map)(int fd) = mapping_is_safe;

static void fill_header(struct trace_header *header)
{
	uint64_t page = file_page_bytes();

	memcpy(header->magic, TRACE_MAGIC, sizeof header->magic);
	header->version = TRACE_VERSION;
	header->endian = TRACE_ENDIAN;
	header->header_bytes = (uint32_t)page;
	header->clock_kind = clock_is_tsc ? TRACE_CLOCK_TSC : TRACE_CLOCK_MONOTONIC;
	header->run_id = settings->run_id;
	header->pid = (uint32_t)getpid();
	header->parent_pid = (uint32_t)getppid();
	header->page_bytes = (uint32_t)page;
	header->limit_bytes = settings->limit_bytes;
	header->ring.bytes = ring_is_used() ? settings->ring_bytes : 0;
	header->start = clock_sample();
	header->end = page;
	memcpy(header->build_id, settings->build_id, sizeof header->build_id);
}

/* Maps the header and the first blocks, if there is space for all of them, otherwise the header
 * alone. */
static struct trace_header *map_first_blocks(struct trace_file *f, uint64_t page)
{
	const uint64_t all = page + (TRACE_FIRST_DICT > page ? TRACE_FIRST_DICT : page) +
			     (TRACE_FIRST_SLOT > page ? TRACE_FIRST_SLOT : page);

	f->ready = all <= settings->limit_bytes && !file_allocate(f->fd, 0, 0, all) ? all : page;
	f->mapped = f->ready == all || !file_allocate(f->fd, 0, 0, page);
	return f->mapped ? file_map(f->fd, 0, f->ready) : NULL;
}

/* Returns the header as memory: mapped where that is safe, otherwise private. NULL on failure. */
static struct trace_header *map_header(struct trace_file *f, const struct trace_header *filled)
{
	uint64_t page = filled->header_bytes;
	struct trace_header *header = trace_may_map(f->fd) ? map_first_blocks(f, page) : NULL;

	if (f->mapped)
		return header;
	header = fork_wiped_alloc(page);
	if (header) {
		*header = *filled;
		header->flags |= TRACE_TAIL_AT_RISK;
	}
	return header;
}

/* Closes the descriptor of the process that forked this one. */
static void close_inherited(void)
{
	struct stat st;

	if (inherited.fd < 0 || inherited.pid == getpid())
		return;
	if (!fstat(inherited.fd, &st) && st.st_dev == inherited.device &&
		st.st_ino == inherited.inode)
		close(inherited.fd);
	inherited.fd = -1;
}

/* Removes a file that cannot hold anything. */
static void remove_file(const struct trace_file *f)
{
	struct stat ours, there;

	if (!fstat(f->fd, &ours) && !stat(f->path, &there) && ours.st_ino == there.st_ino &&
		ours.st_dev == there.st_dev)
		unlink(f->path);
	close(f->fd);
}

/* Notes `fd` as the descriptor of the file in the table of the calling thread. */
static void keep_descriptor(struct trace_file *f, int fd)
{
	if (private_files_here()) {
		private_fd = fd;
		return;
	}
	f->fd = inherited.fd = fd;
	inherited.pid = getpid();
	inherited.device = f->device;
	inherited.inode = f->inode;
}

static bool make_file(struct trace_file *f)
{
	struct trace_header filled = { 0 };
	struct sigxfsz_guard guard;
	struct stat st;
	int fd;

	clock_init();
	close_inherited();
	fill_header(&filled);
	if (getpid() != configured_pid) {
		if (settings->skip_forked)
			return false;
		filled.flags |= TRACE_FORKED;
	}
	guard = sigxfsz_block();
	f->fd = output_create(settings->output, &filled, f->path);
	f->error = errno;
	sigxfsz_restore(&guard);
	if (f->fd < 0)
		return false;
	if (fstat(f->fd, &st) || !(f->header = map_header(f, &filled))) {
		f->error = errno;
		remove_file(f);
		return false;
	}
	f->device = st.st_dev;
	f->inode = st.st_ino;
	/* If that is the private one of this thread, the program has none until it needs one. */
	fd = f->fd;
	f->fd = -1;
	keep_descriptor(f, fd);
	return true;
}

/* Losses from before there was a header to count them in. */
static uint64_t early_losses[TRACE_LOSS_KINDS];

static void count_early_losses(void)
{
	for (int i = 0; i < TRACE_LOSS_KINDS; i++)
		trace_lose((enum trace_loss)i,
			__atomic_exchange_n(&early_losses[i], 0, __ATOMIC_RELAXED));
}

struct trace_header *trace_header(void)
{
	if (!file || __atomic_load_n(&file->state, __ATOMIC_ACQUIRE) != FILE_OPEN)
		return NULL;
	return file->header;
}

struct trace_header *trace_open(void)
{
	int saved = errno;

	if (file && __atomic_load_n(&file->state, __ATOMIC_ACQUIRE) == FILE_NONE) {
		pthread_mutex_lock(&file->lock);
		if (file->state == FILE_NONE)
			__atomic_store_n(&file->state, make_file(file) ? FILE_OPEN : FILE_FAILED,
				__ATOMIC_RELEASE);
		pthread_mutex_unlock(&file->lock);
		if (file->state == FILE_OPEN)
			count_early_losses();
	}
	errno = saved;
	return trace_header();
}

void trace_finish_opening(void)
{
	struct timespec deadline;

	if (!file)
		return;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec++;
	if (pthread_mutex_timedlock(&file->lock, &deadline))
		return;
	/* A thread that began one now would be ended in the middle of it. */
	if (file->state == FILE_NONE)
		__atomic_store_n(&file->state, FILE_FAILED, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&file->lock);
}

const char *trace_path(void)
{
	return trace_header() ? file->path : "";
}

int trace_open_error(void)
{
	return file && __atomic_load_n(&file->state, __ATOMIC_ACQUIRE) == FILE_FAILED ? file->error
										      : 0;
}

const char *trace_output(void)
{
	return settings->output;
}

/* Reserves `bytes` of the file at a multiple of `align`. Returns the offset, or 0 if PPERF_MAX is
 * reached. */
static uint64_t reserve_space(uint64_t bytes, uint64_t align)
{
	struct trace_header *header = file->header;
	uint64_t end = __atomic_load_n(&header->end, __ATOMIC_RELAXED), at;

	do {
		at = (end + align - 1) & ~(align - 1);
		if (at + bytes > header->limit_bytes)
			return 0;
	} while (!__atomic_compare_exchange_n(
		&header->end, &end, at + bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return at;
}

/* Releases reserved space that was not used, if nothing was reserved after it. Without this,
 * attempts on a full disk or without memory would use up the file. */
static void release_space(uint64_t at, uint64_t bytes)
{
	uint64_t end = at + bytes;

	__atomic_compare_exchange_n(
		&file->header->end, &end, at, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Returns the descriptor of the file for this thread. */
static int descriptor(void)
{
	return private_files_here() ? private_fd : file->fd;
}

static bool is_our_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == file->device && st.st_ino == file->inode;
}

/* Whether the descriptor is still our file, or was opened by the file's path. Programs close
 * descriptors that they do not know, and open something else under the same number. */
static bool descriptor_is_ours(void)
{
	int again;

	if (is_our_file(descriptor()))
		return true;
	again = open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	/* The program may be about to open its standard descriptors. */
	again = again < 0 ? again : output_move_fd_high(again);
	if (again < 0)
		return false;
	if (!is_our_file(again)) {
		close(again);
		return false;
	}
	keep_descriptor(file, again);
	return true;
}

/* Calls descriptor_is_ours() by one thread at a time. */
static bool check_descriptor(void)
{
	bool ours;

	pthread_mutex_lock(&file->lock);
	ours = descriptor_is_ours();
	pthread_mutex_unlock(&file->lock);
	return ours;
}

struct trace_header *trace_open_private(void)
{
	if (!file)
		return NULL;
	if (private_files_here() || __atomic_load_n(&file->state, __ATOMIC_ACQUIRE) == FILE_FAILED)
		return trace_open();
	pthread_mutex_lock(&file->lock);
	close_inherited(); /* it is in the table of the program */
	pthread_mutex_unlock(&file->lock);
	/* Without the lock: closing a copy may take long, such as that of a file of NFS. */
	private_fd = trace_header() ? file->fd : -1;
	if (private_files_begin(private_fd) && private_fd >= 0 && !is_our_file(private_fd)) {
		/* The program has closed it, and has another file under its number. */
		close(private_fd);
		private_fd = -1;
	}
	return trace_open();
}

static void fill_head(struct trace_block *block, enum trace_block_type type, uint64_t extent)
{
	block->magic = TRACE_BLOCK_MAGIC;
	block->type = type;
	block->extent = extent;
	block->head_crc = trace_crc32c(0, block, offsetof(struct trace_block, head_crc));
}

static struct trace_block *map_at(uint64_t offset, uint64_t bytes, enum trace_loss *reason)
{
	struct trace_block *block;

	if (offset + bytes <= file->ready)
		return (struct trace_block *)(void *)((char *)file->header + offset);
	if (!check_descriptor()) {
		*reason = TRACE_LOST_BAD_FILE;
		return NULL;
	}
	if (file_allocate(descriptor(), 0, offset, bytes)) {
		release_space(offset, bytes);
		*reason = TRACE_LOST_FULL_DISK;
		return NULL;
	}
	block = file_map(descriptor(), offset, bytes);
	if (!block) {
		release_space(offset, bytes);
		*reason = TRACE_LOST_NO_MEMORY;
	}
	return block;
}

/* Allocates a block in private memory. A slot that is not mapped takes no space in the file, only
 * its chunks do. */
static struct trace_block *allocate_in_memory(
	enum trace_block_type type, uint64_t bytes, uint64_t *offset, enum trace_loss *reason)
{
	struct trace_block *block;

	*offset = 0;
	*reason = TRACE_LOST_FULL_FILE;
	if (type != TRACE_SLOT && !(*offset = reserve_space(bytes, TRACE_ALIGN)))
		return NULL;
	block = fork_wiped_alloc(bytes);
	*reason = TRACE_LOST_NO_MEMORY;
	return block;
}

struct trace_block *trace_map_block(
	enum trace_block_type type, uint64_t bytes, uint64_t *offset, enum trace_loss *reason)
{
	struct trace_block *block = NULL;
	int saved = errno;

	if (!file->mapped)
		block = allocate_in_memory(type, bytes, offset, reason);
	else if ((*offset = reserve_space(bytes, file_page_bytes())) == 0)
		*reason = TRACE_LOST_FULL_FILE;
	else
		block = map_at(*offset, bytes, reason);
	if (block)
		fill_head(block, type, bytes);
	errno = saved;
	return block;
}

/* Removes the first `bytes` bytes. Returns the number of parts that are left. */
static int skip_written(struct iovec **part, int parts, size_t bytes)
{
	for (; parts > 0 && bytes >= (*part)->iov_len; ++*part, parts--)
		bytes -= (*part)->iov_len;
	if (parts > 0) {
		(*part)->iov_base = (char *)(*part)->iov_base + bytes;
		(*part)->iov_len -= bytes;
	}
	return parts;
}

/* Writes the parts and returns the number of bytes written. It is lower than requested if the disk
 * is full. */
static uint64_t write_parts(struct iovec *part, int parts, uint64_t offset)
{
	struct sigxfsz_guard guard = sigxfsz_block();
	const uint64_t begin = offset;
	bool whole = true;

	while (parts > 0 && whole) {
		ssize_t wrote = pwritev(descriptor(), part, parts, (off_t)offset);

		if (wrote < 0 && errno == EINTR)
			continue;
		whole = wrote > 0;
		offset += whole ? (uint64_t)wrote : 0;
		if (whole)
			parts = skip_written(&part, parts, (size_t)wrote);
	}
	sigxfsz_restore(&guard);
	return offset - begin;
}

#define AHEAD_FROM (4u << 20) /* size of a trace from which on space is allocated ahead */
#define AHEAD_BYTES (1u << 20)

/* Allocates space for the next chunks at once, beyond the end of the file, which does not move. A
 * write into allocated space takes two thirds of the time. If the allocation fails, writes allocate
 * their own space, as those of the first chunks do. */
static void reserve_ahead(uint64_t end)
{
	uint64_t reserved = __atomic_load_n(&file->reserved, __ATOMIC_RELAXED),
		 from = reserved > end ? reserved : end;

	if (!file->mapped || end < AHEAD_FROM || end <= reserved ||
		from + AHEAD_BYTES > file->header->limit_bytes)
		return;
	if (__atomic_compare_exchange_n(&file->reserved, &reserved, from + AHEAD_BYTES, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		file_allocate(descriptor(), FALLOC_FL_KEEP_SIZE, from, AHEAD_BYTES);
}

/* ---- the ring ---- */

static uint64_t reserve_for_ring(uint64_t bytes)
{
	return reserve_space(bytes, file_page_bytes());
}

static bool allocate_for_ring(uint64_t offset, uint64_t bytes)
{
	if (!file->mapped || !file_allocate(descriptor(), 0, offset, bytes))
		return true;
	release_space(offset, bytes);
	return false;
}

static bool write_for_ring(const void *bytes, size_t count, uint64_t offset)
{
	struct iovec part = { (void *)(uintptr_t)bytes, count };

	return write_parts(&part, 1, offset) == count;
}

static void configure_ring(uint64_t bytes)
{
	ring_setup(bytes < RING_BYTES_MIN ? RING_BYTES_MIN : bytes,
		&(const struct ring_file){
			reserve_for_ring, allocate_for_ring, write_for_ring, trace_header });
}

/* Writes the header's counters to a file that is not mapped. */
static void write_back_header(void)
{
	struct iovec header = { file->header, sizeof *file->header };

	if (!file->mapped)
		write_parts(&header, 1, 0);
}

static bool write_ring_chunk(
	const struct trace_block *head, const void *payload, enum trace_loss *reason)
{
	bool written;

	*reason = TRACE_LOST_BAD_FILE;
	if (!check_descriptor())
		return false;
	written = ring_write(head, payload, clock_now(), reason);
	write_back_header();
	return written;
}

static bool write_chunk(struct trace_block *head, const void *payload, enum trace_loss *reason)
{
	struct iovec parts[2] = { { head, sizeof *head },
		{ (void *)(uintptr_t)payload, (size_t)head->used } };
	const uint64_t bytes = sizeof *head + head->used;
	uint64_t offset, wrote;

	*reason = TRACE_LOST_BAD_FILE;
	if (!check_descriptor())
		return false;
	*reason = TRACE_LOST_FULL_FILE;
	offset = reserve_space(head->extent, TRACE_ALIGN);
	if (!offset)
		return false;
	*reason = TRACE_LOST_FULL_DISK;
	reserve_ahead(offset + bytes);
	wrote = write_parts(parts, 2, offset);
	if (!wrote)
		release_space(offset, head->extent);
	if (wrote < bytes)
		return false;
	write_back_header();
	return true;
}

bool trace_seal(const struct trace_block *slot, enum trace_loss *reason)
{
	struct trace_block head = *slot;
	uint64_t extent = (sizeof head + slot->used + TRACE_ALIGN - 1) &
			  ~(uint64_t)(TRACE_ALIGN - 1);
	int saved = errno;
	bool sealed;

	fill_head(&head, TRACE_CHUNK, extent);
	if (ring_is_used())
		head.reserved = (uint32_t)slot_events(slot);
	head.crc = trace_block_crc(&head, slot + 1);
	sealed = ring_is_used() ? write_ring_chunk(&head, slot + 1, reason)
				: write_chunk(&head, slot + 1, reason);
	errno = saved;
	return sealed;
}

bool trace_tail_at_risk(void)
{
	return trace_header() && !file->mapped;
}

void trace_write_back(const struct trace_block *block, uint64_t offset)
{
	struct iovec part = { (void *)(uintptr_t)block, sizeof *block + (size_t)block->used };
	int saved = errno;

	if (check_descriptor())
		write_parts(&part, 1, offset);
	errno = saved;
}

void trace_lose(enum trace_loss reason, uint64_t events)
{
	struct trace_header *header = trace_header();

	if (events)
		__atomic_fetch_add(header ? &header->lost[reason] : &early_losses[reason], events,
			__ATOMIC_RELAXED);
}

void trace_end(void)
{
	struct trace_header *header = trace_header();

	if (!header)
		return;
	header->last = clock_sample();
	__atomic_fetch_or(&header->flags, TRACE_ENDED, __ATOMIC_RELEASE);
	if (!file->mapped && check_descriptor())
		write_back_header();
}
