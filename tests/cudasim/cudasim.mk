# The simulated CUDA device: $(BUILD)/cudasim/12 and /13, each with libcuda.so.1, libcudart.so.N and libcupti.so.N,
# and the programs that run on it. Both majors are built from the headers of CUDA 13.
# Included by the top Makefile; also works alone: make -f tests/cudasim/cudasim.mk cudasim
BUILD ?= build
CC ?= cc
CXX ?= c++
PYTHON ?= python3
OPT ?= -O2 -g
WARN_C ?= -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
CUDA_INCLUDE ?= /usr/local/cuda/include
SIM = $(BUILD)/cudasim
SIM_CFLAGS = -std=c11 -D_GNU_SOURCE= $(OPT) $(WARN_C) $(CFLAGS) -Itests/cudasim -isystem $(CUDA_INCLUDE)
SIM_CXXFLAGS = -std=c++17 -D_GNU_SOURCE $(OPT) -Wall -Wextra -Wshadow -Wconversion $(CFLAGS) -Itests/cudasim -isystem $(CUDA_INCLUDE)
# Linked so that the calls inside a library stay inside, whatever is preloaded.
SIM_LDFLAGS = $(OPT) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-rpath,'$$ORIGIN' -Wl,--build-id=sha1

sim_sources = $(patsubst tests/cudasim/%.c,%,$(wildcard $(1:%=tests/cudasim/%/*.c)))
SIM_CORE = $(filter-out core/stubs,$(call sim_sources,core driver))
SIM_RUNTIME = $(call sim_sources,runtime)
SIM_CUPTI = $(call sim_sources,cupti)

# The test programs that need CUDA: programs of their own in C or C++, linked with the shared runtime of a major.
SIM_PROGRAM_SOURCES = $(notdir $(shell grep -l '<cuda_runtime_api.h>\|"kernels.h"' $(wildcard tests/programs/*.c tests/programs/*.cc) /dev/null))
SIM_PROGRAMS = $(basename $(SIM_PROGRAM_SOURCES))
# The Check suites: of the runtime once for each major, of CUPTI once (they load what they test).
SIM_CUPTI_SUITES = $(patsubst tests/cudasim/tests/%.c,%,$(wildcard tests/cudasim/tests/test_cupti*.c))
SIM_SUITES = $(filter-out $(SIM_CUPTI_SUITES),$(patsubst tests/cudasim/tests/%.c,%,$(wildcard tests/cudasim/tests/test_*.c)))
SIM_SUITE_FILES = $(SIM_CUPTI_SUITES:%=$(SIM)/%) $(foreach m,12 13,$(SIM_SUITES:%=$(SIM)/$(m)/%))
SIM_CHECK_LIBS = $(shell pkg-config --libs check 2> /dev/null || echo -lcheck -lsubunit -lrt -lm) -lpthread -ldl

cudasim:
cudasim-tests: $(SIM_SUITE_FILES)
SIM_LIBRARY_FILES = $(foreach m,12 13,$(addprefix $(SIM)/$(m)/,libcuda.so.1 libcudart.so.$(m) libcupti.so.$(m)))
include tests/cudasim/libraries/libraries.mk
cudasim-libraries: $(SIM_LIBRARY_FILES)
SUITES += $(SIM_SUITE_FILES)
PROGRAMS += $(foreach m,12 13,$(addprefix $(SIM)/$(m)/,libcuda.so.1 libcudart.so.$(m) libcupti.so.$(m) $(SIM_PROGRAMS)))

define cudasim_major
SIM_LINK_PROGRAM_$(1) = -MMD -MP -MF $$(@D)/obj/$$*.d -DSIM_MAJOR=$(1) -o $$@ $$< $$(SIM)/$(1)/libcudart.so.$(1) -Wl,--as-needed \
	$$(SIM)/$(1)/libcuda.so.1 $$(SIM)/$(1)/libcupti.so.$(1) $$(SIM)/$(1)/libnccl.so.2 -Wl,-rpath,'$$$$ORIGIN' -lpthread -ldl -lm
cudasim: cudasim-$(1)
cudasim-$(1): $$(addprefix $$(SIM)/$(1)/,libcuda.so.1 libcudart.so.$(1) $$(if $$(SIM_CUPTI),libcupti.so.$(1)) $$(SIM_PROGRAMS))

# CUPTI's ids of the functions.
$$(SIM)/$(1)/obj/cbids_%.h: $$(CUDA_INCLUDE)/cupti_%_cbid.h tests/cudasim/core/cbids.awk
	@mkdir -p $$(@D)
	awk -v major=$(1) -f tests/cudasim/core/cbids.awk $$< | LC_ALL=C sort > $$@
$$(SIM)/$(1)/obj/core/scope.o: $$(SIM)/$(1)/obj/cbids_driver.h $$(SIM)/$(1)/obj/cbids_runtime.h
$$(SIM)/$(1)/obj/cbid_names_%.h: $$(CUDA_INCLUDE)/cupti_%_cbid.h tests/cudasim/core/cbid_names.awk
	@mkdir -p $$(@D)
	awk -f tests/cudasim/core/cbid_names.awk $$< > $$@
$$(SIM)/$(1)/obj/cupti/info.o: $$(SIM)/$(1)/obj/cbid_names_driver.h $$(SIM)/$(1)/obj/cbid_names_runtime.h

# cuda.h and cuda_runtime_api.h then declare every version of a function under its own name.
$$(addprefix $$(SIM)/$(1)/obj/,$$(SIM_CORE:%=%.o) $$(SIM_RUNTIME:%=%.o)): SIM_MODE = -D__CUDA_API_VERSION_INTERNAL
$$(SIM)/$(1)/obj/%.o: tests/cudasim/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(SIM_CFLAGS) $$(SIM_MODE) -DSIM_MAJOR=$(1) -fPIC -fvisibility=hidden -I$$(SIM)/$(1)/obj -MMD -MP -c -o $$@ $$<

$$(SIM)/$(1)/obj/stubs_driver.h: $$(SIM_CORE:%=$$(SIM)/$(1)/obj/%.o) tests/cudasim/core/stubs.awk
	nm -g --defined-only $$(filter %.o,$$^) | awk -v domain=driver -v major=$(1) -f tests/cudasim/core/stubs.awk - $$(CUDA_INCLUDE)/cuda.h > $$@
$$(SIM)/$(1)/obj/stubs_runtime.h: $$(SIM_RUNTIME:%=$$(SIM)/$(1)/obj/%.o) tests/cudasim/core/stubs.awk
	nm -g --defined-only $$(filter %.o,$$^) | awk -v domain=runtime -v major=$(1) -f tests/cudasim/core/stubs.awk - $$(addprefix $$(CUDA_INCLUDE)/,cuda_runtime_api.h generated_cuda_runtime_api_meta.h) > $$@
$$(SIM)/$(1)/obj/stubs_%.o: $$(SIM)/$(1)/obj/stubs_%.h tests/cudasim/core/stubs.c tests/cudasim/core/entry.h
	$$(CC) $$(SIM_CFLAGS) -fno-builtin -fPIC -fvisibility=hidden -DSIM_STUBS='"$$(<F)"' -I$$(@D) -c -o $$@ tests/cudasim/core/stubs.c

$$(SIM)/$(1)/libcuda.so.1: $$(addprefix $$(SIM)/$(1)/obj/,$$(SIM_CORE:%=%.o) stubs_driver.o)
	$$(CC) $$(SIM_LDFLAGS) -Wl,-z,defs -Wl,-soname,libcuda.so.1 -o $$@ $$^ -lpthread -ldl
$$(SIM)/$(1)/libcudart.so.$(1): $$(addprefix $$(SIM)/$(1)/obj/,$$(SIM_RUNTIME:%=%.o) stubs_runtime.o) $$(SIM)/$(1)/libcuda.so.1
	echo 'libcudart.so.$(1) { global: cuda*; __cuda*; local: *; };' > $$(@D)/obj/libcudart.map
	$$(CC) $$(SIM_LDFLAGS) -Wl,-z,defs -Wl,-soname,libcudart.so.$(1) -Wl,--version-script=$$(@D)/obj/libcudart.map -o $$@ $$^ -lpthread
$$(SIM)/$(1)/libcupti.so.$(1): $$(SIM_CUPTI:%=$$(SIM)/$(1)/obj/%.o) $$(SIM)/$(1)/libcuda.so.1
	echo 'libcupti.so.$(1) { global: cupti*; local: *; };' > $$(@D)/obj/libcupti.map
	$$(CC) $$(SIM_LDFLAGS) -Wl,-z,defs -Wl,-soname,libcupti.so.$(1) -Wl,--version-script=$$(@D)/obj/libcupti.map -o $$@ $$^ -lpthread -ldl

$$(patsubst %.c,$$(SIM)/$(1)/%,$$(filter %.c,$$(SIM_PROGRAM_SOURCES))): $$(SIM)/$(1)/%: tests/programs/%.c $$(SIM)/$(1)/libcudart.so.$(1) $$(SIM)/$(1)/libcupti.so.$(1) $$(SIM)/$(1)/libnccl.so.2
	$$(CC) $$(SIM_CFLAGS) $$(SIM_LINK_PROGRAM_$(1))
$$(patsubst %.cc,$$(SIM)/$(1)/%,$$(filter %.cc,$$(SIM_PROGRAM_SOURCES))): $$(SIM)/$(1)/%: tests/programs/%.cc $$(SIM)/$(1)/libcudart.so.$(1) $$(SIM)/$(1)/libcupti.so.$(1) $$(SIM)/$(1)/libnccl.so.2
	$$(CXX) $$(SIM_CXXFLAGS) $$(SIM_LINK_PROGRAM_$(1))
$$(SIM_SUITES:%=$$(SIM)/$(1)/%): $$(SIM)/$(1)/%: tests/cudasim/tests/%.c $$(SIM)/$(1)/libcudart.so.$(1)
	$$(CC) $$(SIM_CFLAGS) -MMD -MP -MF $$(@D)/obj/$$*.d -DSIM_MAJOR=$(1) -o $$@ $$< $$(addprefix $$(@D)/,$$(SIM_TESTED_$$*)) \
		$$(SIM)/$(1)/libcudart.so.$(1) $$(SIM)/$(1)/libcuda.so.1 -Wl,-rpath,'$$$$ORIGIN' $$(SIM_CHECK_LIBS)
$$(SIM)/$(1)/lib_injection.so: tests/cudasim/tests/lib_injection.c
	@mkdir -p $$(@D)
	$$(CC) $$(SIM_CFLAGS) $$(LDFLAGS) -fPIC -shared -o $$@ $$< -ldl
$$(SIM)/$(1)/test_device: $$(SIM)/$(1)/lib_injection.so
-include $$(wildcard $$(SIM)/$(1)/obj/*.d $$(SIM)/$(1)/obj/*/*.d)
endef
$(eval $(call cudasim_major,12))
$(eval $(call cudasim_major,13))

$(SIM_CUPTI_SUITES:%=$(SIM)/%): $(SIM)/%: tests/cudasim/tests/%.c tests/cudasim/tests/cupti_client.c | cudasim-libraries
	$(CC) $(SIM_CFLAGS) -MMD -MP -o $@ $^ $(SIM_CHECK_LIBS)
-include $(SIM_CUPTI_SUITES:%=$(SIM)/%.d)

# For each environment with PyTorch that is there (tests/torch): what its wheel asks for and the simulation lacks. torch.sh runs Python on it.
# Never the reason to install one anew: hence pyvenv.cfg, which no rule makes.
SIM_TORCH = $(patsubst build/%/.installed,$(SIM)/torch/%/libcudasim_rest.so,$(wildcard build/torch*/.installed))
cudasim-torch: $(SIM_TORCH)
PROGRAMS += $(SIM_TORCH)
$(SIM)/torch/%/libcudasim_rest.so: build/%/pyvenv.cfg tests/cudasim/wheel_stubs.py tests/torch/without_cuda.py $(SIM_LIBRARY_FILES)
	@mkdir -p $(@D)
	$(PYTHON) tests/cudasim/wheel_stubs.py $(wildcard build/$*/lib/python3*/site-packages/torch) \
		$(SIM)/$(shell sed -n "s/^cuda.*'\([0-9]*\)\.[0-9]*'.*/\1/p" build/$*/lib/python3*/site-packages/torch/version.py) $(@D)

.PHONY: cudasim-torch
.PHONY: cudasim cudasim-12 cudasim-13 cudasim-tests cudasim-libraries
