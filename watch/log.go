package watch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"ndls/internal/failure"
)

// Line is a line of the log of a run.
type Line struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level,omitempty"` // "" for a line of another process
	Text  string    `json:"text"`
}

// MostLines is the number of lines that a [Log] keeps, longestLine the largest number of bytes of
// each.
const (
	MostLines   = 100
	longestLine = 2000
)

// Log keeps the last lines of the log of a run. It is safe for concurrent use; a nil Log keeps nothing.
type Log struct {
	mu    sync.Mutex
	lines []Line
}

// Add keeps a line, without the secrets of URIs in it.
func (l *Log) Add(x Line) {
	if l == nil {
		return
	}
	x.Text = failure.Redact(x.Text)
	x.Text = strings.ToValidUTF8(x.Text[:min(len(x.Text), longestLine)], "\uFFFD")
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == MostLines {
		l.lines = slices.Delete(l.lines, 0, 1)
	}
	l.lines = append(l.lines, x)
}

// Write keeps the lines that another process has written.
func (l *Log) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			l.Add(Line{Time: time.Now(), Text: line})
		}
	}
	return len(p), nil
}

// Lines are those that are kept, the oldest first.
func (l *Log) Lines() []Line {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
