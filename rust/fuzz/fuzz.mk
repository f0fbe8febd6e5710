# Included by the Makefile: `make fuzz` for as long as FUZZ_SECONDS says (each target; 555 s over 13 targets are two hours
# of one processor), `make fuzz-smoke` as CI does it.
FUZZ_SECONDS ?= 555
FUZZ_SMOKE_SECONDS ?= 30

.PHONY: fuzz fuzz-smoke fuzz-test fuzz-seeds

fuzz:
	rust/fuzz/run $(FUZZ_SECONDS)

# The seeds, changes of them and long inputs; no C++ compiler needed.
fuzz-test:
	$(CARGO) test --manifest-path rust/fuzz/Cargo.toml --release --locked --no-default-features --quiet

fuzz-smoke: fuzz-test
	FUZZ_SEED=1 rust/fuzz/run $(FUZZ_SMOKE_SECONDS)

fuzz-seeds: build
	$(BIN)/python rust/fuzz/make_seeds.py
