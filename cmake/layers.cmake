# The layering of ARCHITECTURE.md, compiled: berth_layer() is the only way to add a library.
#
# A folder may use the folders that its row names, and nothing else. tools/lint reads the same rows
# to check #includes, so an arrow is declared once.

set(BERTH_LAYERS
  "base:"
  "testing:base"
  "env:base"
  "api:base"
  "model:base"
  "quota:base model"
  "gang:base model"
  "place:base model"
  "topo:base model"
  "translate:base api model"
  "codec:base api"
  "store:base env api"
  "net:base env"
  "env/os:base env"
  "cycle:base model quota gang place topo"
  "client:base env api codec"
  "config:base api codec"
  "apiserver:base env api codec store"
  "dash:base env api codec model"
  "control:base env api codec model gang translate place cycle client"
  "controllers:base env api codec client"
  "nodes:base env api codec client"
  "cli:base env api codec client model cycle translate place"
  "sim:base env api codec store model place cycle translate client apiserver control controllers nodes"
  "explore:base env api codec store model place cycle translate client apiserver control controllers nodes sim"
)

# berth_layer(<folder> [THIRD_PARTY <targets>...] [TEST_SHARDS <count>] [READ_TESTDATA <tests>...])
#
# Makes the library berth_<folder> of all its *.cc, the test program of its *_test.cc, a program per *_fuzz.cc
# (where BERTH_FUZZ is on) and per *_bench.cc (not with sanitizers or in CI), and a link test: a program of the whole archive
# and its allowed dependencies only, so that an upward call fails to link. A test program that takes long runs as
# TEST_SHARDS tests at once, each with its share of the cases. Tests of READ_TESTDATA know the folder's testdata/ as
# BERTH_TESTDATA: they alone, for nothing that is compiled with a path of the checkout serves another one (ccache).
function(berth_layer folder)
  cmake_parse_arguments(ARG "" "TEST_SHARDS" "THIRD_PARTY;TEST_DEPS;READ_TESTDATA" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(dependencies "")
  set(found FALSE)
  foreach(row IN LISTS BERTH_LAYERS)
    if(row MATCHES "^${folder}:(.*)$")
      set(found TRUE)
      string(REPLACE " " ";" dependencies "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR "${folder} has no row in BERTH_LAYERS")
  endif()
  set(libraries "")
  foreach(dependency IN LISTS dependencies)
    string(REPLACE "/" "_" dependency_name ${dependency})
    list(APPEND libraries berth_${dependency_name})
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)

  set(scope PUBLIC)
  set(warnings_scope PRIVATE)
  if(sources)
    add_library(berth_${name} STATIC ${sources})
    add_executable(berth_${name}_links ${CMAKE_SOURCE_DIR}/cmake/link_test.cc)
    target_link_libraries(berth_${name}_links PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,berth_${name}>)
    add_test(NAME ${name}.links COMMAND berth_${name}_links)
  else()
    add_library(berth_${name} INTERFACE)
    set(scope INTERFACE)
    set(warnings_scope INTERFACE)
  endif()
  target_include_directories(berth_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(berth_${name} ${scope} ${libraries} ${ARG_THIRD_PARTY} fmt::fmt)
  if(sources)
    target_link_libraries(berth_${name} PRIVATE berth_warnings)
    berth_precompile(berth_${name} "${sources}")
    if(BERTH_FUZZ)
      target_compile_options(berth_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
  if(headers AND BERTH_CHECK_HEADERS)
    berth_check_headers(${name} "${headers}")
  endif()

  if(tests)
    add_executable(berth_${name}_test ${tests})
    target_link_libraries(berth_${name}_test PRIVATE
      berth_${name} berth_testing ${ARG_TEST_DEPS} berth_warnings GTest::gtest GTest::gmock GTest::gtest_main
      rapidcheck)
    if(ARG_READ_TESTDATA)
      set_source_files_properties(${ARG_READ_TESTDATA} PROPERTIES
        COMPILE_DEFINITIONS "BERTH_TESTDATA=\"${CMAKE_CURRENT_SOURCE_DIR}/testdata\"")
    endif()
    berth_precompile(berth_${name}_test "${tests}")
    berth_test_unoptimised(berth_${name}_test berth_${name} ${libraries})
    # One seed for property tests, so that a red run is red again; RC_PARAMS in the environment of a run by hand varies it.
    set(environment "RC_PARAMS=seed=20260101")
    if(ARG_TEST_SHARDS)
      math(EXPR last "${ARG_TEST_SHARDS} - 1")
      foreach(shard RANGE ${last})
        add_test(NAME ${name}.${shard} COMMAND berth_${name}_test)
        set_tests_properties(${name}.${shard} PROPERTIES ENVIRONMENT
          "${environment};GTEST_TOTAL_SHARDS=${ARG_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
      endforeach()
    else()
      add_test(NAME ${name} COMMAND berth_${name}_test)
      set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
    endif()
  endif()
  foreach(bench IN LISTS benches)
    if(NOT BERTH_SANITIZE AND NOT BERTH_PRECOMPILE)
      get_filename_component(stem ${bench} NAME_WE)
      add_executable(berth_${name}_${stem} ${bench})
      target_link_libraries(berth_${name}_${stem} PRIVATE
        berth_${name} berth_testing ${ARG_TEST_DEPS} berth_warnings benchmark::benchmark)
    endif()
  endforeach()
  foreach(fuzzer IN LISTS fuzzers)
    if(BERTH_FUZZ)
      get_filename_component(stem ${fuzzer} NAME_WE)
      add_executable(berth_${name}_${stem} ${fuzzer})
      target_link_libraries(berth_${name}_${stem} PRIVATE berth_${name} ${ARG_TEST_DEPS} berth_warnings)
      target_compile_options(berth_${name}_${stem} PRIVATE -fsanitize=fuzzer-no-link)
      target_link_options(berth_${name}_${stem} PRIVATE -fsanitize=fuzzer)
    endif()
  endforeach()
endfunction()

# Compiles the headers of a folder that have no source of their name alone, so that none leans on what its users
# include first. Of the others tools/lint sees that their source includes them first.
function(berth_check_headers name headers)
  set(units "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" ".cc" source ${header})
    if(EXISTS ${source})
      continue()
    endif()
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/src ${header})
    string(MAKE_C_IDENTIFIER ${relative} identifier)
    set(unit ${CMAKE_BINARY_DIR}/headers/${identifier}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${relative}\"\n#include \"${relative}\"\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    add_library(berth_${name}_headers OBJECT ${units})
    target_link_libraries(berth_${name}_headers PRIVATE berth_${name} berth_warnings)
    # The objects, not the target: that would wait for the libraries that its headers belong to.
    set_property(GLOBAL APPEND PROPERTY BERTH_HEADERS $<TARGET_OBJECTS:berth_${name}_headers>)
  endif()
endfunction()
option(BERTH_CHECK_HEADERS "compile alone every header that no source includes first" OFF)
