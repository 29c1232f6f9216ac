# What `make install` puts under a prefix: the program and its manual page, include/kiln, the library and its pkg-config file;
# configurations and examples in share/kiln; units of systemd for `kiln serve`; licence and documents in share/doc/kiln.
# The installed library is the part of libkiln.a that src/api needs, as one object that exports only kiln_...:
# programs that link it may use a name like log_error.
set(public ${CMAKE_BINARY_DIR}/public)
file(MAKE_DIRECTORY ${public})
add_custom_command(OUTPUT ${public}/libkiln.a
  COMMAND ${CMAKE_LINKER} -r -o ${public}/kiln.o "$<FILTER:$<TARGET_OBJECTS:kiln>,INCLUDE,/src/api/>" $<TARGET_FILE:kiln>
  COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=kiln_*" ${public}/kiln.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${public}/libkiln.a
  COMMAND ${CMAKE_AR} qcs ${public}/libkiln.a ${public}/kiln.o
  DEPENDS kiln COMMAND_EXPAND_LISTS VERBATIM)
add_custom_command(OUTPUT ${public}/kiln.1
  COMMAND ${CMAKE_SOURCE_DIR}/tools/make_commands.sh --man $<TARGET_FILE:kiln_program> ${public}/kiln.1
  DEPENDS kiln_program ${CMAKE_SOURCE_DIR}/tools/make_commands.sh VERBATIM)
add_custom_target(kiln_public ALL DEPENDS ${public}/libkiln.a ${public}/kiln.1)

# What a program links besides: jansson and utf8proc have pkg-config files of their own.
set(private)
if(KILN_HAVE_ONEDNN)
  list(APPEND private ${ONEDNN_LIBRARY})
endif()
foreach(name IN LISTS OpenMP_C_LIB_NAMES)
  list(APPEND private -l${name})
endforeach()
list(APPEND private -lpthread -ldl -lm)
if(KILN_SANITIZE)
  list(APPEND private -fsanitize=address,undefined)
endif()
list(REMOVE_DUPLICATES private)
list(JOIN private " " KILN_PRIVATE_LIBRARIES)
configure_file(cmake/kiln.pc.in ${public}/kiln.pc @ONLY)

install(TARGETS kiln_program RUNTIME DESTINATION bin)
install(DIRECTORY include/kiln DESTINATION include)
install(FILES ${public}/libkiln.a DESTINATION lib)
install(FILES ${public}/kiln.pc DESTINATION lib/pkgconfig)
install(FILES ${public}/kiln.1 DESTINATION share/man/man1)
install(FILES deploy/serve/kiln-serve.service deploy/serve/kiln-serve.socket DESTINATION lib/systemd/system)
install(DIRECTORY configs DESTINATION share/kiln)
install(DIRECTORY examples DESTINATION share/kiln FILES_MATCHING PATTERN "*.[ch]" PATTERN Makefile)
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md STYLE.md DESTINATION share/doc/kiln)
install(DIRECTORY docs DESTINATION share/doc/kiln)
