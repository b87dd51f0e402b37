// What a program asks of its file system, written down: for `leyden run` with `workload.recorded`.
//
// It knows no image: any FileSystem can be traced. docs/rocksdb.md has the format. Calls of the tracer take processor
// time of their own, which is not counted as the program's, but for the two readings of the clock around a call.

#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace leyden_fs {

class Trace;

// Begins a trace; a file that exists is left alone.
rocksdb::IOStatus BeginTrace(const std::string& path, std::shared_ptr<Trace>* trace);

// Writes what is left, and the end mark. What comes later is not written.
rocksdb::IOStatus EndTrace(Trace* trace);

// `target`, with everything that it is asked for noted in `trace`. Reads of whole directories and attributes are not.
std::unique_ptr<rocksdb::FileSystem> Traced(std::unique_ptr<rocksdb::FileSystem> target, std::shared_ptr<Trace> trace);

}  // namespace leyden_fs
