// Package npy reads and writes the headers of NumPy array files and converts
// their elements, so that an array of any size can be streamed.
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
// Structured types, text, complex numbers and object arrays are recognised in
// the header but have no elements to convert. Fortran order and big-endian
// arrays are refused by [Header.Plain].
package npy
