#pragma once

#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/storage_ptr.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

// The one JSON document type of the platform: Boost.JSON's, whose objects keep insertion order.
// Parsing and printing are codec/'s; this header lets layers below and beside it speak of
// documents.
namespace berth::api {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Where a document's nodes live. By default each is allocated on its own; documents that live as
// long as one request share a JsonArena, which frees them at once. Everything put into a document
// moves to the document's memory.
using JsonMemory = boost::json::storage_ptr;
using JsonArena = boost::json::monotonic_resource;

}  // namespace berth::api
