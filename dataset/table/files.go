package table

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// format is how a file holds its rows.
type format uint8

const (
	unknownFormat format = iota
	parquetFormat
	arrowFormat
	csvFormat
	jsonFormat
)

// formats are the known ends of names, without .gz and the like.
var formats = map[string]format{
	".parquet": parquetFormat, ".pq": parquetFormat,
	".arrow": arrowFormat, ".feather": arrowFormat, ".ipc": arrowFormat,
	".csv": csvFormat, ".tsv": csvFormat, ".txt": csvFormat, "": csvFormat,
	".jsonl": jsonFormat, ".ndjson": jsonFormat, ".json": jsonFormat,
}

// formatOf is the format that the end of a name tells.
func formatOf(name string) format {
	base := strings.ToLower(filepath.Base(name))
	if ext := filepath.Ext(base); source.Packed(ext) {
		base = strings.TrimSuffix(base, ext)
	}
	return formats[filepath.Ext(base)]
}

// hidden reports whether a file or folder is none of the data, as writers of tables mark it:
// _SUCCESS, _metadata, .part-00000.crc.
func hidden(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") }

// place locates a table: a list of files, folders, patterns and prefixes of buckets.
type place struct{ paths []string }

// parsePlace takes a list apart; a comma in a name is written as %2C.
func parsePlace(key, text string) (p place, err error) {
	for _, part := range strings.Split(text, ",") {
		path, err := graph.PathOf(part)
		if err != nil {
			return p, err
		}
		if path == "" {
			return p, graph.BadURI("table: %s=%s names an empty path: write a file, folder, pattern or s3:// prefix, or several with commas between them", key, text)
		}
		p.paths = append(p.paths, path)
	}
	return p, nil
}

func (p place) given() bool { return len(p.paths) > 0 }

// String names the place in messages.
func (p place) String() string { return strings.Join(p.paths, ",") }

// identity is the place without folders of the host.
func (p place) identity() string {
	if !p.given() {
		return ""
	}
	names := make([]string, len(p.paths))
	for i, path := range p.paths {
		names[i] = strings.ReplaceAll(graph.EscapePath(filepath.Base(path)), ",", "%2C")
	}
	return strings.Join(names, ",")
}

// open opens the files of a table.
func (p place) open(ctx context.Context, files *source.Files) (list []*tableFile, err error) {
	for _, path := range p.paths {
		var some []*tableFile
		switch {
		case strings.HasPrefix(path, "s3://"):
			some, err = openBucket(ctx, files, path)
		default:
			some, err = openLocal(files, path)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// openLocal opens a file, the files below a folder, or those that a pattern names, in order of their paths.
func openLocal(files *source.Files, path string) (opened []*tableFile, err error) {
	names, err := localFiles(path)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		f := &tableFile{name: name, format: formatOf(name)}
		if f.format == unknownFormat {
			return nil, unknownFile(name)
		}
		if f.src, _, err = files.Open(name); err != nil {
			return nil, err
		}
		opened = append(opened, f)
	}
	if len(opened) == 0 {
		return nil, noFiles(path)
	}
	return opened, nil
}

// localFiles lists a file, the files below a folder, or those that a pattern names.
func localFiles(path string) (names []string, err error) {
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return below(path)
	case err == nil:
		return []string{path}, nil
	case !strings.ContainsAny(path, "*?["):
		return nil, err
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, graph.BadURI("the pattern %s: %v", path, err)
	}
	for _, name := range found {
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			inside, err := below(name)
			if err != nil {
				return nil, err
			}
			names = append(names, inside...)
		} else if !hidden(filepath.Base(name)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// below lists the files of a folder and of the folders in it, but for hidden ones.
func below(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != folder && hidden(d.Name()) && d.IsDir():
			return fs.SkipDir
		case !d.IsDir() && !hidden(d.Name()):
			names = append(names, path)
		}
		return nil
	})
	return names, err
}

func noFiles(where string) error {
	return graph.BadData(where, "holds no file of a table: name a place with .parquet, .csv, .tsv, .arrow or .jsonl files")
}

func unknownFile(name string) error {
	return graph.BadData(name, "is no table by the end of its name: name .parquet, .csv, .tsv, .txt, .arrow, .feather, .jsonl or .ndjson files, packed as .gz or .zst or not, with a pattern such as FOLDER/*.parquet, or move the file elsewhere")
}
