// Package catalog lists what is committed in a run directory. A file exists when
// the catalogue names it: its bytes are durable and hashed by then.
//
// # Model
//
// An [Entry] describes a file: the stage that wrote it, its kind, its rows, columns and hop, and the SHA-256 of its bytes. File names carry
// no meaning. One process at a time, the owner, changes the catalogue ([Open]). Others hold views ([NewView]), whose changes the owner
// makes. The owner tells a view what has changed since its last update ([Catalog.Since], [Catalog.Update]).
//
// # Memory
//
// About 300 bytes per entry. The owner uses twice that, because it keeps the latest changes for views: as many entries as the catalogue
// has, or a thousand. A run has some files per interval of rows and panel of columns.
package catalog
