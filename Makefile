# Verbs only: everything is built by CMake (CMakePresets.json).
BUILD := build

.PHONY: all deps test
all: $(BUILD)/build.ninja
	@cmake --build $(BUILD)
$(BUILD)/build.ninja: | deps
	@cmake --preset release
deps: ; @tools/install_deps.sh
test: deps ; @tools/test.sh
