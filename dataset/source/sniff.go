package source

import (
	"bytes"

	"ndls/dataset/graph"
)

// Sniffed is how many bytes of a text file are looked at for signs that it is none.
const Sniffed = 512

// signatures are the first bytes of files that are no text, and what to do with
// such a file. What a file holds is told by its name alone: a text reader is
// asked to read one of these where the name is wrong or the form is not read.
var signatures = []struct{ first, advice string }{
	{"\xff\xfe", "is UTF-16 text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\xfe\xff", "is UTF-16 text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\x1f\x8b", "is gzip data: give it a name that ends in .gz"},
	{"\x28\xb5\x2f\xfd", "is zstd data: give it a name that ends in .zst"},
	{"PK\x03\x04", "is a zip archive: give it a name that ends in .zip, or .npz if NumPy wrote it"},
	{"\xfd7zXZ\x00", "is xz data: give it a name that ends in .xz"},
	{"BZh91AY&SY", "is bzip2 data: give it a name that ends in .bz2"},
	{"7z\xbc\xaf\x27\x1c", "is a 7z archive, which is not read: unpack it, or pack it as .gz or .zst"},
	{"\x04\x22\x4d\x18", "is lz4 data: give it a name that ends in .lz4"},
	{"PAR1", "is a Parquet file: give it a name that ends in .parquet"},
	{"\x93NUMPY", "is a NumPy array: give it a name that ends in .npy"},
	{"ARROW1", "is an Arrow IPC file: features are read from it if its name ends in .arrow; save other tables as Parquet or CSV"},
	{"\x89HDF\r\n", "is an HDF5 file, which is not read: save the array with numpy.save"},
	{"\x80\x02", pickled},
	{"\x80\x03", pickled},
	{"\x80\x04", pickled},
	{"\x80\x05", pickled},
	{"SQLite format 3\x00", "is an SQLite database: write the table to a CSV file"},
}

const pickled = "is a Python pickle: save arrays with numpy.save, tables with to_csv or to_parquet"

// RefuseBinary refuses a file that cannot be text by its first bytes.
func RefuseBinary(name string, head []byte) error {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.first)) {
			return graph.BadData(name, "%s", s.advice)
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return graph.BadData(name, "is a tar archive: unpack it (tar -xf) and name the file that is meant")
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return graph.BadData(name, "holds binary data, and its name makes it text: the end of the name tells what a file is (.npy, .npz, .parquet, .arrow, .u32, .u64; see `ndls help datasets`)")
	}
	return nil
}
