package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Kinds of errors that more than one package returns.
var (
	// ErrOption is the kind of an error about a value that an option cannot have.
	ErrOption = Kind("invalid option")
	// ErrData is the kind of an error about input files that are damaged, contradict each
	// other or hold what ndls does not read.
	ErrData = Kind("input data is wrong")
)

// kind is a sentinel by which programs tell errors apart.
type kind struct{ text string }

// Kind returns a new kind of errors. A message of it says by itself what is wrong and
// what to do. [Text] leaves the kind out, so that an error may be made with
// fmt.Errorf("...: %w", kind), too.
func Kind(text string) error { return &kind{text} }

func (k *kind) Error() string { return k.text }

// kindsOf lists the kinds that err has.
func kindsOf(err error) (list []*kind) {
	switch x := err.(type) { //nolint:errorlint // this is the walk that errors.As does
	case *kind:
		return []*kind{x}
	case interface{ Unwrap() error }:
		return kindsOf(x.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			list = append(list, kindsOf(e)...)
		}
	}
	return list
}

// InStage says in which stage of a run an error came up. An error that has a kind stays
// as it is: its text says what is wrong without that.
func InStage(stage string, err error) error {
	var named *inStage
	if err == nil || len(kindsOf(err)) > 0 || errors.As(err, &named) {
		return err
	}
	return &inStage{stage, err}
}

// inStage is an error with the name of its stage.
type inStage struct {
	stage string
	err   error
}

func (s *inStage) Error() string { return s.stage + " failed: " + s.err.Error() }

func (s *inStage) Unwrap() error { return s.err }

// failed is an error with a text for the user and a kind for the program.
type failed struct {
	kind, text error
}

// Of returns an error of a kind. Its text is the result of fmt.Errorf with the same format and
// arguments.
func Of(kind error, format string, args ...any) error {
	return &failed{kind, fmt.Errorf(format, args...)}
}

// As returns err with a kind added to it. The text stays as it is.
func As(kind, err error) error { return &failed{kind, err} }

func (f *failed) Error() string { return f.text.Error() }

// Unwrap gives errors.Is and errors.As the kind and what the text wraps.
func (f *failed) Unwrap() []error { return []error{f.kind, f.text} }

// packages matches the names of packages that stand before the text of an error for
// those who work on the program.
var packages = regexp.MustCompile(`(^|: |\n)(?:(?:` + strings.Join([]string{
	"blocks", "catalog", "control", "coordinator", "dataset", "direct", "estimate", "evaluate", "export", "extsort", "group", "hops",
	"journal", "lsi", "mem", "member",
	"packed", "partition", "placement", "predict", "rpc", "seal", "shards", "smooth", "smooth-labels", "spmv", "storage", "tiles", "train",
	"vfs", "worker",
}, "|") + `): )+`)

// Text returns the text of err for a user: without the names of packages, without its kinds at the
// end of a line, and without secrets of URIs.
func Text(err error) string {
	text := err.Error() + "\n"
	for before := ""; before != text; {
		before = text
		for _, k := range kindsOf(err) {
			text = strings.ReplaceAll(text, ": "+k.text+"\n", "\n")
		}
	}
	return Redact(packages.ReplaceAllString(strings.TrimSuffix(text, "\n"), "$1"))
}
