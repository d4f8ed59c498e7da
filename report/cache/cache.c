/* SPDX-License-Identifier: MIT */
#include "report/cache/cache.h"
#include "report/cache/cache_folder.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include "report/base/write_whole.h"
#include "report/trace/trace_header.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)
#define END_BYTES (64u << 10) /* of the head and of the tail of a file */
#define SAMPLES 62u
#define SAMPLE_BYTES 4096u
#define LANES 4u
#define NAME_BYTES 64u
#define TIMES_COARSE_NS UINT64_C(20000000) /* by which times of files lag behind the clock */
/* Changed with the meaning of the contents of any entry, or of the footer. */
#define CACHE_VERSION 1u

/* The last bytes of an entry, after its contents. */
struct cache_footer {
	char magic[8];
	uint32_t version, number, count, reserved;
	char kind[16];
	struct cache_key key;
	uint64_t tag, bytes, contents[2];
	uint64_t footer; /* hash of the members before it */
};
static const char footer_magic[8] = { 'p', 'p', 'e', 'r', 'f', 'k', 'e', 'p' };

static struct {
	bool on;
	uint64_t program, began_ns, limit;
} cache;

/* ---- hashes ---- */

/* A hash of bytes that are added in pieces. Each piece but the last is of a multiple of 32 bytes.
 * Finds damage; it is no protection from an attacker, who must not get as far as this. */
struct content_hash {
	uint64_t lanes[LANES], bytes;
};

static struct content_hash hash_begin(void)
{
	return (struct content_hash){ { 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u,
					      0x94d049bb133111ebu, 0xd6e8feb86659fd93u },
		0 };
}

static void hash_add(struct content_hash *hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t words[LANES];

	hash->bytes += count;
	for (; count; count -= count < sizeof words ? count : sizeof words, at += sizeof words) {
		if (count < sizeof words)
			memset(words, 0, sizeof words);
		memcpy(words, at, count < sizeof words ? count : sizeof words);
		for (unsigned i = 0; i < LANES; i++) {
			hash->lanes[i] = (hash->lanes[i] ^ words[i]) * 0x9fb21c651e98df25u;
			hash->lanes[i] ^= hash->lanes[i] >> 29;
		}
	}
}

static void hash_end(const struct content_hash *hash, uint64_t result[2])
{
	uint64_t low = hash_u64(hash->bytes), high = ~low;

	for (unsigned i = 0; i < LANES; i++) {
		low = hash_u64(low ^ hash->lanes[i]);
		high = hash_u64(high + (hash->lanes[i] ^ hash->lanes[i] >> 32));
	}
	result[0] = low;
	result[1] = high;
}

static uint64_t hash_of(const void *bytes, size_t count)
{
	struct content_hash hash = hash_begin();
	uint64_t result[2];

	hash_add(&hash, bytes, count);
	hash_end(&hash, result);
	return result[0] ^ result[1];
}

/* Adds bytes of the file to the hash. Returns false if they cannot be read. */
static bool hash_add_part(
	struct content_hash *hash, int fd, uint64_t at, size_t count, void *buffer)
{
	if (pread_all(fd, buffer, count, at) != (int64_t)count)
		return false;
	hash_add(hash, buffer, count);
	return true;
}

/* Hashes the head, the tail, and samples between them. The file has CACHE_FILE_MIN bytes. */
static bool hash_samples(int fd, uint64_t bytes, uint64_t result[2])
{
	struct content_hash hash = hash_begin();
	void *const buffer = xcalloc(END_BYTES);
	bool good = hash_add_part(&hash, fd, 0, END_BYTES, buffer) &&
		    hash_add_part(&hash, fd, bytes - END_BYTES, END_BYTES, buffer);

	for (uint64_t i = 1; good && i <= SAMPLES; i++)
		good = hash_add_part(&hash, fd,
			bytes / (SAMPLES + 1) * i & ~(uint64_t)(SAMPLE_BYTES - 1), SAMPLE_BYTES,
			buffer);
	hash_end(&hash, result);
	free(buffer);
	return good;
}

/* ---- keys ---- */

static uint64_t time_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return cache_time_ns(&now);
}

static void set_status_words(struct cache_key *key, const struct stat *status)
{
	key->words[0] = (uint64_t)status->st_ino;
	key->words[1] = (uint64_t)status->st_dev;
	key->words[2] = (uint64_t)status->st_size;
	key->words[3] = cache_time_ns(&status->st_mtim);
	key->words[4] = cache_time_ns(&status->st_ctim);
}

/* Returns a number for this program file, 0 if it is not known. A number that the linker makes of
 * its contents need not exist; a file that was replaced has other times or another inode. */
static uint64_t program_number(void)
{
	struct cache_key key = { { 0 } };
	struct stat status;

	if (stat("/proc/self/exe", &status))
		return 0;
	set_status_words(&key, &status);
	return hash_of(&key, sizeof key);
}

static uint64_t limit_bytes(void)
{
	const char *text = getenv("PPERF_CACHE");
	char *end;
	unsigned long mib = CACHE_MIB_DEFAULT;

	if (text && *text) {
		errno = 0;
		mib = strtoul(text, &end, 10);
		if (errno || *end || *text < '0' || *text > '9' || mib > UINT32_MAX)
			mib = 0; /* a word, such as no */
	}
	return (uint64_t)mib << 20;
}

void cache_allow(bool allowed)
{
	cache.limit = limit_bytes();
	cache.program = program_number();
	cache.began_ns = time_now_ns() - TIMES_COARSE_NS;
	cache.on = allowed && cache.limit && cache.program;
}

/* Returns whether the file may be kept: it has a name, is large enough, and has not just been
 * changed. */
static bool is_worth_keeping(const struct stat *status)
{
	const uint64_t modified = cache_time_ns(&status->st_mtim),
		       changed = cache_time_ns(&status->st_ctim), now = time_now_ns();

	return S_ISREG(status->st_mode) && status->st_nlink > 0 &&
	       (uint64_t)status->st_size >= CACHE_FILE_MIN && modified + CACHE_AGE_MIN_NS <= now &&
	       changed + CACHE_AGE_MIN_NS <= now;
}

static struct cache_key make_key(int fd)
{
	struct cache_key key = { { 0 } };
	struct stat status;

	if (!cache.on || fstat(fd, &status) || !is_worth_keeping(&status))
		return key;
	set_status_words(&key, &status);
	key.words[7] = cache.program;
	key.words[8] = CACHE_VERSION;
	if (!hash_samples(fd, (uint64_t)status.st_size, &key.words[5]))
		return (struct cache_key){ { 0 } };
	return key;
}

bool cache_key_is_set(const struct cache_key *key)
{
	return key->words[8] != 0;
}

struct cache_key cache_key_of(int fd, const char *path)
{
	struct stat open_file, named;

	if (!cache.on || fstat(fd, &open_file) || stat(path, &named) ||
		open_file.st_ino != named.st_ino || open_file.st_dev != named.st_dev)
		return (struct cache_key){ { 0 } };
	return make_key(fd);
}

bool cache_key_is_current(const struct cache_key *key, const char *path)
{
	const int fd = cache_key_is_set(key)
			       ? open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
			       : -1;
	struct cache_key now;
	bool same;

	if (fd < 0)
		return false;
	now = make_key(fd);
	now.words[9] = key->words[9];
	same = !memcmp(&now, key, sizeof now);
	close(fd);
	return same;
}

void cache_key_add(struct cache_key *key, uint64_t value)
{
	if (cache_key_is_set(key))
		key->words[9] = hash_u64(key->words[9] ^ hash_u64(value));
}

void cache_key_add_text(struct cache_key *key, const char *text)
{
	for (; text && *text; text++)
		cache_key_add(key, (unsigned char)*text);
	cache_key_add(key, text ? 256 : 257);
}

/* ---- entries ---- */

static struct cache_footer footer_of(
	const struct cache_key *key, const char *kind, const struct cache_part *part)
{
	struct cache_footer footer = { .version = CACHE_VERSION,
		.number = part->number,
		.count = part->count,
		.key = *key,
		.tag = part->tag,
		.bytes = part->bytes };

	memcpy(footer.magic, footer_magic, sizeof footer.magic);
	snprintf(footer.kind, sizeof footer.kind, "%s", kind);
	return footer;
}

static uint64_t footer_hash(const struct cache_footer *footer)
{
	return hash_of(footer, offsetof(struct cache_footer, footer));
}

static void entry_name(
	char name[NAME_BYTES], const struct cache_key *key, const char *kind, uint32_t number)
{
	snprintf(name, NAME_BYTES, "%016" PRIx64 "-%.15s-%" PRIu32 CACHE_ENTRY_END,
		hash_of(key, sizeof *key), kind, number);
}

/* Hashes the first `bytes` bytes of a file. */
static bool hash_contents(int fd, uint64_t bytes, uint64_t result[2])
{
	struct content_hash hash = hash_begin();
	void *const buffer = xcalloc(COPY_BYTES);
	bool good = true;

	for (uint64_t at = 0; good && at < bytes; at += COPY_BYTES)
		good = hash_add_part(&hash, fd, at,
			bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES, buffer);
	hash_end(&hash, result);
	free(buffer);
	return good;
}

/* Reads the footer, and checks that the entry is this one and whole. */
static bool entry_is_good(int fd, const struct cache_key *key, const char *kind, uint32_t number,
	struct cache_part *part)
{
	struct cache_footer footer, wanted;
	uint64_t contents[2];
	struct stat status;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !cache_is_own(&status) ||
		status.st_size < (off_t)sizeof footer ||
		pread_all(fd, &footer, sizeof footer, (uint64_t)status.st_size - sizeof footer) !=
			sizeof footer ||
		footer.footer != footer_hash(&footer) ||
		footer.bytes != (uint64_t)status.st_size - sizeof footer)
		return false;
	*part = (struct cache_part){ number, footer.count, footer.tag, footer.bytes };
	wanted = footer_of(key, kind, part);
	if (memcmp(&footer, &wanted, offsetof(struct cache_footer, contents)) ||
		number >= part->count || !hash_contents(fd, part->bytes, contents))
		return false;
	return !memcmp(footer.contents, contents, sizeof contents);
}

int cache_open(
	const struct cache_key *key, const char *kind, uint32_t number, struct cache_part *part)
{
	const int folder = cache.on && cache_key_is_set(key) ? cache_folder_open() : -1;
	char name[NAME_BYTES];
	int fd = -1;

	if (folder < 0)
		return -1;
	entry_name(name, key, kind, number);
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && !entry_is_good(fd, key, kind, number, part)) {
		close(fd);
		unlinkat(folder, name, 0);
		fd = -1;
	}
	if (fd >= 0)
		utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); /* used now */
	close(folder);
	return fd;
}

/* Copies the contents and appends the footer. */
static bool write_entry(int to, int from, struct cache_footer *footer)
{
	struct content_hash hash = hash_begin();
	void *const buffer = xcalloc(COPY_BYTES);
	bool good = true;

	for (uint64_t at = 0; good && at < footer->bytes; at += COPY_BYTES) {
		const size_t count = footer->bytes - at < COPY_BYTES ? (size_t)(footer->bytes - at)
								     : COPY_BYTES;

		good = hash_add_part(&hash, from, at, count, buffer) &&
		       write_whole(to, buffer, count);
	}
	free(buffer);
	hash_end(&hash, footer->contents);
	footer->footer = footer_hash(footer);
	return good && write_whole(to, footer, sizeof *footer);
}

/* Writes the entry to a temporary name and renames it. */
static bool store_in(int folder, const char *name, int from, struct cache_footer *footer)
{
	char temporary[NAME_BYTES + 32];
	bool good;
	int to;

	snprintf(temporary, sizeof temporary, "%s-%ld" CACHE_NEW_END, name, (long)getpid());
	unlinkat(folder, temporary, 0);
	to = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return false;
	good = write_entry(to, from, footer);
	if (close(to))
		good = false;
	good = good && !renameat(folder, temporary, folder, name);
	if (!good)
		unlinkat(folder, temporary, 0);
	return good;
}

bool cache_store(
	const struct cache_key *key, const char *kind, const struct cache_part *part, int from)
{
	const int folder = cache.on && cache_key_is_set(key) ? cache_folder_open() : -1;
	struct cache_footer footer = footer_of(key, kind, part);
	char name[NAME_BYTES];
	bool good;

	if (folder < 0)
		return false;
	entry_name(name, key, kind, part->number);
	good = cache_folder_make_room(
		       folder, part->bytes + sizeof footer, cache.limit, cache.began_ns) &&
	       store_in(folder, name, from, &footer);
	close(folder);
	return good;
}
