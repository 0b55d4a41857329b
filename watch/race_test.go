//go:build race

package watch

// raced says that the race detector watches the tests.
const raced = true
