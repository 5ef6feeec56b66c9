# collage_embed(TARGET FUNCTION FILE...): the files' texts become part of TARGET. FUNCTION, which TARGET declares, finds them by name
# without folder, and returns an empty text for any other. They are read when CMake runs, which it does again when one of them changes.
function(collage_embed target function)
  set(entries "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND entries "  if (name == \"${name}\") return R\"embedded(${text})embedded\";\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/generated/${target}_embedded.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
#include <string_view>

namespace collage {
std::string_view @function@(std::string_view name) {
@entries@  return {};
}
}  // namespace collage
]])
  target_sources(${target} PRIVATE ${generated})
endfunction()
