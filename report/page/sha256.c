/* SPDX-License-Identifier: MIT */
#include "report/page/sha256.h"
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t rotated(uint32_t word, unsigned bits)
{
	return word >> bits | word << (32 - bits);
}

/* Expands a block of 64 bytes to the 64 words of the rounds. */
static void expand_block(const uint8_t *block, uint32_t words[64])
{
	for (size_t i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		const uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] +
			   (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
			   (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
}

static void add_block(struct sha256 *hash)
{
	uint32_t words[64], s[8];

	expand_block(hash->block, words);
	memcpy(s, hash->state, sizeof s);
	for (size_t i = 0; i < 64; i++) {
		const uint32_t sum1 = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
		const uint32_t sum0 = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
		const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		const uint32_t first = s[7] + sum1 + choice + round_constants[i] + words[i];

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += first;
		s[0] = first + sum0 + majority;
	}
	for (size_t i = 0; i < 8; i++)
		hash->state[i] += s[i];
}

void sha256_begin(struct sha256 *hash)
{
	*hash = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *hash, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	while (bytes) {
		const size_t used = hash->length % 64;
		const size_t part = bytes < 64 - used ? bytes : 64 - used;

		memcpy(hash->block + used, from, part);
		hash->length += part;
		if (used + part == 64)
			add_block(hash);
		from += part;
		bytes -= part;
	}
}

/* Appends the bit 1, zeros, and the length in bits. */
static void add_padding(struct sha256 *hash)
{
	const uint64_t bits = 8 * hash->length;
	uint8_t end[8];

	for (size_t i = 0; i < 8; i++)
		end[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(hash, "\x80", 1);
	while (hash->length % 64 != 56)
		sha256_add(hash, "", 1);
	sha256_add(hash, end, sizeof end);
}

void sha256_end_base64(struct sha256 *hash, char out[SHA256_BASE64_BYTES])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t bytes[SHA256_BYTES + 1] = { 0 };

	add_padding(hash);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		bytes[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
	for (size_t i = 0; i < SHA256_BYTES + 1; i += 3) {
		const uint32_t three = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 |
				       bytes[i + 2];

		for (size_t k = 0; k < 4; k++)
			*out++ = digits[three >> (18 - 6 * k) & 63];
	}
	out[-1] = '='; /* 32 bytes are one less than a multiple of three */
	*out = '\0';
}
