package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrOption is the kind of an error about a value that an option cannot have.
var ErrOption = errors.New("invalid option")

// failed is an error with a text for the user and a kind for the program.
type failed struct {
	kind, text error
}

// Of returns an error of a kind. Its text is that of fmt.Errorf with the same
// format and arguments.
func Of(kind error, format string, args ...any) error {
	return &failed{kind, fmt.Errorf(format, args...)}
}

// As returns err with a kind added to it. The text stays as it is.
func As(kind, err error) error { return &failed{kind, err} }

func (f *failed) Error() string { return f.text.Error() }

// Unwrap gives errors.Is and errors.As the kind and what the text wraps.
func (f *failed) Unwrap() []error { return []error{f.kind, f.text} }

// packages matches the names of packages that stand before the text of an error for
// those who work on the program. Names of stages are none of them: they say where in a
// run an error came up.
var packages = regexp.MustCompile(`(^|: |\n)(?:(?:blocks|catalog|control|coordinator|dataset|direct|estimate|export|group|hops|mem|member|ring|rpc|seal|shards|spmv|storage|vfs|worker): )+`)

// stages matches the name of a stage that stands before its own errors, too.
var stages = regexp.MustCompile(`(^|: |\n)(evaluate|lsi|partition|predict|smooth|smooth-labels|train): (?:(?:evaluate|lsi|partition|predict|smooth|smooth-labels|train): )+`)

// Text is what a user reads of err: its text without names of packages and, where that
// ends in a kind of kinds, without the kind.
func Text(err error, kinds ...error) string {
	text := err.Error()
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			text = strings.TrimSuffix(text, ": "+kind.Error())
		}
	}
	text = packages.ReplaceAllString(text, "$1")
	return stages.ReplaceAllString(text, "$1$2: ")
}
