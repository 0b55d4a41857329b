//go:build invariants

package invariants

// Enabled says that the checks are built in.
const Enabled = true
