package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ndls/internal/control"
)

const (
	// serviceName precedes the names of calls.
	serviceName = "ndls.Control"
	// pieceBytes bounds the piece of a text in one message: far below the 4 MiB that gRPC accepts, and
	// enough to make the cost of a message small.
	pieceBytes = 256 << 10
)

// codec passes pieces of JSON on as they are. A message is a *[]byte, to which what arrives is appended.
type codec struct{}

// Name implements encoding.Codec.
func (codec) Name() string { return "json" }

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(piece []byte, v any) error {
	text := v.(*[]byte)
	*text = append(*text, piece...)
	return nil
}

// send sends a text in pieces.
func send(stream interface{ SendMsg(m any) error }, text []byte) error {
	for piece := range slices.Chunk(text, pieceBytes) {
		if err := stream.SendMsg(&piece); err != nil {
			return err
		}
	}
	return nil
}

// receive collects a text. It calls came with the number of bytes of each piece, and stops at an error of came.
func receive(stream interface{ RecvMsg(m any) error }, came func(bytes int) error) (text []byte, err error) {
	for err == nil {
		before := len(text)
		if err = stream.RecvMsg(&text); err == nil {
			err = came(len(text) - before)
		}
	}
	if errors.Is(err, io.EOF) {
		return text, nil
	}
	return nil, err
}

// ask makes a call with an argument, and returns the answer, both as JSON.
func ask(ctx context.Context, conn grpc.ClientConnInterface, call string, argument []byte, o ...grpc.CallOption) ([]byte, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+serviceName+"/"+call,
		append(o, grpc.ForceCodec(codec{}))...)
	if err != nil {
		return nil, err
	}
	// io.EOF says that the server has answered already.
	if err := send(stream, argument); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	return receive(stream, func(int) error { return nil })
}

// Arguments of calls that have several, and the answer to a join.
type (
	renewal struct {
		Fencing  uint64
		Progress control.Progress
	}
	commitment struct {
		// Number differs between the commits of a client, and is the same for copies of one.
		Fencing, Number uint64
		Change          control.Change
	}
	ending struct {
		Fencing uint64
		Outcome control.Outcome
	}
	welcomed struct {
		Welcome control.Welcome
		// Run names the run. The name differs between runs.
		Run string
	}
)

// answer holds the result of a call, or the error of the service.
type answer[R any] struct {
	Result R
	Failed *failed `json:",omitempty"`
}

// failed is an error of the service: its text, and the names of its kinds.
type failed struct {
	Text  string
	Kinds []string
}

// remote is an error of the coordinator: its text, and the errors that errors.Is finds in it.
type remote struct {
	call  string
	text  string
	kinds []error
}

func (r *remote) Error() string { return fmt.Sprintf("rpc: %s: %s", r.call, r.text) }

func (r *remote) Unwrap() []error { return r.kinds }

// fromStatus returns the error of a call that gRPC or the server has refused, for its caller.
func fromStatus(call string, err error) error {
	if own := (*remote)(nil); errors.As(err, &own) {
		return err
	}
	refused := status.Convert(err)
	r := &remote{call: call, text: refused.Message()}
	switch refused.Code() {
	case codes.InvalidArgument:
		r.kinds = []error{control.ErrRejected}
	case codes.Canceled:
		r.kinds = []error{context.Canceled}
	case codes.DeadlineExceeded:
		r.kinds = []error{context.DeadlineExceeded}
	}
	return r
}

// method describes a call to gRPC. A server answers it with do, which gets the argument of the call and returns its result.
func method[A, R any](call string, do func(s *server, ctx context.Context, argument A) (R, error)) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: call, ClientStreams: true, ServerStreams: true, Handler: func(of any, stream grpc.ServerStream) error {
		s := of.(*server)
		if err := s.checkRun(stream.Context()); err != nil {
			return err
		}
		text, release, err := s.collect(stream)
		defer release()
		if err != nil {
			return err
		}
		var argument A
		if err := json.Unmarshal(text, &argument); err != nil {
			return status.Errorf(codes.InvalidArgument, "a message that makes no sense: %v", err)
		}
		var a answer[R]
		pass(call)
		a.Result, err = do(s, stream.Context(), argument)
		if own, ok := errors.AsType[refusing](err); ok {
			return own
		}
		if err != nil {
			a.Failed = &failed{err.Error(), control.KindNames(err)}
		} else {
			pass(call + "-done")
		}
		if text, err = json.Marshal(a); err != nil {
			return err
		}
		return send(stream, text)
	}}
}

// refusing is an error of gRPC: the server itself refuses a call.
type refusing interface {
	error
	GRPCStatus() *status.Status
}
