/*
 * Fat binaries, as compiled programs carry them: code for several devices, packed. What is taken
 * out is the code for ours. Packed by LZ4 (nvcc 12) or by Zstandard (nvcc 13), for which libzstd is
 * opened; without it that code stays unread.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define FATBIN_MAGIC 0xba55ed50u
#define KIND_ELF 2
#define PACKED_LZ4 0x2000u
#define PACKED_ZSTD 0x8000u

/* As found in what nvcc makes: a head, and behind it entries that have heads of their own. */
struct fatbin {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t body_bytes;
};

struct entry {
	uint16_t kind, version;
	uint32_t head_bytes;
	uint64_t body_bytes;
	uint32_t packed_bytes, unknown;
	uint16_t minor, major;
	uint32_t arch; /* 90 */
	uint32_t name_offset, name_bytes;
	uint64_t flags, zero;
	uint64_t bytes; /* unpacked */
};

_Static_assert(sizeof(struct entry) == 64, "as in the file");

/* A length that goes on in bytes of 255. */
static size_t lz4_length(const unsigned char **at, const unsigned char *end, size_t length)
{
	unsigned char more = 255;

	if (length < 15)
		return length;
	while (more == 255 && *at < end) {
		more = *(*at)++;
		length += more;
	}
	return length;
}

/* The LZ4 block format: literals, then a match in what was written, again and again. False:
 * damaged. */
static bool unpack_lz4(const unsigned char *at, size_t packed, unsigned char *out, size_t bytes)
{
	const unsigned char *end = at + packed;
	size_t written = 0;

	while (at < end) {
		unsigned char token = *at++;
		size_t length = lz4_length(&at, end, token >> 4), offset;

		if (length > (size_t)(end - at) || length > bytes - written)
			return false;
		memcpy(out + written, at, length);
		written += length;
		at += length;
		if (end - at < 2)
			break;
		offset = (size_t)at[0] | (size_t)at[1] << 8;
		at += 2;
		length = lz4_length(&at, end, token & 15) + 4;
		if (offset == 0 || offset > written || length > bytes - written)
			return false;
		for (; length; length--, written++)
			out[written] = out[written - offset];
	}
	return written == bytes;
}

static bool unpack_zstd(const void *packed, size_t packed_bytes, void *out, size_t bytes)
{
	static size_t (*decompress)(void *, size_t, const void *, size_t);
	void *library;

	if (!__atomic_load_n(&decompress, __ATOMIC_ACQUIRE)) {
		library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return false;
		__atomic_store_n(
			(void **)&decompress, dlsym(library, "ZSTD_decompress"), __ATOMIC_RELEASE);
	}
	return decompress && decompress(out, bytes, packed, packed_bytes) == bytes;
}

static void visit_packed(const struct entry *entry,
	void (*visit)(const void *elf, size_t bytes, void *data), void *data)
{
	const unsigned char *body = (const unsigned char *)entry + entry->head_bytes;
	unsigned char *elf = zalloc(entry->bytes);
	bool good = entry->flags & PACKED_ZSTD
			    ? unpack_zstd(body, entry->packed_bytes, elf, entry->bytes)
			    : unpack_lz4(body, entry->packed_bytes, elf, entry->bytes);

	if (good)
		visit(elf, entry->bytes, data);
	free(elf);
}

void fatbin_visit(const void *image, int arch,
	void (*visit)(const void *elf, size_t bytes, void *data), void *data)
{
	const struct fatbin *fatbin = image;
	const char *at = image, *end;

	if (image_bytes(image) == 0 || fatbin->magic != FATBIN_MAGIC)
		return;
	end = at + image_bytes(image);
	for (at += fatbin->head_bytes; at + sizeof(struct entry) <= end;) {
		const struct entry *entry = (const void *)at;

		if (entry->head_bytes < sizeof(*entry) || entry->body_bytes > (uint64_t)(end - at))
			return;
		if (entry->kind == KIND_ELF && entry->arch == (uint32_t)arch) {
			if (entry->flags & (PACKED_LZ4 | PACKED_ZSTD))
				visit_packed(entry, visit, data);
			else
				visit(at + entry->head_bytes, entry->body_bytes, data);
		}
		at += entry->head_bytes + entry->body_bytes;
	}
}
