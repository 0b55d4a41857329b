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
	return failure.Of(ErrCorrupt, "%s: %s: take it out of the run directory and import it as a dataset (ndls partition --dataset)", name, reason)
}

// Damage is an ErrCorrupt about a file of a run directory that changed since it was
// written. Who knows what the file is adds how to make it again.
type Damage struct {
	// Name is the name of the file, What is wrong with it.
	Name, What string
}

func (d *Damage) Error() string {
	return d.Name + " is damaged: " + d.What
}

// Unwrap returns ErrCorrupt.
func (d *Damage) Unwrap() error { return ErrCorrupt }

// Corrupt is a [Damage] with the file's name and what is wrong.
func Corrupt(name, format string, args ...any) error {
	return &Damage{name, fmt.Sprintf(format, args...)}
}
