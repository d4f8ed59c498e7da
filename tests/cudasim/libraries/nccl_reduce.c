/* SPDX-License-Identifier: MIT
 * NCCL: types of elements, and reductions of them. Narrow floating point is computed in float, as
 * the device does.
 */
#include <string.h>

#include "libraries/nccl_api.h"

static const struct {
	size_t bytes;
	const char *name;
} types[ncclNumTypes] = {
	[ncclInt8] = { 1, "i8" },
	[ncclUint8] = { 1, "u8" },
	[ncclInt32] = { 4, "i32" },
	[ncclUint32] = { 4, "u32" },
	[ncclInt64] = { 8, "i64" },
	[ncclUint64] = { 8, "u64" },
	[ncclFloat16] = { 2, "f16" },
	[ncclFloat32] = { 4, "f32" },
	[ncclFloat64] = { 8, "f64" },
	[ncclBfloat16] = { 2, "bf16" },
	[ncclFloat8e4m3] = { 1, "f8e4m3" },
	[ncclFloat8e5m2] = { 1, "f8e5m2" },
};

size_t nccl_bytes(ncclDataType_t type)
{
	return (unsigned)type < ncclNumTypes ? types[type].bytes : 0;
}

const char *nccl_type_name(ncclDataType_t type)
{
	return types[type].name;
}

/* A narrow float has `exponent` bits and `mantissa` bits; as a number, and back (towards the
 * nearer, ties to even). */
static float widen(unsigned bits, int exponent, int mantissa)
{
	unsigned sign = bits >> (exponent + mantissa),
		 e = bits >> mantissa & ((1u << exponent) - 1);
	unsigned m = bits & ((1u << mantissa) - 1), bias = (1u << (exponent - 1)) - 1;
	union {
		uint32_t bits;
		float value;
	} wide;

	if (e == 0) {
		float value = (float)m / (float)(1u << mantissa);

		for (unsigned i = 1; i < bias; i++)
			value /= 2;
		return sign ? -value : value;
	}
	e = e == (1u << exponent) - 1 ? 255 : e + 127 - bias;
	wide.bits = sign << 31 | e << 23 | m << (23 - mantissa);
	return wide.value;
}

static unsigned narrow(float value, int exponent, int mantissa)
{
	union {
		float value;
		uint32_t bits;
	} wide = { .value = value };
	unsigned sign = wide.bits >> 31 << (exponent + mantissa), bias = (1u << (exponent - 1)) - 1;
	unsigned top = (1u << exponent) - 1, drop = 23u - (unsigned)mantissa;
	int e = (int)(wide.bits >> 23 & 255) - 127 + (int)bias;
	uint32_t m = wide.bits & 0x7fffff;

	if ((wide.bits >> 23 & 255) == 255)
		return sign | top << mantissa | (m ? 1u << (mantissa - 1) : 0);
	if ((wide.bits >> 23 & 255) == 0) {
		/* Zero, or too small for all but bfloat16, which has float's exponents. */
		if (exponent < 8)
			return sign;
	} else if (e <= 0) {
		if (e < -mantissa)
			return sign;
		m = (m | 0x800000) >> (1 - e);
		e = 0;
	}
	m += (1u << (drop - 1)) - 1 + (m >> drop & 1);
	e += (int)(m >> 23);
	return (unsigned)e >= top ? sign | top << mantissa
				  : sign | (unsigned)e << mantissa | (m & 0x7fffff) >> drop;
}

#define COMBINE(a, b, op)                                   \
	((op) == ncclProd         ? (a) * (b)               \
		: (op) == ncclMax ? ((a) > (b) ? (a) : (b)) \
		: (op) == ncclMin ? ((a) < (b) ? (a) : (b)) \
				  : (a) + (b))

/* Reduces the whole arrays of one type. */
#define COMBINE_ALL(type)                                     \
	do {                                                  \
		type *a = into;                               \
		const type *b = from;                         \
		for (size_t i = 0; i < count; i++)            \
			a[i] = (type)COMBINE(a[i], b[i], op); \
	} while (0)

#define COMBINE_NARROW(type, exponent, mantissa)                                    \
	do {                                                                        \
		type *a = into;                                                     \
		const type *b = from;                                               \
		for (size_t i = 0; i < count; i++) {                                \
			float x = widen(a[i], exponent, mantissa),                  \
			      y = widen(b[i], exponent, mantissa);                  \
			a[i] = (type)narrow(COMBINE(x, y, op), exponent, mantissa); \
		}                                                                   \
	} while (0)

void nccl_combine(void *into, const void *from, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
	switch ((int)type) {
	case ncclInt8:
		COMBINE_ALL(int8_t);
		break;
	case ncclUint8:
		COMBINE_ALL(uint8_t);
		break;
	case ncclInt32:
		COMBINE_ALL(int32_t);
		break;
	case ncclUint32:
		COMBINE_ALL(uint32_t);
		break;
	case ncclInt64:
		COMBINE_ALL(int64_t);
		break;
	case ncclUint64:
		COMBINE_ALL(uint64_t);
		break;
	case ncclFloat32:
		COMBINE_ALL(float);
		break;
	case ncclFloat64:
		COMBINE_ALL(double);
		break;
	case ncclFloat16:
		COMBINE_NARROW(uint16_t, 5, 10);
		break;
	case ncclBfloat16:
		COMBINE_NARROW(uint16_t, 8, 7);
		break;
	case ncclFloat8e4m3:
		COMBINE_NARROW(uint8_t, 4, 3);
		break;
	case ncclFloat8e5m2:
		COMBINE_NARROW(uint8_t, 5, 2);
		break;
	}
}

#define DIVIDE_ALL(type)                                \
	do {                                            \
		type *v = values;                       \
		for (size_t i = 0; i < count; i++)      \
			v[i] = (type)(v[i] / (type)by); \
	} while (0)

#define DIVIDE_NARROW(exponent, mantissa)                                                         \
	do {                                                                                      \
		uint16_t *v = values;                                                             \
		for (size_t i = 0; i < count; i++)                                                \
			v[i] = (uint16_t)narrow(                                                  \
				widen(v[i], exponent, mantissa) / (float)by, exponent, mantissa); \
	} while (0)

void nccl_divide(void *values, size_t count, ncclDataType_t type, int by)
{
	switch ((int)type) {
	case ncclFloat32:
		DIVIDE_ALL(float);
		break;
	case ncclFloat64:
		DIVIDE_ALL(double);
		break;
	case ncclFloat16:
		DIVIDE_NARROW(5, 10);
		break;
	case ncclBfloat16:
		DIVIDE_NARROW(8, 7);
		break;
	case ncclInt32:
		DIVIDE_ALL(int32_t);
		break;
	case ncclInt64:
		DIVIDE_ALL(int64_t);
		break;
	}
}
