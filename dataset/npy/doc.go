// Package npy reads and writes the headers of NumPy array files and converts
// their elements, so that an array of any size can be streamed. Elements are numbers of up
// to 64 bits, in either order of bytes, or text of a fixed length.
//
// # Format
//
// NumPy format specification, versions 1.0, 2.0 and 3.0 (numpy.lib.format): the
// magic "\x93NUMPY", a version, the length of the header, and a Python
// dictionary with the keys descr, fortran_order and shape.
//
// # Memory
//
// One header, at most [MaxHeader] bytes.
//
// # Not supported
//
// Structured types, complex numbers, times, numbers of more than 64 bits and object arrays
// are refused by name.
package npy
