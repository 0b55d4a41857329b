// Package catalog lists what is committed in a run directory. A file exists when
// the catalogue names it: its bytes are durable and hashed by then.
//
// # Model
//
// An [Entry] says what a file is: the stage that wrote it, its kind, its rows, columns
// and hop, and the SHA-256 of its bytes. No meaning is parsed from names of files.
// One process at a time, the owner, changes the catalogue ([Open]). Others hold views
// ([NewView]), whose changes the owner makes. The owner tells a view what has
// changed since the view was updated last ([Catalog.Since], [Catalog.Update]).
//
// # Memory
//
// About 300 bytes an entry. The owner takes twice that, because it keeps the latest changes for
// views: as many entries as the catalogue has, or a thousand. A run has some files for each
// interval of rows and panel of columns.
package catalog
