cmake_minimum_required(VERSION 3.20)
project(compile LANGUAGES CXX)
find_package(planc 0.2 REQUIRED COMPONENTS planc)

add_executable(compile compile.cpp)
target_link_libraries(compile PRIVATE planc::planc)
