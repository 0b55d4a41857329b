// Package inputid has the ids by which users know their nodes: whole numbers of 64 bits,
// or text. It gives each a key, and finds the number of a node by its key.
//
// # Model
//
// An id has a [Type]. Its key is a string of bytes whose order is the order of ids: by
// value for numbers, by bytes for text. The number of a node is the place of its id among
// all ids of the graph in that order, from 0. So numbers depend on the set of ids alone.
// Inside of a run nodes are known by number; outputs have the ids.
//
// # Algorithm
//
// A [Table] is a hash table with open addressing. It keeps 96 bits of a hash of each key
// in place of the key. Two members with the same 96 bits are found when the second one is
// added, and refused. For ids that are numbers the hash is a bijection, so that the table
// is exact. For text an id that is no member passes for one with a probability below
// n/2^96 for n members.
//
// # Memory
//
// 16 bytes for each id, divided by the load of the table, 0.85 ([TableBytes]).
//
// # Determinism
//
// What a table answers does not depend on the order in which ids were added.
package inputid
