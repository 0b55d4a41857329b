package progress

import (
	"bytes"
	"context"
	"testing"
)

func TestWatch(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, wide)
	defer d.Close()
	for name, ctx := range map[string]context.Context{"alone": context.Background(), "passed on": WithSink(context.Background(), d)} {
		ctx, w := WithWatch(ctx)
		now := func(what string, done, total int64, unit string) {
			t.Helper()
			if a, b, c, e := w.Now(); a != what || b != done || c != total || e != unit {
				t.Errorf("%s: %q %d of %d %q, want %q %d of %d %q", name, a, b, c, e, what, done, total, unit)
			}
		}
		now("", 0, 0, "")
		outer := Start(ctx, "sort", 10, "rows")
		outer.Add(4)
		inner := Start(ctx, "hops", 3, "hops")
		inner.Add(1)
		now("hops", 1, 3, "hops")
		inner.Done()
		now("sort", 4, 10, "rows")
		outer.Done()
		now("", 0, 0, "")
	}
}
