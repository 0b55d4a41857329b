package dataset

import (
	"errors"
	"strings"
	"testing"
)

// TestDirected: layouts take directed= beside their own keys, the identity says it, and edges are
// the same.
func TestDirected(t *testing.T) {
	folder := "ogb:" + ogbFolder(t, ogbBinary())
	for _, c := range []struct {
		uri, identity string
		directed      bool
	}{
		{folder, "ogb:small", false},
		{folder + "?directed=false", "ogb:small", false},
		{folder + "?directed=true", "ogb:small?directed=true", true},
	} {
		ds := open(t, c.uri, Options{})
		if info := ds.Info(); info.Directed != c.directed || info.Identity != c.identity || IsDirected(info.Identity) != c.directed {
			t.Errorf("%s: %+v", c.uri, info)
		}
	}
	for rest, want := range map[string][2]string{
		"a":                          {"a", ""},
		"a?directed=true":            {"a", "?directed=true"},
		"a?split=1&directed=true":    {"a?split=1", "&directed=true"},
		"a?directed=true&split=1":    {"a?split=1", "?directed=true"},
		"a?directed=false&split=1":   {"a?split=1", ""},
		"a,size=tiny,directed=true":  {"a,size=tiny", ",directed=true"},
		"a,directed=true,size=small": {"a,size=small", ",directed=true"},
	} {
		left, key, err := cutDirected(rest)
		if err != nil || left != want[0] || key != want[1] {
			t.Errorf("%s: %q, %q, %v", rest, left, key, err)
		}
	}
	if _, err := Open(t.Context(), folder+"?directed=maybe", Options{}); !errors.Is(err, ErrURI) || !strings.Contains(err.Error(), "true or false") {
		t.Error(err)
	}
}

// TestMutual: files whose lines stand for both directions have no directions.
func TestMutual(t *testing.T) {
	for name, text := range map[string]string{
		"mtx":    "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n",
		"metis":  "3 2\n2 3\n1\n1\n",
		"dimacs": "p edge 3 2\ne 1 2\ne 1 3\n",
	} {
		uri := name + ":" + writeFiles(t, map[string][]byte{"g": []byte(text)}) + "/g"
		open(t, uri, Options{})
		if _, err := Open(t.Context(), uri+"?directed=true", Options{}); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "leave out directed=true") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"mtx":    "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 1\n3 1\n",
		"dimacs": "p sp 3 2\na 1 2 4\na 1 3 5\n",
	} {
		if info := open(t, name+":"+writeFiles(t, map[string][]byte{"g": []byte(text)})+"/g?directed=true", Options{}).Info(); !info.Directed {
			t.Errorf("%s: %+v", name, info)
		}
	}
}
