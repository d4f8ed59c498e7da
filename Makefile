# pperf: `make` builds build/libpperf.so and build/pperf-report; `make help` lists the rest.
BUILD ?= build
CC ?= cc
CXX ?= c++
PYTHON ?= python3
PREFIX ?= /usr/local
OPT ?= -O2 -g
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion
WARN_C = $(WARN) -Wstrict-prototypes -Wmissing-prototypes
CFLAGS ?=
BASE_CFLAGS = -std=c11 -D_GNU_SOURCE $(OPT) $(WARN_C) -I. $(CFLAGS)
include scripts/dependencies.mk

PRELOAD := $(shell find preload -name '*.c' | LC_ALL=C sort)
COLLECTOR := $(shell find collector -name '*.c' | LC_ALL=C sort)
REPORT := $(shell find report -name '*.c' | LC_ALL=C sort)
LIB_OBJECTS = $(PRELOAD:%.c=$(BUILD)/lib/%.o) $(COLLECTOR:%.c=$(BUILD)/lib/%.o)
REPORT_OBJECTS = $(REPORT:%.c=$(BUILD)/%.o)
LIB_CFLAGS = $(BASE_CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fdata-sections $(NVTX_CFLAGS)
LIB_LDFLAGS = -shared -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now -Wl,-z,noseparate-code -Wl,--sort-section=alignment -Wl,--build-id=sha1 -Wl,--version-script=preload/exports.map -Wl,--as-needed

all: $(BUILD)/libpperf.so $(BUILD)/pperf-report
include packaging/package.mk packaging/arm64.mk

# Nothing is compiled before the compiler and the headers are known to be there. The library needs no more than these, on a machine that only records.
$(LIB_OBJECTS): | $(BUILD)/.checked-library
$(REPORT_OBJECTS): | $(BUILD)/.checked-build
$(BUILD)/.checked-%: scripts/setup.sh
	@CC='$(CC)' CFLAGS='$(CFLAGS)' scripts/setup.sh --check $*
	@mkdir -p $(@D) && touch $@

$(BUILD)/libpperf.so: $(LIB_OBJECTS) preload/exports.map
	$(CC) $(LIB_LDFLAGS) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(LIB_OBJECTS) -ldl -lpthread $(LIB_LDLIBS)

# It reads files from anywhere: an error in it is to end it, and be of no use to who made the file.
REPORT_CFLAGS = $(BASE_CFLAGS) -fstack-protector-strong
REPORT_LDFLAGS = -Wl,-z,relro -Wl,-z,now

$(BUILD)/pperf-report: $(REPORT_OBJECTS)
	$(CC) $(REPORT_LDFLAGS) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(REPORT_OBJECTS) $(REPORT_LIBS)

$(BUILD)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

# What the assembler reads (.incbin) is in no .d file.
$(BUILD)/report/gpu/work_categories.o: report/gpu/work_categories.rules
$(BUILD)/report/analysis/gpu_peaks.o: report/analysis/gpu_peaks.table
$(BUILD)/report/page/assets.o: $(wildcard report/page/*.css report/page/*.js)
$(BUILD)/lib/preload/torch/compile.o: preload/torch/compile.py
$(BUILD)/lib/preload/torch/modules.o: preload/torch/modules.py
$(BUILD)/lib/preload/user/python_module.o: preload/user/pperf.py

$(BUILD)/report/%.o: report/%.c
	@mkdir -p $(@D)
	$(CC) $(REPORT_CFLAGS) -MMD -MP -c -o $@ $<

setup:
	@scripts/setup.sh build test

demo:
	@scripts/setup.sh build demo
	@echo 'pperf demo: building'
	@$(MAKE) --no-print-directory -s -j$$(nproc) demo-build
	@scripts/demo.sh $(BUILD)
	@echo
	@scripts/demo_torch.sh $(BUILD) $(DEMO_PYTHONS) || [ $$? -eq 3 ]
demo-build: all $(addprefix $(BUILD)/cudasim/13/,libcuda.so.1 libcudart.so.13 libcupti.so.13 demo_train)

demo-torch: all
	@scripts/demo_torch.sh $(BUILD) $(DEMO_PYTHONS)
# The program's own PyTorch first, then the newest of ours (tests/torch/torch.mk).
DEMO_PYTHONS = $(PYTHON) $(wildcard build/torch-$(TORCH_RELEASE)/bin/python build/torch/bin/python)

clean:
	rm -rf $(BUILD)

help:
	@sed -n 's/^#: //p' $(MAKEFILE_LIST)
#: make              build/libpperf.so and build/pperf-report
#: make demo         sets up, builds, runs a training-like program under the library, shows what uses its memory; then demo-torch
#: make demo-torch   runs an unmodified PyTorch script with the library and shows its tree, if PyTorch can be imported
#: make test         sets up, builds, and runs every test; ends with one line, `N passed, N failed`
#: make setup        installs missing packages (by apt, or prints the command; CUDA headers from wheels)
#: make clean        removes the build folder; BUILD=folder, CC, OPT, CFLAGS, LDFLAGS and CUDA_HOME are respected

.PHONY: all clean demo demo-build demo-torch help setup
.DELETE_ON_ERROR:
-include $(LIB_OBJECTS:.o=.d) $(REPORT_OBJECTS:.o=.d)
include tests/symbols/symbols.mk
-include tests/cudasim/cudasim.mk
include tests/torch/fake/fake.mk
include tests/tests.mk tests/fuzz/fuzz.mk tests/torch/torch.mk tests/bench/bench.mk scripts/quality.mk
-include scripts/gpu-check.mk
