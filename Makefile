# pperf: `make` builds build/libpperf.so and build/pperf-report; `make help` lists the rest.
BUILD ?= build
CC ?= cc
OPT ?= -O2 -g
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
CFLAGS ?=
BASE_CFLAGS = -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -I. $(CFLAGS)
include scripts/dependencies.mk

PRELOAD = $(wildcard preload/*.c)
COLLECTOR = $(wildcard collector/*.c)
REPORT = $(wildcard report/*.c)
LIB_OBJECTS = $(PRELOAD:%.c=$(BUILD)/lib/%.o) $(COLLECTOR:%.c=$(BUILD)/lib/%.o)
REPORT_OBJECTS = $(REPORT:%.c=$(BUILD)/%.o)
LIB_CFLAGS = $(BASE_CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt $(NVTX_CFLAGS)
LIB_LDFLAGS = -shared -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now -Wl,--build-id=sha1 -Wl,--version-script=preload/exports.map -Wl,--as-needed

all: $(BUILD)/libpperf.so $(BUILD)/pperf-report

$(BUILD)/libpperf.so: $(LIB_OBJECTS) preload/exports.map
	$(CC) $(LIB_LDFLAGS) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(LIB_OBJECTS) -ldl -lpthread

$(BUILD)/pperf-report: $(REPORT_OBJECTS)
	$(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(REPORT_OBJECTS) $(REPORT_LIBS)

$(BUILD)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/report/%.o: report/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -MMD -MP -c -o $@ $<

clean:
	rm -rf $(BUILD)

.PHONY: all clean
-include $(LIB_OBJECTS:.o=.d) $(REPORT_OBJECTS:.o=.d)
-include tests/cudasim/cudasim.mk tests/tests.mk
