package table

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls/dataset/columnar"
	"ndls/dataset/columnar/columnartest"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/testgraph"
)

// readColumn holds what was read of a column.
type readColumn struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Type   string `json:"type"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest,omitempty"`
	First  string `json:"first,omitempty"`
	Last   string `json:"last,omitempty"`
	Error  string `json:"error,omitempty"`
}

// readFile holds what was read of a file.
type readFile struct {
	File    string       `json:"file"`
	Error   string       `json:"error,omitempty"`
	Columns []readColumn `json:"columns"`
}

// valueText is a value as judge.py writes it, too.
func valueText(k kind, v *columnar.Values, row int) string {
	single := func(i int) string {
		switch x := v.List[i]; {
		case v.Hole != nil && v.Hole[i]:
			return "null"
		case x != x:
			return "nan"
		default:
			return fmt.Sprintf("%08x", math.Float32bits(x))
		}
	}
	var parts []string
	if v.IsNull(row) {
		return "null"
	}
	switch k {
	case uintKind:
		return strconv.FormatUint(uint64(v.Ints[row]), 10)
	case floatKind:
		if v.Floats[row] != v.Floats[row] {
			return "nan"
		}
		return fmt.Sprintf("%016x", math.Float64bits(v.Floats[row]))
	case decimalKind:
		return string(v.Text[row])
	case textKind:
		return hex.EncodeToString(v.Text[row])
	case listKind, vectorKind:
		start := 0
		if row > 0 {
			start = v.Ends[row-1]
		}
		for i := start; i < v.Ends[row]; i++ {
			if k == vectorKind {
				parts = append(parts, fmt.Sprintf("%d:%s", v.At[i], single(i)))
			} else {
				parts = append(parts, single(i))
			}
		}
		if k == vectorKind {
			return fmt.Sprintf("%d<%s>", v.Size[row], strings.Join(parts, ","))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return strconv.FormatInt(v.Ints[row], 10)
}

// readColumns reads all columns of a file, each on its own.
func readColumns(t testing.TB, path string) readFile {
	t.Helper()
	var files source.Files
	defer func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}()
	src, _, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return columnsOf(t, src, !strings.Contains(path, ".parquet"))
}

// columnsOf reads all columns of a source.
func columnsOf(t testing.TB, src *source.Source, isArrow bool) (got readFile) {
	t.Helper()
	got.File = src.Name
	fail := func(err error) string {
		if !errors.Is(err, graph.ErrData) {
			t.Errorf("%s: an error of another kind: %v", src.Name, err)
		}
		return err.Error()
	}
	open := openParquet
	if isArrow {
		open = openArrow
	}
	f, err := open(src)
	if err != nil {
		got.Error = fail(err)
		return got
	}
	titles := f.titles()
	for i, c := range f.Columns() {
		r := readColumn{Name: c.Name, Kind: titles[i].kind.String(), Type: c.Type.Name}
		sum := sha256.New()
		if err := readOne(f, i, titles[i].kind, &r, sum); err != nil {
			r.Error = fail(err)
		} else {
			r.Digest = hex.EncodeToString(sum.Sum(nil))
		}
		got.Columns = append(got.Columns, r)
	}
	return got
}

// mostRows is the number of rows of a column that are read: a damaged file may claim any number of
// nulls.
const mostRows = 1 << 20

func readOne(f *columnarFile, column int, k kind, r *readColumn, sum hash.Hash) error {
	if err := f.Check(column); err != nil {
		return err
	}
	for unit := range f.Units() {
		if r.Rows > mostRows {
			return nil
		}
		in, err := f.Read(unit, []int{column}, graph.MaxFeatures)
		if err != nil {
			return err
		}
		var v [1]columnar.Values
		for {
			n, err := in.Next(100, v[:])
			if err == io.EOF || r.Rows > mostRows {
				break
			}
			if err != nil {
				return errors.Join(err, in.Close())
			}
			for row := range n {
				r.Last = valueText(k, &v[0], row)
				if r.Rows == 0 {
					r.First = r.Last
				}
				r.Rows++
				_, _ = io.WriteString(sum, r.Last+"\n")
			}
		}
		if err := in.Close(); err != nil {
			return err
		}
	}
	if f.Units() == 0 {
		if c := f.Columns()[column]; k == otherKind {
			return graph.BadData("file", "column %q is of type %s, which is not read", c.Name, c.Type.Name)
		}
	}
	return nil
}

// corpora are files of others: in the folders that NDLS_CORPORA names, or in ../shared/corpora.
func corpora(t *testing.T) (files []string) {
	t.Helper()
	folders := filepath.SplitList(os.Getenv("NDLS_CORPORA"))
	if len(folders) == 0 {
		folders = []string{testgraph.Published(t, "corpora")}
	}
	named := regexp.MustCompile(`\.(parquet|arrow|arrows|feather|ipc)(\.encrypted)?$|_file$|\.stream$`)
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && named.MatchString(path) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// isBad reports whether the name of a file tells that it is to be refused.
var isBad = regexp.MustCompile(`bad_data|broken|corrupt|encrypt`)

// TestCorpora reads all columns of published files of Parquet and Arrow, and lists what is refused and
// why. With NDLS_PYTHON it compares all values with what pyarrow reads.
func TestCorpora(t *testing.T) {
	var read []readFile
	refused := map[string][]string{}
	for _, path := range corpora(t) {
		got := readColumns(t, path)
		read = append(read, got)
		short := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
		isRefused := got.Error != ""
		if isRefused {
			why := strings.TrimPrefix(got.Error, path+": ")
			refused[why] = append(refused[why], short)
		}
		for _, c := range got.Columns {
			if c.Error != "" {
				isRefused = true
				why := regexp.MustCompile(`column ".*?"`).ReplaceAllString(strings.TrimPrefix(c.Error, path+": "), "column")
				refused[why] = append(refused[why], short+" "+c.Name)
			}
		}
		if isBad.MatchString(path) && !isRefused && !isGood[filepath.Base(path)] {
			t.Errorf("%s is read, and its name says that it is damaged", path)
		}
	}
	for _, why := range sortedKeys(refused) {
		t.Logf("%s: %s", why, strings.Join(slices.Compact(refused[why]), ", "))
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if most := uint64(1 << 30); stats.Sys > most {
		t.Errorf("the files took %d MiB of memory", stats.Sys>>20)
	}
	if len(read) < 200 && os.Getenv("NDLS_CORPORA") == "" {
		t.Errorf("there are %d files", len(read))
	}
	for _, d := range judge(t, read) {
		if name := filepath.Base(strings.SplitN(d, ": ", 2)[0]); !isKnown(name, d) {
			t.Error(d)
		}
	}
}

// isGood are files whose names say that they are damaged, and that every reader reads.
var isGood = map[string]bool{
	"ARROW-GH-43605.parquet": true,
}

// isKnown reports whether a difference is one that is meant.
func isKnown(name, difference string) bool {
	if strings.Contains(difference, "is big-endian") { // pyarrow turns the bytes around
		return true
	}
	for known, about := range map[string]string{
		"datapage_v1-corrupt-checksum.parquet": "checksum",      // DuckDB does not look at it either
		"bigdecimal.parquet":                   "[1, 76]: 77",   // pyarrow has no decimals of more digits
		"empty_group_test.parquet":             "column nested", // pyarrow leaves groups without columns out
	} {
		if strings.HasPrefix(name, known) && strings.Contains(difference, about) {
			return true
		}
	}
	return false
}

func sortedKeys[T any](m map[string]T) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// python is the interpreter with pyarrow, Polars and DuckDB.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("NDLS_PYTHON")
	if name == "" && os.Getenv("CI") == "true" {
		t.Fatal("NDLS_PYTHON is not set, and CI=true requires it: it names a python with pyarrow, Polars and DuckDB")
	}
	return name
}

// judge compares what was read with what pyarrow reads, and returns the differences.
func judge(t *testing.T, read []readFile) []string {
	t.Helper()
	name := python(t)
	if name == "" {
		t.Log("values are not compared: NDLS_PYTHON is not set")
		return nil
	}
	var in bytes.Buffer
	for _, f := range read {
		if err := json.NewEncoder(&in).Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(context.Background(), name, "testdata/judge.py")
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge.py: %v\n%s\n%s", err, out, stderr.String())
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// TestWriters reads what pyarrow, Polars and DuckDB write, with every encoding, compression and type.
func TestWriters(t *testing.T) {
	name := python(t)
	if name == "" {
		t.Skip("NDLS_PYTHON is not set: it names a python with pyarrow, Polars and DuckDB")
	}
	dir := t.TempDir()
	if out, err := exec.Command(name, "testdata/files.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var read []readFile
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got := readColumns(t, filepath.Join(dir, e.Name()))
		for _, c := range got.Columns {
			if c.Error != "" && !strings.Contains(c.Error, "which is not read") {
				t.Error(c.Error)
			}
		}
		read = append(read, got)
	}
	for _, d := range judge(t, read) {
		t.Error(d)
	}
}

// seeds are small files with columns of every type.
func seeds(t testing.TB) (parquets, arrows [][]byte) {
	lists := make([][]float32, 30)
	ids, floats, texts := make([]any, 30), make([]float64, 30), make([]string, 30)
	for i := range lists {
		lists[i], ids[i], floats[i], texts[i] = []float32{float32(i), 2}, int64(i), float64(i)/3, fmt.Sprint("node number ", i%7)
	}
	ids[5] = nil
	cols := []col{{"i", ids}, {"f", floats}, {"t", texts}, {"l", lists}}
	parquets, arrows = append(parquets, asParquet(t, cols)), append(arrows, asArrow(t, cols))
	name := os.Getenv("NDLS_PYTHON")
	if name == "" {
		return parquets, arrows
	}
	dir := t.TempDir()
	if out, err := exec.Command(name, "testdata/files.py", dir, "30").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".parquet") {
			parquets = append(parquets, data)
		} else {
			arrows = append(arrows, data)
		}
	}
	return parquets, arrows
}

// TestDamagedColumns writes over bytes of files of every kind: there is an error that says so or an answer,
// never a panic, and an end, in little memory.
func TestDamagedColumns(t *testing.T) {
	parquets, arrows := seeds(t)
	random := rand.New(rand.NewPCG(1, 2))
	tries := 40
	if n, err := strconv.Atoi(os.Getenv("NDLS_DAMAGE")); err == nil {
		tries = n
	}
	for k, files := range [][][]byte{parquets, arrows} {
		for _, good := range files {
			for range tries {
				bad := bytes.Clone(good)
				for range 1 + random.IntN(4) {
					at := random.IntN(len(bad))
					if random.IntN(2) == 0 { // what tells lengths is at the end
						at = len(bad) - 1 - random.IntN(min(len(bad), 2000))
					}
					switch random.IntN(3) {
					case 0:
						bad[at] = byte(random.Uint32())
					case 1:
						bad[at] ^= 1 << random.IntN(8)
					default:
						bad[at] = []byte{0, 0xff, 0x7f, 0x80}[random.IntN(4)]
					}
				}
				if random.IntN(10) == 0 {
					bad = bad[:random.IntN(len(bad))]
				}
				columnsOf(t, columnartest.Source(bad), k == 1)
			}
		}
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if most := uint64(2 << 30); stats.Sys > most {
		t.Errorf("damaged files took %d MiB of memory", stats.Sys>>20)
	}
}

// FuzzParquet reads all columns of any bytes.
func FuzzParquet(f *testing.F) {
	parquets, _ := seeds(f)
	for _, data := range parquets {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { columnsOf(t, columnartest.Source(data), false) })
}

// FuzzArrow reads all columns of any bytes.
func FuzzArrow(f *testing.F) {
	_, arrows := seeds(f)
	for _, data := range arrows {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { columnsOf(t, columnartest.Source(data), true) })
}
