/* SPDX-License-Identifier: MIT
 * Keeps what is expensive to compute from a file, so that the next command on the same unchanged
 * file is faster: $XDG_CACHE_HOME/pperf, or ~/.cache/pperf.
 *
 *	struct cache_key key = cache_key_of(fd, path);         before the file is read
 *	struct cache_part part;
 *
 *	kept = cache_open(&key, "trace", 0, &part);            -1: not kept, compute it
 *	...
 *	if (cache_key_is_current(&key, path))                  the file was not changed meanwhile
 *		cache_store(&key, "trace", &part, from);
 *
 * The cache is off until cache_allow. Nothing here fails: what cannot be kept or read is computed
 * again. What is read is believed only if all of this holds:
 *
 *  - The folder and the entry belong to this user, no other user can write to them, and the
 *    entry is a regular file and no symbolic link.
 *  - The entry names the file by device, inode, size, times of modification and of change in
 *    nanoseconds, and a hash of its head, its tail and samples between them; and this very
 *    pperf-report by the same figures of its program file.
 *  - A hash of its contents fits.
 *
 * A reader of the contents checks its bounds all the same.
 *
 * Not kept are files smaller than CACHE_FILE_MIN, unnamed ones, and files that were changed less
 * than CACHE_AGE_MIN_NS before they were opened: a later change could leave their times as they
 * are.
 *
 * An entry is written to a temporary name and renamed, so other processes see it whole or not at
 * all. The entries that were used longest ago are removed for new ones. Those that this process
 * uses are not: a command that reads more files than fit would otherwise keep none.
 */
#ifndef PPERF_REPORT_CACHE_CACHE_H
#define PPERF_REPORT_CACHE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define CACHE_FILE_MIN (UINT64_C(1) << 20)
#define CACHE_AGE_MIN_NS UINT64_C(2000000000)
#define CACHE_MIB_DEFAULT 2048u /* PPERF_CACHE sets another limit; 0: the cache is off */

/* Which file, as it was when it was opened, and which pperf-report. All zero: not kept. */
struct cache_key {
	uint64_t words[10];
};

/* One entry of those that were made from a file. */
struct cache_part {
	uint32_t number, count; /* entry `number` of `count` */
	uint64_t tag;           /* what the caller wants to know of it */
	uint64_t bytes;         /* its contents, which begin at offset 0 of the descriptor */
};

/* Switches the cache on, unless PPERF_CACHE=0 is set or there is no folder for it. */
void cache_allow(bool allowed);

/* Returns the key of the open file `fd`, which is the file at `path`. */
struct cache_key cache_key_of(int fd, const char *path);
/* Returns false if nothing is kept of the file. */
bool cache_key_is_set(const struct cache_key *key);
/* Returns whether the file at `path` still has this key. False: it is not to be kept. */
bool cache_key_is_current(const struct cache_key *key, const char *path);
/* Changes the key to that of something that depends on `value`, too. */
void cache_key_add(struct cache_key *key, uint64_t value);
/* The same of a text; NULL differs from all texts. */
void cache_key_add_text(struct cache_key *key, const char *text);

/* Opens an entry for reading and sets `part`. `kind`: of at most 15 characters. Returns -1 if there
 * is none that can be believed. */
int cache_open(
	const struct cache_key *key, const char *kind, uint32_t number, struct cache_part *part);
/* Keeps the first part->bytes bytes of the file `from`. Returns false if they cannot be kept. */
bool cache_store(
	const struct cache_key *key, const char *kind, const struct cache_part *part, int from);

#endif
