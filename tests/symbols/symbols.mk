# What the tests of the interposed CUDA symbols need: stand-in runtimes 12 and 13, a copy of 12 renamed as wheels do it, their driver,
# clients of each, programs. No CUDA headers.
SYMBOLS = $(BUILD)/tests/symbols
SYMBOLS_CFLAGS = $(BASE_CFLAGS) -fPIC
SYMBOLS_RUNTIMES = $(addprefix $(SYMBOLS)/,12/libcudart.so.12 13/libcudart.so.13 renamed/libcudart-0a1b2c3d.so.12.4.127)
SYMBOLS_PROGRAMS = $(SYMBOLS_RUNTIMES) $(SYMBOLS)/driver/libcuda.so.1 $(SYMBOLS)/other.so $(SYMBOLS)/host \
	$(addprefix $(SYMBOLS)/,client12.so client13.so client_renamed.so client_silent.so direct12 direct13 sites first_calls)
PROGRAMS += $(SYMBOLS_PROGRAMS)

# folder, version of CUDA, soname, major (a renamed copy keeps the version node)
define stand_in
$(SYMBOLS)/$(1)/$(3): tests/symbols/runtime.c preload/cuda/real.h preload/cuda/cuda_abi.h
	@mkdir -p $$(@D)
	echo 'libcudart.so.$(4) { global: *; };' > $$@.map
	$$(CC) $$(SYMBOLS_CFLAGS) -shared -DRUNTIME=$(4) -DVERSION=$(2) -Wl,-soname,$(3) -Wl,--version-script=$$@.map -o $$@ $$< -ldl
endef
$(eval $(call stand_in,12,12080,libcudart.so.12,12))
$(eval $(call stand_in,13,13000,libcudart.so.13,13))
$(eval $(call stand_in,renamed,12040,libcudart-0a1b2c3d.so.12.4.127,12))

$(SYMBOLS)/driver/libcuda.so.1: tests/symbols/driver.c
	@mkdir -p $(@D)
	$(CC) $(SYMBOLS_CFLAGS) -shared -Wl,-soname,libcuda.so.1 -o $@ $<

$(SYMBOLS)/client12.so $(SYMBOLS)/direct12: $(SYMBOLS)/12/libcudart.so.12
$(SYMBOLS)/client13.so $(SYMBOLS)/direct13: $(SYMBOLS)/13/libcudart.so.13
$(SYMBOLS)/client_renamed.so: $(SYMBOLS)/renamed/libcudart-0a1b2c3d.so.12.4.127
$(addprefix $(SYMBOLS)/,client12.so client13.so client_renamed.so): $(SYMBOLS)/client%.so: tests/symbols/client.c preload/cuda/real.h preload/cuda/cuda_abi.h
	$(CC) $(SYMBOLS_CFLAGS) -shared -DRUNTIME=$(if $(findstring 13,$*),13,12) -o $@ $< $(filter $(SYMBOLS_RUNTIMES),$^)
# Names no runtime: what it gets is what comes first in the global scope.
$(SYMBOLS)/client_silent.so: tests/symbols/client.c preload/cuda/real.h preload/cuda/cuda_abi.h
	@mkdir -p $(@D)
	$(CC) $(SYMBOLS_CFLAGS) -shared -DRUNTIME=13 -o $@ $<
$(SYMBOLS)/direct12 $(SYMBOLS)/direct13: $(SYMBOLS)/direct%: tests/symbols/main.c tests/symbols/client.c preload/cuda/real.h
	$(CC) $(SYMBOLS_CFLAGS) -fno-pic -no-pie -DRUNTIME=$* -o $@ $(filter %.c,$^) $(filter $(SYMBOLS_RUNTIMES),$^)
$(SYMBOLS)/sites: tests/symbols/sites.c $(SYMBOLS)/13/libcudart.so.13
	$(CC) $(SYMBOLS_CFLAGS) -rdynamic -o $@ $^ -ldl
$(SYMBOLS)/first_calls: tests/symbols/first_calls.c $(SYMBOLS)/13/libcudart.so.13
	$(CC) $(SYMBOLS_CFLAGS) -rdynamic -o $@ $^ -lpthread -ldl
$(SYMBOLS)/other.so: tests/symbols/other.c
	@mkdir -p $(@D)
	$(CC) $(SYMBOLS_CFLAGS) -shared -o $@ $< -ldl
$(SYMBOLS)/host: tests/symbols/host.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -o $@ $< -ldl -lpthread

$(BUILD)/tests/bench/bench_cuda: $(SYMBOLS)/13/libcudart.so.13 $(SYMBOLS)/driver/libcuda.so.1
