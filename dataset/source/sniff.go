package source

import (
	"bytes"
	"regexp"

	"ndls/dataset/graph"
)

// Sniffed is the number of bytes of a text file that are searched for signs that it is none.
const Sniffed = 512

// signatures are the first bytes of files that are no text, and what to do with
// such a file. What a file holds is told by its name alone: a text reader is
// asked to read one of these where the name is wrong or the form is not read.
var signatures = []struct{ first, advice string }{
	{"\xff\xfe", utf16},
	{"\xfe\xff", utf16},
	{"\x1f\x8b", "is gzip data: give it a name that ends in .gz"},
	{"\x28\xb5\x2f\xfd", "is zstd data: give it a name that ends in .zst"},
	{"PK\x03\x04", "is a zip archive: give it a name that ends in .zip, or .npz if NumPy wrote it"},
	{"\xfd7zXZ\x00", "is xz data: give it a name that ends in .xz"},
	{"BZh91AY&SY", "is bzip2 data: give it a name that ends in .bz2"},
	{"7z\xbc\xaf\x27\x1c", "is a 7z archive, which is not read: unpack it, or pack it as .gz or .zst"},
	{"\x04\x22\x4d\x18", "is lz4 data: give it a name that ends in .lz4"},
	{"PAR1", "is a Parquet file: give it a name that ends in .parquet"},
	{"\x93NUMPY", "is a NumPy array: give it a name that ends in .npy"},
	{"ARROW1", "is an Arrow IPC file: give it a name that ends in .arrow"},
	{"\x89HDF\r\n", "is an HDF5 file, which is not read: open it with h5py, and save arrays with numpy.save, sparse matrices with scipy.sparse.save_npz"},
	{"MATLAB ", "is a MATLAB file, which is not read: open it with scipy.io.loadmat (h5py for version 7.3), and save arrays with numpy.save, sparse matrices with scipy.sparse.save_npz"},
	{"\x80\x02", pickled},
	{"\x80\x03", pickled},
	{"\x80\x04", pickled},
	{"\x80\x05", pickled},
	{"SQLite format 3\x00", "is an SQLite database: write the table to a CSV file"},
}

const pickled = "is a Python pickle: save arrays with numpy.save, sparse matrices with scipy.sparse.save_npz, tables with to_csv or to_parquet"

const utf16 = "is UTF-16 text: write encoding=utf-16 in the URI, or save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"

// written are forms of text that are no tables or lists, and what to do with such a file.
var written = []struct {
	begins *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?is)^\s*(<\?xml.*)?<graphml`), networkx("GraphML", "read_graphml")},
	{regexp.MustCompile(`(?is)^\s*(<\?xml.*)?<gexf`), networkx("GEXF", "read_gexf")},
	{regexp.MustCompile(`(?is)^\s*<(!doctype\s+)?html`), "is a web page, which a server may have sent in place of the file: fetch the file again"},
	{regexp.MustCompile(`^\s*<\?xml`), "is XML, which is not read: write its edges as CSV"},
	{regexp.MustCompile(`(?i)^(\s*#.*\n|\s*(creator|version|comment|directed|multigraph)\s.*\n)*\s*graph\s*\[`), networkx("GML", "read_gml")},
	{regexp.MustCompile(`(?i)^\s*(strict\s+)?(di)?graph(\s+("[^"]*"|\w+))?\s*\{`), networkx("DOT", "nx_pydot.read_dot")},
	{regexp.MustCompile(`(?i)^\s*\*(vertices|network|arcs|edges)\b`), networkx("Pajek", "read_pajek")},
	{regexp.MustCompile(`^version https://git-lfs\.github\.com/`), "is a pointer to a file in Git LFS: fetch the file itself (git lfs pull)"},
}

// networkx advises to write the edges of a graph as a table.
func networkx(form, read string) string {
	return "is " + form + ", which is not read: in Python, networkx.to_pandas_edgelist(networkx." + read + "(FILE)).to_csv(\"edges.csv\", index=False), then table:edges.csv"
}

// RefuseKnown refuses a file that begins like a known format.
func RefuseKnown(name string, head []byte) error { return refuseKnown(name, head, false) }

// refuseKnown is RefuseKnown; text may be UTF-16 where that is asked for.
func refuseKnown(name string, head []byte, wide bool) error {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.first)) && !(wide && s.advice == utf16) {
			return graph.BadData(name, "%s", s.advice)
		}
	}
	return nil
}

// zerosBetween returns the byte order of UTF-16 where nearly every other byte is 0, and hardly any between, else "".
func zerosBetween(head []byte) string {
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	switch half := len(head) / 2; {
	case half > 1 && 10*zeros[1] >= 8*half && 20*zeros[0] <= half:
		return "utf-16le"
	case half > 1 && 10*zeros[0] >= 8*half && 20*zeros[1] <= half:
		return "utf-16be"
	}
	return ""
}

// refuse refuses a file by its first bytes: one that cannot be text, and text in a form that no reader knows.
func refuse(name string, head []byte, e *Encoding) error {
	wide := e != nil && e.wide
	if err := refuseKnown(name, head, wide); err != nil {
		return err
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return graph.BadData(name, "is a tar archive: unpack it (tar -xf) and name the file that is meant")
	}
	if bytes.IndexByte(head, 0) >= 0 && !wide {
		if order := zerosBetween(head); order != "" {
			return graph.BadData(name, "every other byte is 0, as in UTF-16: write encoding=%s in the URI, or save it as UTF-8", order)
		}
		if bytes.IndexByte(head, '\n') < 0 || bytes.Count(head, []byte{0}) > 2+len(head)/16 {
			return graph.BadData(name, "holds binary data, and its name makes it text: the end of the name tells what a file is (.npy, .npz, .parquet, .arrow, .u32, .u64; see `ndls help datasets`)")
		}
	}
	text := bytes.TrimPrefix(head, []byte(mark))
	for _, w := range written {
		if w.begins.Match(text) {
			return graph.BadData(name, "%s", w.advice)
		}
	}
	return nil
}

// dimacs is the begin of a DIMACS file.
var dimacs = regexp.MustCompile(`^(c([ \t].*)?\r?\n)*p[ \t]+(sp|edges?|col|tw)[ \t]+\d+[ \t]+\d+`)

// RefuseGraph refuses a text whose first line is given, if it has another kind of URI, or another end of its name.
func (l *Lines) RefuseGraph(line []byte) error {
	const most = 8 << 10
	switch {
	case l.number == 1 && dimacs.Match(l.buf[:min(l.end, most)]):
		return graph.BadData(l.Name(), "is a DIMACS file: write dimacs:FILE")
	case bytes.HasPrefix(line, []byte("%%MatrixMarket")):
		return graph.BadData(l.Where(), "is a MatrixMarket file: write mtx:FILE, or give it a name that ends in .mtx")
	case bytes.HasPrefix(line, []byte(`{"`)) || bytes.HasPrefix(line, []byte("[{")) || bytes.HasPrefix(line, []byte("[[")):
		return graph.BadData(l.Where(), "is JSON: objects, one a line, are read by table: from files whose names end in .jsonl")
	}
	return nil
}
