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
			if got, want := w.Now(), (Work{What: what, Done: done, Total: total, Unit: unit}); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		now("", 0, 0, "")
		outer := Start(ctx, "sort", 10, "rows")
		outer.Add(4)
		inner := Start(ctx, "hops", 3, "hops")
		inner.Add(1)
		now("hops", 1, 3, "hops")
		bounded := Start(ctx, "lsi", 100, "edges")
		bounded.Within("hop 1 of at most 10")
		if got, want := w.Now(), (Work{What: "lsi", Unit: "edges", Where: "hop 1 of at most 10"}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		bounded.Done()
		inner.Done()
		now("sort", 4, 10, "rows")
		outer.Done()
		now("", 0, 0, "")
	}
}
