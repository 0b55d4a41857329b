package seal

import (
	"fmt"

	"ndls/internal/failure"
)

var (
	// ErrCorrupt marks a file that is not what was written: its bytes, their
	// number or their meaning. The wrapped error names the file and the way out.
	ErrCorrupt = failure.Kind("corrupt data")
	// ErrVersion marks a file in a format of another version of the program.
	ErrVersion = failure.Kind("format of another version")
)

// Refuse is an ErrCorrupt for a file that another program put in the place of
// ours.
func Refuse(name, reason string) error {
	return fmt.Errorf("%s: %s: %w: take it out of the run directory and import it as a dataset (ndls partition --dataset)",
		name, reason, ErrCorrupt)
}

// Corrupt is an ErrCorrupt that names the file, what is wrong and the way out.
func Corrupt(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w: it changed since it was written; run the stage that wrote it again in a new run directory",
		name, fmt.Sprintf(format, args...), ErrCorrupt)
}
