# What recording and reading cost, as ratios to the project's own floors, measured in turns on one machine. Exits with 1 if a gate is
# missed. tests/bench/bench_X.c print their own lines and exit with 1 if theirs is.
# No command uses what an earlier one has kept.
export PPERF_CACHE = 0

BENCH_OWN = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
BENCH_PROGRAMS = $(BUILD)/tests/bench/nvtx_load $(BUILD)/tests/bench/lib_floor.so

#: make bench        overhead against the project's floors; exits with 1 if a limit is exceeded (a quiet machine, some minutes)
bench:
	@scripts/setup.sh build test bench
	@$(MAKE) --no-print-directory -j$$(nproc) bench-run
bench-run: all $(BENCH_PROGRAMS) $(BUILD)/tests/programs/user_metrics $(BUILD)/tests/programs/job_load bench-own
	@status=0; for part in bench import export program_api pages ranks cache threads; do $(PYTHON) tests/bench/$$part.py $(BUILD) || status=1; done; exit $$status
bench-own: $(BENCH_OWN)

#: make bench-api    what a call of pperf.h and of the Python module pperf costs, with and without the library (a quiet machine, a minute)
bench-api: all $(BUILD)/tests/programs/user_metrics
	@$(PYTHON) -B tests/bench/program_api.py $(BUILD)

#: make bench-parts  what merging the parts of 10,000 ranks costs; after make scale-peers (a quiet machine, 3 minutes)
bench-parts: all
	@$(PYTHON) -B tests/bench/parts.py $(BUILD)

#: make bench-ring   10^9 events in a ring of 256 MB: the size of the file, memory, time (a minute)
bench-ring: all $(BUILD)/tests/programs/ranges
	@$(PYTHON) -B tests/bench/ring.py $(BUILD)

# The same load under other recorders: of those that are there. TRACY is a folder of Tracy's sources.
TRACY ?=
export TRACY
PEERS = $(BUILD)/tests/bench/calls_load $(if $(TRACY),$(BUILD)/tests/bench/tracy_load) \
	$(if $(shell echo '\#include <lttng/tracepoint.h>' | $(CC) -E -x c - 2> /dev/null | head -c 1),$(addprefix $(BUILD)/tests/bench/,lttng_load lttng_number_load))
TRACY_FLAGS = -DTRACY_ENABLE -I$(TRACY)/public

#: make bench-peers  the same under LTTng-UST, uftrace and Tracy, those of them that are installed; writes bench/RESULTS.md (a quiet machine, 4 minutes)
bench-peers:
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory -j$$(nproc) bench-peers-build
	@$(PYTHON) -B tests/bench/peers/peers.py $(BUILD)
#: make bench-readers  what HTA and TraceLens (TRACELENS) take to read torch.profiler's files of PPERF_TEST_DATA, and whether they find the same; into bench/RESULTS.md
bench-readers: all
	@$(PYTHON) -B tests/bench/readers.py
bench-peers-build: all $(BENCH_PROGRAMS) $(PEERS)

$(BUILD)/tests/bench/nvtx_load $(PEERS): tests/bench/load.h
$(BUILD)/tests/bench/lttng_%: tests/bench/peers/lttng_load.c tests/bench/peers/lttng_ranges.h
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -Wno-pedantic $(if $(findstring number,$*),-DNUMBERS) -o $@ $< -llttng-ust -ldl -lpthread
$(BUILD)/tests/bench/calls_load: tests/bench/peers/calls_load.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -finstrument-functions -o $@ $< -lpthread
$(BUILD)/tests/bench/tracy_load: tests/bench/peers/tracy_load.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -Wno-pedantic $(TRACY_FLAGS) -c -o $@.o $<
	$(CXX) -O2 -DNDEBUG $(TRACY_FLAGS) $(addprefix -DTRACY_,NO_SAMPLING NO_CONTEXT_SWITCH NO_SYSTEM_TRACING NO_CRASH_HANDLER ONLY_LOCALHOST NO_BROADCAST \
		NO_CODE_TRANSFER) -o $@ $@.o $(TRACY)/public/TracyClient.cpp -ldl -lpthread
$(BUILD)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -o $@ $< -lpthread
$(BUILD)/tests/bench/lib_%.so: tests/bench/lib_%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -fno-plt -o $@ $<
$(BENCH_OWN): $(BUILD)/tests/bench/bench_%: tests/bench/bench_%.c $(addprefix $(BUILD)/tests/lib,fixtures.a report.a pperf.a)
	@mkdir -p $(@D)
	first=$$(grep -q '"report/' $< && echo report || echo pperf); \
	$(CC) $(BASE_CFLAGS) $(NVTX_CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/tests/libfixtures.a $(BUILD)/tests/lib$$first.a \
		$(BUILD)/tests/libreport.a $(BUILD)/tests/libpperf.a $(REPORT_LIBS) -ldl -lpthread

.PHONY: bench bench-parts bench-api bench-ring bench-run bench-own bench-peers bench-peers-build bench-readers
