package graph

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ndls/hops"
)

// TestSideBySideEnds: an error of one team ends the others, and is the error of all. A team that was stopped, and has
// saved its state, lets the others save theirs.
func TestSideBySideEnds(t *testing.T) {
	broken := errors.New("broken")
	teams := []*Team{{}, {}, {}}
	for bad := range teams {
		err := sideBySide(t.Context(), teams, func(ctx context.Context, i int) error {
			if i == bad {
				return broken
			}
			<-ctx.Done()
			return fmt.Errorf("team %d: %w", i, ctx.Err())
		})
		if !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
			t.Errorf("team %d breaks: %v", bad, err)
		}
	}
	saved := make(chan int, len(teams))
	err := sideBySide(t.Context(), teams, func(ctx context.Context, i int) error {
		if ctx.Err() == nil {
			saved <- i
		}
		return hops.ErrStopped
	})
	if !errors.Is(err, hops.ErrStopped) || len(saved) != len(teams) {
		t.Errorf("%d of %d teams saved their state: %v", len(saved), len(teams), err)
	}
	if err := sideBySide(t.Context(), teams, func(context.Context, int) error { return nil }); err != nil {
		t.Error(err)
	}
}
