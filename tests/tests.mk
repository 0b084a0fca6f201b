# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What is built and run to check iocom: test programs, fuzz targets, benchmarks.
# Included by the Makefile at the top, which says what the variables are.

TEST_SOURCES  := $(wildcard $(addsuffix /test_*.c,$(addprefix tests/,unit bpf shim sim)))
TEST_TOOLS    := $(wildcard tests/tools/*.c)
BENCH_SOURCES := $(wildcard tests/bench/bench_*.c)
test_programs  = $(patsubst tests/%.c,$(BUILD)/tests/%,$(1))
TEST_BINARIES := $(call test_programs,$(TEST_SOURCES) $(TEST_TOOLS))

# The programs as the next release would be: they speak one more version of the secure channel.
# tests/cluster/test_versions.sh mixes them with this build's.
NEXT         := $(addprefix $(BUILD)/tests/next/,iocom iocomd iocom-net iocom-shim)
NEXT_OBJECTS := $(patsubst %.c,$(BUILD)/next/%.o,\
                $(shell grep -l '"user/channel/version.h"' $(shell find user agent balancer -name '*.c')))

# An agent and a shim that lie about a job that comes (tests/chaos/moves.sh).
LIARS := $(addprefix $(BUILD)/tests/liar/,iocomd iocom-shim iocom-net iocom-init iocom-hold)

##@ Check
.PHONY: tests
tests: all apps $(TEST_BINARIES) $(BUILD)/tests/shim/pam_witness.so $(BUILD)/tests/shim/audited_shim $(NEXT) $(LIARS) ## build all test programs

# Five mini-applications, once for each MPI that is installed.
APPS      := render molecular semiconductor reaction vortex
MPIS      := $(foreach m,openmpi mpich,$(if $(shell command -v mpicc.$m),$m))
APP_FLAGS := -O2 -g -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE
app_rule   = $(BUILD)/tests/apps/$(1)/%: tests/apps/%.c tests/apps/app.c tests/apps/app.h ; \
             @mkdir -p $$(@D) && echo "  MPICC   $$@" && mpicc.$(1) $$(APP_FLAGS) -o $$@ $$< tests/apps/app.c
$(foreach m,$(MPIS),$(eval $(call app_rule,$m)))
.PHONY: apps
apps: $(foreach m,$(MPIS),$(APPS:%=$(BUILD)/tests/apps/$m/%)) ## five parallel mini-applications, for Open MPI and for MPICH where they are installed
	@$(if $(MPIS),:,echo "apps: no MPI is installed (make deps)")

# The simulator's tests and benchmarks link its room only.
$(BUILD)/tests/sim/%: $(BUILD)/obj/tests/sim/%.o $(OBJ_sim)
	$(call link,$^ -lcmocka $(LIBS_sim))
$(BUILD)/tests/bench/bench_sim $(BUILD)/tests/bench/bench_sim_node $(BUILD)/tests/bench/bench_sim_fluid: \
		$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(OBJ_sim)
	$(call link,$^ $(LIBS_sim))
# The same work in SimGrid, where that is installed (libsimgrid-dev): C++, on its own.
BENCH_sim := $(BUILD)/tests/bench/bench_sim \
             $(if $(wildcard /usr/include/simgrid/s4u.hpp),$(BUILD)/tests/bench/bench_simgrid)
$(BUILD)/tests/bench/bench_simgrid: tests/bench/bench_simgrid.cpp tests/bench/simgrid_work.h
	@mkdir -p $(@D)
	@echo "  CXX     $<"
	$(Q)$(CXX) -O2 -std=c++17 -Wall -Wextra -o $@ $< -lsimgrid

LIBS_test := $(LIBS_net) $(LIBS_agent) -lcsv -lncursesw -ltinfo -lpthread
# A test links of tests/lib what it uses: the accuracy tests' own pages must stay few.
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtest.a $(ARCHIVES)
	$(call link,$< -Wl$(comma)--start-group $(BUILD)/libtest.a $(ARCHIVES) \
		-Wl$(comma)--end-group -lcmocka $(LIBS_test))

# A module for libpam, which has none of a sanitizer's symbols.
$(BUILD)/tests/shim/pam_witness.so: tests/shim/pam_witness.c
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) -O2 -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC -o $@ $<

# A shim with the test's libaudit, which takes the place of two members of the archives.
$(BUILD)/tests/shim/audited_shim: $(addprefix $(BUILD)/obj/,agent/shim/main.o tests/shim/audit_fake.o) \
		$(call archives,shim user)
	$(call link,$^ $(LIBS_shim))

# The objects stand before the archives, whose members of the same names are then not taken.
$(BUILD)/next/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $< (next)"
	$(Q)$(CC) $(CFLAGS) -DCHANNEL_VERSION_MAX=2 -MMD -MP -c $< -o $@
$(BUILD)/tests/next/iocom: $(BUILD)/obj/balancer/main.o $(NEXT_OBJECTS) $(call archives,cli profile settings view rules user)
	$(call link,$(filter-out $(BUILD)/next/agent/%,$^) $(LIBS_cli))
$(BUILD)/tests/next/iocomd: $(BUILD)/obj/agent/main.o $(NEXT_OBJECTS) $(call archives,agent profile settings view gossip rules user)
	$(call link,$(filter-out $(BUILD)/next/agent/net/%,$^) $(LIBS_agent))
$(BUILD)/tests/next/iocom-net: $(BUILD)/obj/agent/net/main.o $(NEXT_OBJECTS) \
		$(call archives,net agent profile settings view gossip rules user)
	$(call link,$(filter-out $(filter-out $(BUILD)/next/user/% $(BUILD)/next/agent/net/% \
		$(BUILD)/next/agent/gate/%,$(filter $(BUILD)/next/%,$^)),$^) $(LIBS_net))
$(BUILD)/tests/next/iocom-shim: $(BUILD)/iocom-shim
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The lie stands between one function and those that call it from other files.
$(BUILD)/tests/liar/iocomd: $(addprefix $(BUILD)/obj/,agent/main.o tests/shim/lying_agent.o) \
		$(call archives,agent profile settings view gossip rules user)
	$(call link,$^ -Wl$(comma)--wrap=peer_held_pack $(LIBS_agent))
$(BUILD)/tests/liar/iocom-shim: $(addprefix $(BUILD)/obj/,agent/shim/main.o tests/shim/lying_shim.o) \
		$(call archives,shim user)
	$(call link,$^ -Wl$(comma)--wrap=arrive_take $(LIBS_shim))
$(BUILD)/tests/liar/iocom-%: $(BUILD)/iocom-%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# --- fuzz targets: built a second time, with clang (tests/fuzz/run.sh) -------------
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(OBJ_sim)
	$(call link,$^ -fsanitize=fuzzer $(LIBS_sim))
# Those that decode what other processes and machines say link the agent's archives.
FUZZ_protocol := $(patsubst tests/fuzz/protocol/%.c,$(BUILD)/fuzz/%,\
                 $(wildcard tests/fuzz/protocol/*.c))
$(FUZZ_protocol): $(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/protocol/%.o \
		$(BUILD)/libtest.a $(ARCHIVES)
	$(call link,$< -Wl$(comma)--start-group $(BUILD)/libtest.a $(ARCHIVES) -Wl$(comma)--end-group \
		-fsanitize=fuzzer $(LIBS_test))

.PHONY: check
check: ## all tests; installs what they need; as root the kernel and cluster tests run too
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@AGAIN=$(AGAIN) bash tests/lib/run-checks.sh $(BUILD) all $(WITH)

.PHONY: check-vm
check-vm: ## the monitor's tests on other kernels, in virtual machines (minutes; WITH=vm: in check)
	@$(MAKE) --no-print-directory deps WITH=vm
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@bash tests/lib/run-checks.sh $(BUILD) vm

check-%: tests ## one part of the checks: check-unit and check-sim (any user), check-bpf, ... (root)
	@bash tests/lib/run-checks.sh $(BUILD) $*

.PHONY: check-pressure
check-pressure: tests ## the monitor under 100,000 threads, dirty files, 20,000 cgroups (root, minutes)
	@IOCOM_PRESSURE=full $(BUILD)/tests/bpf/test_pressure

.PHONY: check-layers
check-layers: all ## prove the walls: librules.a is pure, folders include only downwards, no circle of files
	@bash tests/lib/check-layers.sh $(BUILD)
	@python3 -B tests/lib/check-circles.py $(BUILD) agent

.PHONY: check-hardening
check-hardening: all ## the built programs have what the compiler and the linker offer against attacks
	@bash tests/lib/check-hardening.sh $(BUILD)

.PHONY: root-lines
root-lines: all ## how much code runs as root, by program and room, and which libraries; OTHER=DIR: another build beside it
	@bash tests/lib/root-lines.sh $(OTHER) $(BUILD)

.PHONY: check-model
check-model: ## every citation of the model (MODEL 3.1, O-8, E-4) has an entry in balancer/rules/README.md
	@python3 -B tests/lib/check-model.py

.PHONY: attack
attack: tests ## attack running agents: was it refused and logged, and does the agent stay alive (root, minutes)
	@bash tests/lib/run-checks.sh $(BUILD) attack

.PHONY: captured
captured: tests ## the network part of an agent is captured, at length: all it may send, more of each (root, minutes)
	@CAPTURED=full SEED=$(SEED) IOCOM_BUILD=$(abspath $(BUILD)) bash tests/attack/test_captured.sh

ASAN_PARTS ?= unit sim shim bpf run
.PHONY: asan
asan: ## build with ASan and UBSan into build/asan; run unit, sim, shim, monitor, end-to-end tests
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build/asan SANITIZE=address,undefined tests
	@IOCOM_SANITIZED=1 bash tests/lib/run-checks.sh build/asan $(ASAN_PARTS)

ROUNDS ?= 50
SEED   ?= 1
.PHONY: chaos
chaos: tests ## jobs under kill -9, cuts, full disks, wrong clocks on the testbed (root); ROUNDS=50 SEED=1, PLAN=LOG; WHAT=migration: jobs that move, at each step and then MOVES=200 times (one fault in FAULTS=10)
	@export IOCOM_BUILD=$(abspath $(BUILD)) ROUNDS=$(ROUNDS) SEED=$(SEED) PLAN=$(PLAN) \
		CASES="$(CASES)" MOVES=$(MOVES) FAULTS=$(FAULTS); \
	$(if $(filter migration,$(WHAT)),bash tests/chaos/moves.sh && bash tests/chaos/moving.sh,bash tests/chaos/chaos.sh)

.PHONY: chaos-parallel
chaos-parallel: tests ## parallel jobs of which random parts are killed, on the testbed (root); ROUNDS=50 SEED=1, WAY=rsh: by mpirun
	@IOCOM_BUILD=$(abspath $(BUILD)) ROUNDS=$(ROUNDS) SEED=$(SEED) WAY=$(WAY) bash tests/chaos/gangs.sh

CUTS ?= 100
.PHONY: power
power: tests ## power cuts on two nodes: what was told must be known afterwards (root, minutes); CUTS=100 SEED=1
	@IOCOM_BUILD=$(abspath $(BUILD)) CUTS=$(CUTS) SEED=$(SEED) bash tests/cluster/test_power.sh

.PHONY: check-upgrade
check-upgrade: tests ## jobs that go on while another build takes over, and back; FROM=REV: the first build (root)
	@bash tests/shim/upgrade.sh $(BUILD) $(if $(FROM),$(FROM),$(error FROM=REV says which build is upgraded))

.PHONY: tsan
tsan: ## build the agent with ThreadSanitizer into build/tsan; run two with jobs, scraping, a restart
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build/tsan SANITIZE=thread all \
		build/tsan/tests/tools/scrape
	@bash tests/lib/run-checks.sh build/tsan tsan

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: ## fuzz every reader of foreign text with libFuzzer (clang), FUZZ_SECONDS=60 each
	@CLANG=$(CLANG) bash tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS)

.PHONY: fuzz-protocol
fuzz-protocol: ## likewise what other processes and machines say only; FUZZ_SECONDS=600: ten minutes each
	@CLANG=$(CLANG) bash tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS) protocol

.PHONY: lint
lint: ## cppcheck over all C sources
	@bash tests/lib/lint.sh

FORMATTED := git ls-files '*.c' '*.h' | grep -v '^vmlinux/'
.PHONY: format format-check
format: ## format all C sources with clang-format
	@$(FORMATTED) | xargs clang-format -i
format-check: ## fail when a C source is not formatted
	@$(FORMATTED) | xargs clang-format --dry-run -Werror

.PHONY: bench
bench: $(patsubst tests/%.c,$(BUILD)/tests/%,$(BENCH_SOURCES)) ## print the benchmark tables
	@for b in $^; do echo "== $${b##*/}"; $$b || exit 1; done

.PHONY: bench-migration
bench-migration: all $(BUILD)/tests/tools/work ## how long a job is frozen when it moves, by size, also at 1 Gbit/s, and IOCM-PM against IOCM-RE on long jobs (root, 25 minutes); SIZES="1 16", LINK_SIZES=, MOVES=9, PASSES=5 (0: no policies); with build/vm also with and without pre-copy in a virtual machine (20 minutes; PAIRS_precopy=2, 0: no)
	@IOCOM_BUILD=$(abspath $(BUILD)) bash tests/bench/migration.sh loopback
	@IOCOM_BUILD=$(abspath $(BUILD)) bash tests/bench/migration.sh link
	@[ "$${PASSES:-5}" = 0 ] || IOCOM_BUILD=$(abspath $(BUILD)) bash tests/bench/moving.sh
	@[ ! -e build/vm/trixie/vmlinuz ] || [ $(PAIRS_precopy) = 0 ] || $(MAKE) --no-print-directory bench-precopy

# A kernel that tracks which pages a program changes is not everywhere.
PAIRS_precopy ?= 2
.PHONY: bench-precopy
bench-precopy: all tests ## how long a job of 512 MB is frozen that changes its memory, with and without pre-copy, in a virtual machine (20 minutes); PAIRS_precopy=2
	@bash tests/vm/fetch.sh
	@IOCOM_VM_ROUNDS=$(PAIRS_precopy) IOCOM_VM_MEMORY=5G IOCOM_VM_LIMIT=3600 IOCOM_VM_SECONDS=3700 bash tests/vm/guest.sh $(BUILD) trixie bench_precopy

.PHONY: bench-decision
bench-decision: $(BUILD)/tests/bench/bench_decision ## a placement from request to answer, 10 to 10,000 nodes; WHAT="wal io-re": these policies
	@$< $(WHAT)

.PHONY: bench-profiles
bench-profiles: all $(BUILD)/tests/tools/truth ## learned needs of real programs against the truth, after 1, 3 and 10 runs (root, 12 minutes); WHAT="--programs sort,gzip"
	@bash tests/bench/profiles/bench.sh --build $(BUILD) $(WHAT)

FIGURES ?= $(BUILD)/figures
SEEDS   ?= 10
.PHONY: figures
figures: $(BUILD)/iocom-sim ## all figures of the papers and the page of claims, build/figures/index.html
	@mkdir -p $(FIGURES)
	@$(BUILD)/iocom-sim figures --seeds $(SEEDS) --force --out $(FIGURES)

.PHONY: bench-sim
bench-sim: $(BENCH_sim) ## the simulator: speed, threads, against SimGrid; WHAT=size: 10 M jobs
	@$(BUILD)/tests/bench/bench_sim $(WHAT)

.PHONY: bench-replay
bench-replay: $(BUILD)/iocom-sim ## a batch log of 100,000 jobs with backfill, wide Darshan jobs: seconds
	@bash tests/bench/replay.sh $(BUILD) $(REPLAY_JOBS)

# The cost of the statistics themselves; tests/bench/monitor/bench.py says what it does.
$(BUILD)/tests/bench/empty.bpf.o: tests/bench/monitor/empty.bpf.c
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	$(Q)$(CLANG) -O2 -g -Wall -Werror -target bpf -c $< -o $@
PAIRS ?= 9
.PHONY: bench-monitor
BENCH_monitor := $(addprefix $(BUILD)/tests/tools/,drive firstsample attach) \
                 $(BUILD)/tests/bench/empty.bpf.o
bench-monitor: all $(BENCH_monitor) ## what the monitor costs (root, 15 minutes); WHAT=loss,peers,...
	@python3 tests/bench/monitor/bench.py $(BUILD) --pairs $(PAIRS) $(if $(WHAT),--what $(WHAT))

.PHONY: bench-testbed
bench-testbed: ## the emulated disks, link and processors beside what they were asked to be (root)
	@bash tests/bench/testbed/bench.sh

.PHONY: bench-mix
bench-mix: all $(BUILD)/tests/tools/work ## the mean slowdown of 42 real jobs under three policies (root, a quiet machine, 6 minutes)
	@MIX_QUIET=yes IOCOM_BUILD=$(abspath $(BUILD)) bash tests/cluster/mix.sh

ROUNDS_feedback ?= 5
.PHONY: bench-feedback
bench-feedback: all tests ## the feedback controller off, dry-run and on, in a virtual machine (20 minutes); ROUNDS_feedback=
	@bash tests/vm/fetch.sh
	@IOCOM_VM_ROUNDS=$(ROUNDS_feedback) IOCOM_VM_LIMIT=3600 IOCOM_VM_SECONDS=3700 bash tests/vm/guest.sh $(BUILD) trixie bench_feedback

.PHONY: bench-remote
bench-remote: all $(BUILD)/tests/tools/laps ## a command elsewhere, against ssh, srun, fork+exec (root, 3 minutes); WHAT=rate,...
	@python3 tests/bench/remote/bench.py $(BUILD) --rounds $(ROUNDS) $(if $(WHAT),--what $(WHAT))

# Parallel jobs; tests/bench/parallel/bench.sh lists the parts.
.PHONY: bench-parallel
bench-parallel: all apps $(BUILD)/tests/tools/work ## five parallel applications under five policies (root, a quiet machine); SHORT=1: 10 minutes, else 100
	@bash tests/bench/parallel/bench.sh $(BUILD) $(if $(WHAT),$(WHAT),mix) $(if $(SHORT),--short) $(PARALLEL_OPTIONS)

.PHONY: bench-rest
bench-rest: all ## what an agent costs that has nothing to do: part of a core, memory (root, 2 minutes)
	@IOCOM_BUILD=$(abspath $(BUILD)) python3 -B tests/bench/rest.py

# What holds in large clusters, calculated and then live, and for data that goes along.
NODES ?= 1000,10000
LIVE  ?= 200
.PHONY: bench-live
bench-live: all $(BUILD)/tests/tools/work $(BUILD)/tests/bench/bench_decision ## the live scheme beside its goals: NODES= calculated, LIVE= agents here, data along (root, a quiet machine, 15 minutes)
	@$(BUILD)/iocom-sim gossip --nodes $(NODES)
	@IOCOM_BUILD=$(abspath $(BUILD)) python3 -B tests/bench/live/live.py --nodes $(LIVE)
	@for part in tests/bench/live/*.sh; do IOCOM_BUILD=$(abspath $(BUILD)) bash $$part || exit 1; done

# The effect of placement on real applications; tests/effect/README.md says what it does.
CHOOSERS ?= core
JOBS     ?= 40
PASSES   ?= 5
SET      ?= main
OUT      ?= $(BUILD)/effect
.PHONY: bench-effect
bench-effect: all $(BUILD)/tests/tools/work ## whether placement helps real applications (root, a quiet machine, 90 minutes); CHOOSERS= SET=holdout FULL=1 ...
	@sh tests/lib/deps.sh effect
	@python3 -B tests/effect/effect.py --build $(BUILD) --out $(OUT) --choosers $(CHOOSERS) \
		--jobs $(JOBS) --passes $(PASSES) --set $(SET) --seed $(SEED) \
		$(if $(LAYOUTS),--layouts $(LAYOUTS)) $(if $(RATES),--rates $(RATES)) \
		$(if $(FULL),--full) $(if $(JOURNALS),--journals) $(if $(RECORDINGS),--recordings)

# What a job is expected to take beside others, held against what it takes (same README).
.PHONY: bench-response
bench-response: all $(BUILD)/tests/tools/work ## predictions of single jobs, pairs and triples at one node (root, a quiet machine, 30 minutes)
	@sh tests/lib/deps.sh effect
	@python3 -B tests/effect/response.py --build $(BUILD) --out $(if $(filter file,$(origin OUT)),$(BUILD)/response,$(OUT)) \
		--set $(SET) --seed $(SEED)
