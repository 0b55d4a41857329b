package failure

import "fmt"

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
