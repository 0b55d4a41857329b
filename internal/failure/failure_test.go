package failure

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

var errKind = Kind("the kind")

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
		{fmt.Errorf("coordinator: %w", fmt.Errorf("partition: partition: e.txt line 3: %w", io.ErrUnexpectedEOF)), "e.txt line 3: unexpected EOF"},
		{fmt.Errorf("worker: shards: part-00000.parquet has 3 rows: %w", errKind), "part-00000.parquet has 3 rows"},
		{fmt.Errorf("one: %w", errors.Join(fmt.Errorf("mem: two: %w", errKind), fmt.Errorf("three: %w: %w", errKind, ErrOption))), "one: two\nthree"},
		{errKind, "the kind"},
		{fmt.Errorf("about the kind: %w", io.EOF), "about the kind: EOF"},
		{errors.New("my-worker: is a name, and so is lsi:"), "my-worker: is a name, and so is lsi:"},
	} {
		if got := Text(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

// An error that has a kind explains itself; all others say in which stage they came up, and
// only once.
func TestStageOfAnError(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{io.EOF, "smooth failed: EOF"},
		{InStage("smooth", fmt.Errorf("read x: %w", io.EOF)), "smooth failed: read x: EOF"},
		{Of(ErrData, "e.txt line 2: no number"), "e.txt line 2: no number"},
		{fmt.Errorf("row 7: %w", errKind), "row 7: the kind"},
	} {
		got := InStage("smooth", tc.err)
		if got.Error() != tc.want || !errors.Is(got, tc.err) {
			t.Errorf("%v: %v, want %q", tc.err, got, tc.want)
		}
	}
	if InStage("smooth", nil) != nil {
		t.Error("no error became one")
	}
}
