package ndls

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"ndls/internal/failure"
	"ndls/internal/progress"
	"ndls/watch"
)

// Progress says how far a piece of work is.
type Progress struct {
	What, Unit string
	// Total is 0 where it is not known.
	Done, Total int64
	// Where says in words where the work is, such as "hop 7 of at most 200", if its total is not known.
	Where string
}

// threads is n, or as many as Go runs at a time.
func threads(n int) int {
	if n == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return n
}

// logger returns log, or one that drops everything.
func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(readable{log.Handler()})
}

// readable writes errors as a user reads them.
type readable struct{ slog.Handler }

// Handle implements slog.Handler.
func (h readable) Handle(ctx context.Context, r slog.Record) error {
	plain := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(failure.Text(err))
		}
		plain.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, plain)
}

// WithAttrs implements slog.Handler.
func (h readable) WithAttrs(attrs []slog.Attr) slog.Handler {
	return readable{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h readable) WithGroup(name string) slog.Handler { return readable{h.Handler.WithGroup(name)} }

// keeping is a handler that keeps lines of level info and above for the page of a run.
type keeping struct {
	to   *watch.Log
	text string // of attributes that all lines have
}

// Enabled implements slog.Handler.
func (h keeping) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h keeping) Handle(_ context.Context, r slog.Record) error {
	text := h.text
	r.Attrs(func(a slog.Attr) bool {
		text += attribute(a)
		return true
	})
	h.to.Add(watch.Line{Time: r.Time, Level: r.Level.String(), Text: r.Message + text})
	return nil
}

// WithAttrs implements slog.Handler.
func (h keeping) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.text += attribute(a)
	}
	return h
}

// WithGroup implements slog.Handler: names of groups are not shown.
func (h keeping) WithGroup(string) slog.Handler { return h }

// attribute returns the text of a line for an attribute.
func attribute(a slog.Attr) string {
	value := a.Value.Resolve()
	if err, ok := value.Any().(error); ok {
		value = slog.StringValue(failure.Text(err))
	}
	if value.Kind() == slog.KindFloat64 {
		value = slog.StringValue(strconv.FormatFloat(value.Float64(), 'f', 1, 64))
	}
	return fmt.Sprintf(" %s=%s", a.Key, value)
}

// inner is log for what goes on inside: nothing below the level, unless log takes
// debug messages, too.
func inner(log *slog.Logger, level slog.Level) *slog.Logger {
	return slog.New(above{log.Handler(), level})
}

// above drops what is below a level.
type above struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (a above) Enabled(ctx context.Context, level slog.Level) bool {
	return a.Handler.Enabled(ctx, level) && (level >= a.level || a.Handler.Enabled(ctx, slog.LevelDebug))
}

// WithAttrs implements slog.Handler.
func (a above) WithAttrs(attrs []slog.Attr) slog.Handler {
	return above{a.Handler.WithAttrs(attrs), a.level}
}

// WithGroup implements slog.Handler.
func (a above) WithGroup(name string) slog.Handler {
	return above{a.Handler.WithGroup(name), a.level}
}

// reportInterval is the interval at which a caller hears of progress.
const reportInterval = time.Second

// reporting returns a context whose work is told to tell, until stop is called.
func reporting(ctx context.Context, tell func(Progress)) (_ context.Context, stop func()) {
	if tell == nil {
		return ctx, func() {}
	}
	ctx, watch := progress.WithWatch(ctx)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(reportInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if p := watch.Now(); p.What != "" {
					tell(Progress{What: p.What, Unit: p.Unit, Done: p.Done, Total: p.Total, Where: p.Where})
				}
			}
		}
	}()
	return ctx, func() { close(done); <-stopped }
}
