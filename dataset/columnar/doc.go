// Package columnar opens Parquet and Arrow files of users, so that damaged ones give an
// error: a panic of the libraries, a length that a file cannot have, or an encoding that the
// library decodes to wrong values is refused with the name of the file and the way out.
//
// # Memory
//
// A page of at most 16 MiB of each Parquet column that is read, or a record batch of at most
// 32 MiB of an Arrow file.
//
// # Not supported
//
// Parquet with DELTA encodings or LZ4, encrypted files.
package columnar
