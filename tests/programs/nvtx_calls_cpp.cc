// SPDX-License-Identifier: MIT
// nvtx_calls_cpp EXPECTED: what C++ programs write, by nvtx3.hpp; EXPECTED as in nvtx_calls.
#include "expect.h"
#include <string>
#include <thread>
#include <nvtx3/nvtx3.hpp>

struct library {
	static constexpr char const *name{ "a C++ library" };
};
struct loading {
	static constexpr char const *name{ "loading" };
	static constexpr uint32_t id{ 9 };
};
struct text {
	static constexpr char const *message{ "registered by its type" };
};

static void expect_with(char const *kind, char const *name, char const *domain, int64_t category, int64_t color)
{
	struct expected *event = expect_event(kind);

	expect_text(event, "name", name);
	expect_text(event, "domain", domain);
	if (category >= 0)
		expect_number(event, "category", category);
	if (color >= 0)
		expect_number(event, "color", color);
	expect_done(event);
}

static void function_range()
{
	expect_named("push", "function_range", nullptr);
	NVTX3_FUNC_RANGE();
	expect_named("mark", "in a function", nullptr);
	nvtx3::mark("in a function");
	expect_named("pop", "function_range", nullptr);
}

static void scoped_ranges()
{
	expect_named("push", "scoped", nullptr);
	nvtx3::scoped_range range{ "scoped" };
	{
		std::string made = "made of " + std::to_string(2) + " parts";

		expect_with("push", made.c_str(), library::name, -1, 0xff0a0b0c);
		nvtx3::scoped_range_in<library> inner{ made, nvtx3::rgb{ 10, 11, 12 } };
		expect_with("push", "with a category", library::name, 5, -1);
		nvtx3::scoped_range_in<library> category{ "with a category", nvtx3::category{ 5 } };
		expect_named("pop", "with a category", library::name);
		expect_named("pop", made.c_str(), library::name);
	}
	expect_named("pop", "scoped", nullptr);
}

static void payloads()
{
	int64_t const integer = -77;
	double const real = 2.5;
	struct expected *event = expect_event("mark");

	expect_text(event, "name", "payload");
	expect_payload(event, NVTX_PAYLOAD_TYPE_INT64, &integer);
	expect_done(event);
	nvtx3::mark("payload", nvtx3::payload{ integer });
	event = expect_event("mark");
	expect_text(event, "name", "payload");
	expect_payload(event, NVTX_PAYLOAD_TYPE_DOUBLE, &real);
	expect_done(event);
	nvtx3::mark("payload", nvtx3::payload{ real });
}

static void registered_strings()
{
	auto &name = nvtx3::registered_string_in<library>::get<text>();

	expect_named("push", text::message, library::name);
	nvtx3::scoped_range_in<library> range{ name };
	expect_named("mark", text::message, library::name);
	nvtx3::mark_in<library>(name);
	expect_named("pop", text::message, library::name);
}

static void named_categories()
{
	struct expected *event = expect_event("name");

	expect_text(event, "name", loading::name);
	expect_text(event, "object_type", "category");
	expect_number(event, "object", loading::id);
	expect_done(event);
	auto &category = nvtx3::named_category_in<library>::get<loading>();
	expect_with("mark", "categorised", library::name, loading::id, -1);
	nvtx3::mark_in<library>("categorised", category);
}

static void unique_ranges()
{
	expect_named("start", "moved to a thread", library::name);
	nvtx3::unique_range_in<library> range{ "moved to a thread" };
	std::thread([&] {
		nvtx3::unique_range_in<library> mine = std::move(range);
		expect_named("end", "moved to a thread", library::name);
	}).join();
	expect_named("start", "by handle", nullptr);
	auto handle = nvtx3::start_range("by handle");
	expect_named("end", "by handle", nullptr);
	nvtx3::end_range(handle);
}

int main(int count, char **arguments)
{
	expect_open(count > 1 ? arguments[1] : "/dev/stdout");
	function_range();
	scoped_ranges();
	payloads();
	registered_strings();
	named_categories();
	unique_ranges();
	return expect_close();
}
