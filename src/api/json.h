#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

// The one JSON document type of the platform: Boost.JSON's, whose objects keep insertion order.
// Parsing and printing are codec/'s; this header lets layers below and beside it speak of
// documents.
namespace berth::api {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

}  // namespace berth::api
