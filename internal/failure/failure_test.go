package failure

import (
	"errors"
	"io"
	"testing"
)

var errKind = errors.New("the kind")

func TestTextIsWithoutTheKind(t *testing.T) {
	err := Of(errKind, "row %d: %w", 7, io.ErrUnexpectedEOF)
	if got, want := err.Error(), "row 7: unexpected EOF"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if !errors.Is(err, errKind) || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Errorf("%v has not the kinds it was given", err)
	}
	if err := As(errKind, io.EOF); err.Error() != "EOF" || !errors.Is(err, errKind) || !errors.Is(err, io.EOF) {
		t.Errorf("As gives %v", err)
	}
}
