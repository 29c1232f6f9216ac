# The wire of MPI is a separate library, libkiln_mpi.so, which kiln loads when a launcher has started several ranks
# (src/dist/world.h): one program runs with and without MPI.  KILN_MPI is AUTO (build it if there is MPI), ON or OFF.
set(KILN_MPI AUTO CACHE STRING "AUTO, ON or OFF")
set_property(CACHE KILN_MPI PROPERTY STRINGS AUTO ON OFF)
set(KILN_HAVE_MPI 0)

if(NOT KILN_MPI STREQUAL "OFF")
  find_package(MPI COMPONENTS C)
  if(MPI_C_FOUND)
    set(KILN_HAVE_MPI 1)
  elseif(KILN_MPI STREQUAL "ON")
    message(FATAL_ERROR "KILN_MPI=ON, but no MPI was found")
  endif()
endif()
message(STATUS "kiln: MPI ${KILN_MPI} -> ${KILN_HAVE_MPI}")

# As the library of CUDA, it has its own objects of what it needs below it.
if(KILN_HAVE_MPI)
  file(GLOB mpi_sources CONFIGURE_DEPENDS src/dist/mpi/*.c)
  add_library(kiln_mpi MODULE ${mpi_sources} src/core/status.c)
  set_target_properties(kiln_mpi PROPERTIES C_VISIBILITY_PRESET hidden)
  target_include_directories(kiln_mpi PRIVATE src)
  target_compile_definitions(kiln_mpi PRIVATE _POSIX_C_SOURCE=200809L KILN_VERSION="${PROJECT_VERSION}")
  target_compile_options(kiln_mpi PRIVATE -Wall -Wextra -Wno-format-truncation $<$<BOOL:${KILN_WERROR}>:-Werror>)
  target_link_libraries(kiln_mpi PRIVATE MPI::MPI_C)
  install(TARGETS kiln_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
