# advisory_ext: named advisory locks for PostgreSQL. A PGXS extension in C++.
#
# PG_CONFIG selects the server version, here and in every script that this file starts.

# ---- Identity: the control file is the one source of the version -------------------------------
EXTENSION  = advisory_ext
EXTVERSION := $(shell sed -n "s/^default_version *= *'\([^']*\)'.*/\1/p" $(EXTENSION).control)
PG_CONFIG  ?= pg_config

# ---- Sources ----------------------------------------------------------------------------------
MODULE_big = $(EXTENSION)
OBJS       = $(patsubst %.cpp,%.o,$(sort $(wildcard src/*.cpp src/*/*.cpp)))
# make FAULTS=1, for tests only: a second library beside the first one. It stops a session at a
# named point (src/base/stoppoint.h), and lets requests for memory fail. Sources without such points
# are not compiled again.
ifdef FAULTS
MODULE_big = $(EXTENSION)_faults
STOPPABLE  = $(patsubst %.cpp,%.o,$(shell grep -lw STOP_POINT src/*/*.cpp))
OBJS      := $(filter-out $(STOPPABLE),$(OBJS)) $(STOPPABLE:.o=.faults.o) test/faults/faults.o
WRAPPED    = $(shell sed -nE 's/^FAULT[A-Z_]*.([A-Za-z_0-9]+),.*/-Wl,--wrap=\1/p' \
	test/faults/faults.cpp)
endif

# ---- SQL: readable parts, joined in the order of their numbers; upgrade scripts are hand-written
SQL_PARTS  = $(wildcard sql/parts/*.sql) sql/known-keys.sql sql/known-ranges.sql \
	sql/known-as.sql sql/surface scripts/surface.awk scripts/join.sh
DATA_built = sql/$(EXTENSION)--$(EXTVERSION).sql
DATA       = $(wildcard sql/$(EXTENSION)--*--*.sql)

# ---- Documents: installed with their folders, so that the links between them work ----------------
DOCUMENTS  = $(sort $(shell find $(wildcard README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md \
	LICENSE doc examples monitoring portable/*.sql \
	clients/README.md clients/*/README.md clients/*/examples) \
	\( -name node_modules -o -name __pycache__ -o -name '.*' \) -prune -o -type f -print))
DOCUMENT_FOLDERS = $(sort $(dir $(DOCUMENTS)))

# ---- Tests ------------------------------------------------------------------------------------
REGRESS         = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_PREP    = $(if $(REGRESS),$(REGRESS_FILES))
REGRESS_FILES   = results/regress
REGRESS_OPTS   += --inputdir=$(REGRESS_FILES) --load-extension=$(EXTENSION)
ISOLATION       = $(sort \
	$(patsubst test/isolation/specs/%.spec,%,$(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS += --inputdir=test/isolation --load-extension=$(EXTENSION)
# 15 looks for the expected output of the specs in the input directory; 16 and later need an option
# for that.
ISOLATION_OPTS += $(if $(filter-out 14 15,$(MAJORVERSION)),--expecteddir=test/isolation)

# ---- Flags: C++ inside a server that longjmps, and no C++ run-time library -----------------------
CXX_DIALECT  = -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden \
	-Wno-register
PG_CPPFLAGS  = -Isrc -DADVISORY_EXT_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS  = $(CXX_DIALECT) -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers \
	-MMD -MP
SHLIB_LINK   = $(if $(filter openssl,$(with_ssl)),-lcrypto) $(WRAPPED)
BUILT_FOR    = src/.built-for
# All files begin with this one, which has all headers from outside: g++ reads them once. That is
# almost half of the build. (clang++ would have to be told of it in each file, and ccache would keep
# nothing.)
FIRST_HEADER = src/base/pg.h
CXX_MACROS   = $(filter __GNUC__ __clang__,$(shell $(CXX) -dM -E -x c++ /dev/null 2>/dev/null))
PRECOMPILED  = $(if $(findstring ccache,$(CXX))$(filter __clang__,$(CXX_MACROS)),,\
	$(if $(CXX_MACROS),$(FIRST_HEADER).gch))
EXTRA_CLEAN  = $(OBJS:.o=.d) $(FIRST_HEADER).gch $(FIRST_HEADER).d $(BUILT_FOR) output_iso \
	$(EXTENSION)_faults.so test/faults/faults.o test/faults/faults.d \
	src/*/*.faults.o src/*/*.faults.d

# ---- PGXS, if a server has development files; help, demo and test do not need them --------------
# (Debian's client package has PGXS too, but not the headers.)
PGXS   := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
HEADER := $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)/postgres.h
ifneq ($(and $(wildcard $(PGXS)),$(wildcard $(HEADER))),)

# Never bitcode, from which the server's JIT copies functions into its own code. PostgreSQL 15 (LLVM
# 14) and 17 (LLVM 19) end in an assertion of LLVM over some that clang makes of C++: aliases of
# constructors. And a call of these functions costs more than it would save.
override with_llvm = no

# make install prefix=/folder: into the folders that PGXS of 18 and later says. It cannot do that
# itself: in Debian's the prefix changes nothing, and others look for the server's headers below it.
ifdef prefix
subfolder := $(if $(findstring postgres,$(prefix))$(findstring pgsql,$(prefix)),,/postgresql)
override datadir   := $(prefix)/share$(subfolder)
override pkglibdir := $(prefix)/lib$(subfolder)
override docdir    := $(prefix)/share/doc/postgresql
override undefine prefix
endif

.DEFAULT_GOAL = all
include $(PGXS)

# PGXS's own DOCS would put all files into one folder. A copy of the tree may be without documents.
install: remove-bitcode $(if $(DOCUMENTS),install-documents)
uninstall: remove-bitcode uninstall-documents

# An earlier state of this tree installed some. The server would use it with the new library.
remove-bitcode:
	rm -rf '$(DESTDIR)$(bitcodedir)/$(EXTENSION)' '$(DESTDIR)$(bitcodedir)/$(EXTENSION).index.bc'

document_root = $(DESTDIR)$(docdir)/$(docmoduledir)/$(EXTENSION)

install-documents:
	$(MKDIR_P) $(foreach folder,$(DOCUMENT_FOLDERS),'$(document_root)/$(folder)')
	set -e; $(foreach folder,$(DOCUMENT_FOLDERS),\
	$(INSTALL_DATA) $(foreach file,$(DOCUMENTS),$(if $(filter $(folder),$(dir $(file))),$(file))) \
	'$(document_root)/$(folder)';)
	chmod 755 $(foreach file,$(filter %.sh examples/shell/%,$(DOCUMENTS)),\
	'$(document_root)/$(file)')

# Only what it has installed, and the folders that are empty then.
uninstall-documents:
	rm -f $(foreach file,$(DOCUMENTS),'$(document_root)/$(file)')
	test ! -d '$(document_root)' || \
		find '$(document_root)' -depth -type d -exec rmdir {} + 2>/dev/null || true

.PHONY: remove-bitcode install-documents uninstall-documents

else

install-documents uninstall-documents: all
all install uninstall installcheck:
	@echo "advisory_ext: '$(PG_CONFIG)' names no PostgreSQL with development files." >&2
	@echo "Install postgresql-server-dev-NN, or say PG_CONFIG=/path/to/pg_config." >&2
	@echo "'make demo' and 'make test' install what they need by themselves." >&2
	@exit 2

clean:
	rm -rf $(OBJS) $(DATA_built) $(EXTENSION).so $(EXTRA_CLEAN) results regression.diffs \
		regression.out

.PHONY: all install uninstall install-documents uninstall-documents installcheck clean
endif

# ---- Rules ------------------------------------------------------------------------------------
$(DATA_built): sql/parts $(SQL_PARTS) $(EXTENSION).control Makefile
	sh scripts/join.sh extension > $@.tmp
	mv $@.tmp $@

portable: # join the portable edition of its parts
	sh scripts/join.sh portable > portable/advisory.sql.tmp
	mv portable/advisory.sql.tmp portable/advisory.sql

# pg_regress wants tests and answers apart.
$(REGRESS_FILES): FORCE
	@bash scripts/answers.sh part extension $@ test/sql/*.sql

# Another server version, or one that was configured otherwise, another compiler, or compiler flag
# rebuilds everything.
$(BUILT_FOR): export BUILD_ID = $(shell $(PG_CONFIG) --version) \
	$(shell { $(PG_CONFIG) --configure; cat $(dir $(HEADER))pg_config.h; } | cksum) \
	$(EXTVERSION) $(CXX) $(CPPFLAGS) $(CXXFLAGS) $(CFLAGS) $(COPT)
$(BUILT_FOR): FORCE
	@printf '%s\n' "$$BUILD_ID" | cmp -s - $@ || \
		{ rm -f $(FIRST_HEADER).gch; printf '%s\n' "$$BUILD_ID" > $@; }
$(OBJS): $(BUILT_FOR) $(PRECOMPILED)
%.faults.o: %.cpp
	$(COMPILE.cc) -DADVISORY_EXT_FAULTS -o $@ $<
# Without warnings: it is not meant to be compiled by itself.
$(FIRST_HEADER).gch: $(FIRST_HEADER) $(BUILT_FOR)
	$(CXX) $(CXXFLAGS) $(CPPFLAGS) -w -x c++-header -c -o $@ $<

-include $(wildcard $(OBJS:.o=.d) $(FIRST_HEADER).d)

##For the server of PG_CONFIG=/path/to/pg_config; options: CONTRIBUTING.md
##  make [install]        build [install]; also uninstall, installcheck, clean

demo: ## show on real sessions what the extension is for
	@bash demo/demo.sh

test: ## what needs only PostgreSQL and Perl; PARTS= TESTS=
	@bash scripts/test.sh

test-all: ## that, and the real PgBouncer, Patroni, Node, Java ...
	@PARTS="$${PARTS:-all}" bash scripts/test.sh

test-integration: ## only with these programs
	@PARTS=integration bash scripts/test.sh

test-failover: ## a Patroni cluster that fails over under load
	@PARTS=integration TESTS=failover bash scripts/test.sh

stress-failover: ## the same for longer
	@bash scripts/packages.sh integration
	@bash scripts/server.sh run -- env FAILOVER_SECONDS='$(SECONDS)' \
		FAILOVER_CYCLES='$(or $(CYCLES),20)' FAILOVER_MODES='$(MODES)' \
		FAILOVER_KINDS='$(or $(KINDS),host paused postmaster frozen early)' \
		FAILOVER_CLOCKS='$(CLOCKS)' \
		perl test/integration/failover.t

test-matrix: ## make test for 15, 17, 18 and 19; needs root
	@bash scripts/matrix.sh

test-platforms: ## other processors, encodings and settings; needs root
	@bash scripts/platforms.sh

stress: ## try to break it
	@bash scripts/packages.sh test
	@bash scripts/server.sh run -- env STRESS='$(STRESS)' STRESS_SECONDS='$(SECONDS)' \
		SESSIONS='$(SESSIONS)' SEED='$(SEED)' \
		CRASHES='$(CRASHES)' CALLS='$(CALLS)' perl test/stress/stress.pl

soak: ## load for hours: is memory or a session lost?
	@bash scripts/packages.sh test
	@bash scripts/server.sh run -- env HOURS='$(HOURS)' SESSIONS='$(SESSIONS)' NAMES='$(NAMES)' \
		perl test/soak/soak.pl

model: ## search the models of the protocols with SPIN
	@bash scripts/model.sh

addresses: # write the addresses of project.conf into the other files
	@perl scripts/addresses.pl --write

dist: ## the archive for PGXN, of the last commit; its checksum
	@bash scripts/dist.sh

deb: ## build Debian packages
	@bash scripts/deb.sh

IMAGE_TREE = results/image-tree
image-tree: ## the folder of an extension image for CloudNativePG
	@test '$(or $(MAJORVERSION),0)' -ge 18 || \
		{ echo "advisory_ext: an extension image is for PostgreSQL 18 or later:" \
		"say PG_CONFIG=/path/to/pg_config" >&2; exit 2; }
	rm -rf '$(IMAGE_TREE)'
	$(MAKE) install DESTDIR= prefix= datadir='$(IMAGE_TREE)/share' \
		pkglibdir='$(IMAGE_TREE)/lib' DOCUMENTS=
	$(MKDIR_P) '$(IMAGE_TREE)/licenses/$(EXTENSION)'
	cp LICENSE '$(IMAGE_TREE)/licenses/$(EXTENSION)/'
	cp docker/extension/Dockerfile '$(IMAGE_TREE)/'

test-packages: ## build, install, test, remove the packages; needs root
	@bash scripts/test-packages.sh

lint: ## warnings, static analysis, layout
	@bash scripts/lint.sh

sanitize: ## the tests with sanitizers, then under valgrind
	@bash scripts/sanitize.sh

test-assert: ## the tests on a server that checks itself
	@bash scripts/assert.sh

test-faults: ## each function while a request for memory fails
	@PARTS=faults TEST_TIMEOUT=1800 TEST_SECONDS=1800 bash scripts/test.sh

bench: ## what it costs beside the built-ins, in ratios
	@bash scripts/packages.sh bench
	@bash scripts/server.sh run -- env TEST_SECONDS=3600 perl test/bench/bench.pl

bench-plots: # draw what the last full bench found
	@bash scripts/packages.sh plots
	@perl test/bench/plots.pl results/bench.json doc/performance

# The text without the transaction, which CREATE EXTENSION has already begun. pg_dump takes the rows
# of an extension's tables only if it is told to. dbdev wants three numbers in a version.
PORTABLE_EXTENSION = results/advisory_portable
PORTABLE_VERSION   = $(EXTVERSION)$(if $(word 3,$(subst ., ,$(EXTVERSION))),,.0)
PORTABLE_COMMENT   = named advisory locks, semaphores, jobs and views (portable edition)
PORTABLE_SCRIPT    = $(PORTABLE_EXTENSION)/advisory_portable--$(PORTABLE_VERSION).sql
portable-extension: ## the portable edition as an extension, for dbdev
	rm -rf '$(PORTABLE_EXTENSION)'
	mkdir -p '$(PORTABLE_EXTENSION)'
	@{ sed -E '/^(BEGIN.*|COMMIT);$$/d' portable/advisory.sql; \
	sed -E -e '/^CREATE (TABLE|SEQUENCE) IF NOT EXISTS (advisory\.[a-z_]+).*/!d' \
	-e "s//SELECT pg_extension_config_dump('\2', '');/" portable/advisory.sql; \
	} >'$(PORTABLE_SCRIPT)'
	@printf '%s\n' "comment = '$(PORTABLE_COMMENT)'" "default_version = '$(PORTABLE_VERSION)'" \
		'relocatable = false' 'superuser = false' \
		>'$(PORTABLE_EXTENSION)/advisory_portable.control'
	cp portable/README.md '$(PORTABLE_EXTENSION)/'

TLE = portable/advisory-tle.sql
portable-tle: portable-extension ## the same as a file for pg_tle
	@{ echo "SELECT pgtle.install_extension('advisory_portable', '$(PORTABLE_VERSION)'," \
		"'$(PORTABLE_COMMENT)', \$$_pgtle_\$$"; \
	cat '$(PORTABLE_SCRIPT)'; \
	echo '$$_pgtle_$$);'; } >$(TLE)

PICTURES = $(notdir $(basename $(wildcard doc/pictures/*.md)))
pictures: # draw the terminals that the documents show
	@WRITE=1 PAGES='$(PICTURES)' PARTS=tap TESTS=documents bash scripts/test.sh
	@for page in $(PICTURES); do \
		perl scripts/terminal.pl doc/pictures/$$page.md >doc/pictures/$$page.svg || exit 1; done

help:
	@awk -F ': ## *' '/^##/ { sub(/^##/, ""); print } \
		/^[a-z-]+: ##/ { printf "  make %-19s%s\n", $$1, $$2 }' Makefile

FORCE:
.PHONY: portable demo test test-all test-integration test-failover stress-failover test-matrix \
	test-platforms stress soak model addresses dist deb image-tree test-packages lint sanitize \
	test-assert test-faults bench bench-plots portable-extension portable-tle pictures help FORCE
