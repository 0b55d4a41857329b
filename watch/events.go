package watch

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// interval is the interval at which events read the state of the run.
const interval = time.Second

// events sends what the page shows to all who listen, when it changes.
type events struct {
	state func() State

	mu        sync.Mutex
	listeners map[chan []byte]bool
	looking   bool
	finished  bool
}

func newEvents(state func() State) *events {
	return &events{state: state, listeners: map[chan []byte]bool{}}
}

// ServeHTTP sends events until the caller has gone, each of which is the main part of the page.
func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	mine := make(chan []byte, 1)
	e.add(mine)
	defer e.remove(mine)
	to := http.NewResponseController(w)
	_ = to.SetReadDeadline(time.Time{}) // that of the request would end the events
	for {
		select {
		case <-r.Context().Done():
			return
		case event, more := <-mine:
			if !more {
				return
			}
			_ = to.SetWriteDeadline(time.Now().Add(answerTimeout)) // of connections that have one
			if _, err := w.Write(event); err != nil || to.Flush() != nil {
				return
			}
		}
	}
}

func (e *events) add(c chan []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.finished {
		c <- encode(e.state())
		close(c)
		return
	}
	e.listeners[c] = true
	if !e.looking {
		e.looking = true
		go e.look()
	}
}

func (e *events) remove(c chan []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.listeners, c)
}

// patience bounds how long listeners may take to receive the last event.
const patience = 2 * time.Second

// finish sends the last event to all listeners, and waits until they have gone.
func (e *events) finish() {
	e.mu.Lock()
	e.finished = true
	if len(e.listeners) > 0 {
		last := encode(e.state())
		for c := range e.listeners {
			offer(c, last)
			close(c)
		}
	}
	e.mu.Unlock()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(patience / 100) {
		e.mu.Lock()
		left := len(e.listeners)
		e.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// keepAlive is the number of reads without a change after which a comment is sent, so that a caller
// who has gone is found.
const keepAlive = 15

// look sends what has changed, until nobody listens.
func (e *events) look() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last []byte
	given := map[chan []byte]bool{}
	for quiet := 0; ; quiet++ {
		event := encode(e.state())
		changed := !bytes.Equal(event, last)
		if changed {
			last, quiet = event, 0
		}
		e.mu.Lock()
		if len(e.listeners) == 0 || e.finished {
			e.looking = false
			e.mu.Unlock()
			return
		}
		for c := range e.listeners {
			switch {
			case changed || !given[c]:
				offer(c, event)
			case quiet%keepAlive == keepAlive-1:
				offer(c, []byte(": no change\n\n"))
			}
			given[c] = true
		}
		for c := range given {
			if !e.listeners[c] {
				delete(given, c)
			}
		}
		e.mu.Unlock()
		<-tick.C
	}
}

// offer puts an event in place of one that its listener has not taken yet.
func offer(c chan []byte, event []byte) {
	select {
	case <-c:
	default:
	}
	c <- event
}

// encode makes an event of the main part of the page.
func encode(s State) []byte {
	var text, event bytes.Buffer
	if err := pages().Execute(&text, "main", s); err != nil {
		fmt.Fprintf(&text, "the page cannot be made: %v", err)
	}
	for line := range strings.SplitSeq(text.String(), "\n") {
		fmt.Fprintf(&event, "data: %s\n", line)
	}
	event.WriteByte('\n')
	return event.Bytes()
}
