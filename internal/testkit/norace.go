//go:build !race

package testkit

// underRace says that the race detector is on.
const underRace = false
