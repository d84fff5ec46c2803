//go:build !race

package e2e

// raceDetector is whether the tests were built with the race detector; then the
// shop is, too.
const raceDetector = false
