# The CUDA table is a separate library, libkiln_cuda.so, which kiln loads at run time (src/ops/backend.h): one
# program runs with and without a GPU.  KILN_CUDA is AUTO (build it if there is nvcc), ON or OFF.
set(KILN_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
set_property(CACHE KILN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(KILN_CUDA_ARCHITECTURES 90a-real CACHE STRING "compute capabilities to compile kernels for, from 80 on, as in 80;90a-real")
set(KILN_HAVE_CUDA 0)

if(NOT KILN_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit)
  endif()
  if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cublasLt)
    set(KILN_HAVE_CUDA 1)
  elseif(KILN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "KILN_CUDA=ON, but nvcc or cuBLASLt was not found")
  endif()
endif()
message(STATUS "kiln: CUDA ${KILN_CUDA} -> ${KILN_HAVE_CUDA}")

# The library has its own objects of the rooms below it, so that it depends on nothing in the program.
set(cuda_support src/ops/accept.c src/ops/ops.c src/dev/exec.c src/dev/graph_cache.c src/core/tensor.c src/core/dtype.c src/core/array.c
  src/core/bytes.c src/core/fp8.c src/core/status.c src/core/hash.c src/core/entropy.c src/core/regular_file.c
  src/io/file.c src/io/file_writer.c src/io/file_lock.c src/io/temporary.c)
list(TRANSFORM cuda_support PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)

if(KILN_HAVE_CUDA)
  file(GLOB cuda_sources CONFIGURE_DEPENDS src/ops/cuda/*/*.c src/ops/cuda/*/*.cu)
  add_library(kiln_cuda MODULE ${cuda_sources} ${cuda_support})
  set_target_properties(kiln_cuda PROPERTIES CUDA_ARCHITECTURES "${KILN_CUDA_ARCHITECTURES}" CUDA_STANDARD 17
    C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static)
  if(KILN_STATIC) # for another machine
    set_target_properties(kiln_cuda PROPERTIES SKIP_BUILD_RPATH ON)
  else() # cuBLASLt, if the system has another
    set_target_properties(kiln_cuda PROPERTIES BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}" INSTALL_RPATH "${CUDAToolkit_LIBRARY_DIR}")
  endif()
  target_include_directories(kiln_cuda PRIVATE src)
  target_compile_definitions(kiln_cuda PRIVATE _POSIX_C_SOURCE=200809L KILN_VERSION="${PROJECT_VERSION}")
  target_compile_options(kiln_cuda PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wno-format-truncation -ffp-contract=off>)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8) # a third of the bytes, unpacked when a kernel is loaded
    target_compile_options(kiln_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endif()
  target_link_libraries(kiln_cuda PRIVATE CUDA::cublasLt CUDA::cudart_static m)
  install(TARGETS kiln_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
