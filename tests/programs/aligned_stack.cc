// SPDX-License-Identifier: MIT
// aligned_stack SECONDS: uses that much CPU time in code without unwind rules, which aligns its stack to a page below 48 KiB of room, as kernels
// of MKL do. It is called some 130,000 times a second, from frames of different sizes, so its callers' return addresses do not stay.
#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

static volatile unsigned long sink;

// push rbp; mov rbp,rsp; sub rsp,49152; and rsp,-4096; mov [rsp+120],rbp; again: dec rdi; jnz again; mov rsp,[rsp+120]; pop rbp; ret
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 0xc0, 0, 0, 0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff, 0x48, 0x89, 0x6c,
	0x24, 0x78, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x48, 0x8b, 0x64, 0x24, 0x78, 0x5d, 0xc3 };

static void (*kernel)(unsigned long count);

static double cpu_time()
{
	timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

extern "C" __attribute__((noinline)) void call_kernel()
{
	kernel(30000);
	sink = sink + 1;
}

// Its frame has another size each time, so return addresses are not where those of the call before were.
extern "C" __attribute__((noinline)) void call_below_room(unsigned bytes)
{
	char *room = static_cast<char *>(alloca(bytes));

	memset(room, 1, bytes);
	call_kernel();
	sink = sink + static_cast<unsigned long>(room[bytes / 2]);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof code);
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		return 1;
	kernel = reinterpret_cast<void (*)(unsigned long)>(memory);
#ifdef __x86_64__
	for (unsigned round = 0; cpu_time() < seconds; round++)
		call_below_room(16 + round * 7919 % 4000);
#endif
	puts("done");
	return 0;
}
