# voda_embed(TARGET FILE...): compiles each FILE into TARGET as `extern const std::string_view kEmbed<FileName>` of
# namespace voda (report/cdf_chart.js becomes kEmbedCdfChartJs), so that the binary needs nothing beside itself.
# Bytes go out as a char array: compilers warn about string literals beyond 64 KiB. The file is written when CMake
# configures, and editing a FILE configures again.
function(voda_embed target)
  set(code "// Written by cmake/EmbedReport.cmake.\n#include <string_view>\n\nnamespace voda {\n")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    cmake_path(GET path FILENAME name)
    set(symbol "")
    string(REGEX MATCHALL "[A-Za-z0-9]+" words ${name})
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 head)
      string(SUBSTRING ${word} 1 -1 tail)
      string(TOUPPER ${head} head)
      string(APPEND symbol ${head}${tail})
    endforeach()
    file(READ ${path} hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
    string(APPEND code "\nextern const std::string_view kEmbed${symbol};\n"
                       "static const char k${symbol}Bytes[] = {\n${hex}'\\0'};\n"
                       "constinit const std::string_view kEmbed${symbol}(k${symbol}Bytes, sizeof(k${symbol}Bytes) - 1);\n")
  endforeach()
  string(APPEND code "\n}  // namespace voda\n")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embed/${target}_embed.cc)
  file(CONFIGURE OUTPUT ${output} CONTENT "${code}" @ONLY)
  target_sources(${target} PRIVATE ${output})
endfunction()
