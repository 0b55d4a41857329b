package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ndls/internal/control"
)

// domain marks the details of a status that belong to ndls.
const domain = "ndls"

// codesOf lists the codes by which some kinds of errors travel; all others are Unknown. An error
// may have several kinds; the first one gives the code.
var codesOf = []struct {
	kind error
	code codes.Code
}{
	{control.ErrLeaseLost, codes.FailedPrecondition},
	{control.ErrEnded, codes.OutOfRange},
	{control.ErrRefused, codes.PermissionDenied},
	{control.ErrRejected, codes.InvalidArgument},
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// toStatus returns an error of a service in the form that a server returns.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	for _, k := range codesOf {
		if errors.Is(err, k.kind) {
			code = k.code
			break
		}
	}
	var details errdetails.ErrorInfo
	if names := control.KindNames(err); len(names) > 0 {
		details.Domain, details.Reason, details.Metadata = domain, names[0], map[string]string{}
		for _, name := range names {
			details.Metadata[name] = ""
		}
	}
	s := status.New(code, readable(err.Error()))
	if details.Domain != "" {
		if detailed, err := s.WithDetails(&details); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

// remote is an error of the coordinator: its text, and the errors that errors.Is finds in it.
type remote struct {
	call  string
	text  string
	kinds []error
}

func (r *remote) Error() string { return fmt.Sprintf("rpc: %s: %s", r.call, r.text) }

func (r *remote) Unwrap() []error { return r.kinds }

// fromStatus returns the error of a call for its caller.
func fromStatus(call string, err error) error {
	answer := status.Convert(err)
	r := &remote{call: call, text: answer.Message()}
	r.kinds = control.KindsNamed(detailsOf(answer))
	for _, k := range codesOf {
		if answer.Code() == k.code && !slices.Contains(r.kinds, k.kind) {
			r.kinds = append(r.kinds, k.kind)
		}
	}
	return r
}

// detailsOf lists the names of the kinds that an answer has.
func detailsOf(answer *status.Status) (names []string) {
	for _, d := range answer.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
			for name := range info.GetMetadata() {
				names = append(names, name)
			}
		}
	}
	return names
}
