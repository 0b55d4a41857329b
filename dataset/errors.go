package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/internal/failure"
)

var (
	// ErrURI reports a dataset URI that cannot be understood.
	ErrURI = failure.Kind("dataset URI is wrong")
	// ErrData reports input files that are damaged, contradict each other or hold
	// what this package does not read. The wrapped error names file, row and remedy.
	ErrData = failure.ErrData
)

// fault is an error of a known kind whose text is only its message.
type fault struct {
	kind, cause error
	message     string
}

func (f *fault) Error() string { return f.message }

func (f *fault) Unwrap() []error { return []error{f.kind, f.cause} }

// badData returns an ErrData about a file or a part of it. The remedy belongs
// into the text.
func badData(where, format string, args ...any) error {
	return &fault{kind: ErrData, message: where + ": " + fmt.Sprintf(format, args...)}
}

// badURI returns an ErrURI.
func badURI(format string, args ...any) error {
	return &fault{kind: ErrURI, message: "dataset URI: " + fmt.Sprintf(format, args...)}
}

// damaged wraps what a decoder said about the bytes of a file.
func damaged(where string, cause error) error {
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, ErrData) {
		return cause
	}
	if cause == io.EOF || cause == io.ErrUnexpectedEOF {
		return &fault{ErrData, cause, where + ": the file ends too early: it is truncated, fetch it again"}
	}
	return &fault{ErrData, cause, where + ": " + cause.Error()}
}
