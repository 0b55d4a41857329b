// Package torch reads files that torch.save has written, without torch: tensors stay in the
// file, and are streamed from there.
//
// # Format
//
// Since version 1.6 such a file is a zip archive: NAME/data.pkl is a pickle in which tensors
// refer to storages, NAME/data/KEY are the storages, NAME/byteorder says "little". The
// pickle is read by package pickle, which executes nothing; the classes of
// torch_geometric.data become objects with a state.
//
// # Memory
//
// The pickle, as package pickle says.
//
// # Not supported
//
// Files of torch before 1.6, big-endian storages, sparse and quantised tensors.
package torch
