package train

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

const (
	maxLayers = 64
	// maxDim bounds the width of a layer, just as package shards bounds the width of a row.
	maxDim = 1 << 20

	modelMagic = "NDLSMLP"
	// The version of a model file is plainVersion, and normVersion more with LayerNorm, and standardVersion more if inputs are standardised,
	// and taskVersion times the task more.
	plainVersion, normVersion, standardVersion, taskVersion = '1', 1, 2, 4
	lastVersion                                             = plainVersion + normVersion + standardVersion + byte(Regress)*taskVersion
)

// form decides the number of parameters of a network, and their places.
type form struct {
	// dims lists the width of the input and of every layer.
	dims []int
	// norm says that the outputs of hidden layers are normalised, standard that inputs are standardised.
	norm, standard bool
	// task says what the outputs are.
	task Task
}

// layers returns the number of linear layers.
func (f form) layers() int { return len(f.dims) - 1 }

// start returns the number of parameters before layer l.
func (f form) start(l int) (n int64) {
	for i := range l {
		n += int64(f.dims[i]+1) * int64(f.dims[i+1])
		if f.normalises(i) {
			n += 2 * int64(f.dims[i+1])
		}
	}
	return n
}

// numParams returns the number of parameters.
func (f form) numParams() int64 { return f.start(f.layers()) }

// numValues returns the number of values of a model: its parameters, and the means and inverse deviations of inputs.
func (f form) numValues() int64 {
	if f.standard {
		return f.numParams() + 2*int64(f.dims[0])
	}
	return f.numParams()
}

// normalises reports whether the outputs of layer l are normalised.
func (f form) normalises(l int) bool { return f.norm && l < f.layers()-1 }

// equal reports whether two forms have the same parameters.
func (f form) equal(g form) bool {
	return f.norm == g.norm && f.standard == g.standard && f.task == g.task && slices.Equal(f.dims, g.dims)
}

// Model is a multilayer perceptron: linear layers with a rectifier after each
// but the last, whose outputs its [Task] explains. The outputs of the
// others may be normalised before the rectifier.
type Model struct {
	form
	// params holds the layers one after the other: in×out weights, row-major,
	// then out biases, then, if the layer is normalised, out gains and out shifts.
	params []float32
	// mean and inverse hold the means of the input's columns and 1 / their deviations, if inputs are standardised.
	mean, inverse []float32
	memory        *mem.Array[float32]
}

// newModel returns a network of zeros, charged to b.
func newModel(b *mem.Budget, f form) (*Model, error) {
	memory, err := mem.Alloc[float32](b, f.numValues(), "the weights of a model")
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	n := f.numParams()
	m := &Model{form: form{slices.Clone(f.dims), f.norm, f.standard, f.task}, params: memory.S[:n:n], memory: memory}
	if rest := memory.S[n:]; f.standard {
		m.mean, m.inverse = rest[:f.dims[0]], rest[f.dims[0]:]
	}
	return m, nil
}

// Width returns the number of values of an input row.
func (m *Model) Width() int { return m.dims[0] }

// Classes returns the number of classes, or of the numbers of a row.
func (m *Model) Classes() int { return m.dims[len(m.dims)-1] }

// Free returns the memory of the weights. It may be called on nil.
func (m *Model) Free() {
	if m != nil {
		m.memory.Free()
		m.params, m.mean, m.inverse = nil, nil, nil
	}
}

// layer splits p, which has the layout of the parameters, into the weights and the biases of layer
// l.
func (f form) layer(p []float32, l int) (weights, biases []float32) {
	start := int(f.start(l))
	in, out := f.dims[l], f.dims[l+1]
	weights = p[start : start+in*out]
	return weights, p[start+in*out : start+(in+1)*out]
}

// normOf returns the gains and the shifts of layer l, which is normalised, among p.
func (f form) normOf(p []float32, l int) (gains, shifts []float32) {
	end, out := int(f.start(l+1)), f.dims[l+1]
	return p[end-2*out : end-out], p[end-out : end]
}

// Save writes the model in the form that the package documentation describes.
func (m *Model) Save(w io.Writer) error {
	sum := sha256.New()
	buf := bufio.NewWriterSize(w, 1<<16)
	out := io.MultiWriter(buf, sum)
	version := byte(plainVersion)
	if m.norm {
		version += normVersion
	}
	if m.standard {
		version += standardVersion
	}
	version += byte(m.task) * taskVersion
	head := append([]byte(modelMagic), version)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(m.dims)))
	for _, d := range m.dims {
		head = binary.LittleEndian.AppendUint32(head, uint32(d))
	}
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, seal.Castagnoli))
	if _, err := out.Write(head); err != nil {
		return fmt.Errorf("train: write model: %w", err)
	}
	if _, err := out.Write(mem.AsBytes(m.memory.S)); err != nil {
		return fmt.Errorf("train: write model: %w", err)
	}
	if _, err := buf.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("train: write model: %w", err)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("train: write model: %w", err)
	}
	return nil
}

// LoadModel reads a model that Save wrote, to the end of r, and charges its weights to b. name
// stands for the file in errors: [seal.ErrCorrupt] for a damaged file, [seal.ErrVersion] for one of
// another version.
func LoadModel(r io.Reader, name string, b *mem.Budget) (*Model, error) {
	sum := sha256.New()
	in := io.TeeReader(r, sum)
	f, err := readForm(in, name)
	if err != nil {
		return nil, err
	}
	m, err := newModel(b, f)
	if err != nil {
		return nil, err
	}
	if err := m.readParams(r, in, sum.Sum, name); err != nil {
		m.Free()
		return nil, err
	}
	return m, nil
}

// readForm reads the head. The head has a checksum of its own, so that memory is allocated only for
// sizes that are known to be right.
func readForm(r io.Reader, name string) (f form, err error) {
	head := make([]byte, len(modelMagic)+1+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return f, damaged(name, "its head", err)
	}
	if string(head[:len(modelMagic)]) != modelMagic {
		return f, damaged(name, "its first bytes", nil)
	}
	version := head[len(modelMagic)]
	if version < plainVersion || version > lastVersion {
		return f, fmt.Errorf("train: %s has model version %q, this program reads %q to %q: %w: run ndls train again",
			name, version, plainVersion, lastVersion, seal.ErrVersion)
	}
	n := binary.LittleEndian.Uint32(head[len(modelMagic)+1:])
	if n < 2 || n > maxLayers+1 {
		return f, damaged(name, "the number of its layers", nil)
	}
	rest := make([]byte, 4*n+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return f, damaged(name, "its head", err)
	}
	head = append(head, rest...)
	if body := head[:len(head)-4]; binary.LittleEndian.Uint32(head[len(body):]) != crc32.Checksum(body, seal.Castagnoli) {
		return f, damaged(name, "its head", nil)
	}
	parts := version - plainVersion
	f = form{make([]int, n), parts&normVersion != 0, parts&standardVersion != 0, Task(parts / taskVersion)}
	for i := range f.dims {
		d := binary.LittleEndian.Uint32(rest[4*i:])
		if d < 1 || d > maxDim {
			return f, damaged(name, "the width of a layer", nil)
		}
		f.dims[i] = int(d)
	}
	return f, nil
}

// readParams reads the weights and compares the checksum, whose bytes r returns without adding them
// to the sum.
func (m *Model) readParams(r, summed io.Reader, sum func([]byte) []byte, name string) error {
	if _, err := io.ReadFull(summed, mem.AsBytes(m.memory.S)); err != nil {
		return damaged(name, "its weights", err)
	}
	want := make([]byte, sha256.Size+1)
	n, err := io.ReadFull(r, want)
	if n != sha256.Size || !errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(name, "its end", err)
	}
	if !slices.Equal(want[:n], sum(nil)) {
		return damaged(name, "its checksum", nil)
	}
	return nil
}

// damaged returns the error for a damaged model file. It passes on an error of reading itself,
// other than too few bytes.
func damaged(name, what string, err error) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("train: read %s: %w", name, err)
	}
	return fmt.Errorf("train: model %s: %s is not as written: %w: run ndls train again", name, what, seal.ErrCorrupt)
}
