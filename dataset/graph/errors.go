package graph

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

// Fault is an error of a known kind whose text is only its message.
type Fault struct {
	kind, cause error
	message     string
}

func (f *Fault) Error() string { return f.message }

func (f *Fault) Unwrap() []error { return []error{f.kind, f.cause} }

// BadData returns an ErrData about a file or a part of it. The remedy belongs
// into the text.
func BadData(where, format string, args ...any) error {
	return &Fault{kind: ErrData, message: where + ": " + fmt.Sprintf(format, args...)}
}

// BadURI returns an ErrURI.
func BadURI(format string, args ...any) error {
	return &Fault{kind: ErrURI, message: "dataset URI: " + fmt.Sprintf(format, args...)}
}

// Damaged wraps what a decoder said about the bytes of a file.
func Damaged(where string, cause error) error {
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, ErrData) {
		return cause
	}
	if cause == io.EOF || cause == io.ErrUnexpectedEOF {
		return &Fault{ErrData, cause, where + ": the file ends too early: it is truncated, fetch it again"}
	}
	return &Fault{ErrData, cause, where + ": " + cause.Error()}
}
