/* SPDX-License-Identifier: MIT
 * sampled_functions SECONDS: uses that much CPU time in 64 functions, spend_00 to spend_63, in a
 * random order. Function N takes N + 1 parts of the time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FUNCTIONS 64u

static volatile unsigned long sink;

/* Multiplications that wait for one another: their time does not depend on where the code is. */
static inline __attribute__((always_inline)) void multiply(unsigned long count)
{
	unsigned long number = sink;

	for (unsigned long i = 0; i < count; i++) {
		number = number * 6364136223846793005UL + 1;
		__asm__ volatile("" : "+r"(number));
	}
	sink = number;
}

#define SPEND(tens, ones)                                                                \
	__attribute__((noinline)) static void spend_##tens##ones(unsigned long one_part) \
	{                                                                                \
		multiply((10UL * tens + ones + 1) * one_part);                           \
	}
#define FOUR(X, tens, a, b, c, d) \
	X(tens, a)                \
	X(tens, b)                \
	X(tens, c)                \
	X(tens, d)
#define TEN(X, tens)                                                   \
	FOUR(X, tens, 0, 1, 2, 3) FOUR(X, tens, 4, 5, 6, 7) X(tens, 8) \
	X(tens, 9)
#define ALL(X) TEN(X, 0) TEN(X, 1) TEN(X, 2) TEN(X, 3) TEN(X, 4) TEN(X, 5) FOUR(X, 6, 0, 1, 2, 3)

ALL(SPEND)

#define NAME(tens, ones) spend_##tens##ones,
static void (*const functions[FUNCTIONS])(unsigned long) = { ALL(NAME) };

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	const double seconds = count > 1 ? atof(arguments[1]) : 1;
	unsigned long state = 1;

	while (cpu_time() < seconds)
		for (int i = 0; i < 16; i++) {
			state = state * 6364136223846793005UL + 1442695040888963407UL;
			functions[state >> 58](300 + (state >> 33) % 400);
		}
	puts("done");
	return 0;
}
