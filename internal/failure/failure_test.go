package failure

import (
	"errors"
	"fmt"
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

func TestWhatAUserReads(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("coordinator: task partition: failed: %w", fmt.Errorf("partition: partition: e.txt line 3: %w", io.ErrUnexpectedEOF)), "task partition: failed: partition: e.txt line 3: unexpected EOF"},
		{fmt.Errorf("worker: shards: part-00000.parquet has 3 rows: %w", errKind), "part-00000.parquet has 3 rows"},
		{errKind, "the kind"},
		{fmt.Errorf("about the kind: %w", io.EOF), "about the kind: EOF"},
		{errors.New("my-worker: is a name, and so is lsi:"), "my-worker: is a name, and so is lsi:"},
	} {
		if got := Text(tc.err, errKind); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}
