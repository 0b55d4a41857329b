package ndls

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ndls/internal/testkit"
)

// TestDoor asks before a run has a page: the process answers, and says that it does not lead yet.
func TestDoor(t *testing.T) {
	d, err := openDoor("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/livez": 200, "/healthz": 503, "/status": 503, "/": 503} {
		r, err := client.Get("http://" + d.address + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != want || want == 503 && !strings.Contains(string(text), "the run begins") {
			t.Errorf("%s: %d, %s, %v", path, r.StatusCode, text, err)
		}
		_ = r.Body.Close()
	}
	d.close()
	if _, err := client.Get("http://" + d.address + "/livez"); err == nil {
		t.Error("the door answers although it is closed")
	}
	if _, err := openDoor("no address", nil); err == nil || !strings.Contains(err.Error(), "--http") {
		t.Errorf("no address: %v", err)
	}
}

// TestDoorIsBounded: who sends nothing, a header or a body without end, or a long header is cut off in time.
func TestDoorIsBounded(t *testing.T) {
	testkit.Slow(t, "takes half a minute")
	d, err := openDoor("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	for name, c := range map[string]struct {
		first, again string
		within       time.Duration
	}{
		"silence":    {"", "", headerTimeout},
		"header":     {"GET /livez HTTP/1.1\r\n", "X: y\r\n", headerTimeout},
		"body":       {"POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", "x", requestTimeout},
		"long lines": {"GET /livez HTTP/1.1\r\nX: " + strings.Repeat("y", 64<<10), "y", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", d.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, conn)
				ended <- err
			}()
			begun := time.Now()
			if _, err := io.WriteString(conn, c.first); err != nil {
				t.Fatal(err)
			}
			for tick := time.NewTicker(200 * time.Millisecond); ; {
				select {
				case <-ended:
					return
				case <-tick.C:
					_, _ = io.WriteString(conn, c.again)
				}
				if time.Since(begun) > c.within+5*time.Second {
					t.Fatalf("the connection is open after %v", time.Since(begun))
				}
			}
		})
	}
}

// TestDoorHasRoom: a thousand connections do not keep a caller out, and are not held.
func TestDoorHasRoom(t *testing.T) {
	d, err := openDoor("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	ask := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", d.address)
		if err != nil {
			return nil, err
		}
		fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		return conn, err
	}
	var list []net.Conn
	for i := range 1000 {
		conn, err := ask()
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		list = append(list, conn)
	}
	// A read ends when the server has closed the connection.
	closed := make(chan error, len(list))
	for _, conn := range list {
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	const most = 256
	for i := range len(list) - most {
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d connections are open, more than %d", len(list)-i, len(list), most)
		}
	}
	conn, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if open := most - len(closed); open < 4 {
		t.Errorf("%d connections are open", open)
	}
}

// TestDoorAnswersLast: who asks that a run stops gets an answer, although the program ends meanwhile; a stream of events ends.
func TestDoorAnswersLast(t *testing.T) {
	var stop func()
	stopped := make(chan struct{})
	at, end, err := answering("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		go func() {
			stop()
			close(stopped)
		}()
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(w, "the run stops")
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop = end
	events, err := http.Get("http://" + at + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	answer, err := http.Post("http://"+at+"/stop", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "the run stops" {
		t.Errorf("%q, %v", text, err)
	}
	begun := time.Now()
	<-stopped
	if took := time.Since(begun); took > lastAnswers/2 {
		t.Errorf("the door waited for events for %v", took)
	}
}
