package control

import (
	"context"
	"errors"
	"slices"

	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// named lists the kinds of errors that keep their meaning between processes, and the names by which
// they travel.
var named = []struct {
	name string
	kind error
}{
	{"LEASE_LOST", ErrLeaseLost},
	{"ENDED", ErrEnded},
	{"DRAINED", ErrDrained},
	{"REFUSED", ErrRefused},
	{"REJECTED", ErrRejected},
	{"CANCELLED", context.Canceled},
	{"DEADLINE", context.DeadlineExceeded},
	{"UNABLE", ErrUnable},
	{"OPTION", failure.ErrOption},
	{"PLAN_MISMATCH", ErrPlanMismatch},
	{"CORRUPT", seal.ErrCorrupt},
	{"VERSION", seal.ErrVersion},
	{"BUDGET", mem.ErrBudget},
	{"DATA", failure.ErrData},
	{"NO_SPACE", storage.ErrNoSpace},
	{"DISK", storage.ErrDisk},
}

// KindNames lists the names of the kinds that err has.
func KindNames(err error) (names []string) {
	for _, n := range named {
		if errors.Is(err, n.kind) {
			names = append(names, n.name)
		}
	}
	return names
}

// KindsNamed lists the kinds with these names. It skips unknown names.
func KindsNamed(names []string) (kinds []error) {
	for _, n := range named {
		if slices.Contains(names, n.name) {
			kinds = append(kinds, n.kind)
		}
	}
	return kinds
}
