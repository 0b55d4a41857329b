package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ndls/internal/control"
)

// sentinels are the errors that keep their meaning, and the codes they travel
// as. gRPC itself never makes one of the first three.
var sentinels = []struct {
	err  error
	code codes.Code
}{
	{control.ErrLeaseLost, codes.FailedPrecondition},
	{control.ErrEnded, codes.OutOfRange},
	{control.ErrRefused, codes.PermissionDenied},
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// toStatus is an error of a service as a server returns it.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return status.Error(s.code, readable(err.Error()))
		}
	}
	return status.Error(codes.Unknown, readable(err.Error()))
}

// remote is an error of the coordinator: its text, and what errors.Is finds in it.
type remote struct {
	call     string
	text     string
	sentinel error
}

func (r *remote) Error() string { return fmt.Sprintf("rpc: %s: %s", r.call, r.text) }

func (r *remote) Unwrap() error { return r.sentinel }

// fromStatus is the error of a call as its caller gets it.
func fromStatus(call string, err error) error {
	answer := status.Convert(err)
	r := &remote{call: call, text: answer.Message()}
	for _, s := range sentinels {
		if answer.Code() == s.code {
			r.sentinel = s.err
		}
	}
	if answer.Code() == codes.Unauthenticated {
		r.sentinel = control.ErrRefused
	}
	return r
}
