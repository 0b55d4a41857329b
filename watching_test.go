package ndls

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
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
