# What `kiln --version` says of its build, and tools/make_sbom.py reads: commit, where git knows one, compiler, kernels and libraries.
set(versions "jansson ${JANSSON_VERSION}" "utf8proc ${UTF8PROC_VERSION}" "zlib ${ZLIB_VERSION_STRING}"
  "bzip2 ${BZIP2_VERSION_STRING}" "expat ${EXPAT_VERSION_STRING}")
if(KILN_HAVE_ONEDNN)
  file(STRINGS ${ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "oneDNN \\1.\\2.\\3" line "${lines}")
  list(APPEND versions ${line})
endif()
if(KILN_HAVE_HDF5)
  file(STRINGS ${HDF5_INCLUDE}/H5public.h line REGEX "define H5_VERS_INFO")
  string(REGEX REPLACE ".*: ([0-9.]+).*" "HDF5 \\1" line "${line}")
  list(APPEND versions ${line})
endif()
foreach(name BLAS CURL ARCHIVE MICROHTTPD PCRE2)
  set(module_BLAS openblas)
  set(module_CURL libcurl)
  set(module_ARCHIVE libarchive)
  set(module_MICROHTTPD libmicrohttpd)
  set(module_PCRE2 libpcre2-8)
  if(KILN_HAVE_${name})
    pkg_check_modules(PC_${name} QUIET ${module_${name}})
    list(APPEND versions "${module_${name}} ${PC_${name}_VERSION}")
  endif()
endforeach()
list(JOIN versions ", " versions)
list(JOIN KILN_ISAS ", " isas)
set_source_files_properties(src/cmd/build_facts.c PROPERTIES COMPILE_DEFINITIONS
  "KILN_COMPILER=\"${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}\";KILN_KERNELS=\"${isas}\";KILN_LIBRARIES=\"${versions}\"")

# The commit is a file of its own, made anew when git's log of HEAD grows: a commit compiles nothing else.
set(log_of_head)
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
  OUTPUT_VARIABLE log_of_head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT EXISTS "${log_of_head}")
  set(log_of_head)
endif()
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/embedded/build_commit.c DEPENDS ${log_of_head} VERBATIM
  COMMAND sh -c "printf 'extern const char build_commit[];\\nconst char build_commit[] = \"%s\";\\n' \"$(git -C '${CMAKE_SOURCE_DIR}' rev-parse --short=12 HEAD 2>/dev/null)\" >'${CMAKE_BINARY_DIR}/embedded/build_commit.c'")
list(APPEND sources ${CMAKE_BINARY_DIR}/embedded/build_commit.c)
