package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// terminalLog is the log as people read it beside the bar, without times and keys: a stage that is
// complete has a tick, how long it took and what it found. Where --log-level is given, or stderr is
// no terminal, the log comes from slog.
type terminalLog struct {
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
	mu    *sync.Mutex
}

func newTerminalLog(w io.Writer, level slog.Level) *terminalLog {
	return &terminalLog{w: w, level: level, mu: &sync.Mutex{}}
}

// Enabled implements slog.Handler.
func (h *terminalLog) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs implements slog.Handler.
func (h *terminalLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(with.attrs[:len(with.attrs):len(with.attrs)], attrs...)
	return &with
}

// WithGroup implements slog.Handler: names of groups are not shown.
func (h *terminalLog) WithGroup(string) slog.Handler { return h }

// stageColumns is the width of the longest name of a stage.
const stageColumns = len("smooth-labels")

// Handle implements slog.Handler.
func (h *terminalLog) Handle(_ context.Context, r slog.Record) error {
	values := map[string]slog.Value{}
	var rest []string
	see := func(x slog.Attr) bool {
		values[x.Key] = x.Value
		if x.Key != "because" {
			rest = append(rest, strings.ReplaceAll(x.Key, "_", " ")+" "+valueText(x.Value))
		}
		return true
	}
	for _, x := range h.attrs {
		see(x)
	}
	r.Attrs(see)
	text := strings.Join(append([]string{r.Message}, rest...), ", ")
	if why, ok := values["because"]; ok {
		text += ": " + valueText(why)
	}
	stage, ofStage := values["stage"]
	switch {
	case ofStage && r.Level == slog.LevelInfo && r.Message == "begin":
		return nil // the bar says so
	case ofStage && r.Level == slog.LevelInfo && r.Message == "complete":
		text = fmt.Sprintf("✓ %-*s  %8s", stageColumns, valueText(stage), took(values["seconds"].Float64()))
		if found := valueText(values["found"]); found != "" {
			text += "  " + found
		}
	case ofStage && r.Level == slog.LevelInfo && r.Message == "already complete":
		text = fmt.Sprintf("✓ %-*s  %8s", stageColumns, valueText(stage), "before")
	case r.Level >= slog.LevelError:
		text = "error: " + text
	case r.Level >= slog.LevelWarn:
		text = "warning: " + text
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, text+"\n")
	return err
}

// valueText is a value of the log in words.
func valueText(v slog.Value) string {
	switch v.Kind() {
	case slog.KindFloat64:
		return fmt.Sprintf("%.1f", v.Float64())
	case slog.KindAny:
		if v.Any() == nil {
			return ""
		}
	}
	return v.String()
}

// took is a time as exactly as a reader wants it: 2.9 s, 74 s, 12m30s.
func took(seconds float64) string {
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
