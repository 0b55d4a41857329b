// Package rundir gives a process what it needs of a run directory and of the
// disk beside it before it works there: the store, the lock, a folder for
// temporary files, and a cache of what lies in an object store.
//
// # Model
//
// A run directory is a local folder or s3://bucket/prefix. One process at a time
// writes to a local one: it holds a lock on the folder, which the system takes
// away when the process ends, however it ends. In an object store the journal
// alone tells coordinators apart.
//
// [Prepare] finds out what the file systems are able to do, before anything is written.
//
// # Not supported
//
// File systems without locks are used without a lock; Prepare warns of that.
package rundir
