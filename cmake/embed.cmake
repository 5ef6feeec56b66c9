# collage_embed(TARGET FILE...): the files' texts become part of TARGET, found by name with embedded_file()
# (src/report/embedded.h). They are read when CMake runs, which it does again when one of them changes.
function(collage_embed target)
  set(entries "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND entries "  if (name == \"${name}\") return R\"embedded(${text})embedded\";\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/generated/${target}_embedded.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
#include "report/embedded.h"
namespace collage {
std::string_view embedded_file(std::string_view name) {
@entries@  return {};
}
}  // namespace collage
]])
  target_sources(${target} PRIVATE ${generated})
endfunction()
