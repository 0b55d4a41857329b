package blocks

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is a FlightData message that stays in the buffer in which it was received. Decoding it as a
// protocol buffer would copy the rows into new memory, and Arrow's reader would again: two
// megabytes of garbage a batch.
type frame struct {
	header, label, body []byte
	memory              mem.Buffer
}

// These are the used fields of FlightData, by their numbers in Flight.proto.
const (
	headerField = 2
	labelField  = 3
	bodyField   = 1000
)

// codec receives frames and sends protocol buffers.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("blocks: received a %T", v)
	}
	f.free()
	f.memory = data.MaterializeToBuffer(mem.DefaultBufferPool())
	if err := f.parse(f.memory.ReadOnlyData()); err != nil {
		f.free()
		return err
	}
	return nil
}

var errFrame = errors.New("blocks: a message is no FlightData")

// parse points the fields of f into message.
func (f *frame) parse(message []byte) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errFrame
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return errFrame
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return errFrame
		}
		message = message[n:]
		switch number {
		case headerField:
			f.header = value
		case labelField:
			f.label = value
		case bodyField:
			f.body = value
		}
	}
	return nil
}

func (f *frame) free() {
	if f.memory != nil {
		f.memory.Free()
	}
	*f = frame{}
}
