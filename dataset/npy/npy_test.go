package npy

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestHeaders(t *testing.T) {
	v1 := func(text string) string {
		return Magic + "\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
	}
	for _, c := range []struct {
		name, data string
		want       Header
		err        string
	}{
		{"matrix", v1("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n"), Header{Descr: "<f4", Shape: []int64{3, 4}}, ""},
		{"vector", v1("{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n"), Header{Descr: "|u1", Fortran: true, Shape: []int64{3}}, ""},
		{"scalar", v1(`{"descr": "|O", "fortran_order": False, "shape": ()}`), Header{Descr: "|O", Shape: []int64{}}, ""},
		{"python 2", v1("{'descr': '<i8', 'fortran_order': False, 'shape': (3L, 4L), }\n"), Header{Descr: "<i8", Shape: []int64{3, 4}}, ""},
		{"structured", v1("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,), }"), Header{Descr: "[('a', '<f4'), ('b', '<i4')]", Shape: []int64{3}}, ""},
		{"version 2", Magic + "\x02\x00\x3a\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} ", Header{Descr: "<f4", Shape: []int64{3, 4}}, ""},
		{"empty", "", Header{}, "ends before its header"},
		{"text", "0 1\n2 3\n4 5\n", Header{}, "magic"},
		{"version", Magic + "\x09\x00\x00\x00", Header{}, "version 9.0"},
		{"long", Magic + "\x02\x00\xff\xff\xff\x7f", Header{}, "claims 2147483647"},
		{"cut", v1("{'descr': '<f4'")[:14], Header{}, "within its header"},
		{"missing key", v1("{'descr': '<f4', 'shape': (3, 4)}"), Header{}, "are needed"},
		{"unknown key", v1("{'descr': '<f4', 'colour': 3}"), Header{}, `"colour"`},
		{"twice", v1("{'shape': (1,), 'shape': (3, 4)}"), Header{}, "twice"},
		{"negative", v1("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4)}"), Header{}, "no number"},
		{"overflow", v1("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"), Header{}, "too large"},
		{"order", v1("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 4)}"), Header{}, "False"},
		{"behind", v1("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x"), Header{}, "after the dictionary"},
	} {
		got, err := Read(strings.NewReader(c.data))
		if c.err != "" {
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || got.Descr != c.want.Descr || got.Fortran != c.want.Fortran || !slices.Equal(got.Shape, c.want.Shape) || got.Size != int64(len(c.data)) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// TestTypes reads the spelling of every type, and says of others what they hold and what to do.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		descr   string
		want    Type
		swapped bool
	}{
		{"<f4", Float32, false},
		{">f4", Float32, true},
		{">i8", Int64, true},
		{">u2", Uint16, true},
		{">f2", Float16, true},
		{"<f8", Float64, false},
		{"|b1", Bool, false},
		{">b1", Bool, false},
		{"|i1", Int8, false},
		{"<u1", Uint8, false},
		{">f8", Float64, true},
		{"<u8", Uint64, false},
	} {
		if got, swapped, err := ParseType(c.descr); err != nil || got != c.want || swapped != c.swapped {
			t.Errorf("%s: %s, %v, %v", c.descr, got, swapped, err)
		}
	}
	for descr, want := range map[string]string{
		"|O": "a.astype(str)", "<U5": "holds text", "|S3": "holds text", "<c8": "a.real", ">c16": "complex", "<f16": "longdouble", "<f12": "longdouble",
		"<M8[ns]": "times", "<m8[s]": "times", "[('a', '<f4')]": "a['src']", "|V2": "raw bytes", "|f4": "no number type", "": "no number type", "<x9": "no number type", "<f3": "no number type",
	} {
		if _, _, err := ParseType(descr); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), descr) {
			t.Errorf("%s: %v lacks %q", descr, err, want)
		}
	}
	for _, c := range []struct {
		descr string
		size  int64
		data  string
		want  string
	}{
		{"<U2", 8, "\xe4\x00\x00\x00\x00\x00\x00\x00", "ä"},
		{">U2", 8, "\x00\x00\x00\xe4\x00\x00\x00b", "äb"},
		{"|S4", 4, "ab\x00\x00", "ab"},
	} {
		typ, swapped, ok := ParseText(c.descr)
		if !ok || typ.Size() != c.size || !typ.IsText() || typ.IsInteger() {
			t.Fatalf("%s: %s %v", c.descr, typ, ok)
		}
		b := []byte(c.data)
		if swapped {
			typ.Swap(b)
		}
		if got := typ.Text(b); got != c.want {
			t.Errorf("%s: %q, want %q", c.descr, got, c.want)
		}
	}
	for _, descr := range []string{"<f4", "|S0", "|S5000", "<U99999999999999999999", "|S+3", "|S", "|O"} {
		if _, _, ok := ParseText(descr); ok {
			t.Errorf("%s is text", descr)
		}
	}
}

// TestOrder tells arrays that are stored column by column from those that are not.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		shape   []int64
		columns bool
	}{{[]int64{2, 2}, true}, {[]int64{3}, false}, {[]int64{1, 5}, false}, {[]int64{5, 1}, false}, {[]int64{0, 5}, false}, {nil, false}} {
		h := Header{Descr: "<f4", Fortran: true, Shape: c.shape}
		if h.ByColumns() != c.columns || h.CheckOrder() != nil {
			t.Errorf("%v: %v", c.shape, h.ByColumns())
		}
	}
	if err := (Header{Fortran: true, Shape: []int64{2, 3, 4}}).CheckOrder(); err == nil || !strings.Contains(err.Error(), "ascontiguousarray") {
		t.Errorf("three dimensions: %v", err)
	}
}

func TestWriteIsRead(t *testing.T) {
	for _, shape := range [][]int64{{}, {5}, {2, 3}, {math.MaxUint32, 768}, {0, 7}} {
		var b bytes.Buffer
		if err := Write(&b, Float32, shape...); err != nil {
			t.Fatal(err)
		}
		h, err := Read(bytes.NewReader(b.Bytes()))
		if err != nil || !slices.Equal(h.Shape, shape) || h.Descr != "<f4" || b.Len()%64 != 0 || h.Size != int64(b.Len()) {
			t.Errorf("%v: %+v, %v", shape, h, err)
		}
	}
}

func TestConversions(t *testing.T) {
	ints := []struct {
		t    Type
		data string
		want []int64
	}{
		{Int8, "\xff\x01", []int64{-1, 1}},
		{Uint8, "\xff\x01", []int64{255, 1}},
		{Bool, "\x00\x01", []int64{0, 1}},
		{Int16, "\xfe\xff", []int64{-2}},
		{Uint16, "\xfe\xff", []int64{65534}},
		{Int32, "\xfe\xff\xff\xff", []int64{-2}},
		{Uint32, "\xfe\xff\xff\xff", []int64{math.MaxUint32 - 1}},
		{Int64, "\xfe\xff\xff\xff\xff\xff\xff\xff", []int64{-2}},
	}
	for _, c := range ints {
		got := make([]int64, len(c.want))
		c.t.Ints(got, []byte(c.data))
		values, doubles := make([]float32, len(c.want)), make([]float64, len(c.want))
		c.t.Floats(values, []byte(c.data))
		c.t.Doubles(doubles, []byte(c.data))
		if doubles[0] != float64(c.want[0]) {
			t.Errorf("%s: %v as float64, want %v", c.t, doubles, c.want)
		}
		swapped := []byte(c.data)
		c.t.Swap(swapped)
		c.t.Swap(swapped)
		if string(swapped) != c.data {
			t.Errorf("%s: swapping twice gives %q", c.t, swapped)
		}
		if !slices.Equal(got, c.want) || values[0] != float32(c.want[0]) || !c.t.IsInteger() {
			t.Errorf("%s: %v, %v, want %v", c.t, got, values, c.want)
		}
	}
	for h, want := range map[uint16]float64{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x0001: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x7bff: 65504, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1), 0x3555: 0.333251953125,
	} {
		got := []float32{0}
		Float16.Floats(got, []byte{byte(h), byte(h >> 8)})
		if float64(got[0]) != want {
			t.Errorf("half %#x is %v, want %v", h, got[0], want)
		}
	}
	got := []float32{0, 0}
	Float16.Floats(got, []byte{0, 0x80, 1, 0x7c})
	if math.Float32bits(got[0]) != 1<<31 || got[1] == got[1] {
		t.Errorf("-0 and NaN became %v", got)
	}
	Float64.Floats(got[:1], []byte("\x00\x00\x00\x00\x00\x00\x00\xc0"))
	Uint64.Floats(got[1:], []byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	if got[0] != -2 || got[1] != 0x1p64 {
		t.Errorf("%v", got)
	}
	long, data := make([]float32, 1000), bytes.Repeat([]byte{7, 0}, 1000)
	Int16.Floats(long, data)
	if slices.Min(long) != 7 || slices.Max(long) != 7 {
		t.Error("long vectors of integers are converted in parts")
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	_ = Write(&b, Int64, 3, 4)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Read(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%v is no ErrFormat", err)
			}
			return
		}
		if h.Size > int64(len(data)) || h.Items() < 0 {
			t.Errorf("%+v", h)
		}
		typ, _, err := ParseType(h.Descr)
		if text, _, ok := ParseText(h.Descr); ok && text.Size() > MaxText {
			t.Errorf("%+v has elements of %d bytes", h, text.Size())
		}
		if err == nil && h.Items() > 0 && h.Items()*typ.Size() < 0 {
			t.Errorf("%+v overflows", h)
		}
	})
}
