// Package failure makes errors that a user reads: their text says what the user must know and
// nothing else, and a program finds their kind with errors.Is.
//
// # Model
//
// An error of this package has a text and a kind. The kind is a sentinel such as mem.ErrBudget. It
// is not part of the text. An error that the format wraps with %w is part of the text as usual, and
// errors.Is finds it too.
package failure
