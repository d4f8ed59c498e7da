/* SPDX-License-Identifier: MIT
 * record_function.h: what PyTorch 2 shows of itself to those that watch its operators. Names, and
 * with them the mangled symbols, signatures and sizes are PyTorch's; where the members of a
 * RecordFunction lie is data, since it has differed between releases and ABIs of C++ strings.
 */
#ifndef FAKE_RECORD_FUNCTION_H
#define FAKE_RECORD_FUNCTION_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace at
{

enum class RecordScope : uint8_t {
	FUNCTION,
	BACKWARD_FUNCTION,
	TORCHSCRIPT_FUNCTION,
	USER_SCOPE = 7,
	NUM_SCOPES = 10
};

struct ObserverContext {
	virtual ~ObserverContext()
	{
	}
};

class RecordFunction;

class RecordFunctionCallback
{
      public:
	using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction &);
	using End = void (*)(const RecordFunction &, ObserverContext *);
	Start start;
	End end;
	double sampling_probability;
	bool scopes[10];
	bool needs_inputs, needs_outputs, needs_ids;
};
static_assert(sizeof(RecordFunctionCallback) == 40, "as in PyTorch 2.1 to 2.15");

uint64_t addGlobalCallback(RecordFunctionCallback callback);
void removeCallback(uint64_t handle);

/* Offsets in bytes into a RecordFunction. */
struct Layout {
	const char *name; /* of FAKE_LAYOUT */
	int strings;      /* _GLIBCXX_USE_CXX11_ABI */
	unsigned sequence, forward_thread, handle, async;
};
const Layout &layout();

class RecordFunction
{
      public:
	/* stable: the name is that of an operator's schema, whose text stays where it is; else the
	 * object has a copy. sequence -1: none. */
	RecordFunction(RecordScope scope, const char *name, bool stable, int64_t sequence,
		uint64_t forward_thread, bool async);
	~RecordFunction();
	RecordFunction(const RecordFunction &) = delete;
	RecordFunction &operator=(const RecordFunction &) = delete;
	const char *name() const;
	static uint64_t currentThreadId();
	void end();

      private:
	struct Running {
		RecordFunctionCallback callback;
		std::unique_ptr<ObserverContext> context;
	};
	template <typename T> void put(unsigned offset, T value);

	std::vector<Running> *running;
	const char *schema; /* nullptr: `copy` is the name */
	std::string copy;
	[[maybe_unused]] unsigned char before[40];
	uint64_t thread; /* at 88 */
	uint8_t scope;
	[[maybe_unused]] unsigned char members[263];
};

namespace sequence_number
{
uint64_t peek();
uint64_t get_and_increment();
} // namespace sequence_number

} // namespace at

#endif
