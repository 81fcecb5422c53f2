#pragma once

#include <set>
#include <string>
#include <string_view>

#include "controllers/objects.h"
#include "controllers/write.h"

// Garbage collection by owner references
// (https://kubernetes.io/docs/concepts/architecture/garbage-collection/): background, foreground
// and orphaning. What an owner's absence costs is never decided on a view alone: it is read first.
namespace berth::controllers {

inline constexpr std::string_view kOrphanFinalizer = "orphan";
inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// Owners that are known to be gone, by AbsenceKey(): by all that a reference says, for another
// reference of that uid may be of a kind that nobody knows. Such a fact never becomes false, for a
// uid is never given twice.
using Absences = std::set<std::string>;
[[nodiscard]] std::string AbsenceKey(std::string_view namespace_name,
                                     const api::OwnerReference& owner);

// Of a read of an owner that found none: what is known of the references to it.
void NoteAbsence(const Objects& objects, const Head& dependent, const Write& read,
                 Absences& absent);

// What is due for one object: a read of each owner that is not known (Write::uid is the
// owner's), its deletion, the removal of references, or of a finalizer whose work is done.
// An object one of whose owners can't be found is left alone, whatever has the uid: its kind is not
// served, or not in that version, or lives in namespaces and the object does not. A function of the
// objects and of known absences. Cost: O(owners and definitions), of an object that is being
// deleted in the foreground or orphans its dependents O(dependents).
[[nodiscard]] Plan PlanCollection(const Objects& objects, Slot slot, const Absences& absent);

}  // namespace berth::controllers
