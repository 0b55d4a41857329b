package inputid

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/mem"
)

// TestKeysKeepOrder compares the order of keys with that of ids, and reads them back.
func TestKeysKeepOrder(t *testing.T) {
	edges := rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64, math.MaxInt64})
	rapid.Check(t, func(r *rapid.T) {
		a, b := rapid.OneOf(rapid.Int64(), edges).Draw(r, "a"), rapid.OneOf(rapid.Int64(), edges).Draw(r, "b")
		x, y := AppendInt(nil, a), AppendInt(nil, b)
		if bytes.Compare(x, y) != cmp.Compare(a, b) || Int(x) != a || Int64.Bits(x) != a {
			r.Fatalf("%d, %d: %x, %x", a, b, x, y)
		}
		u, v := AppendUint(nil, uint64(a)), AppendUint(nil, uint64(b))
		if bytes.Compare(u, v) != cmp.Compare(uint64(a), uint64(b)) || Uint(u) != uint64(a) || Uint64.Bits(u) != a {
			r.Fatalf("%d, %d: %x, %x", uint64(a), uint64(b), u, v)
		}
		for _, typ := range []Type{Int64, Uint64} {
			key := typ.AppendBits(nil, a)
			text := string(typ.AppendText(nil, key))
			back, ok := typ.ParseKey(nil, text)
			if !ok || !bytes.Equal(back, key) {
				r.Fatalf("%s %s becomes %x, %v", typ, text, back, ok)
			}
			var n Narrowest
			n.Show(text)
			if a >= 0 && n.Type() != Int64 || a < 0 && typ == Uint64 && n.Type() != Uint64 {
				r.Fatalf("%s is taken for %s", text, n.Type())
			}
		}
	})
}

func TestNarrowest(t *testing.T) {
	for list, want := range map[string]Type{
		"": Int64, "0": Int64, "-5 7": Int64, "9223372036854775807": Int64,
		"9223372036854775808": Uint64, "0 18446744073709551615": Uint64,
		"-1 18446744073709551615": String, "18446744073709551616": String,
		"007": String, "+7": String, "1.0": String, "-0": String, "1 a": String, "1e3": String,
	} {
		var n Narrowest
		for _, id := range strings.Fields(list) {
			n.Show(id)
		}
		if n.Type() != want {
			t.Errorf("%q is taken for %s, not %s", list, n.Type(), want)
		}
	}
}

// TestTableFindsLikeAMap compares a table with a map.
func TestTableFindsLikeAMap(t *testing.T) {
	b, err := mem.NewBudget(128 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	rapid.Check(t, func(r *rapid.T) {
		typ := rapid.SampledFrom([]Type{Int64, Uint64, String}).Draw(r, "type")
		id := rapid.Custom(func(r *rapid.T) string {
			if typ == String {
				return rapid.StringN(0, 3, 8).Draw(r, "text")
			}
			return string(typ.AppendBits(nil, rapid.Int64Range(-20, 20).Draw(r, "bits")))
		})
		members := rapid.SliceOfDistinct(id, func(s string) string { return s }).Draw(r, "members")
		table, err := NewTable(b, typ, int64(len(members)))
		if err != nil {
			r.Fatal(err)
		}
		defer table.Free()
		numbers := map[string]uint32{}
		for i, key := range members {
			numbers[key] = uint32(i)
			if err := table.Add([]byte(key), uint32(i)); err != nil {
				r.Fatal(err)
			}
		}
		for _, key := range append(rapid.SliceOf(id).Draw(r, "others"), members...) {
			want, known := numbers[key]
			if got, ok := table.Find([]byte(key)); ok != known || ok && got != want {
				r.Fatalf("%q is %d, %v", key, got, ok)
			}
		}
		if _, ok := table.Find([]byte("of another type")); ok && typ != String {
			r.Fatal("found text among numbers")
		}
	})
	if b.Free() != b.Limit() {
		t.Error("memory was not given back")
	}
}

// TestCollisionIsRefused has two ids with one hash.
func TestCollisionIsRefused(t *testing.T) {
	b, err := mem.NewBudget(128 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	table, err := NewTable(b, String, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Free()
	table.hash = func([]byte) (lo, hi uint64) { return 5, 7 }
	if err := table.Add([]byte("a"), 0); err != nil {
		t.Fatal(err)
	}
	if err := table.Add([]byte("b"), 1); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a second id of the same hash gives %v", err)
	}
}
