package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// ndarray returns what Python writes for numpy.array([1, 2], dtype='<i4'); data holds the opcodes
// of its bytes.
func ndarray(data string) string {
	return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R" +
		"(K\x01K\x02\x85cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + data + "tb"
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, program, want string }{
		{"numbers", "\x80\x02(K\x07M\x01\x02J\xfe\xff\xff\xff\x8a\x02\x00\x80\x8a\x00G\x3f\xf0\x00\x00\x00\x00\x00\x00N\x88\x89t.", "[7 513 -2 -32768 0 1 <nil> true false]"},
		{"list of integers", "\x80\x02]q\x01(K\x01K\x02e.", "&{[1 2] []}"},
		{"mixed list", "\x80\x02](K\x01NK\x02e.", "&{[] [1 <nil> 2]}"},
		{"memo", "\x80\x02]q\x01K\x05ah\x010.", "&{[5] []}"},
		{"dict", "\x80\x02}(U\x01aK\x01U\x01bK\x02u.", "&{[{{6 1 a false} 1} {{11 1 b false} 2}]}"},
		{"defaultdict", "\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x01]K\x02au.", ""},
		{"protocol 4", "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x04list\x94\x93)R.", "&{[] []}"},
		{"array", "\x80\x02" + ndarray("U\x08\x01\x00\x00\x00\x02\x00\x00\x00") + ".", ""},
		{"scalar", "\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nU\x02i8K\x00K\x01\x87R(K\x03U\x01<NNNK\x00K\x00K\x00tbU\x08\x05\x00\x00\x00\x00\x00\x00\x00\x86R.", "5"},
	} {
		got, err := Read(strings.NewReader(c.program))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.name == "defaultdict" {
			d := got.(*Dict)
			if len(d.Pairs) != 1 || d.Pairs[0].Key != int64(1) || d.Pairs[0].Value.(*List).Len() != 1 {
				t.Errorf("%s: %v", c.name, d)
			}
			continue
		}
		if a, ok := got.(*Array); ok {
			if a.Descr != "<i4" || !slices.Equal(a.Shape, []int64{2}) || a.Data.Len != 8 || c.program[a.Data.Off:a.Data.Off+8] != "\x01\x00\x00\x00\x02\x00\x00\x00" {
				t.Errorf("%+v", a)
			}
			continue
		}
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// TestSections checks that long strings stay in the file, also as Python 3 writes
// them in protocol 2.
func TestSections(t *testing.T) {
	raw := make([]byte, 1000)
	for i := range raw {
		raw[i] = byte(i)
	}
	var utf8 strings.Builder
	for _, b := range raw {
		utf8.WriteRune(rune(b))
	}
	text := utf8.String()
	program := "\x80\x02c_codecs\nencode\nX" + string([]byte{byte(len(text)), byte(len(text) >> 8), 0, 0}) + text + "U\x06latin1\x86R."
	got, err := Read(strings.NewReader(program))
	b, ok := got.(Bytes)
	if err != nil || !ok || !b.Latin1 || b.Text != "" || b.Len != int64(len(text)) {
		t.Fatalf("%v, %v", got, err)
	}
	back, err := io.ReadAll(Latin1Reader(strings.NewReader(program[b.Off : b.Off+b.Len])))
	if err != nil || !bytes.Equal(back, raw) {
		t.Errorf("%d bytes, %v", len(back), err)
	}
	for _, bad := range []string{"a\xc4\x80", "\xc3", "\xff\xff"} {
		if _, err := io.ReadAll(Latin1Reader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, program string
		kind          error
		want          string
	}{
		{"system", "\x80\x02cos\nsystem\nU\x06rm -rf\x85R.", ErrClass, "os.system"},
		{"eval", "\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", ErrClass, "builtins.eval"},
		{"scipy coo", "\x80\x02cscipy.sparse.coo\ncoo_matrix\n)\x81.", ErrClass, "scipy.sparse.coo.coo_matrix"},
		{"protocol 0", "(lp0\n.", ErrFormat, "protocols 2 to 4"},
		{"protocol 5", "\x80\x05N.", ErrFormat, "protocol 5"},
		{"empty", "", ErrFormat, "ends too early"},
		{"no stop", "\x80\x02N", ErrFormat, "ends too early"},
		{"stack", "\x80\x02.", ErrFormat, "stack is empty"},
		{"mark", "\x80\x02(.", ErrFormat, "mark"},
		{"no mark", "\x80\x02t.", ErrFormat, "no mark"},
		{"opcode", "\x80\x02I5\n.", ErrFormat, "opcode 0x49"},
		{"memo", "\x80\x02h\x07.", ErrFormat, "reference to nothing"},
		{"long string", "\x80\x02T\xff\xff\xff\x7f.", ErrFormat, "ends too early"},
		{"long integer", "\x80\x02\x8a\x09123456789.", ErrFormat, "64 bits"},
		{"append", "\x80\x02K\x01K\x02a.", ErrFormat, "no list"},
		{"setitem", "\x80\x02]K\x01K\x02s.", ErrFormat, "no dict"},
		{"call", "\x80\x02K\x01)R.", ErrFormat, "no class"},
		{"ndarray call", "\x80\x02cnumpy\nndarray\n)R.", ErrFormat, "no class"},
		{"codec", "\x80\x02c_codecs\nencode\nU\x01aU\x05utf16\x86R.", ErrFormat, "latin1"},
		{"structured", "\x80\x02cnumpy\ndtype\nU\x02V8\x85R(K\x03U\x01|N(U\x01atNK\x00tb.", ErrFormat, "structured"},
		{"large", "\x80\x02" + strings.Repeat("N0", MaxObjects/2+1) + ".", ErrTooLarge, "8 MiB"},
	} {
		_, err := Read(strings.NewReader(c.program))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestBombs reads pickles of a few MiB, which pack into kilobytes, that ask for far more memory. Reading all of them takes little:
// what is allocated in all bounds what is held at any time.
func TestBombs(t *testing.T) {
	const full = MaxObjects - 4096
	times := func(s string, n int) string { return strings.Repeat(s, n) }
	wide := "\x80\x02(" + times("K\x01", 200_000) + "tq\x00"
	shape := "\x80\x02(" + times("K\x01", 10_000) + "tq\x000cnumpy\ndtype\nU\x02f4\x85Rq\x010"
	for name, program := range map[string]string{
		"marks":             "\x80\x02" + times("(", full),
		"duplicates":        "\x80\x02N" + times("2", full),
		"nested lists":      "\x80\x02" + times("]", full/2) + times("a", full/2),
		"lists in lists":    "\x80\x02]q\x00" + times("0]h\x00aq\x00", full/7) + ".",
		"lists dropped":     "\x80\x02" + times("]0", full/2),
		"dicts":             "\x80\x02(" + times("}", full),
		"tuples":            "\x80\x02" + times(")0", full/2),
		"memo":              "\x80\x04N" + times("\x94", full),
		"wide tuples":       wide + times("0h\x00h\x00h\x00\x87q\x00", full/9),
		"growing tuples":    "\x80\x02)q\x00" + times("0("+times("h\x00", 100)+"tq\x00", full/205),
		"numbers":           "\x80\x02](" + times("M\xff\xff", 200_000) + times("e("+times("M\xff\xff", 200_000), 12) + "e.",
		"numbers and text":  "\x80\x02]" + times("("+times("M\xff\xff", 200_000)+"e", 12) + "U\x01aa.",
		"items":             "\x80\x02]q\x00" + times("h\x00a", full/3),
		"entries":           "\x80\x02}" + times("NNs", full/3),
		"texts":             "\x80\x02" + times("U\x000", full/3),
		"classes":           "\x80\x02" + times("cnumpy\ndtype\n0", full/14),
		"types":             "\x80\x02cnumpy\ndtype\nq\x00U\x02f4\x85q\x01" + times("0h\x00h\x01R", full/6),
		"shapes":            shape + times("cnumpy.core.multiarray\n_reconstruct\n)R(K\x01h\x00h\x01\x89U\x00tb0", full/60),
		"a negative length": "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
		"a huge length":     "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x0f.",
		"a huge number":     "\x80\x02\x8b\xff\xff\xff\x7f.",
		"a long name":       "\x80\x02c" + times("a", full) + "\nb\n.",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(strings.NewReader(program))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrFormat) && err != nil {
			t.Errorf("%s: %v has no kind", name, err)
		}
		// Slices and maps that grow are copied a few times.
		if n := after.TotalAlloc - before.TotalAlloc; n > 6*MaxHeld {
			t.Errorf("%s: %d MiB were allocated, %v", name, n>>20, err)
		}
	}
}

// TestDescribe: a list that holds itself, and tuples that would print without end, are described in a few words.
func TestDescribe(t *testing.T) {
	tuples := Tuple{int64(1)}
	for range 60 {
		tuples = Tuple{tuples, tuples}
	}
	list := &List{}
	list.add(list)
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "None"},
		{true, "true"},
		{int64(5), "5"},
		{Bytes{Len: 1, Text: "a"}, `"a"`},
		{Bytes{Len: 1 << 40}, "a long text"},
		{tuples, "a tuple of 2 items"},
		{list, "a list of 1 items"},
		{&Dict{}, "a dict of 0 entries"},
		{&Object{Class: Class{"m", "Data"}}, "a Data"},
		{Class{"m", "Data"}, "the class Data"},
		{mark{}, "another object"},
	} {
		if got := Describe(c.v); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x80\x02" + ndarray("U\x08\x01\x00\x00\x00\x02\x00\x00\x00") + "."))
	f.Add([]byte("\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x01]K\x02au."))
	f.Add([]byte("\x80\x04\x8c\x08builtins\x94\x8c\x04list\x94\x93)R."))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Read(bytes.NewReader(data))
		if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrClass) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v has no kind", err)
		}
	})
}
