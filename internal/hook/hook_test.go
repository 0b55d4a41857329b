package hook

import (
	"slices"
	"syscall"
	"testing"
)

func TestAt(t *testing.T) {
	hooks, err := parse("commit:2:kill,join:1:stop,commit:3:term")
	if err != nil {
		t.Fatal(err)
	}
	var sent []syscall.Signal
	h := &Hooks{hooks: hooks, send: func(s syscall.Signal) { sent = append(sent, s) }}
	for _, c := range []struct {
		point string
		want  []syscall.Signal
	}{
		{"commit", nil},
		{"elsewhere", nil},
		{"join", []syscall.Signal{syscall.SIGSTOP}},
		{"commit", []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL}},
		{"join", []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL}},
		{"commit", []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL, syscall.SIGTERM}},
		{"commit", []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL, syscall.SIGTERM}},
	} {
		if h.At(c.point); !slices.Equal(sent, c.want) {
			t.Fatalf("after %s: %v were sent, want %v", c.point, sent, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"commit", "commit:1", "commit:0:kill", "commit:x:kill", "commit:1:explode", "a:1:kill:b"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if hooks, err := parse(""); err != nil || len(hooks) != 0 {
		t.Errorf("nothing gives %v, %v", hooks, err)
	}
}
