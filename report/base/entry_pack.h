/* SPDX-License-Identifier: MIT
 * Packs entries of one size that are like the entry before them. Only the 32-bit words that differ
 * are stored, as differences of variable length.
 *
 *	struct entry_packer *packer = entry_packer_new(sizeof(struct entry), ENTRY_NO_CLASS);
 *
 *	entry_packer_restart(packer);
 *	for (...)
 *		at += entry_pack(packer, &entries[i], at);
 *	entry_packer_restart(packer);
 *	for (...)
 *		from += entry_unpack(packer, from, &entries[i]);
 *
 * Entries of several kinds have a byte that says which: each is compared with the last one of its
 * kind. Up to 64 kinds are distinguished: of more, some share the last one. Threads: one for each
 * packer.
 */
#ifndef PPERF_REPORT_BASE_ENTRY_PACK_H
#define PPERF_REPORT_BASE_ENTRY_PACK_H

#include <stddef.h>
#include <stdint.h>

#define ENTRY_NO_CLASS SIZE_MAX

struct entry_packer;

/* Packs entries of `bytes` bytes. `class_at`: offset of the byte that says of which kind an entry
 * is; ENTRY_NO_CLASS: all are of one kind. */
struct entry_packer *entry_packer_new(size_t bytes, size_t class_at);
/* The 64-bit number at offset `at` is stored as its difference to the one at offset `to`: if they
 * grow together, this takes less. May be called several times, before the first entry; relations
 * are applied in turn. */
void entry_packer_relate(struct entry_packer *packer, size_t at, size_t to);
/* As entry_packer_relate, to the same number of the entry packed before, of whatever kind. */
void entry_packer_follow(struct entry_packer *packer, size_t at);
/* Returns a packer of the same kinds and relations, which has packed nothing. */
struct entry_packer *entry_packer_copy(const struct entry_packer *packer);
void entry_packer_free(struct entry_packer *packer); /* `packer` may be NULL */

/* Forgets the entries so far. The packed entries after a restart are unpacked after one. */
void entry_packer_restart(struct entry_packer *packer);
/* Returns the most bytes that an entry takes. */
size_t entry_packed_max(const struct entry_packer *packer);
/* Packs an entry to `to`, where there is room for entry_packed_max. Returns the bytes it takes. */
size_t entry_pack(struct entry_packer *packer, const void *entry, unsigned char *to);
/* Unpacks an entry. Returns the bytes it took. */
size_t entry_unpack(struct entry_packer *packer, const unsigned char *from, void *entry);

#endif
