# What `make install` puts under a prefix: the program, its manual pages and completion for shells, include/kiln, the library with what pkg-config and CMake
# need to find it; configurations and examples in share/kiln; units of systemd for `kiln serve`; licence and documents in share/doc/kiln.
# The installed library is the part of libkiln.a that src/api needs, and exports only kiln_...: programs that link it may use a name
# like log_error.  It is there as libkiln.so.0, and for programs that shall run without it as libkiln.a, one object.
set(public ${CMAKE_BINARY_DIR}/public)
file(MAKE_DIRECTORY ${public})
set(api_objects "$<FILTER:$<TARGET_OBJECTS:kiln>,INCLUDE,/src/api/>")
if(NOT KILN_STATIC) # the static libraries of systems cannot be part of a shared one
  include(CMakePackageConfigHelpers)
  add_library(kiln_shared SHARED ${api_objects})
  target_link_libraries(kiln_shared PRIVATE kiln)
  target_link_options(kiln_shared PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/kiln.map)
  set_target_properties(kiln_shared PROPERTIES OUTPUT_NAME kiln EXPORT_NAME kiln VERSION ${PROJECT_VERSION} SOVERSION 0
    LINKER_LANGUAGE C LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/kiln.map)
  # find_package(kiln) gives kiln::kiln
  write_basic_package_version_file(${public}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS kiln_shared EXPORT kiln LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION include)
  install(EXPORT kiln NAMESPACE kiln:: FILE kiln-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
  install(FILES ${public}/kiln-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
endif()
add_custom_command(OUTPUT ${public}/libkiln.a
  COMMAND ${CMAKE_LINKER} -r -o ${public}/kiln.o "${api_objects}" $<TARGET_FILE:kiln>
  COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=kiln_*" ${public}/kiln.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${public}/libkiln.a
  COMMAND ${CMAKE_AR} qcs ${public}/libkiln.a ${public}/kiln.o
  DEPENDS kiln COMMAND_EXPAND_LISTS VERBATIM)
add_custom_command(OUTPUT ${public}/man/kiln.1
  COMMAND ${CMAKE_SOURCE_DIR}/tools/make_commands.sh --man $<TARGET_FILE:kiln_program> ${public}/man
  DEPENDS kiln_program ${CMAKE_SOURCE_DIR}/tools/make_commands.sh VERBATIM)
add_custom_target(kiln_public ALL DEPENDS ${public}/libkiln.a ${public}/man/kiln.1 $<TARGET_NAME_IF_EXISTS:kiln_shared>)

# What a program that links libkiln.a links besides: jansson and utf8proc have pkg-config files of their own.
set(private)
foreach(name ONEDNN HDF5 PCRE2)
  if(KILN_HAVE_${name})
    list(APPEND private ${${name}_LIBRARY})
  endif()
endforeach()
list(APPEND private ${BZIP2_LIBRARIES} ${ZLIB_LIBRARIES} ${EXPAT_LIBRARIES})
foreach(name IN LISTS OpenMP_C_LIB_NAMES)
  list(APPEND private -l${name})
endforeach()
list(APPEND private -lpthread -ldl -lm)
if(KILN_SANITIZE)
  set(KILN_SANITIZERS " -fsanitize=address,undefined")
endif()
list(REMOVE_DUPLICATES private)
list(JOIN private " " KILN_PRIVATE_LIBRARIES)
if(KILN_STATIC) # there is libkiln.a alone
  set(KILN_ALWAYS " ${KILN_PRIVATE_LIBRARIES}")
else()
  set(KILN_DOT_PRIVATE .private)
endif()
file(RELATIVE_PATH KILN_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/kiln.pc.in ${public}/kiln.pc @ONLY)

install(TARGETS kiln_program RUNTIME DESTINATION bin)
install(DIRECTORY include/kiln DESTINATION include)
install(FILES ${public}/libkiln.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${public}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY ${public}/man/ DESTINATION share/man/man1)
install(FILES src/cmd/completion.bash DESTINATION share/bash-completion/completions RENAME kiln)
install(FILES src/cmd/completion.zsh DESTINATION share/zsh/site-functions RENAME _kiln)
install(FILES src/cmd/completion.fish DESTINATION share/fish/vendor_completions.d RENAME kiln.fish)
install(FILES deploy/serve/kiln-serve.service deploy/serve/kiln-serve.socket DESTINATION lib/systemd/system)
install(DIRECTORY configs DESTINATION share/kiln)
install(DIRECTORY examples DESTINATION share/kiln FILES_MATCHING PATTERN "*.[ch]" PATTERN Makefile PATTERN python EXCLUDE)
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md STYLE.md DESTINATION share/doc/kiln)
install(DIRECTORY docs DESTINATION share/doc/kiln)
