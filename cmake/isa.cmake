# Kernels (*_kernels.c) are compiled once per instruction set; ops/cpu/cpu_isa.c says which runs.  Each object sees
# KILN_ISA, the suffix of the one function it exports.
set(KILN_ISAS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(KILN_ISAS baseline avx2 avx512 avx512bf16)
endif()
set(KILN_ISA_FLAGS_baseline "")
set(KILN_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(KILN_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mbmi2
  -mprefer-vector-width=512)
set(KILN_ISA_FLAGS_avx512bf16 ${KILN_ISA_FLAGS_avx512} -mavx512bf16)

# Moves the kernel sources from the list variable into objects, one set per instruction set: KILN_KERNEL_OBJECTS
# of KILN_KERNEL_TARGETS.
function(kiln_take_kernels list)
  set(kernels ${${list}})
  list(FILTER kernels INCLUDE REGEX "_kernels\\.c$")
  set(rest ${${list}})
  list(FILTER rest EXCLUDE REGEX "_kernels\\.c$")
  set(objects)
  set(targets)
  if(kernels)
    # fast: overrides kiln_flags' "off". Floating-point exceptions are not used; GCC 12 vectorises a choice
    # between two results for AVX2 only if it knows that
    set(options -ffp-contract=fast -fno-trapping-math -fno-stack-protector -U_FORTIFY_SOURCE)
    # With sanitizers -O2 takes half a minute for a file that is unrolled, -O1 two seconds. No fuzz target runs a kernel.
    if(KILN_SANITIZE)
      list(APPEND options -O1)
    endif()
    if(KILN_FUZZ)
      list(APPEND options -fno-sanitize=all)
    endif()
    set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS "${options}")
    foreach(isa IN LISTS KILN_ISAS)
      add_library(kiln_kernels_${isa} OBJECT ${kernels})
      target_link_libraries(kiln_kernels_${isa} PRIVATE kiln_flags)
      target_compile_definitions(kiln_kernels_${isa} PRIVATE KILN_ISA=${isa})
      target_compile_options(kiln_kernels_${isa} PRIVATE ${KILN_ISA_FLAGS_${isa}})
      list(APPEND targets kiln_kernels_${isa})
      list(APPEND objects $<TARGET_OBJECTS:kiln_kernels_${isa}>)
    endforeach()
  endif()
  set(${list} ${rest} PARENT_SCOPE)
  set(KILN_KERNEL_OBJECTS ${objects} PARENT_SCOPE)
  set(KILN_KERNEL_TARGETS ${targets} PARENT_SCOPE)
endfunction()
