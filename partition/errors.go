package partition

import (
	"fmt"

	"ndls/dataset"
)

// refusal is an error whose text is only its message.
type refusal struct {
	kind    error
	message string
}

func (r *refusal) Error() string { return r.message }

func (r *refusal) Unwrap() error { return r.kind }

// badData returns an error about the input, a dataset.ErrData. The text names the row and the remedy.
func badData(format string, args ...any) error {
	return &refusal{dataset.ErrData, fmt.Sprintf(format, args...)}
}
