# A stand-in for PyTorch, so that what watches PyTorch is tried where there is none, and in forms that no release at hand has: $(FAKE)/torch is a
# package for PYTHONPATH. $(FAKE)/bare has another libtorch_cpu.so, without what is looked for in it. Any CPython 3.8 or later can import it.
FAKE = $(BUILD)/tests/fake
FAKE_LIB = $(FAKE)/torch/lib
FAKE_CXX = $(CXX) -std=c++17 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -shared
FAKE_LDFLAGS = -Wl,-rpath,'$$ORIGIN' -Wl,-z,lazy -L$(FAKE_LIB)
FAKE_PYTHON = $(patsubst tests/torch/fake/%,$(FAKE)/%,$(shell find tests/torch/fake/torch -name '*.py'))
FAKE_HEADERS = $(wildcard tests/torch/fake/*.h)
PROGRAMS += fake-torch
fake-torch: $(FAKE_PYTHON) $(FAKE)/torch/_C.abi3.so $(FAKE)/bare/libtorch_cpu.so

$(FAKE_LIB)/libtorch_cpu.so: tests/torch/fake/cpu.cc $(FAKE_HEADERS)
	@mkdir -p $(@D)
	$(FAKE_CXX) -Wl,-soname,$(@F) -o $@ $<
$(FAKE)/bare/libtorch_cpu.so: tests/torch/fake/cpu.cc $(FAKE_HEADERS)
	@mkdir -p $(@D)
	$(FAKE_CXX) -DFAKE_WITHOUT_CALLBACKS -Wl,-soname,$(@F) -o $@ $<
$(FAKE_LIB)/libc10.so: tests/torch/fake/c10.cc $(FAKE_HEADERS)
	@mkdir -p $(@D)
	$(FAKE_CXX) -Wl,-soname,$(@F) -o $@ $<
$(FAKE_LIB)/libc10_cuda.so: tests/torch/fake/c10_cuda.cc $(FAKE_HEADERS) $(FAKE_LIB)/libc10.so
	$(FAKE_CXX) -Wl,-soname,$(@F) -o $@ $< $(FAKE_LDFLAGS) -lc10
$(FAKE_LIB)/libtorch_python.so: tests/torch/fake/python.cc $(FAKE_HEADERS) $(addprefix $(FAKE_LIB)/,libtorch_cpu.so libc10_cuda.so)
	$(FAKE_CXX) -Wl,-soname,$(@F) -o $@ $< $(FAKE_LDFLAGS) -ltorch_cpu -lc10_cuda -lc10 -lpthread
$(FAKE)/torch/_C.abi3.so: tests/torch/fake/stub.c $(FAKE_LIB)/libtorch_python.so
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $< -Wl,-rpath,'$$ORIGIN/lib' -L$(FAKE_LIB) -ltorch_python
$(FAKE_PYTHON): $(FAKE)/%.py: tests/torch/fake/%.py
	@mkdir -p $(@D)
	@cp $< $@

.PHONY: fake-torch
