package ndls

import (
	"context"
	"encoding/json"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/hook"
)

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

// served is a scheduler as workers and ndls status see it from elsewhere.
type served struct {
	hooked
	scheduler *coordinator.Scheduler
}

// Status implements rpc.Statuser.
func (s *served) Status(context.Context) ([]byte, error) { return json.Marshal(s.scheduler.Status()) }
