# The tests. test_X.c in tests/collector, tests/preload and tests/report is a Check suite, linked with what it uses of the report and the
# library; tests/system/test_X.py runs whole programs; tests/programs/X.c (or .cc) is one of those, tests/programs/lib_X.c a library that
# they load. The suites share tests/support. Programs that need CUDA are built by cudasim.mk, which adds to
# SUITES and PROGRAMS what it has.
CHECK_LIBS = $(shell pkg-config --libs check 2> /dev/null || echo -lcheck -lsubunit -lrt -lm)
SUITE_SOURCES := $(shell find tests/collector tests/preload tests/report -name 'test_*.c' | LC_ALL=C sort)
# test_demangle measures time, which is another under TSan; test_large_stack makes threads with less stack than TSan needs; test_unwind
# interrupts a computation, to which TSan delivers no signal before its next library call. What they call shares nothing between threads.
THREADED = $(filter-out %/test_demangle %/test_large_stack %/test_unwind,$(patsubst %.c,%,$(shell grep -l 'pthread_create\|threads_set_limit' $(SUITE_SOURCES))))
FIXTURES = $(wildcard tests/support/*.c)
SUITES += $(SUITE_SOURCES:%.c=$(BUILD)/%)

PROGRAM_SOURCES := $(shell grep -L '<cu[dp]\|"kernels.h"' $(wildcard tests/programs/*.c tests/programs/*.cc) /dev/null | grep -v /dev/null)
PROGRAM_LIBS = $(filter tests/programs/lib_%,$(PROGRAM_SOURCES))
PROGRAMS += $(patsubst %,$(BUILD)/%,$(basename $(filter-out $(PROGRAM_LIBS),$(PROGRAM_SOURCES))))
PROGRAMS += $(PROGRAM_LIBS:%.c=$(BUILD)/%.so)
PROGRAM_CFLAGS = $(BASE_CFLAGS) $(NVTX_CFLAGS) -Wno-missing-prototypes

ASAN = BUILD=$(BUILD)/asan OPT='-O1 -g' CFLAGS='-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer'
TSAN = BUILD=$(BUILD)/tsan OPT='-O1 -g' CFLAGS='-fsanitize=thread'
RUN = $(PYTHON) tests/run.py --build $(BUILD)
TEST_SETUP = scripts/setup.sh build test && $(MAKE) --no-print-directory -j$$(nproc)

#: make test-plain   only the tests without sanitizers; test-asan, test-tsan: only those
test:
	@$(TEST_SETUP) test-run
#: make test-hosts   compilers, shells, Python's own tests, servers, browsers and others under the library (long; scripts/setup.sh hosts installs them)
#: make soak         ten thousand kills of recording programs (a quarter of an hour on two cores; PPERF_SOAK_KILLS=n)
test-plain test-asan test-tsan test-hosts soak:
	@$(TEST_SETUP) $@-run

#: make soak-views  every view with every option, sanitized, on our own traces and all of the folders PPERF_TEST_DATA and PPERF_TEST_TRACES (hours)
soak-views: programs asan
	PPERF_TEST_SOAK=1 PPERF_TEST_VARIANT=asan PPERF_TEST_BUILD=$(BUILD) PPERF_TEST_TOOLS=$(BUILD)/asan ASAN_OPTIONS=detect_leaks=0 \
		UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/system/test_every_view.py

# A part that does not build counts as failed, so the runner goes on and says so.
test-run: ; @$(RUN) plain asan tsan torch-quick
test-plain-run: ; @$(RUN) plain
test-asan-run: ; @$(RUN) asan
test-tsan-run: ; @$(RUN) tsan
test-hosts-run: ; @$(RUN) hosts
soak-run: ; @$(RUN) soak

# What the runner asks for.
suites: $(SUITES)
programs: $(PROGRAMS) all
plain: all suites programs
asan:
	@$(MAKE) --no-print-directory $(ASAN) all suites
tsan:
	@$(MAKE) --no-print-directory $(TSAN) $(THREADED:%=$(BUILD)/tsan/%)
list-suites: ; @echo $(patsubst $(BUILD)/%,%,$(SUITES))
list-threaded: ; @echo $(THREADED)

$(BUILD)/tests/libpperf.a: $(LIB_OBJECTS)
$(BUILD)/tests/libreport.a: $(REPORT_OBJECTS)
$(BUILD)/tests/libfixtures.a: $(FIXTURES:%.c=$(BUILD)/%.o)
$(BUILD)/tests/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(NVTX_CFLAGS) -MMD -MP -c -o $@ $<

# Where both sides have a name, the suite means that of the side whose headers it includes.
$(SUITE_SOURCES:%.c=$(BUILD)/%): $(BUILD)/%: $(BUILD)/%.o $(addprefix $(BUILD)/tests/lib,fixtures.a report.a pperf.a)
	first=$$(grep -q '"report/' $*.c && echo report || echo pperf); \
	$(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/tests/libfixtures.a $(BUILD)/tests/lib$$first.a \
		$(BUILD)/tests/libreport.a $(BUILD)/tests/libpperf.a $(CHECK_LIBS) $(REPORT_LIBS) -ldl -lpthread

$(BUILD)/tests/programs/%: tests/programs/%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -MMD -MP -o $@ $< $(LDFLAGS) -ldl -lpthread
$(BUILD)/tests/programs/%: tests/programs/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -D_GNU_SOURCE $(OPT) $(WARN) -I. $(CFLAGS) $(NVTX_CFLAGS) -MMD -MP -o $@ $< $(LDFLAGS) -ldl -lpthread
$(BUILD)/tests/programs/lib_%.so: tests/programs/lib_%.c
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -MMD -MP -o $@ $< $(LDFLAGS) -ldl -lpthread

# They make traces as the suites do.
FIXTURE_PROGRAMS = $(addprefix $(BUILD)/tests/programs/,random_traces job_load)
$(FIXTURE_PROGRAMS): %: %.o $(addprefix $(BUILD)/tests/lib,fixtures.a report.a)
	$(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/tests/libfixtures.a $(BUILD)/tests/libreport.a $(CHECK_LIBS) $(REPORT_LIBS) -ldl -lpthread

# A model of two of PyTorch's libraries, which find each other as those do.
$(BUILD)/tests/programs/lib_c10.so: private LDFLAGS += -Wl,-soname,libc10.so
$(BUILD)/tests/programs/lib_c10_cuda.so: private LDFLAGS += -Wl,-soname,libc10_cuda.so -Wl,-rpath,'$$ORIGIN' $(BUILD)/tests/programs/lib_c10.so
$(BUILD)/tests/programs/lib_c10_cuda.so: $(BUILD)/tests/programs/lib_c10.so

# What it would write into a trace's dictionary is taken from it.
FRAMES = $(BUILD)/tests/programs/lib_python_frames.so
$(FRAMES): tests/programs/lib_python_frames.c $(BUILD)/tests/libpperf.a
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -MMD -MP -o $@ $< $(BUILD)/tests/libpperf.a $(LDFLAGS) \
		-Wl,-z,defs,--wrap=python_stack_id,--wrap=dictionary_put,--wrap=meta_set -ldl -lpthread

.PHONY: test test-run soak-views soak soak-run test-hosts test-hosts-run test-plain test-asan test-tsan test-plain-run test-asan-run test-tsan-run suites programs plain asan tsan list-suites list-threaded
-include $(SUITE_SOURCES:%.c=$(BUILD)/%.d) $(FIXTURES:%.c=$(BUILD)/%.d) $(addsuffix .d,$(basename $(PROGRAMS)))
