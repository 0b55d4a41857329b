// Package seal proves that this program wrote a file as it is: the seal of Parquet and Arrow files,
// and the errors that every reader of the run directory gives for a file that is damaged.
//
// # Format
//
// A seal lies between the data of a file and its footer, where every reader of Parquet and Arrow
// skips it. It has a CRC-32C for each row group or record batch, and one for itself and the footer;
// [Writer] has the layout.
//
// # Memory
//
// A Writer keeps the footer of its file, and 16 bytes a row group or record batch.
//
// # Not supported
//
// Finding out which of two files is the newer one: the catalogue does that.
package seal
