// Package retry repeats calls that failed, with one policy: the first pause is short,
// each later one is about twice as long, up to a bound, and all vary at random, so that
// processes that lost the same peer do not come back at the same moment.
//
// # Model
//
// [Do] repeats a call until it succeeds, fails with an error marked [Permanent], the
// patience has ended, or the context is done. [Pauses] is the same sequence of pauses
// for loops that are more than a repeated call.
//
// # Not supported
//
// Requests to object stores are repeated in internal/storage, where the client library
// of the store decides which errors may pass.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// First is about the first pause.
	First = 100 * time.Millisecond
	// Longest is about the longest pause, unless a caller sets another.
	Longest = 5 * time.Second
	// growth is the ratio of a pause to the one before, on average.
	growth = 2
	// spread is the random share by which a pause is shorter or longer.
	spread = 0.5
)

// Pauses returns the pauses between attempts.
func Pauses(longest time.Duration) *backoff.ExponentialBackOff {
	p := &backoff.ExponentialBackOff{InitialInterval: First, RandomizationFactor: spread, Multiplier: growth, MaxInterval: longest}
	p.Reset()
	return p
}

// Permanent marks an error of a call that [Do] must not repeat. Do returns the error
// itself.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// Do calls until the call succeeds. It returns the first error marked [Permanent], the
// cause of ctx once that is done, or the last error once the next attempt would begin
// later than patience after the first. With a patience of 0 or less it calls once.
//
// failed, unless nil, is told of each failure after which Do calls again, with the
// number of attempts so far.
func Do(ctx context.Context, patience time.Duration, failed func(attempts int, err error), call func() error) error {
	attempts := 0
	options := []backoff.RetryOption{
		backoff.WithBackOff(Pauses(Longest)),
		backoff.WithMaxElapsedTime(patience),
		backoff.WithNotify(func(err error, _ time.Duration) {
			if attempts++; failed != nil {
				failed(attempts, err)
			}
		}),
	}
	if patience <= 0 {
		options = append(options, backoff.WithMaxTries(1))
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, call() }, options...)
	return unmarked(err)
}

// unmarked is the error without the mark of [Permanent], which is still there after the
// last attempt of those allowed.
func unmarked(err error) error {
	if p, ok := err.(*backoff.PermanentError); ok { //nolint:errorlint // the mark is outermost
		return p.Unwrap()
	}
	return err
}
