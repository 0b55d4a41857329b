package pass

import (
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// kernels are those that this processor runs.
func kernels(t *testing.T) (all []*spmv.Kernel) {
	t.Helper()
	for _, name := range []string{"go", "avx2", "avx512"} {
		if k, err := spmv.Select(name); err == nil {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		t.Fatal("there is no kernel")
	}
	return all
}

// TestMeasuredLoopsAgree compares the loops that are measured with each other
// and with their Go twins.
func TestMeasuredLoopsAgree(t *testing.T) {
	b, err := mem.NewBudget(512 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		for _, columns := range []int{16, 32, 64} {
			var want, wantGather []float32
			for _, k := range kernels(t) {
				m := &measured{kernel: k, Sample: Sample{
					Nodes: 2*packed.StripRows + 77, Edges: 300000, Columns: columns, Precision: p, Threads: 2, Seed: 5,
				}}
				if columns == 16 {
					m.Edges *= 6 // destinations are all nodes
				}
				if err := m.allocate(b); err != nil {
					t.Fatal(err)
				}
				if m.edges < m.Edges*5/6 {
					t.Fatalf("only %d edges of %d were drawn", m.edges, m.Edges)
				}
				m.runCSR()
				csr := m.floats()
				m.runPass()
				if !slices.Equal(m.floats(), csr) {
					t.Errorf("%s, %v, %d columns: pass and CSR differ", k.Name(), p, columns)
				}
				var out [64]float32
				m.loops.gather(&out[0], first(m.cur), m.curStride(), &m.src[0], 1000)
				if want == nil {
					want, wantGather = csr, slices.Clone(out[:])
				} else if !slices.Equal(csr, want) || !slices.Equal(out[:], wantGather) {
					t.Errorf("%s, %v, %d columns: other bits than %s", k.Name(), p, columns, kernels(t)[0].Name())
				}
				m.free()
			}
		}
	}
}

// floats is a copy of the rows of the next hop.
func (m *measured) floats() []float32 {
	f := make([]float32, m.rows*int64(m.Columns))
	m.load(f, m.next)
	return f
}

func TestKernels(t *testing.T) {
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	s := Sample{Nodes: 1000, Edges: 5000, Columns: 16, Threads: 2, Rounds: 2, Seed: 1}
	got, err := Kernels(kernels(t)[0], b, s)
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"gather", "csr", "pass"} {
		if got[i].What != what || len(got[i].Rates) != 2 || got[i].Rates[0] <= 0 {
			t.Errorf("%+v is not %s", got[i], what)
		}
	}
	for name, change := range map[string]func(*Sample){
		"24 columns": func(s *Sample) { s.Columns = 24 }, "no nodes": func(s *Sample) { s.Nodes = 0 },
		"too many edges": func(s *Sample) { s.Edges = 1 << 32 },
	} {
		bad := s
		change(&bad)
		if _, err := Kernels(kernels(t)[0], b, bad); err == nil {
			t.Errorf("%s were accepted", name)
		}
	}
	if free := b.Free(); free != b.Limit() {
		t.Errorf("%d bytes are still charged", b.Limit()-free)
	}
}
