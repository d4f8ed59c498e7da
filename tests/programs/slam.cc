/* SPDX-License-Identifier: MIT
 * slam: the story that pperf was written for, as a C++ program with an allocator of its own.
 *
 * Memory grows in one rare step: a loop closure has 24 times as many edges as another frame, and
 * one gate of one module, the q-gate, needs a large buffer for each 16 of them. The allocator keeps
 * these buffers when they are freed. Map points, which live long, then settle in each of them. So
 * the pool is fragmented: a later request fails although enough of it is free.
 *
 * pperf sees the ranges and the calls of cudaMalloc and cudaFree. It cannot see the allocator.
 * Prints what the allocator itself knows when memory runs out:
 *
 *	out of memory: REQUESTED bytes; RESERVED in SEGMENTS segments, IN USE in BLOCKS blocks, the
 *	largest gap GAP bytes
 */
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "kernels.h"

KERNEL(gate)

namespace
{
constexpr std::size_t MIB = std::size_t{ 1 } << 20;

class range
{
      public:
	explicit range(const std::string &name)
	{
		nvtxRangePushA(name.c_str());
	}
	~range()
	{
		nvtxRangePop();
	}
	range(const range &) = delete;
	range &operator=(const range &) = delete;
};

/* A caching allocator. A request takes the first part of the smallest gap that has room for it.
 * Without one, the pool grows by a segment. If that fails, segments without a block are given back,
 * and it is tried again. */
class pool
{
      public:
	char *allocate(std::size_t bytes)
	{
		auto found = smallest_gap(bytes);

		if (found == gaps.end()) {
			grow(bytes);
			found = smallest_gap(bytes);
		}
		char *address = found->first;
		const std::size_t left = found->second - bytes;

		gaps.erase(found);
		if (left)
			gaps[address + bytes] = left;
		blocks[address] = bytes;
		return address;
	}

	void free(char *address)
	{
		auto at = gaps.emplace(address, blocks.at(address)).first;

		blocks.erase(address);
		const auto next = std::next(at);
		if (next != gaps.end() && touches(at, next)) {
			at->second += next->second;
			gaps.erase(next);
		}
		if (at != gaps.begin() && touches(std::prev(at), at)) {
			std::prev(at)->second += at->second;
			gaps.erase(at);
		}
	}

	void print_state(std::size_t requested) const
	{
		std::size_t reserved = 0, used = 0, largest = 0;

		for (const auto &segment : segments)
			reserved += segment.second;
		for (const auto &block : blocks)
			used += block.second;
		for (const auto &gap : gaps)
			largest = gap.second > largest ? gap.second : largest;
		std::printf("out of memory: %zu bytes; %zu in %zu segments, %zu in %zu blocks, "
			    "the largest gap %zu\n",
			requested, reserved, segments.size(), used, blocks.size(), largest);
	}

      private:
	using extents = std::map<char *, std::size_t>;

	extents segments, blocks, gaps;

	extents::iterator smallest_gap(std::size_t bytes)
	{
		auto best = gaps.end();

		for (auto at = gaps.begin(); at != gaps.end(); ++at)
			if (at->second >= bytes &&
				(best == gaps.end() || at->second < best->second))
				best = at;
		return best;
	}

	bool touches(extents::iterator left, extents::iterator right) const
	{
		return left->first + left->second == right->first &&
		       segments.find(right->first) == segments.end();
	}

	void grow(std::size_t bytes)
	{
		void *memory = nullptr;

		if (cudaMalloc(&memory, bytes) != cudaSuccess) {
			cudaGetLastError();
			give_back();
			if (cudaMalloc(&memory, bytes) != cudaSuccess)
				throw std::bad_alloc();
		}
		segments[static_cast<char *>(memory)] = bytes;
		gaps[static_cast<char *>(memory)] = bytes;
	}

	void give_back()
	{
		for (auto at = segments.begin(); at != segments.end();) {
			const auto gap = gaps.find(at->first);

			if (gap == gaps.end() || gap->second < at->second) {
				++at;
				continue;
			}
			cudaFree(at->first);
			gaps.erase(gap);
			at = segments.erase(at);
		}
	}
};

pool memory;
std::vector<char *> points;

void compute(char *buffer, std::size_t bytes)
{
	LAUNCH(gate, 64, 256, 0, nullptr, reinterpret_cast<float *>(buffer),
		static_cast<unsigned long>(bytes / sizeof(float)));
	cudaDeviceSynchronize();
}

void z_gate()
{
	const range here("z-gate");
	char *buffer = memory.allocate(2 * MIB);

	compute(buffer, 2 * MIB);
	memory.free(buffer);
}

/* `edges`: 4 in a frame, 384 in a loop closure. There, each part becomes map points, which are kept,
 * and a smaller rest. */
void q_gate(int edges)
{
	const range here("q-gate");
	std::vector<char *> parts;

	for (int edge = 0; edge < edges; edge += 16) {
		const std::size_t bytes = static_cast<std::size_t>(
						  edges - edge < 16 ? edges - edge : 16) *
					  MIB;

		parts.push_back(memory.allocate(bytes));
		compute(parts.back(), bytes);
	}
	for (char *&part : parts) {
		memory.free(part);
		if (edges > 16) {
			points.push_back(memory.allocate(2 * MIB));
			part = memory.allocate(13 * MIB);
		}
	}
	for (char *part : parts)
		if (edges > 16)
			memory.free(part);
}

void gates(int edges)
{
	const range here("gates");

	z_gate();
	q_gate(edges);
}

void gru(int edges)
{
	const range here("gru");

	gates(edges);
}

void track(int frame)
{
	const range here("track - kf: " + std::to_string(frame));

	gru(4);
	if (frame == 13) {
		const range closure("loop closure - kf: " + std::to_string(frame));

		gru(384);
	}
}

void bundle_adjustment()
{
	const range here("bundle adjustment");

	compute(memory.allocate(120 * MIB), 120 * MIB);
}
} // namespace

int main()
{
	const range whole("slam");

	for (int frame = 0; frame < 20; frame++)
		track(frame);
	try {
		bundle_adjustment();
	} catch (const std::bad_alloc &) {
		memory.print_state(120 * MIB);
	}
	return 0;
}
