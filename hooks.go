//go:build hooks

package ndls

import (
	"context"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/hook"
)

func init() { ReservedVariables = append(ReservedVariables, hook.Variable) }

// withHooks sets the points that the environment names around the calls of s. Only a
// program that was built with the tag hooks, for tests, has it: in any other one the
// environment cannot stop a process.
func withHooks(s control.Service) (control.Service, error) {
	hooks, err := hook.FromEnvironment()
	if err != nil {
		return nil, failure.As(ErrOption, err)
	}
	return &hooked{s, hooks}, nil
}

// hooked passes calls on, and the points of package hook on the way: NAME before a
// call and NAME-done after it, for join, next, gang, renew, commit and finish. Workers
// pass them around their calls, the coordinator around carrying them out.
type hooked struct {
	control.Service
	hooks *hook.Hooks
}

// Join implements control.Service.
func (h *hooked) Join(ctx context.Context, hello control.Hello) (control.Welcome, error) {
	h.hooks.At("join")
	defer h.hooks.At("join-done")
	return h.Service.Join(ctx, hello)
}

// Next implements control.Service.
func (h *hooked) Next(ctx context.Context, worker string) (control.Lease, error) {
	h.hooks.At("next")
	l, err := h.Service.Next(ctx, worker)
	if err == nil {
		h.hooks.At("next-done")
	}
	return l, err
}

// Gang implements control.Service.
func (h *hooked) Gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	h.hooks.At("gang")
	g, err := h.Service.Gang(ctx, fencing)
	if err == nil {
		h.hooks.At("gang-done")
	}
	return g, err
}

// Renew implements control.Service.
func (h *hooked) Renew(ctx context.Context, fencing uint64, p control.Progress) error {
	h.hooks.At("renew")
	defer h.hooks.At("renew-done")
	return h.Service.Renew(ctx, fencing, p)
}

// Commit implements control.Service.
func (h *hooked) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	h.hooks.At("commit")
	defer h.hooks.At("commit-done")
	return h.Service.Commit(ctx, fencing, c)
}

// Finish implements control.Service.
func (h *hooked) Finish(ctx context.Context, fencing uint64, o control.Outcome) error {
	h.hooks.At("finish")
	defer h.hooks.At("finish-done")
	return h.Service.Finish(ctx, fencing, o)
}
