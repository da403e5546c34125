# find_package(evo 0.2 CONFIG REQUIRED) defines the target evo::headers, with the folder of the C headers on its include path:
#
#     target_link_libraries(my_program PRIVATE evo::headers)
#
# CMake finds this file with -Devo_ROOT="$(python -m evo --include)".

if(NOT TARGET evo::headers)
  add_library(evo::headers INTERFACE IMPORTED)
  get_filename_component(evo_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  set_target_properties(evo::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${evo_INCLUDE_DIR}")
endif()
