# Flags against faults that are used (those of Debian's hardening=+all), and builds whose bytes depend on no folder
# (docs/decisions/0113_packages.md).  Kernels have no guard on their stacks (isa.cmake).
include(CheckPIESupported)
check_pie_supported() # else position-independent programs are not linked with -pie
add_link_options(LINKER:-z,relro,-z,now)
if(NOT KILN_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong>)
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C>,$<CONFIG:Release>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>") # needs -O
endif()
# The later of two that match is taken.  A debug build keeps its paths, for gdb.
foreach(map ${CMAKE_SOURCE_DIR}=. ${CMAKE_BINARY_DIR}=build)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-ffile-prefix-map=${map}>)
endforeach()
