# bench/*_bench.cc become one Google Benchmark program each, built only when named: ninja -C build/release NAME_bench.

find_package(benchmark QUIET)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
if(COLLAGE_TESTS AND sources AND benchmark_FOUND)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    collage_link_whole(${name})
    target_link_libraries(${name} PRIVATE collage_options collage_report benchmark::benchmark_main GTest::gtest)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests) # problems that tests share
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  endforeach()
endif()
