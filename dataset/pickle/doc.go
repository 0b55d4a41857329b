// Package pickle reads Python pickles of arrays, sparse matrices, lists and
// dictionaries as plain data: nothing in the file can make it run anything.
//
// # Model
//
// A pickle is a program for a small stack machine. [Read] runs the part of it
// that builds data. Every class or function that the program names must be on
// a fixed list (NumPy arrays, SciPy CSR matrices, list, dict, defaultdict,
// OrderedDict, _codecs.encode, and those of an [Extension]); another one is refused with [ErrClass] and its name. What is
// on the list is not executed either: it becomes an [Array], an [Object] or a
// [Dict].
//
// The bytes of an array stay in the file: a string longer than [MaxText] is
// skipped and becomes a [Bytes] that says where it lies.
//
// # Format
//
// Pickle protocols 2 to 4 as described in Python's pickletools. Python 3 writes
// the bytes of an array in protocol 2 as _codecs.encode(text, "latin1"): then
// they lie in the file as UTF-8, which [Bytes.Latin1] says and [Latin1Reader]
// undoes.
//
// # Memory
//
// At most [MaxObjects] bytes of pickle are read apart from skipped strings, and the objects that they make take at
// most [MaxHeld], whatever the pickle asks for: each object is counted before it is made. A list of integers keeps 8
// bytes for each. Nobody may follow a value without a bound on the depth: a list may hold itself.
//
// # Not supported
//
// Protocols 0, 1 and 5, sets, integers of more than 64 bits.
package pickle
