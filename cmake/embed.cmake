# kiln_embed(file list): makes a C source that holds the bytes of `file` as the string NAME_EXTENSION (report_page.css:
# report_page_css), remade when the file changes, and adds it to the list variable.
function(kiln_embed file list)
  get_filename_component(name ${file} NAME)
  string(REPLACE "." "_" symbol ${name})
  file(READ ${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/${symbol}.c
    CONTENT "extern const char ${symbol}[];\nconst char ${symbol}[] =\n    \"@text@\";\n" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set(${list} ${${list}} ${CMAKE_BINARY_DIR}/embedded/${symbol}.c PARENT_SCOPE)
endfunction()
