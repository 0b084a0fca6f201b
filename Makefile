# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom: `make help` lists what can be made.  All output goes to build/.

VERSION := 0.1.0
PREFIX  ?= /usr/local
DESTDIR ?=
# Where systemd-sysusers and AppArmor look; packages may want $(PREFIX)/lib/sysusers.d.
SYSUSERSDIR ?= /etc/sysusers.d
APPARMORDIR ?= /etc/apparmor.d
BUILD   ?= build
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
# A private toolchain of the sanitizer builds: SANITIZE=address,undefined or thread.
SANITIZE ?=

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(shell command -v bpftool 2>/dev/null || echo /usr/sbin/bpftool)
ARCH    := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

# Every include names its file from the top of the tree; include/ is the contracts' root.
INCLUDES := -I. -Iinclude -I$(BUILD)

CFLAGS  ?= -O2 -g
CFLAGS  += -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DIOCOM_VERSION='"$(VERSION)"' \
           -DIOCOM_PREFIX='"$(PREFIX)"' $(INCLUDES) -ffp-contract=off -fstack-protector-strong -fPIE
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
# What hardens the programs and not every compiler or C library has: a compile tells.  Without
# optimisation (-O0) nothing can be fortified, and with a sanitizer nothing is: it has its own
# checks of the same functions.  `make check-hardening` checks what came of it.
takes    = $(shell echo '$(2)' | $(CC) $(CFLAGS) $(1) -include features.h -x c - -S -o /dev/null \
           2>/dev/null && echo '$(1)')
fortify  = $(call takes,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(1),int is[__USE_FORTIFY_LEVEL == $(1) ? 1 : -1];)
CFLAGS  := $(CFLAGS) $(call takes,-fstack-clash-protection) \
           $(or $(call takes,-fcf-protection=full),$(call takes,-mbranch-protection=standard))
ifneq ($(SANITIZE),)
CFLAGS  += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
else
CFLAGS  += $(or $(call fortify,3),$(call fortify,2))
endif

# A room is a folder with all below it; one that is named here is an archive of its own and
# no part of the room around it.  check-layers proves what each may include.
ROOMS        := balancer/rules balancer/view balancer/gossip balancer/profile balancer/settings \
                balancer user agent/shim agent/tasks agent/pmix agent/net agent sim
sources       = $(sort $(shell find $(1) -name '*.c' ! -path $(1)/main.c))
room          = $(filter-out $(foreach r,$(filter $(1)/%,$(ROOMS)),$(r)/%),$(call sources,$(1)))
objects       = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
# archive -> room
ROOM_librules    := balancer/rules
ROOM_libview     := balancer/view
ROOM_libgossip   := balancer/gossip
ROOM_libprofile  := balancer/profile
ROOM_libsettings := balancer/settings
ROOM_libuser     := user
ROOM_libcli      := balancer
ROOM_libagent    := agent
ROOM_libshim     := agent/shim
ROOM_libtasks    := agent/tasks
ROOM_libpmix     := agent/pmix
ROOM_libnet      := agent/net
ROOM_libsim      := sim
ROOM_libtest     := tests/lib
archives = $(patsubst %,$(BUILD)/lib%.a,$(1))
ARCHIVES := $(call archives,net agent shim tasks cli profile settings view gossip rules user)

# What starts for each job links its libraries into itself where their archives are there:
# a shared one costs 60 us at every start.  STATIC= (empty): shared ones only.
ARCHIVED := -l:libmsgpackc.a -l:libbpf.a -l:libelf.a -l:libz.a -l:libjansson.a -l:libmunge.a \
            -l:libsodium.a -l:libinih.a -l:libcsv.a -l:libncursesw.a -l:libtinfo.a
STATIC   ?= $(shell echo 'int main(void) { return 0; }' | $(CC) -x c - -o /dev/null \
            -Wl,-u,bpf_object__open,-u,elf_begin,-u,inflate,-u,initscr $(ARCHIVED) 2>/dev/null && \
            echo yes)

LIBS_user  := -lmsgpackc -lbpf -lelf -lz -ljansson -lmunge -lsodium -linih -lm
LIBS_cli   := $(if $(STATIC),$(ARCHIVED) -lm,$(LIBS_user) -lcsv -lncursesw -ltinfo) \
              -Wl,--as-needed -lsqlite3
LIBS_agent := $(LIBS_user) -lsqlite3 -lpthread
# A library that is not needed is no part of what strangers speak to.
LIBS_net   := -Wl,--as-needed -lnng -lmicrohttpd -lseccomp $(LIBS_user) -lpthread
LIBS_shim  := $(if $(STATIC),-l:libmsgpackc.a -l:libsodium.a,-lmsgpackc -lsodium) -ldl
LIBS_tasks := $(if $(STATIC),-l:libmsgpackc.a -l:libsodium.a,-lmsgpackc -lsodium)
LIBS_sim   := -lgsl -lgslcblas -lz -lcsv -lsodium -ljansson -lpthread -lm

# The launcher of MPI programs that use PMIx needs its library, and is left out where that is missing.
PMIX_CFLAGS := $(shell pkg-config --cflags pmix 2>/dev/null)
PMIX_LIBS   := $(shell pkg-config --libs pmix 2>/dev/null)

PROGRAMS := $(addprefix $(BUILD)/,iocomd iocom-net iocom iocom-shim iocom-init iocom-hold iocom-tty.so iocom-tasks iocom-sim \
            $(if $(PMIX_LIBS),iocom-pmix))
MANPAGES := $(patsubst %.scd,$(BUILD)/man/%,$(notdir $(wildcard agent/*.scd \
            balancer/*.scd sim/*.scd)))

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := all

##@ Build
.PHONY: all
all: $(PROGRAMS) $(BUILD)/librules.a $(MANPAGES) ## build the programs, librules.a and the man pages

# --- eBPF -------------------------------------------------------------------
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
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

# These read the eBPF programs' skeleton, which is made first.
$(call objects,$(wildcard user/monitor/*.c tests/bpf/*.c) tests/unit/test_hooks.c): | $(BUILD)/bpf/iocom.skel.h

.SECONDEXPANSION:
$(BUILD)/lib%.a: $$(call objects,$$(call room,$$(ROOM_lib%)))
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcsD $@ $^

comma := ,
link = @echo "  LINK    $@"; mkdir -p $(@D); \
	$(if $(filter 1,$(V)),set -x;) $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(1)

$(BUILD)/iocom: $(BUILD)/obj/balancer/main.o $(call archives,cli profile settings view rules user)
	$(call link,$^ $(LIBS_cli))

$(BUILD)/iocomd: $(BUILD)/obj/agent/main.o $(call archives,agent profile settings view gossip rules user)
	$(call link,$^ $(LIBS_agent))

$(BUILD)/iocom-net: $(BUILD)/obj/agent/net/main.o $(call archives,net agent profile settings view gossip rules user)
	$(call link,$^ $(LIBS_net))

$(BUILD)/iocom-shim: $(BUILD)/obj/agent/shim/main.o $(call archives,shim user)
	$(call link,$^ $(LIBS_shim))

$(BUILD)/iocom-init: $(BUILD)/obj/agent/init/main.o $(BUILD)/obj/agent/init/init.o $(call archives,user)
	$(call link,$^)

$(BUILD)/iocom-hold: $(BUILD)/obj/agent/init/hold_main.o $(BUILD)/obj/agent/init/hold.o $(BUILD)/obj/agent/init/cover_proc.o \
		$(BUILD)/obj/user/memory_mount.o
	$(call link,$^)

# criu loads it, whatever libraries that has: nothing but its own few lines is in it.
$(BUILD)/iocom-tty.so: agent/init/session_tty.c agent/init/session_tty.h
	@echo "  LINK    $@"; mkdir -p $(@D)
	$(Q)$(CC) -O2 -g -std=gnu17 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -I. -D_GNU_SOURCE -shared \
		-Wl,-z,relro,-z,now,-z,noexecstack -o $@ $<

$(BUILD)/iocom-tasks: $(BUILD)/obj/agent/tasks/main.o $(call archives,tasks user)
	$(call link,$^ $(LIBS_tasks))

$(call objects,$(wildcard agent/pmix/*.c)): CFLAGS += $(PMIX_CFLAGS)
$(BUILD)/iocom-pmix: $(BUILD)/obj/agent/pmix/main.o $(call archives,pmix tasks user)
	$(call link,$^ $(LIBS_tasks) $(PMIX_LIBS) -lpthread)

# The simulator links no agent, no monitor: of user/ only the error sentences.
OBJ_sim := $(call archives,sim view gossip rules) $(BUILD)/obj/user/err.o
$(BUILD)/iocom-sim: $(BUILD)/obj/sim/main.o $(OBJ_sim)
	$(call link,$^ $(LIBS_sim))

define man_rule
$(BUILD)/man/%: $(1)/%.scd
	@mkdir -p $$(@D)
	$(Q)scdoc < $$< > $$@
endef
$(foreach d,agent balancer sim,$(eval $(call man_rule,$(d))))

-include $(shell find $(BUILD)/obj $(BUILD)/next -name '*.d' 2>/dev/null)

##@ Set-up
.PHONY: deps
deps: ## install the Debian packages that building and testing need (root)
	@sh tests/lib/deps.sh $(WITH)

.PHONY: install
install: all ## install programs, man pages, systemd unit, PAM service, user and AppArmor profile of iocom-net, sample configuration (DESTDIR, PREFIX)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/iocom
	install -m 755 $(BUILD)/iocomd $(DESTDIR)$(PREFIX)/sbin/iocomd
	install -m 755 $(BUILD)/iocom $(DESTDIR)$(PREFIX)/bin/iocom
	install -m 755 $(BUILD)/iocom-sim $(DESTDIR)$(PREFIX)/bin/iocom-sim
	install -m 755 $(BUILD)/iocom-shim $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-shim
	install -m 755 $(BUILD)/iocom-init $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-init
	install -m 755 $(BUILD)/iocom-hold $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-hold
	install -m 644 $(BUILD)/iocom-tty.so $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-tty.so
	install -m 755 $(BUILD)/iocom-tasks $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-tasks
	$(if $(PMIX_LIBS),install -m 755 $(BUILD)/iocom-pmix $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-pmix,@echo "install: without iocom-pmix, which needs libpmix-dev: --mpi=pmix will not work here")
	install -m 755 $(BUILD)/iocom-net $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-net
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/man/man,1 5 7 8)
	for m in $(MANPAGES); do \
		install -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/ || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/iocom
	install -m 644 agent/metrics/grafana-dashboard.json $(DESTDIR)$(PREFIX)/share/iocom/
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 balancer/iocom.bash-completion \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/iocom
	sh agent/install-pam.sh install agent/iocom.pam $(DESTDIR)/etc/pam.d/iocom \
		$(DESTDIR)$(PREFIX)/share/iocom/iocom.pam
	sh agent/install-net.sh install "$(DESTDIR)" $(PREFIX) $(SYSUSERSDIR) $(APPARMORDIR)
	install -d $(DESTDIR)$(PREFIX)/share/doc/iocom
	install -m 644 balancer/rules/README.md $(DESTDIR)$(PREFIX)/share/doc/iocom/model.md
	install -d $(DESTDIR)/etc/iocom $(DESTDIR)/etc/systemd/system
	[ -e $(DESTDIR)/etc/iocom/iocom.conf ] || \
		install -m 644 agent/iocom.conf $(DESTDIR)/etc/iocom/iocom.conf
	sed 's|@PREFIX@|$(PREFIX)|g' agent/iocomd.service > $(DESTDIR)/etc/systemd/system/iocomd.service

.PHONY: uninstall
uninstall: ## remove what install put there; configuration and state stay
	sh agent/install-pam.sh uninstall agent/iocom.pam $(DESTDIR)/etc/pam.d/iocom \
		$(DESTDIR)$(PREFIX)/share/iocom/iocom.pam
	sh agent/install-net.sh uninstall "$(DESTDIR)" $(PREFIX) $(SYSUSERSDIR) $(APPARMORDIR)
	rm -f $(DESTDIR)$(PREFIX)/sbin/iocomd $(DESTDIR)$(PREFIX)/bin/iocom \
		$(DESTDIR)$(PREFIX)/bin/iocom-sim $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-shim \
		$(DESTDIR)$(PREFIX)/libexec/iocom/iocom-init $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-hold \
		$(DESTDIR)$(PREFIX)/libexec/iocom/iocom-tty.so \
		$(DESTDIR)$(PREFIX)/libexec/iocom/iocom-tasks $(DESTDIR)$(PREFIX)/libexec/iocom/iocom-pmix \
		$(DESTDIR)$(PREFIX)/libexec/iocom/iocom-net \
		$(DESTDIR)/etc/systemd/system/iocomd.service \
		$(DESTDIR)$(PREFIX)/share/iocom/grafana-dashboard.json \
		$(DESTDIR)$(PREFIX)/share/doc/iocom/model.md \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/iocom
	for m in $(MANPAGES); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/}; done

##@ Try it
.PHONY: demo
demo: ## bring up 3 emulated nodes, load one, watch a job go elsewhere, and why (root, < 60 s)
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BUILD)/tests/tools/work
	@bash tests/testbed/demo

include tests/tests.mk

##@ Other
compile_commands.json: Makefile $(wildcard */*.c */*/*.c) ## for clangd and clang-tidy
	@bash tests/lib/compile-commands.sh $(CC) "$(CFLAGS)" > $@.tmp && mv $@.tmp $@

.PHONY: clean
clean: ## remove build/
	rm -rf build compile_commands.json

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z_.%-]+:.*## / {printf "  %-22s %s\n", $$1, $$2} \
		/^[a-z]+ [a-z-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
