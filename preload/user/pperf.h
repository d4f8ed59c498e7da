/* SPDX-License-Identifier: MIT
 * pperf.h: ranges, marks and metrics of a C or C++ program, recorded by libpperf.so.
 *
 *	#include <pperf.h>
 *
 *	static double length(void *queue) { return ((struct queue *)queue)->frames; }
 *
 *	unsigned loss = pperf_metric("Loss", "");
 *	pperf_metric_callback(pperf_metric("Queued", "frames"), length, &queue);
 *
 *	pperf_range_push("track");
 *	pperf_metric_push(loss, 0.25);
 *	pperf_range_pop();
 *
 * Header only: C11, C++11 and later, gcc and clang. A program that includes it needs no library,
 * and also runs without libpperf.so. Each function then does nothing: the first call of the
 * program looks for libpperf.so by dlsym, later calls test one pointer. With a glibc older than
 * 2.34, link with -ldl.
 *
 * Texts are UTF-8 and copied during the call. NULL is the empty text. Every function may be called
 * from any thread, preserves errno and reports no errors. Not to be called in signal handlers.
 */
#ifndef PPERF_H
#define PPERF_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
#include <time.h>
#endif

#define PPERF_INTERFACE_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the current value of a metric. NaN and infinity: it has no value now. It must not throw.
 * A range that it opens itself calls no callbacks. */
typedef double pperf_callback(void *context);

/* The functions of libpperf.so. New members go to the end; `size` says which ones it has. */
struct pperf_interface {
	size_t size; /* in bytes; 0: there is no libpperf.so */
	int (*enabled)(void);
	void (*range_push)(const char *text);
	void (*range_pop)(void);
	uint64_t (*range_begin)(const char *text);
	void (*range_end)(uint64_t range);
	void (*mark)(const char *text);
	unsigned (*metric)(const char *name, const char *unit);
	void (*metric_push)(unsigned metric, double value);
	void (*metric_callback)(unsigned metric, pperf_callback *callback, void *context);
};

/* What libpperf.so exports under the name pperf_interface. Returns NULL if it is disabled. */
typedef const struct pperf_interface *pperf_interface_function(unsigned version);

#ifndef PPERF_ONLY_TYPES

/* The result of the first look-up: NULL before it, pperf_no_library if nothing was found. Weak, so
 * that all files of an executable or library share it. */
__attribute__((weak, visibility("hidden"))) const struct pperf_interface *pperf_found;
__attribute__((weak, visibility("hidden"))) struct pperf_interface pperf_no_library;

static __attribute__((cold, noinline, unused)) const struct pperf_interface *pperf_look_up(void)
{
	/* The first argument is RTLD_DEFAULT, which strict C11 does not declare. */
	void *symbol = dlsym((void *)0, "pperf_interface");
	const struct pperf_interface *found = NULL;
	pperf_interface_function *function;

	if (symbol) {
		memcpy(&function, &symbol, sizeof function);
		found = function(PPERF_INTERFACE_VERSION);
	} else {
		dlerror(); /* the program's next dlerror() does not return our message */
	}
	if (!found)
		found = &pperf_no_library;
	__atomic_store_n(&pperf_found, found, __ATOMIC_RELEASE);
	return found;
}

/* Returns the functions if they have `member`, else NULL. */
#define PPERF_WITH(member)                                                                      \
	(pperf_functions()->size > offsetof(struct pperf_interface, member) ? pperf_functions() \
									    : NULL)

static inline const struct pperf_interface *pperf_functions(void)
{
	const struct pperf_interface *found = __atomic_load_n(&pperf_found, __ATOMIC_ACQUIRE);

	return __builtin_expect(found != NULL, 1) ? found : pperf_look_up();
}

/* Returns 1 if libpperf.so records now, 0 if it is absent, disabled or paused (PPERF_SCHEDULE).
 * For programs that compute a text or a value only for it. */
static inline int pperf_enabled(void)
{
	const struct pperf_interface *library = PPERF_WITH(enabled);

	return library ? library->enabled() : 0;
}

/* Open and close a range of the calling thread. Ranges nest, also with NVTX's of the default
 * domain. */
static inline void pperf_range_push(const char *text)
{
	const struct pperf_interface *library = PPERF_WITH(range_push);

	if (library)
		library->range_push(text);
}

static inline void pperf_range_pop(void)
{
	const struct pperf_interface *library = PPERF_WITH(range_pop);

	if (library)
		library->range_pop();
}

/* Begins a range that may overlap others and may end on another thread, such as a request. It has a
 * wall time and levels, and owns no GPU work. Returns its id; 0 without libpperf.so. */
static inline uint64_t pperf_range_begin(const char *text)
{
	const struct pperf_interface *library = PPERF_WITH(range_begin);

	return library ? library->range_begin(text) : 0;
}

/* `range`: of pperf_range_begin; 0 is ignored. */
static inline void pperf_range_end(uint64_t range)
{
	const struct pperf_interface *library = PPERF_WITH(range_end);

	if (library)
		library->range_end(range);
}

/* Records a point in time. */
static inline void pperf_mark(const char *text)
{
	const struct pperf_interface *library = PPERF_WITH(mark);

	if (library)
		library->mark(text);
}

/* Returns the id of the metric with this name and unit; 0 without libpperf.so. The same name and
 * unit give the same id. A unit is any text, such as "GB", or "". */
static inline unsigned pperf_metric(const char *name, const char *unit)
{
	const struct pperf_interface *library = PPERF_WITH(metric);

	return library ? library->metric(name, unit) : 0;
}

/* Records a value of a metric, which it keeps until the next one. NaN and infinity: it has no value
 * now. */
static inline void pperf_metric_push(unsigned metric, double value)
{
	const struct pperf_interface *library = PPERF_WITH(metric_push);

	if (library)
		library->metric_push(metric, value);
}

/* Calls `callback` when a range of this header begins and when it ends, on the thread of the range,
 * and records what it returns. It replaces the metric's earlier callback; NULL removes that.
 * Another thread may still be in the earlier one when this returns, so `context` has to stay
 * valid. */
static inline void pperf_metric_callback(unsigned metric, pperf_callback *callback, void *context)
{
	const struct pperf_interface *library = PPERF_WITH(metric_callback);

	if (library)
		library->metric_callback(metric, callback, context);
}

#undef PPERF_WITH
#endif

#ifdef __cplusplus
}

#ifndef PPERF_ONLY_TYPES
namespace pperf
{

/* A range from here to the end of the scope. One with a unit counts elements: at its end the metric
 * `unit`/s has its elements per second.
 *
 *	pperf::range epoch("epoch", "images");
 *	epoch.count(64);
 */
class range
{
      public:
	explicit range(const char *text)
	{
		pperf_range_push(text);
	}
	/* `text`: a std::string, or of another class that has c_str(). */
	template <class Text> explicit range(const Text &text, decltype(text.c_str()) = nullptr)
	{
		pperf_range_push(text.c_str());
	}
	/* `unit`: the name of what is counted, which must stay valid. */
	range(const char *text, const char *unit) : begin_s_(now_s()), unit_(unit)
	{
		pperf_range_push(text);
	}
	~range()
	{
		if (unit_)
			push_rate();
		pperf_range_pop();
	}
	range(const range &) = delete;
	range &operator=(const range &) = delete;

	/* Adds to the number of elements that the range has handled. */
	void count(double elements)
	{
		elements_ += elements;
	}

      private:
	static double now_s() noexcept
	{
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
	}
	void push_rate() noexcept
	{
		const double passed_s = now_s() - begin_s_;
		char name[128];
		size_t bytes = strlen(unit_);

		if (bytes > sizeof name - 3)
			bytes = sizeof name - 3;
		memcpy(name, unit_, bytes);
		memcpy(name + bytes, "/s", 3);
		if (passed_s > 0)
			pperf_metric_push(pperf_metric(name, name), elements_ / passed_s);
	}

	double begin_s_ = 0, elements_ = 0;
	const char *unit_ = nullptr;
};

/* A metric with its id. */
class metric
{
      public:
	metric(const char *name, const char *unit) : id_(pperf_metric(name, unit))
	{
	}
	void push(double value) const
	{
		pperf_metric_push(id_, value);
	}
	void callback(pperf_callback *function, void *context) const
	{
		pperf_metric_callback(id_, function, context);
	}
	unsigned id() const
	{
		return id_;
	}

      private:
	unsigned id_;
};

inline void mark(const char *text)
{
	pperf_mark(text);
}
inline bool enabled()
{
	return pperf_enabled() != 0;
}

} // namespace pperf
#endif
#endif

#endif
