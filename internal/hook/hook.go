// Package hook lets tests stop a process at a point they name: the same point each
// time, however fast the machine is.
//
// # Model
//
// A point has a name. The environment variable NDLS_HOOK names points, how often a
// process passes each before something happens to it, and what:
//
//	NDLS_HOOK=commit:3:kill,join:1:stop
//
// kill is SIGKILL, stop is SIGSTOP, term is SIGTERM, each sent by the process to
// itself. Without the variable passing a point does nothing.
//
// Programs that are built without the tag hooks do not contain this package.
package hook

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Variable is the environment variable that sets hooks.
const Variable = "NDLS_HOOK"

var signals = map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP, "term": syscall.SIGTERM}

// hook holds what happens the after-th time that its point is passed.
type hook struct {
	point  string
	after  int
	signal syscall.Signal
}

// Hooks holds the hooks of a process.
type Hooks struct {
	mu    sync.Mutex
	hooks []hook
	send  func(syscall.Signal)
}

// FromEnvironment reads the variable.
func FromEnvironment() (*Hooks, error) {
	hooks, err := parse(os.Getenv(Variable))
	if err != nil {
		return nil, fmt.Errorf("hook: %s: %w", Variable, err)
	}
	return &Hooks{hooks: hooks, send: sendSelf}, nil
}

// sendSelf signals the thread that it runs on: a process that signals itself as a
// whole may go on for a moment, as another thread may be the one to take notice.
func sendSelf(s syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), s)
}

func parse(text string) (hooks []hook, err error) {
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		parts := strings.Split(item, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not POINT:COUNT:ACTION", item)
		}
		count, err := strconv.Atoi(parts[1])
		signal, known := signals[parts[2]]
		if err != nil || count < 1 || !known {
			return nil, fmt.Errorf("%q: the count is at least 1, the action one of kill, stop, term", item)
		}
		hooks = append(hooks, hook{parts[0], count, signal})
	}
	return hooks, nil
}

// At says that a point is passed.
func (h *Hooks) At(point string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.hooks {
		x := &h.hooks[i]
		if x.point != point {
			continue
		}
		if x.after--; x.after == 0 {
			h.send(x.signal)
		}
	}
}
