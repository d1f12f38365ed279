# Tandem's tasks; `make help` lists them. Each does its own set-up.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Looked for each time: `make setup` may have installed it.
CARGO = $(shell .ci/find-cargo)
# Whose power the demo cuts: leader or follower.
VICTIM ?= leader
# The etcd release line in the lab: 3.5 or 3.4.
ETCD ?= 3.5
# Which Debian the hosts of the lab are of: 12 with Pacemaker 2.1, 13 with 3.0; the machine's own if empty.
RELEASE ?=
# How the lab creates the resource: plain or promotable.
CLONE ?= plain
# How survivors go on: standin, or restart for etcd's documented way alone.
RECOVERY ?= standin
# How many megabytes etcd holds when the bench begins.
DATA ?= 0
# Scenarios to run; all if empty. And in how many labs side by side.
SCENARIO ?=
JOBS ?= 3
# What the lab is called; labs of different names do not touch each other.
LAB_NAME ?=
# How many power cuts, the first one's seed (drawn if empty), and which kind (all but those that swap a data dir if empty).
N ?= 50
SEED ?=
KIND ?=
# Anything, to let a node there that boots without its peer serve if it was the sole voter.
LONE_BOOT ?=
# How often the bench of the agents strikes each blow.
RUNS ?= 5
# Corosync's token there, in milliseconds; the lab's own (3000) if empty.
TOKEN ?=
# Anything, to have Tandem's fence agents race there, without a delay.
RACE ?=
# How long the bench of fencing-agent loses datagrams.
MINUTES ?= 10
# How many steps the model's random runs take, and the seed that makes them again.
STEPS ?= 10000000
SIM_SEED ?= 7
# Which agent keeps etcd in the power cuts: tandem, or shell for the one of Debian unstable's resource-agents.
AGENT ?= tandem

LAB = $(CARGO) test --quiet --test lab -- $(if $(LAB_NAME),--name $(LAB_NAME))
# With Tandem's Debian packages, which 'make deb' makes.
LAB_WITH_DEB = TANDEM_DEB="$$(echo $(CURDIR)/target/packages/tandem-common_*.deb $(CURDIR)/target/packages/tandem_*.deb \
	$(CURDIR)/target/packages/tandem-fencing_*.deb)" $(LAB)
# How many power cuts, from which seed on, of which kind.
SERIES = --runs $(N) $(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND)) $(if $(LONE_BOOT),--lone-boot)
LAB_OPTIONS = --etcd $(ETCD) --clone $(CLONE) $(if $(RELEASE),--release $(RELEASE)) $(if $(filter restart,$(RECOVERY)),--restart)
# The file in which a run of the lab replaces its rows: RESULTS=tests/lab/RESULTS.md.
RESULTS ?=
KEEP = $(if $(RESULTS),--results $(RESULTS))

.PHONY: help
help: ## this list
	@grep --no-filename --extended-regexp '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed --regexp-extended 's/^([a-z-]+):.*## /  make \1\t/' | expand --tabs=24
	@echo
	@echo '  Variables: VICTIM=leader|follower (demo), ETCD=3.5|3.4, CLONE=plain|promotable, SCENARIO="name ..." (lab),'
	@echo '             RECOVERY=standin|restart (lab), RELEASE=12|13 (lab), DATA=megabytes, TOKEN=milliseconds (bench-agent)'
	@echo '             JOBS=3 (lab: how many labs side by side), LAB_NAME=tandem, N=50, SEED=number, AGENT=tandem|shell,'
	@echo '             KIND=leader-cut|follower-cut|both-cut|survivor-killed|disk-lost|shutdown-parted|'
	@echo '             pacemaker-killed|agent-killed|disk-put-back|disk-copied|not-mounted (power-cuts),'
	@echo '             LONE_BOOT=1 (power-cuts: lone_boot=sole_voter)'

.PHONY: demo
demo: setup ## two nodes, one power cut, and etcd takes writes again (root; VICTIM=follower for the other node)
	@echo 'demo: building Tandem and the lab: some minutes the first time, seconds from then on'
	$(CARGO) test --no-run --test lab
	$(LAB) demo --victim $(VICTIM) $(LAB_OPTIONS)

.PHONY: test
test: ## every test, the lab's scenarios and some power cuts included, and what each part took (root)
	@MAKE='$(MAKE)' .ci/test

.PHONY: nightly
nightly: test real-nightly sim-deep sim-page lab-nightly fencing-nightly rpm-vendored ## everything that takes hours (root)
	$(MAKE) lab RECOVERY=restart
	$(MAKE) vm-lab-nightly
	$(MAKE) vm-lab-nightly RELEASE=12
	$(MAKE) vm-power-cuts N=10
	$(MAKE) vm-power-cuts N=10 RELEASE=12
	$(MAKE) lab RELEASE=13
	@# The commands of the guides that Pacemaker 2.1 and 3.0, and both releases of pcs, have to take.
	$(MAKE) lab RELEASE=13 SCENARIO="readme leader_address api_address cut_off_from_users"
	$(MAKE) power-cuts ETCD=3.5
	$(MAKE) power-cuts ETCD=3.4
	$(MAKE) power-cuts ETCD=3.5 N=8 KIND=disk-put-back
	$(MAKE) power-cuts ETCD=3.4 N=8 KIND=disk-put-back
	$(MAKE) power-cuts ETCD=3.5 N=6 KIND=disk-copied
	$(MAKE) power-cuts ETCD=3.4 N=6 KIND=not-mounted
	$(MAKE) power-cuts N=10 KIND=both-cut LONE_BOOT=1

# Targets that a plain `cargo test` leaves out, and with it `--all-targets`.
APART = --test sim_page --test lab --test data_dir_real --test fence_real --test setup_real --test monitoring --test packages

# Which profile the lints are for. They are the same for each, and that of a build that exists has the parts of other crates already.
LINT_PROFILE ?= dev

.PHONY: format
format: ## formatting
	$(CARGO) fmt --check

.PHONY: lint
lint: format ## formatting and lints
	CARGO=$(CARGO) .ci/clippy --profile $(LINT_PROFILE) --all-targets
	CARGO=$(CARGO) .ci/clippy --profile $(LINT_PROFILE) $(APART)

.PHONY: check
check: lint ## formatting, lints and all tests that need neither root nor a lab, except those of the model (make sim)
	CARGO=$(CARGO) .ci/tests
	$(LAB) self-test
	shellspec/run

# The parts of 'make check' for 'make test', which has the processor do something else while tests wait.
.PHONY: computing
computing: format
	CARGO=$(CARGO) .ci/tests computing

.PHONY: waiting
waiting:
	CARGO=$(CARGO) .ci/tests waiting
	$(LAB) self-test
	shellspec/run
	$(MAKE) --no-print-directory real

.PHONY: hooks
hooks: ## have git run the quick half of 'make check' before each commit
	@.ci/pre-commit install

# What the model searches every day, each line a search.
SIM_DAILY = \
	'--faults 2' \
	'--faults 2 --restart' \
	'--faults 1 --fine' \
	'--faults 2 --count-forks' \
	'--faults 2 --promotable' \
	'--faults 2 --tell --no-operators' \
	'--faults 2 --hide' \
	'--faults 2 --forget --others-promote' \
	'--faults 2 --guest' \
	'--faults 2 --primary node1' \
	'--faults 1 --primary node1 --part-etcd --blank' \
	'--faults 2 --unblock' \
	'--faults 2 --lone-boot' \
	'--faults 1 --put-back' \
	'--faults 1 --put-back --terms 3' \
	'--faults 2 --not-mounted' \
	'--faults 1 --threshold 3'

.PHONY: sim
sim: model ## the model: every order of what two faults can do, the rarer kinds too, and one with every effect by itself (minutes)
	$(CARGO) test --profile model --quiet --test sim
	@for bounds in $(SIM_DAILY); do \
		echo "tandem-sim check $$bounds" && $(TARGET)/model/tandem-sim check $$bounds || exit 1; \
	done
	$(TARGET)/model/tandem-sim members
	$(TARGET)/model/tandem-sim fencing --members 6
	$(TARGET)/model/tandem-sim race
	$(TARGET)/model/tandem-sim race --no-context
	$(TARGET)/model/tandem-sim race --timely --faults 0

.PHONY: sim-deep
sim-deep: model ## the model's deep bounds: minutes to hours (STEPS= and SIM_SEED= for the random runs)
	$(CARGO) test --profile model --quiet --lib sim::reduce::symmetry::mirror -- --ignored
	$(CARGO) test --profile model --quiet --test sim -- --ignored
	$(TARGET)/model/tandem-sim check --faults 3 --max-seconds 3600
	$(TARGET)/model/tandem-sim check --faults 3 --etcd-3.4 --max-seconds 3600
	$(TARGET)/model/tandem-sim check --faults 3 --guest
	$(TARGET)/model/tandem-sim check --faults 3 --lone-boot --max-seconds 3600
	$(TARGET)/model/tandem-sim check --faults 2 --unblock --slow-fencing
	$(TARGET)/model/tandem-sim check --faults 2 --forget --unblock
	$(TARGET)/model/tandem-sim check --faults 2 --primary node1 --unblock --hide
	$(TARGET)/model/tandem-sim check --faults 2 --primary node1 --part-etcd
	$(TARGET)/model/tandem-sim check --faults 2 --writes 2
	$(TARGET)/model/tandem-sim check --faults 1 --writes 2 --blank --no-operators
	$(TARGET)/model/tandem-sim race --faults 2
	$(TARGET)/model/tandem-sim race --faults 2 --no-context
	$(TARGET)/model/tandem-sim race --faults 2 --learner
	$(TARGET)/model/tandem-sim explore --seed $(SIM_SEED) --steps $(STEPS)

.PHONY: sim-page
sim-page: setup ## the pages of the model's runs, looked at in a headless Chromium (root, to install it)
	tests/model/sim_page/setup
	$(CARGO) test --quiet --test sim_page -- --test-threads 1

.PHONY: real
real: setup ## the parts that are tested against real etcds, an emulator of BMCs, Pacemaker's own fencer, pcs and gRPC for Python (root)
	tests/fence_real/setup
	tests/fencing_agent/setup
	tests/data_dir_real/setup
	$(CARGO) test --no-run --test fence_real --test setup_real --test data_dir_real --test fencing_agent
	$(CARGO) test --quiet --test fence_real
	$(CARGO) test --quiet --test fencing_agent -- --ignored python
	@# pcs computes, etcds wait for each other and for the disk.
	.ci/beside '$(CARGO) test --quiet --test setup_real' '$(CARGO) test --quiet --test data_dir_real -- --test-threads 4'

.PHONY: real-nightly
real-nightly: setup ## pcs on what 'make real' leaves out, and a comparison of two histories of gigabytes (root)
	tests/data_dir_real/setup
	$(CARGO) test --quiet --test setup_real -- --ignored nightly
	$(CARGO) test --quiet --test data_dir_real -- --ignored two_gigabytes

.PHONY: monitoring
monitoring: setup ## metrics, rules and dashboard against promtool and a real node_exporter (root, to install them)
	tests/monitoring/setup
	$(CARGO) test --quiet --test monitoring

.PHONY: deny
deny: ## licences, origins, duplicates and known faults of the dependencies
	.ci/deny

.PHONY: bench-fence
bench-fence: setup ## the fence agent side by side with the Python one, against one emulator (root)
	tests/fence_real/setup
	$(CARGO) build --release --bin tandem
	tests/bench/fence

.PHONY: lab
lab: setup ## the lab's scenarios (root; SCENARIO="name ..." for some of them)
	$(LAB) run --jobs $(JOBS) $(KEEP) $(LAB_OPTIONS) $(SCENARIO)

# Tandem's Debian package and what the lab is made of, side by side: the release's build has work for one core alone in its last minutes.
.PHONY: vm-parts
vm-parts:
	tests/lab/setup-vm
	$(MAKE) deb & $(LAB) --vm fetch $(LAB_OPTIONS); fetched=$$?; wait $$! && exit $$fetched

.PHONY: vm-lab
vm-lab: vm-parts ## two virtual machines: what is not synced is lost, systemd, and Debian 13 (RELEASE=12 for the older one); root, an hour
	$(LAB_WITH_DEB) --vm run $(KEEP) $(LAB_OPTIONS) $(SCENARIO)

.PHONY: vm-lab-nightly
vm-lab-nightly: vm-parts ## the same, and what takes longer there: 'tandem setup', cut off too, watchdogs, and a program without its syncs (root)
	$(LAB_WITH_DEB) --vm run --nightly $(KEEP) $(LAB_OPTIONS)

.PHONY: vm-power-cuts
vm-power-cuts: vm-parts ## N power cuts of virtual machines at random moments (root)
	$(LAB_WITH_DEB) --vm power-cuts $(SERIES) $(KEEP) $(LAB_OPTIONS)

.PHONY: power-cuts
power-cuts: setup ## N power cuts at random moments under sixteen writers: none may lose an acknowledged write (root)
	$(LAB) power-cuts --agent $(AGENT) $(SERIES) $(KEEP) $(LAB_OPTIONS)

.PHONY: bench-agent
bench-agent: setup build ## the shell agent and both ways of a recovery side by side in one lab: how long etcd takes no writes (root; the better part of an hour)
	TANDEM_BIN=$(abspath $(TARGET))/release/tandem $(LAB) bench-agent --runs $(RUNS) --data $(DATA) --etcd $(ETCD) $(if $(TOKEN),--token $(TOKEN)) $(if $(RACE),--race)

.PHONY: fencing-nightly
fencing-nightly: ## fencing agents in larger groups, and in halves (root)
	$(CARGO) test --quiet --test fencing_agent -- --ignored nightly
	tests/fencing_agent/apiserver
	$(CARGO) test --quiet --lib adapters::kubernetes::nodes::tests::real -- --ignored

.PHONY: bench-fencing
bench-fencing: setup build ## fencing-agent next to Debian's serf: how soon a cut is known, false ones at 10 % loss, CPU (root; MINUTES=10)
	tests/fencing_agent/setup
	TANDEM_BIN=$(abspath $(TARGET))/release/tandem TANDEM_BENCH_MINUTES=$(MINUTES) \
		$(CARGO) test --quiet --test fencing_agent -- --ignored ratios --nocapture --test-threads 1

.PHONY: lab-nightly
lab-nightly: setup ## all of the lab's scenarios, those that cut power at random moments too (root)
	$(LAB) run --jobs $(JOBS) --nightly $(KEEP) $(LAB_OPTIONS)

.PHONY: lab-down
lab-down: ## take the lab away, also one that a crash left half made (root)
	$(LAB) down
	$(LAB) --vm down

.PHONY: setup
setup: ## install Rust, where it is missing, and the Debian packages that building and the lab need (root)
	tests/lab/setup

# Where cargo builds; a package's build may share it.
TARGET = $(or $(CARGO_TARGET_DIR),target)

.PHONY: build
build: ## the optimised binary
	$(CARGO) build --release --locked --bin tandem $(CARGO_FLAGS)

# What `make install` needs: the binary, and the generator of its pages. They share all dependencies, and are linked at the same time.
.PHONY: parts
parts:
	$(CARGO) build --release --locked --bin tandem --bin tandem-generate $(CARGO_FLAGS)

# Runs a command whenever the processor has nothing else to do; where that cannot be asked for, at low priority.
IDLY = $(shell chrt --idle 0 true 2> /dev/null && echo chrt --idle 0 || echo nice -n 19)

# Clippy has the model's profile here: in that of the tests, it would hold the lock of their builds. The release has work for one
# core alone in its last minutes, in which the whole program is optimised.
.PHONY: ahead
ahead: ## build what 'make package' and 'make sim' need, and lint, whenever the processor has nothing else to do
	$(IDLY) .ci/beside '$(MAKE) --no-print-directory parts' '$(MAKE) --no-print-directory model lint LINT_PROFILE=model'

# Its tests are built, too, because `cargo build` alone would build the library once more for them, with fewer features of its dependencies.
.PHONY: model
model: ## the model's program, tandem-sim, and its tests
	$(CARGO) test --profile model --locked --no-run --test sim

# Where the binary and its names go; DESTDIR as usual.
DESTDIR ?=
# In folders as in this tree, so that README's links lead to the guides there, too.
DOC = $(DESTDIR)/usr/share/doc/tandem
# Anything, to install what was built before.
BUILT ?=
.PHONY: install
install: $(if $(BUILT),,parts) ## install the binary, the names that Pacemaker knows it by, systemd's units, man pages, guides and shell completions (root)
	install -D --strip --mode=755 $(TARGET)/release/tandem $(DESTDIR)/usr/sbin/tandem
	@$(call make-links,ocf/links)
	@$(call make-links,ocf/links-fencing)
	install -D --mode=644 --target-directory=$(DESTDIR)/usr/lib/systemd/system systemd/tandem-collect.service systemd/tandem-collect.timer systemd/tandem-certs.service systemd/tandem-certs.timer systemd/tandem-lone-boot.service systemd/watchdog-mux.service systemd/fencing-agent.service
	install -D --mode=644 systemd/tandem.tmpfiles $(DESTDIR)/usr/lib/tmpfiles.d/tandem.conf
	umask 022 && $(TARGET)/release/tandem-generate $(DESTDIR)/usr/share
	install -D --mode=644 metadata/prometheus/tandem.rules.yml $(DESTDIR)/usr/share/tandem/prometheus/tandem.rules.yml
	install -D --mode=644 metadata/prometheus/tandem-fencing.rules.yml $(DESTDIR)/usr/share/tandem/prometheus/tandem-fencing.rules.yml
	install -D --mode=644 metadata/grafana/tandem.json $(DESTDIR)/usr/share/tandem/grafana/tandem.json
	install -D --mode=644 metadata/fencing.proto $(DESTDIR)/usr/share/tandem/fencing.proto
	install -D --mode=644 metadata/kubernetes/fencing-agent.yaml $(DESTDIR)/usr/share/tandem/kubernetes/fencing-agent.yaml
	install -d --mode=755 $(DOC)
	umask 022 && rpm/documents $(DOC)
	install -d --mode=755 $(DOC)-fencing/examples
	umask 022 && $(TARGET)/release/tandem fencing-agent example > $(DOC)-fencing/examples/fencing-agent.toml
	@# With keys and passwords in it.
	install -d --mode=700 $(DESTDIR)/etc/tandem
	umask 022 && CARGO=$(CARGO) rpm/third-party $(CARGO_FLAGS) > $(DOC)/THIRD-PARTY

.PHONY: install-dropin
install-dropin: ## install the names of the shell agent and of the Python fence_redfish, in their places (root)
	@$(call make-links,ocf/links-dropin)

# The names in a list become links; $(1) is the list.
make-links = grep --invert-match '^\#' $(1) | while read -r link target; do \
	install -d --mode=755 "$(DESTDIR)$${link%/*}" && \
	ln --symbolic --force --no-dereference "$$target" "$(DESTDIR)$$link" || exit 1; \
	echo "$(DESTDIR)$$link -> $$target"; \
done

.PHONY: package
package: deb rpm package-check ## the Debian packages and the RPMs, in target/packages, checked and measured

.PHONY: package-check
package-check: ## look at what 'make package' has made (after deb and rpm)
	$(CARGO) test --quiet --test packages -- --skip figures
	$(CARGO) test --quiet --test packages -- figures --nocapture --test-threads 1

.PHONY: lab-installed
lab-installed: ## the Debian packages installed: with apt-get, and in the lab with a power cut and the README's commands (root; after package)
	tests/packages/with_apt
	$(LAB_WITH_DEB) run $(LAB_OPTIONS) node_failure_leader readme

include rpm/package.mk
