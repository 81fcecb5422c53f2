# Language, warnings and instrumentation, the same for every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# CHECK stays on in every build type, so NDEBUG only affects libraries.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

# Nobody debugs what is built to be tested once; CHECK tells file and line by itself.
if(BERTH_PRECOMPILE AND NOT BERTH_SANITIZE)
  string(REPLACE " -g1" "" CMAKE_CXX_FLAGS_DEBUG ${CMAKE_CXX_FLAGS_DEBUG})
endif()

# Contraction would let the compiler fuse multiply and add: scores would differ between machines.
add_compile_options(-ffp-contract=off)

# Designated initialisers name what differs from the default (STYLE 6), so fields left out are meant.
add_library(berth_warnings INTERFACE)
target_compile_options(berth_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wno-missing-field-initializers
  # What users build must not fail for what a newer compiler warns of.
  $<$<NOT:$<CONFIG:Release>>:-Werror>
  # libstdc++ 12 uses what it deprecates itself (std::stable_sort's temporary buffer).
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Wno-deprecated-declarations>)

set(BERTH_SANITIZE "" CACHE STRING "comma-separated sanitizers, e.g. address,undefined")
if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
endif()
option(BERTH_COVERAGE "instrument for gcov" OFF)
if(BERTH_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
option(BERTH_FUZZ "build libFuzzer targets beside the rest (clang)" OFF)
