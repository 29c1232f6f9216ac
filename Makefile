# Verbs only: everything is built by CMake (CMakePresets.json).
SECONDS := 60# of each fuzz target
SEED := 0# of its inputs; 0: others in each run
CTEST :=# more arguments for the ctest of `make test`

.PHONY: all help deps demo demo-long demo-gpt test check mutate stress test-hosts test-kills test-serve test-slow bench checked asan tsan portable tidy format format-check fuzz doctor commands wheel deb static check-packages reproducible install clean

all: deps ## build the program: build/kiln
	@cmake --preset release >/dev/null && cmake --build build

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

deps: ## install the packages that building needs (Debian, Ubuntu)
	@tools/install_deps.sh

demo: export STARTED := $(shell date +%s)
demo: all ## from raw text to answered questions in at most 10 minutes; DATA=DIR for your own text
	@scripts/demo.sh

demo-long: all ## the same with a larger model, 1 to 2 hours
	@scripts/demo.sh --long

demo-gpt: all ## from raw text to a small GPT beside counts of n-grams in about 10 minutes; DATA=DIR for your own text
	@scripts/demo_gpt.sh

test: deps ## build with warnings as errors and run the tests; those of kernels take turns
	@tools/test.sh ci $(CTEST)

check: deps ## build and run the tests of one room: make check ROOM=nn
	@tools/test.sh check "$(ROOM)"

mutate: deps ## change N=50 random places of a room, one at a time, and list those that no test notices: make mutate ROOM=nn SEED=1
	@tools/mutate.py "$(ROOM)" --number $(or $(N),50) --seed $(or $(SEED),1)

stress: deps ## the tests that wait, QUIET=20 times as the machine is and LOADED=10 times beside busy loops: make stress TESTS='^test_comm$$'
	@cmake --preset ci >/dev/null && cmake --build build && tools/stress.sh $(if $(TESTS),'$(TESTS)')

test-hosts: all ## kiln launch and netcheck over hosts that are namespaces of this machine: as root, 6 minutes
	@tools/install_deps.sh openssh-server iproute2 openmpi-bin procps && tests/hosts/test_hosts.sh build/kiln

test-kills: all ## 20 random ranks of one run are killed (ROUNDS=N), and each system call of a save over ranks fails (EVERY=N): 30 minutes
	@cmake --build build --target save_faults
	@ROUNDS=$${ROUNDS:-20} tests/hosts/test_kills.sh build/kiln
	@tests/hosts/test_save_faults.sh build/kiln build/tests/libsave_faults.so

test-serve: all ## kiln serve under an hour of mixed load (MINUTES=N), and 10,000 malformed requests
	@tests/service/soak.sh build/kiln $(or $(MINUTES),60)

test-slow: export KILN_TESTS := all
test-slow: test checked asan portable tsan tidy ## all tests, in every build that there is, and clang-tidy over all files: hours

bench: all ## kiln beside PyTorch, transformers and tokenizers, in one run
	@cmake --build build --target tokenizer_rate load_rate convert_wikitext
	@bench/run.sh

checked: deps ## the tests and the fuzz targets under clang's sanitizers, without optional libraries
	@tools/install_deps.sh clang libclang-rt-dev libomp-dev && tools/test.sh checked

asan: deps ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/test.sh asan

tsan: deps ## the tests of what has threads, under ThreadSanitizer
	@tools/test.sh tsan

portable: deps ## the tests without oneDNN and BLAS
	@tools/test.sh portable

tidy: ## clang-tidy over src
	@tools/install_deps.sh clang clang-tidy libomp-dev && tools/tidy.sh

format: ## lay out every source file
	@tools/install_deps.sh clang-format && tools/format.sh -i

format-check: ## fail if a source file is not laid out by clang-format
	@tools/install_deps.sh clang-format && tools/format.sh --dry-run --Werror

fuzz: ## every fuzz target for SECONDS=60
	@tools/install_deps.sh clang libclang-rt-dev libomp-dev && tools/fuzz.sh $(SECONDS) $(SEED)

doctor: all ## what this machine and this build have
	@build/kiln doctor

commands: all ## write docs/commands.md from the help of the program
	@tools/make_commands.sh build/kiln docs/commands.md

wheel: deps ## a wheel and a source package for Python: dist/
	@tools/make_wheel.sh

deb: ## Debian packages kiln, libkiln0, libkiln-dev and python3-kiln: dist/
	@tools/install_deps.sh build-essential debhelper dh-python lintian && tools/make_deb.sh

static: deps ## one program that needs no library but glibc 2.34, for other Linux systems: dist/
	@tools/install_deps.sh libopenblas-serial-dev && cmake --preset static >/dev/null && cmake --build build-static --target kiln_program
	@install -D build-static/kiln dist/kiln-$$(build-static/kiln --version | sed 's/kiln //;q')-linux-$$(uname -m) && ls -l dist

check-packages: deb static ## install, use and remove the packages in a bare Debian 12, and run the static program there: as root
	@tools/check_packages.sh

reproducible: deb ## build the commit's packages again in another folder: they have the same bytes
	@tools/check_reproducible.sh

install: ## install what `make` has built under PREFIX (default /usr/local); DESTDIR stands in front of it
	@tools/install.sh $(or $(PREFIX),/usr/local)

clean: ## remove the builds
	@rm -rf build build-asan build-bare build-carry build-checked build-deb build-debug build-gpu build-portable build-static build-tidy build-tsan build-wheel dist
