# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom: `make help` lists what can be made.  All output goes to build/.

VERSION := 0.1.0
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
# A private toolchain of the sanitizer builds: SANITIZE=address,undefined or thread.
SANITIZE ?=

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(shell command -v bpftool 2>/dev/null || echo /usr/sbin/bpftool)
ARCH    := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

CFLAGS  ?= -O2 -g
CFLAGS  += -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DIOCOM_VERSION='"$(VERSION)"' \
           -DIOCOM_PREFIX='"$(PREFIX)"' -ffp-contract=off -fstack-protector-strong -fPIE
LDFLAGS += -pie -Wl,-z,relro,-z,now
ifneq ($(SANITIZE),)
CFLAGS  += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
endif

# One line a room: where its headers may come from.  check-layers proves it again.
IN_user      := -Iinclude -Iuser -Iuser/monitor
IN_balancer  := $(IN_user) -Ibalancer \
                $(addprefix -Ibalancer/,batch doctor record run top view)
IN_agent     := $(IN_balancer) -Iagent \
                $(addprefix -Iagent/,cluster home jobs measure metrics target shim)
INC_rules    := -Iinclude
INC_view     := -Iinclude -Ibalancer/view
INC_user     := $(IN_user) -Ibpf -I$(BUILD)/bpf
INC_balancer := $(IN_balancer)
INC_agent    := $(IN_agent)
INC_sim      := -Iinclude -Ibalancer/view -Isim
INC_tests    := $(IN_agent) -Ibalancer/rules -Itests/lib -Ibpf -I$(BUILD)/bpf

SRC_rules    := $(wildcard balancer/rules/*.c)
SRC_view     := $(wildcard balancer/view/*.c)
SRC_user     := $(wildcard user/*.c user/*/*.c)
SRC_balancer := $(filter-out balancer/main.c,$(wildcard balancer/*.c \
                $(addsuffix /*.c,$(addprefix balancer/,batch doctor record run top))))
SRC_agent    := $(filter-out agent/main.c,$(wildcard agent/*.c \
                $(addsuffix /*.c,$(addprefix agent/,cluster home jobs measure metrics target))))
SRC_shim     := $(filter-out agent/shim/main.c,$(wildcard agent/shim/*.c))
SRC_relay    := $(wildcard agent/relay/*.c)
SRC_sim      := $(wildcard sim/*/*.c)
SRC_testlib  := $(wildcard tests/lib/*.c)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
ARCHIVES := $(BUILD)/libagent.a $(BUILD)/libshim.a $(BUILD)/libcli.a $(BUILD)/libview.a \
            $(BUILD)/librules.a $(BUILD)/libuser.a

# What starts for each job links its libraries into itself where their archives are there:
# a shared one costs 60 us at every start.  STATIC= (empty): shared ones only.
ARCHIVED := -l:libmsgpackc.a -l:libbpf.a -l:libelf.a -l:libz.a -l:libjansson.a -l:libmunge.a \
            -l:libmbedcrypto.a -l:libinih.a -l:libcsv.a -l:libncursesw.a -l:libtinfo.a
STATIC   ?= $(shell echo 'int main(void) { return 0; }' | $(CC) -x c - -o /dev/null \
            -Wl,-u,bpf_object__open,-u,elf_begin,-u,inflate,-u,initscr $(ARCHIVED) 2>/dev/null && \
            echo yes)

LIBS_user  := -lmsgpackc -lbpf -lelf -lz -ljansson -lmunge -lmbedcrypto -linih -lm
LIBS_cli   := $(if $(STATIC),$(ARCHIVED) -lm,$(LIBS_user) -lcsv -lncursesw -ltinfo) \
              -Wl,--as-needed -lsqlite3
LIBS_agent := $(LIBS_user) -lcsv -lsqlite3 -lnng -lmbedx509 -lmicrohttpd -lpthread
LIBS_shim  := $(if $(STATIC),-l:libmsgpackc.a -l:libmbedcrypto.a,-lmsgpackc -lmbedcrypto) -ldl
LIBS_relay := -lmbedtls -lmbedx509 -lmbedcrypto
LIBS_sim   := -lgsl -lgslcblas -lz -lcsv -lmbedcrypto -ljansson -lpthread -lm

PROGRAMS := $(BUILD)/iocomd $(BUILD)/iocom $(BUILD)/iocom-shim $(BUILD)/iocom-relay \
            $(if $(wildcard sim/main.c),$(BUILD)/iocom-sim)
TEST_SOURCES := $(wildcard tests/unit/test_*.c tests/bpf/test_*.c tests/remote/test_*.c \
                tests/sim/test_*.c)
TEST_TOOLS   := $(wildcard tests/tools/*.c)
BENCH_SOURCES := $(wildcard tests/bench/bench_*.c)
TEST_BINARIES := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SOURCES) $(TEST_TOOLS))
UNIT_BINARIES := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
MANPAGES := $(patsubst %.scd,$(BUILD)/man/%,$(notdir $(wildcard agent/*.scd \
            balancer/*.scd sim/*.scd)))

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := all

##@ Build
.PHONY: all
all: $(PROGRAMS) $(BUILD)/librules.a $(MANPAGES) ## build the programs, librules.a and the man pages

.PHONY: tests
tests: all $(TEST_BINARIES) ## build all test programs

# --- eBPF -------------------------------------------------------------------
BPF_HEADERS := $(wildcard bpf/*.h vmlinux/*.h)
$(BUILD)/bpf/iocom.bpf.o: bpf/iocom.bpf.c
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	$(Q)$(CLANG) -O2 -g -Wall -Werror -target bpf -D__TARGET_ARCH_$(ARCH) -Ivmlinux -Ibpf \
		-Iinclude -MMD -MP -c $< -o $@

$(BUILD)/bpf/iocom.skel.h: $(BUILD)/bpf/iocom.bpf.o
	@echo "  SKEL    $@"
	$(Q)$(BPFTOOL) gen skeleton $< name iocom_bpf > $@

-include $(BUILD)/bpf/iocom.bpf.d

# --- C ------------------------------------------------------------------------
define compile_rule
$(BUILD)/obj/$(1)/%.o: $(1)/%.c $(3)
	@mkdir -p $$(@D)
	@echo "  CC      $$<"
	$(Q)$(CC) $$(CFLAGS) $(2) -MMD -MP -c $$< -o $$@
endef
$(eval $(call compile_rule,balancer/rules,$(INC_rules)))
$(eval $(call compile_rule,balancer/view,$(INC_view)))
$(eval $(call compile_rule,user,$(INC_user),| $(BUILD)/bpf/iocom.skel.h))
$(eval $(call compile_rule,balancer,$(INC_balancer)))
$(eval $(call compile_rule,agent/shim,$(INC_agent)))
$(eval $(call compile_rule,agent/relay,$(INC_agent)))
$(eval $(call compile_rule,agent,$(INC_agent)))
$(eval $(call compile_rule,sim,$(INC_sim)))
$(eval $(call compile_rule,tests,$(INC_tests),| $(BUILD)/bpf/iocom.skel.h))
$(eval $(call compile_rule,tests/sim,$(INC_sim) -Itests/lib))
$(eval $(call compile_rule,tests/fuzz,$(INC_sim)))
$(eval $(call compile_rule,tests/fuzz/protocol,$(INC_tests),| $(BUILD)/bpf/iocom.skel.h))
# The simulator's benchmarks see its room only: make prefers the longer pattern.
define sim_bench_rule
$(BUILD)/obj/tests/bench/$(1).o: tests/bench/$(1).c
	@mkdir -p $$(@D)
	@echo "  CC      $$<"
	$$(Q)$$(CC) $$(CFLAGS) $(INC_sim) -MMD -MP -c $$< -o $$@
endef
$(eval $(call sim_bench_rule,bench_sim))
$(eval $(call sim_bench_rule,bench_sim_%))

define archive_rule
$(1): $(2)
	@echo "  AR      $$@"
	$(Q)rm -f $$@ && $(AR) rcsD $$@ $$^
endef
$(eval $(call archive_rule,$(BUILD)/librules.a,$(call objects,$(SRC_rules))))
$(eval $(call archive_rule,$(BUILD)/libview.a,$(call objects,$(SRC_view))))
$(eval $(call archive_rule,$(BUILD)/libuser.a,$(call objects,$(SRC_user))))
$(eval $(call archive_rule,$(BUILD)/libcli.a,$(call objects,$(SRC_balancer))))
$(eval $(call archive_rule,$(BUILD)/libagent.a,$(call objects,$(SRC_agent))))
$(eval $(call archive_rule,$(BUILD)/libshim.a,$(call objects,$(SRC_shim))))
$(eval $(call archive_rule,$(BUILD)/libsim.a,$(call objects,$(SRC_sim))))

link = @echo "  LINK    $@"; mkdir -p $(@D); \
	$(if $(filter 1,$(V)),set -x;) $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(1)

$(BUILD)/iocom: $(BUILD)/obj/balancer/main.o $(BUILD)/libcli.a $(BUILD)/libview.a \
		$(BUILD)/librules.a $(BUILD)/libuser.a
	$(call link,$^ $(LIBS_cli))

$(BUILD)/iocomd: $(BUILD)/obj/agent/main.o $(BUILD)/libagent.a $(BUILD)/libcli.a \
		$(BUILD)/libview.a $(BUILD)/librules.a $(BUILD)/libuser.a
	$(call link,$^ $(LIBS_agent))

$(BUILD)/iocom-shim: $(BUILD)/obj/agent/shim/main.o $(BUILD)/libshim.a $(BUILD)/libuser.a
	$(call link,$^ $(LIBS_shim))

$(BUILD)/iocom-relay: $(call objects,$(SRC_relay)) $(BUILD)/libuser.a
	$(call link,$^ $(LIBS_relay))

# The simulator links no agent, no monitor: of user/ only the error sentences.
OBJ_sim := $(BUILD)/libsim.a $(BUILD)/libview.a $(BUILD)/librules.a $(BUILD)/obj/user/err.o
$(BUILD)/iocom-sim: $(BUILD)/obj/sim/main.o $(OBJ_sim)
	$(call link,$^ $(LIBS_sim))
$(BUILD)/tests/sim/%: $(BUILD)/obj/tests/sim/%.o $(OBJ_sim)
	$(call link,$^ -lcmocka $(LIBS_sim))
# What reads foreign text, and no more: the fuzz targets are built a second time.
OBJ_fuzz := $(call objects,$(wildcard sim/workload/*.c) \
            $(addprefix sim/engine/,random.c cluster.c machines.c)) \
            $(BUILD)/libview.a $(BUILD)/librules.a $(BUILD)/obj/user/err.o
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(OBJ_fuzz)
	$(call link,$^ -fsanitize=fuzzer $(LIBS_sim))
# And what decodes what other processes and machines say.
FUZZ_protocol := $(patsubst tests/fuzz/protocol/%.c,$(BUILD)/fuzz/%,\
                 $(wildcard tests/fuzz/protocol/*.c))
FUZZ_agent    := $(BUILD)/fuzz/fuzz_request $(BUILD)/fuzz/fuzz_message
OBJ_protocol := $(call objects,$(addprefix user/,account.c attach.c behaviour.c cgroup.c err.c \
                frame.c keep.c leash_wire.c log.c pack.c record.c record_tail.c renewal.c seal.c \
                spec.c terminal.c utf8.c wire.c) $(addprefix agent/,cluster/bulletin.c cluster/control.c \
                target/guests.c helper.c jobs/job_order.c jobs/job_report.c target/launch.c \
                target/launch_spawn.c loop.c cluster/matrix.c cluster/message.c home/need.c \
                cluster/seal.c target/start_message.c cluster/tls.c cluster/vector_codec.c \
                worker.c) \
                $(addprefix agent/shim/,lease.c leash.c order.c renew.c spool.c streams.c tty.c) \
                $(addprefix balancer/,batch/batch_wire.c batch/batch_words.c))
$(filter-out $(FUZZ_agent),$(FUZZ_protocol)): $(BUILD)/fuzz/%: \
		$(BUILD)/obj/tests/fuzz/protocol/%.o $(OBJ_protocol)
	$(call link,$^ -fsanitize=fuzzer $(LIBS_agent))
# Two ask a whole agent, which has all but the parts that fake_agent.h plays.
OBJ_fuzz_agent := $(call objects,$(addprefix user/,behaviour.c err.c log.c pack.c renewal.c \
                  spec.c terminal.c utf8.c) $(addprefix agent/,home/home.c jobs/job_order.c \
                  jobs/job_report.c jobs/journal.c jobs/journal_keep.c jobs/journal_lease.c \
                  jobs/journal_sql.c home/explain.c home/lease_asked.c home/lease_home.c \
                  cluster/matrix.c cluster/message.c home/need.c ops.c home/place.c \
                  home/place_request.c home/profiles.c home/recorders.c home/refusal.c cluster/skews.c status.c \
                  cluster/vector_codec.c home/view.c home/waits.c) \
                  $(addprefix balancer/,profile.c settings.c settings_text.c)) $(BUILD)/libview.a \
                  $(BUILD)/librules.a
$(FUZZ_agent): $(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/protocol/%.o $(OBJ_fuzz_agent)
	$(call link,$^ -fsanitize=fuzzer $(LIBS_agent))
$(BUILD)/tests/bench/bench_sim: $(BUILD)/obj/tests/bench/bench_sim.o $(OBJ_sim)
	$(call link,$^ $(LIBS_sim))
$(BUILD)/tests/bench/bench_sim_%: $(BUILD)/obj/tests/bench/bench_sim_%.o $(OBJ_sim)
	$(call link,$^ $(LIBS_sim))
# The same work in SimGrid, where that is installed (libsimgrid-dev): C++, on its own.
BENCH_sim := $(BUILD)/tests/bench/bench_sim \
             $(if $(wildcard /usr/include/simgrid/s4u.hpp),$(BUILD)/tests/bench/bench_simgrid)
$(BUILD)/tests/bench/bench_simgrid: tests/bench/bench_simgrid.cpp tests/bench/simgrid_work.h
	@mkdir -p $(@D)
	@echo "  CXX     $<"
	$(Q)$(CXX) -O2 -std=c++17 -Wall -Wextra -o $@ $< -lsimgrid

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call objects,$(SRC_testlib)) $(ARCHIVES)
	$(call link,$< $(call objects,$(SRC_testlib)) -Wl$(comma)--start-group $(ARCHIVES) \
		-Wl$(comma)--end-group -lcmocka $(LIBS_agent) -lncursesw -ltinfo -lpthread)
comma := ,

$(BUILD)/man/%: agent/%.scd
	@mkdir -p $(@D)
	$(Q)scdoc < $< > $@
$(BUILD)/man/%: balancer/%.scd
	@mkdir -p $(@D)
	$(Q)scdoc < $< > $@
$(BUILD)/man/%: sim/%.scd
	@mkdir -p $(@D)
	$(Q)scdoc < $< > $@

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

##@ Set-up
.PHONY: deps
deps: ## install the Debian packages that building and testing need (root)
	@sh tests/lib/deps.sh $(WITH)

.PHONY: install
install: all ## install programs, man pages, systemd unit, sample configuration (DESTDIR, PREFIX)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/iocom
	install -m 755 $(BUILD)/iocomd $(DESTDIR)$(PREFIX)/sbin/iocomd
	install -m 755 $(BUILD)/iocom $(DESTDIR)$(PREFIX)/bin/iocom
	install -m 755 $(BUILD)/iocom-sim $(DESTDIR)$(PREFIX)/bin/iocom-sim
	install -m 755 $(BUILD)/iocom-shim $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-shim
	install -m 755 $(BUILD)/iocom-relay $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-relay
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/man/man,1 5 8)
	for m in $(MANPAGES); do \
		install -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/ || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/iocom
	install -m 644 agent/metrics/grafana-dashboard.json agent/iocom.pam $(DESTDIR)$(PREFIX)/share/iocom/
	install -d $(DESTDIR)/etc/iocom $(DESTDIR)/etc/systemd/system
	[ -e $(DESTDIR)/etc/iocom/iocom.conf ] || \
		install -m 644 agent/iocom.conf $(DESTDIR)/etc/iocom/iocom.conf
	sed 's|@PREFIX@|$(PREFIX)|g' agent/iocomd.service > $(DESTDIR)/etc/systemd/system/iocomd.service

.PHONY: uninstall
uninstall: ## remove what install put there; configuration and state stay
	rm -f $(DESTDIR)$(PREFIX)/sbin/iocomd $(DESTDIR)$(PREFIX)/bin/iocom \
		$(DESTDIR)$(PREFIX)/bin/iocom-sim $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-shim \
		$(DESTDIR)$(PREFIX)/libexec/iocom/iocom-relay \
		$(DESTDIR)/etc/systemd/system/iocomd.service \
		$(DESTDIR)$(PREFIX)/share/iocom/grafana-dashboard.json \
		$(DESTDIR)$(PREFIX)/share/iocom/iocom.pam
	for m in $(MANPAGES); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/}; done

##@ Try it
.PHONY: demo
demo: ## bring up 3 emulated nodes, load one, watch a job go elsewhere, and why (root, < 60 s)
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BUILD)/tests/tools/work
	@bash tests/testbed/demo

##@ Check
.PHONY: check
check: ## all tests; installs what they need; as root the kernel and cluster tests run too
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@bash tests/lib/run-checks.sh $(BUILD) all $(WITH)

.PHONY: check-vm
check-vm: ## the monitor's tests on other kernels, in virtual machines (minutes; WITH=vm: in check)
	@$(MAKE) --no-print-directory deps WITH=vm
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@bash tests/lib/run-checks.sh $(BUILD) vm

.PHONY: check-unit
check-unit: tests ## the unit tests only (any user, seconds)
	@bash tests/lib/run-checks.sh $(BUILD) unit

.PHONY: check-sim
check-sim: tests ## the simulator's tests only (any user)
	@bash tests/lib/run-checks.sh $(BUILD) sim

.PHONY: check-pressure
check-pressure: tests ## the monitor under 100,000 threads, dirty files, 20,000 cgroups (root, minutes)
	@IOCOM_PRESSURE=full $(BUILD)/tests/bpf/test_pressure

.PHONY: check-layers
check-layers: all ## prove the walls: librules.a is pure, folders include only downwards
	@bash tests/lib/check-layers.sh $(BUILD)

.PHONY: attack
attack: tests ## attack running agents: what is tried, whether it was refused and logged (root, a minute)
	@bash tests/lib/run-checks.sh $(BUILD) attack

.PHONY: asan
asan: ## build with ASan and UBSan into build/asan; run unit, sim, shim, monitor, end-to-end tests
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build/asan SANITIZE=address,undefined tests
	@IOCOM_SANITIZED=1 bash tests/lib/run-checks.sh build/asan unit sim remote bpf run

ROUNDS ?= 50
SEED   ?= 1
.PHONY: chaos
chaos: tests ## jobs under kill -9, cuts, full disks, wrong clocks on the testbed (root); ROUNDS=50 SEED=1, PLAN=LOG
	@IOCOM_BUILD=$(abspath $(BUILD)) ROUNDS=$(ROUNDS) SEED=$(SEED) PLAN=$(PLAN) \
		bash tests/chaos/chaos.sh

.PHONY: check-upgrade
check-upgrade: tests ## jobs that go on while another build takes over, and back; FROM=REV: the first build (root)
	@bash tests/remote/upgrade.sh $(BUILD) $(if $(FROM),$(FROM),$(error FROM=REV says which build is upgraded))

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

FIGURES ?= $(BUILD)/figures
SEEDS   ?= 10
.PHONY: figures
figures: $(BUILD)/iocom-sim ## all figures of the papers and the page of claims, build/figures/index.html
	@mkdir -p $(FIGURES)
	@$(BUILD)/iocom-sim figures --seeds $(SEEDS) --out $(FIGURES)

.PHONY: bench-sim
bench-sim: $(BENCH_sim) ## the simulator: speed, threads, against SimGrid; WHAT=size: 10 M jobs
	@$(BUILD)/tests/bench/bench_sim $(WHAT)

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

.PHONY: bench-remote
bench-remote: all $(BUILD)/tests/tools/laps ## a command elsewhere, against ssh, srun, fork+exec (root, 3 minutes); WHAT=rate,...
	@python3 tests/bench/remote/bench.py $(BUILD) --rounds $(ROUNDS) $(if $(WHAT),--what $(WHAT))

##@ Other
compile_commands.json: Makefile $(wildcard */*.c */*/*.c) ## for clangd and clang-tidy
	@bash tests/lib/compile-commands.sh $(CC) "$(CFLAGS)" "$(INC_tests)" \
		"$(INC_sim) -Itests/lib" > $@.tmp && mv $@.tmp $@

.PHONY: clean
clean: ## remove build/
	rm -rf build compile_commands.json

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z_.-]+:.*## / {printf "  %-22s %s\n", $$1, $$2} \
		/^[a-z]+ [a-z-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
