/* SPDX-License-Identifier: MIT */
#include "collector/process/clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int clock_is_tsc;

#if defined(__x86_64__)
/* Whether the kernel's own clock source is the time stamp counter (TSC). The kernel has measured
 * the counter against other clocks and keeps watching it, so its choice is the best test there
 * is. */
static int kernel_trusts_tsc(void)
{
	char source[16] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return 0;
	got = read(fd, source, sizeof source - 1);
	close(fd);
	return got == 4 && memcmp(source, "tsc\n", 4) == 0;
}

static int process_may_read_tsc(void)
{
	int mode = 0;

	return prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
}
#endif

void clock_init(void)
{
#if defined(__x86_64__)
	clock_is_tsc = process_may_read_tsc() && kernel_trusts_tsc();
#endif
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Takes the narrowest of three brackets: an interrupt between two reads would shift one clock
 * against another. */
struct trace_clock clock_sample(void)
{
	struct trace_clock best = { 0 };
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t before = clock_now();
		uint64_t monotonic = clock_monotonic_ns();
		uint64_t realtime = realtime_ns();
		uint64_t after = clock_now();

		if (after - before >= width)
			continue;
		width = after - before;
		best = (struct trace_clock){ before + width / 2, monotonic, realtime };
	}
	return best;
}
