//go:build tools

// Package tools makes the programs that tests/real/build compiles dependencies of this module.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
