package registry

import (
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/stage"
)

// common lists the kinds that several stages write.
var common = []stage.Kind{{Name: catalog.KindCheckpoint}}

// kinds maps the name of a kind to its description.
var kinds = func() map[string]stage.Kind {
	m := map[string]stage.Kind{}
	add := func(list []stage.Kind, stage control.Stage) {
		for _, k := range list {
			k.Stage = stage
			m[k.Name] = k
		}
	}
	add(common, "")
	for _, s := range All {
		add(s.Writes(), s.Name())
	}
	return m
}()

// KindOf returns the description of a kind, or the zero Kind if the name is unknown.
func KindOf(name string) stage.Kind { return kinds[name] }
