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
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// domain marks the details of a status that are of ndls.
const domain = "ndls"

// kindsOfErrors are the errors that keep their meaning: the code they travel as, and the
// name that stands for them in the details of a status. An error may be of several
// kinds; its code is that of the first.
var kindsOfErrors = []struct {
	err  error
	code codes.Code
	name string
}{
	{control.ErrLeaseLost, codes.FailedPrecondition, "LEASE_LOST"},
	{control.ErrEnded, codes.OutOfRange, "ENDED"},
	{control.ErrRefused, codes.PermissionDenied, "REFUSED"},
	{control.ErrRejected, codes.InvalidArgument, "REJECTED"},
	{context.Canceled, codes.Canceled, "CANCELLED"},
	{context.DeadlineExceeded, codes.DeadlineExceeded, "DEADLINE"},
	{control.ErrUnable, codes.Unknown, "UNABLE"},
	{control.ErrOption, codes.Unknown, "OPTION"},
	{control.ErrPlanMismatch, codes.Unknown, "PLAN_MISMATCH"},
	{seal.ErrCorrupt, codes.Unknown, "CORRUPT"},
	{seal.ErrVersion, codes.Unknown, "VERSION"},
	{mem.ErrBudget, codes.Unknown, "BUDGET"},
	{storage.ErrDisk, codes.Unknown, "NO_SPACE"},
}

// toStatus is an error of a service as a server returns it.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	var details errdetails.ErrorInfo
	for _, k := range kindsOfErrors {
		if !errors.Is(err, k.err) {
			continue
		}
		if code == codes.Unknown {
			code = k.code
		}
		if details.Reason == "" {
			details.Reason = k.name
		}
		if details.Metadata == nil {
			details.Domain, details.Metadata = domain, map[string]string{}
		}
		details.Metadata[k.name] = ""
	}
	s := status.New(code, readable(err.Error()))
	if details.Domain != "" {
		if detailed, err := s.WithDetails(&details); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

// remote is an error of the coordinator: its text, and what errors.Is finds in it.
type remote struct {
	call  string
	text  string
	kinds []error
}

func (r *remote) Error() string { return fmt.Sprintf("rpc: %s: %s", r.call, r.text) }

func (r *remote) Unwrap() []error { return r.kinds }

// fromStatus is the error of a call as its caller gets it.
func fromStatus(call string, err error) error {
	answer := status.Convert(err)
	r := &remote{call: call, text: answer.Message()}
	names := detailsOf(answer)
	for _, k := range kindsOfErrors {
		if slices.Contains(names, k.name) || k.code != codes.Unknown && answer.Code() == k.code {
			r.kinds = append(r.kinds, k.err)
		}
	}
	if answer.Code() == codes.Unauthenticated {
		r.kinds = append(r.kinds, control.ErrRefused)
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
