package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errAway = errors.New("away")

func TestDo(t *testing.T) {
	errFinal := errors.New("never")
	for _, tc := range []struct {
		name     string
		patience time.Duration
		fails    int // attempts that fail, -1 all
		final    int // the attempt that fails for good, 0 none
		want     error
		attempts int // 0 is more than five
	}{
		{"at once", time.Minute, 0, 0, nil, 1},
		{"the third time", time.Minute, 2, 0, nil, 3},
		{"never", time.Minute, -1, 0, errAway, 0},
		{"a permanent error", time.Minute, -1, 2, errFinal, 2},
		{"no patience", 0, -1, 0, errAway, 1},
		{"no patience, a permanent error", 0, -1, 1, errFinal, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, told := 0, 0
				begun := time.Now()
				err := Do(t.Context(), tc.patience, func(attempts int, err error) {
					if told++; attempts != told || !errors.Is(err, errAway) {
						t.Errorf("attempt %d, %v", attempts, err)
					}
				}, func() error {
					switch n++; {
					case n == tc.final:
						return Permanent(errFinal)
					case tc.fails < 0 || n <= tc.fails:
						return errAway
					}
					return nil
				})
				if err != tc.want || tc.attempts > 0 && n != tc.attempts || tc.attempts == 0 && n <= 5 || told != n-1 {
					t.Errorf("%v after %d attempts, told of %d", err, n, told)
				}
				if took := time.Since(begun); took > tc.patience {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestDoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("told to stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		begun := time.Now()
		err := Do(ctx, time.Hour, nil, func() error { return errAway })
		if !errors.Is(err, cause) || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestPausesGrow(t *testing.T) {
	p := Pauses(time.Second)
	for want := First; want < 8*time.Second; want = 2 * want {
		low, high := min(want, time.Second)/2, min(want, time.Second)*3/2
		if got := p.NextBackOff(); got < low || got > high {
			t.Errorf("a pause of %v, want %v to %v", got, low, high)
		}
	}
}
