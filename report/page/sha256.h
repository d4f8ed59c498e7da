/* SPDX-License-Identifier: MIT
 * Computes SHA-256 (FIPS 180-4) of data in memory, in the form that a Content-Security-Policy has.
 */
#ifndef PPERF_REPORT_PAGE_SHA256_H
#define PPERF_REPORT_PAGE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BASE64_BYTES 45 /* with its terminator */

/* A hash of data that come in pieces. */
struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
/* Writes the hash in base64, terminated, to `out`. */
void sha256_end_base64(struct sha256 *hash, char out[SHA256_BASE64_BYTES]);

#endif
