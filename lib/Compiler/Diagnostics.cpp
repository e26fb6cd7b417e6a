//===- Diagnostics.cpp - MLIR's diagnostics as the compiler's ---------------===//
//
// A node's location is its id over a place in the plan. The place is what a user looks up, and the
// id is in the message already; so the place alone is printed.
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Diagnostics.h"
#include "lib/Support/Json.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace mlir;

std::string planc::locationText(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location)) {
    std::string text = file.getFilename().str();
    if (file.getLine())
      text += ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
    return text;
  }
  if (auto name = dyn_cast<NameLoc>(location))
    return isa<UnknownLoc>(name.getChildLoc()) ? name.getName().str()
                                               : locationText(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return locationText(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string text = locationText(part); !text.empty())
        return text;
  return {};
}

static planc::Severity convert(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return planc::Severity::Note;
  case DiagnosticSeverity::Warning:
    return planc::Severity::Warning;
  case DiagnosticSeverity::Remark:
    return planc::Severity::Remark;
  case DiagnosticSeverity::Error:
    break;
  }
  return planc::Severity::Error;
}

planc::Diagnostic planc::convert(const mlir::Diagnostic &diagnostic) {
  Diagnostic converted{::convert(diagnostic.getSeverity()),
                       locationText(diagnostic.getLocation()),
                       diagnostic.str(),
                       {}};
  for (const mlir::Diagnostic &note : diagnostic.getNotes())
    converted.notes.push_back(convert(note));
  return converted;
}

static const char *word(planc::Severity severity) {
  switch (severity) {
  case planc::Severity::Error:
    return "error";
  case planc::Severity::Warning:
    return "warning";
  case planc::Severity::Remark:
    return "remark";
  case planc::Severity::Note:
    return "note";
  }
  return "";
}

std::string planc::toText(const Diagnostic &diagnostic) {
  std::string text = diagnostic.location.empty() ? "planc" : diagnostic.location;
  text += std::string(": ") + word(diagnostic.severity) + ": " + diagnostic.message;
  for (const Diagnostic &note : diagnostic.notes)
    text += "\n" + toText(note);
  return text;
}

static planc::Json toJsonValue(const planc::Diagnostic &diagnostic) {
  planc::Json notes = planc::Json::array();
  for (const planc::Diagnostic &note : diagnostic.notes)
    notes.push_back(toJsonValue(note));
  return {{"severity", word(diagnostic.severity)},
          {"location", diagnostic.location},
          {"message", diagnostic.message},
          {"notes", notes}};
}

std::string planc::toJson(const Diagnostic &diagnostic) {
  // A message may quote bytes of a broken file; they must not break the output.
  return toJsonValue(diagnostic).dump(-1, ' ', false, Json::error_handler_t::replace);
}
